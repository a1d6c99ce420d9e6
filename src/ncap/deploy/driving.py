"""Driving a robot in flight: somebody says what is wanted, and a brainstem turns it into the commands of a circuit.

The brainstem is the one of evaluations and of the live page. It feels the yaw rate by the gyroscope and the speed by
the legs: feet that stand do not move, so the trunk moves against them.
"""

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.contract import CONTROL_DT
from ncap.deploy.messages import State
from ncap.deploy.odometry import trunk_velocity
from ncap.deploy.safety import Received
from ncap.deploy.wishes import SLOW_WALK, STAND, Wish, check_wish
from ncap.errors import UserError
from ncap.policies.brainstem import Brainstem, can_be_driven
from ncap.policies.controller import Command
from ncap.policies.ncap import NCAPPolicy
from ncap.sim.legs import LegGeometry
from ncap.trained import TrainedPolicy

Array = NDArray[np.float64]

STILL: Final = 0.2
"""Velocity below which a joint is still, rad/s: with legs of 0.25 m the trunk moves by less than 0.05 m/s."""
STILL_SECONDS: Final = 0.3
"""Time for which all joints of a robot that stands are still, s."""
NEWS_SECONDS: Final = 1.0
"""Time between two status lines while nothing changes, s."""


class Driver(Protocol):
    """Somebody who says what is wanted, and is asked at every tick of a flight."""

    ending: str
    """Why the robot must stand, sit down and be damped; empty while it need not."""
    finished: bool
    """Whether the driver wants the flight to end, as it should."""
    note: str
    """A remark for the status line."""
    at_terminal: bool
    """Whether the driver sits at our terminal, whose loss is then a reason to sit down, not to drop the robot."""

    def refusal(self, received: Received) -> str:
        """Why a flight cannot begin; nothing if it can."""
        ...

    def wish(self, received: Received, now: float) -> Wish:
        """What is wanted at time now in s."""
        ...


class ConstantDriver:
    """Wants the same all the time."""

    ending = note = ""
    finished = at_terminal = False

    def __init__(self, wish: Wish = SLOW_WALK) -> None:
        self._wish = check_wish(wish)

    def refusal(self, _: Received) -> str:
        """Why a flight cannot begin: nothing."""
        return ""

    def wish(self, _: Received, now: float) -> Wish:
        """The one wish."""
        return self._wish


def drivable(policy: TrainedPolicy) -> bool:
    """Whether a policy has a circuit with the commands to turn and to stop."""
    return isinstance(policy.policy, NCAPPolicy) and can_be_driven(policy.policy.circuit)


def check_drivable(policy: TrainedPolicy) -> None:
    """Refuse to drive a policy that cannot be driven."""
    if not drivable(policy):
        raise UserError(f"{policy.name} cannot turn or stop, so it cannot be driven; a policy that can is ncap-drive")


class Steering:
    """A brainstem between wishes and the circuit of one robot in flight."""

    def __init__(self, legs: LegGeometry, *, fixed: Command | None = None) -> None:
        """Follow wishes with a brainstem, or give one fixed command until the robot is told to stand."""
        self._legs = legs
        self._brainstem, self._fixed = Brainstem(), fixed
        self._will = self._brainstem.start(1)
        self._still = 0.0
        self._told: tuple[Wish, str] | None = None
        self._tell_at = 0.0
        self.velocity = np.zeros(3)
        """(3,) of the trunk in its own frame by its legs, m/s."""
        self.wanted = STAND

    @property
    def stands(self) -> bool:
        """Whether the robot was told to stop, and is still."""
        return self._still >= STILL_SECONDS

    def step(self, wish: Wish, state: State, foot_force: Array) -> Command:
        """Commands of the circuit for the next control step, from tared foot forces (leg,) in N."""
        trunk, grounded = trunk_velocity(
            state.angular_velocity[None],
            state.joint_position[None],
            state.joint_velocity[None],
            foot_force[None],
            self._legs,
        )
        if grounded[0]:  # in the air: as fast as when the last foot left the ground
            self.velocity = trunk[0]
        self.wanted = wish
        felt = self.velocity[:1], (state.up @ state.angular_velocity)[None]
        wanted = np.array([wish.speed]), np.array([wish.yaw_rate])
        if self._fixed is not None and wish != STAND:
            self._will = self._will._replace(speed=self._will.felt_speed)  # from where it will slow down
            wanted = self._will.felt_speed, np.zeros(1)
        self._will, said = self._brainstem.step(self._will, wanted, felt, CONTROL_DT)
        still = bool(said["stop"][0]) and np.abs(state.joint_velocity).max() < STILL
        self._still = self._still + CONTROL_DT if still else 0.0
        return said if self._fixed is None or wish == STAND else self._fixed

    def news(self, note: str, now: float) -> str:
        """A status line if something is new or a second has passed; otherwise nothing."""
        if (self.wanted, note) == self._told and now < self._tell_at:
            return ""
        self._told, self._tell_at = (self.wanted, note), now + NEWS_SECONDS
        felt = self._will
        return (
            f"  wanted {self.wanted.speed:.2f} m/s, {self.wanted.yaw_rate:+.2f} rad/s; measured"
            f" {felt.felt_speed[0]:.2f} m/s, {felt.felt_yaw_rate[0]:+.2f} rad/s{'; ' * bool(note)}{note}"
        )
