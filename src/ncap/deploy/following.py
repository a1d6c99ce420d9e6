"""Whether a robot follows its commands, from the torques that it reports: lost commands are seen in no other message.

A motor that hears us gives kp (target - q) - kd dq, up to its limit, for a target that we sent not long ago. Joint
positions alone say little, because a walking robot is always far from its targets; torques say it within 0.2 s. Means
over blocks of time take the sensors' noise away. As nobody knows how long messages take, all targets of the last 0.3 s
are tried, and the one that explains the torques best counts.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.messages import State
from ncap.sim.robot import Robot

Array = NDArray[np.float64]

BLOCK: Final = 0.040
"""Time over which torques, positions and targets are averaged, s."""
DELAYS: Final = 8
"""Blocks by which a target may be older than the torques that it causes: 0.3 s."""
MEMORY: Final = 0.150
"""Time over which blocks are forgotten, s."""
ENOUGH: Final = 600.0
"""Sum of squares of the asked torques from which on they can be compared, N² m²: twelve motors at 7 N m."""


class Following:
    """Compares the torques that a robot reports with those that its commands ask for."""

    def __init__(self, robot: Robot, torque_limit: float) -> None:
        self._robot, self._limit = robot, torque_limit
        self.restart()

    def restart(self) -> None:
        """Forget everything, because nothing is commanded any more."""
        self.target: Array | None = None
        """(leg, 3) the target that was sent last, rad."""
        self._began = -math.inf
        self._blocks: list[Array] = []
        self._explained, self._asked = np.zeros(DELAYS), np.zeros(DELAYS)

    def share(self, state: State, at: float) -> float:
        """Share of the asked torque that the robot reports, about 0 if it hears nothing; from its state at time at, s.

        1 as long as too little is asked for to tell.
        """
        if self.target is None:
            return 1.0
        if self._began == -math.inf:
            self._begin(at)
        self._states += 1
        for total, part in zip(
            self._sums, (self.target, state.joint_position, state.joint_velocity, state.torque), strict=True
        ):
            total += part
        if at - self._began >= BLOCK:
            self._compare(*(self._sums / self._states))
            self._begin(at)
        if self._asked.min() < ENOUGH:  # the targets of some time ago ask for nothing: that would explain anything
            return 1.0
        return float((self._explained / self._asked).max())

    def _begin(self, at: float) -> None:
        self._began, self._states = at, 0
        self._sums = np.zeros((4, *self._robot.mid.shape))

    def _compare(self, target: Array, position: Array, velocity: Array, torque: Array) -> None:
        """Add a block's means (leg, 3) to the sums over time, one sum for every delay."""
        self._blocks = [target, *self._blocks][:DELAYS]
        robot, tried = self._robot, len(self._blocks)
        asked = robot.kp * (np.array(self._blocks) - position) - robot.kd * velocity
        asked = np.clip(asked, -self._limit, self._limit)
        kept = math.exp(-BLOCK / MEMORY)
        self._explained *= kept
        self._asked *= kept
        self._explained[:tried] += (1.0 - kept) * np.einsum("dlj,lj->d", asked, torque)
        self._asked[:tried] += (1.0 - kept) * np.einsum("dlj,dlj->d", asked, asked)
