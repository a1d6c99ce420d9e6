"""Whether a robot follows its commands, from the torques that it reports: lost commands are seen in no other message.

A motor that hears us gives kp (target - q) - kd dq, up to its limit, for a target that we sent not long ago. Joint
positions alone say little, because a walking robot is always far from its targets; torques say it within 0.2 s. Means
over some time take the sensors' noise away. As nobody knows how long messages take, all targets of the last 0.3 s
are tried, and the one that explains the torques best counts.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.messages import State
from ncap.sim.robot import Robot

Array = NDArray[np.float64]

BLOCK: Final = 0.020
"""Time over which torques, positions and targets are added up, s. Means are those of two blocks."""
DELAYS: Final = 16
"""Blocks by which a target may be older than the torques that it causes: 0.3 s."""
MEMORY: Final = 0.200
"""Time over which comparisons are forgotten, s."""
ENOUGH: Final = 900.0
"""Sum of squares of the asked torques from which on they can be compared, N² m²: twelve motors at 8.7 N m."""
_NEW: Final = 1.0 - math.exp(-BLOCK / MEMORY)


class Following:
    """Compares the torques that a robot reports with those that its commands ask for."""

    def __init__(self, robot: Robot, torque_limit: Array | float) -> None:
        """Compare up to a torque limit, N m, of all joints or of each (leg, 3)."""
        self._robot, self._limit = robot, torque_limit
        self.restart()

    def restart(self) -> None:
        """Forget everything, because nothing is commanded any more."""
        self.target: Array | None = None
        """(leg, 3) the target that was sent last, rad."""
        self._began = 0.0
        self._states: list[tuple[Array, Array, Array, Array]] = []
        self._before: Array | None = None
        self._targets = np.full((DELAYS, *self._robot.mid.shape), np.nan)
        self._explained, self._asked = np.zeros(DELAYS), np.zeros(DELAYS)
        self._share = 1.0

    def share(self, state: State, at: float) -> float:
        """Share of the asked torque that the robot reports, about 0 if it hears nothing; from its state at time at, s.

        1 as long as too little is asked for to tell.
        """
        if self.target is None:
            return 1.0
        if not self._states:
            self._began = at
        self._states.append((self.target, state.joint_position, state.joint_velocity, state.torque))
        if at - self._began >= BLOCK - 1e-9:
            means = np.array(self._states).mean(axis=0)
            if self._before is not None:
                self._compare(*((self._before + means) / 2))
            self._before = means
            self._states.clear()
        return self._share

    def _compare(self, target: Array, position: Array, velocity: Array, torque: Array) -> None:
        """Add means (leg, 3) to the sums over time, one sum for every delay."""
        self._targets[1:] = self._targets[:-1]
        self._targets[0] = target
        robot, limit = self._robot, self._limit
        asked = robot.kp * (self._targets - position) - robot.kd * velocity
        asked = np.minimum(np.maximum(asked, -limit), limit).reshape(DELAYS, -1)
        asked[np.isnan(asked)] = 0.0  # where there was no target yet
        self._explained += (asked @ torque.ravel() - self._explained) * _NEW
        self._asked += ((asked * asked).sum(axis=1) - self._asked) * _NEW
        # where the targets of some time ago ask for nothing, that would explain anything
        known = self._asked.min() >= ENOUGH
        self._share = float((self._explained / self._asked).max()) if known else 1.0
