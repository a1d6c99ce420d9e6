"""Getting up: joint poses that bring a quadruped from its back, its side or its belly to standing. NumPy only.

From the back or a side the robot rolls over one side: the upper legs reach over the back and push until it lies on that
side, then the lower legs do the same and tip it onto its belly. From there it crouches and rises. After every roll and
every rise the robot is looked at again; if it does not lie on its belly, or does not stand, that was one attempt.

Poses are those of the Unitree A1. Their hips and thighs go far beyond the ranges of the circuit's motor neurons.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ncap.plan import LEGS, QUADRUPED

Array = NDArray[np.float64]
Lying = Literal["belly", "back", "left", "right"]
Triple = tuple[float, float, float]

ATTEMPTS: Final = 4
"""Attempts after which a robot gives up."""
LEVEL: Final = float(np.cos(np.deg2rad(45.0)))
"""Cosine of the largest angle between the vertical and the trunk's, at which a robot lies on its belly or back."""
UPRIGHT: Final = float(np.cos(np.deg2rad(35.0)))
"""The same of a robot that has risen: on a plane it is nearly level, but on bumps it may stand on a slope."""
NEAR: Final = 0.35
"""Largest difference of a joint from the standing pose in a robot that stands, rad: a loaded leg gives way a little."""
_LEFT: Final = np.array([leg in QUADRUPED.groups["side"]["L"] for leg in LEGS])
_OPPOSITE: Final = [LEGS.index(QUADRUPED.routes["cross"][leg]) for leg in LEGS]


@dataclass(frozen=True, kw_only=True)
class Pose:
    """A pose on the way over the left side; over the right one it is mirrored."""

    name: str
    lower: Triple
    """Hip, thigh and calf of the legs of the side that it rolls over, rad."""
    upper: Triple
    """The same of the other legs."""
    ramp: float
    """Time to get there, s."""
    hold: float = 0.0
    """Time to stay there, s."""

    def joints(self, over: Literal["left", "right"]) -> Array:
        """(leg, 3) joint positions on the way over that side, rad."""
        joints = np.where(_LEFT[:, None], self.lower, self.upper)
        return joints if over == "left" else mirrored(joints)


@dataclass(frozen=True, kw_only=True, eq=False)
class Move:
    """A pose of all legs, with its times."""

    name: str
    goal: Array
    """(leg, 3) rad."""
    ramp: float
    """Time to get there, s."""
    hold: float
    """Time to stay there, s."""


TUCKED: Final = (0.0, 1.2, -2.69)
"""A leg folded under the belly, rad."""
FOLDED_BACK: Final = (0.0, 3.0, -2.69)
"""A leg folded beside the back: its thigh points upwards in the trunk's frame, rad."""
REACHING: Final = (-0.8, 3.6, -0.92)
"""A leg stretched over the back and towards the left, rad."""
ROLL: Final = (
    Pose(name="upper legs to the back", lower=TUCKED, upper=FOLDED_BACK, ramp=0.5),
    Pose(name="push onto the side", lower=TUCKED, upper=REACHING, ramp=0.6, hold=0.2),
    Pose(name="lower legs to the back", lower=FOLDED_BACK, upper=REACHING, ramp=0.5),
    Pose(name="push onto the belly", lower=REACHING, upper=TUCKED, ramp=0.8, hold=0.2),
    Pose(name="fold", lower=(-0.3, *FOLDED_BACK[1:]), upper=TUCKED, ramp=0.4, hold=0.1),
    Pose(name="tuck", lower=TUCKED, upper=TUCKED, ramp=0.4, hold=0.2),
)
"""From the back or a side to the belly."""
CROUCH: Final = np.array(((0.0, 1.2, -2.5),) * len(LEGS))
"""(leg, 3) the crouch between lying and standing, trunk 9 cm above the ground, rad."""


def mirrored(joints: Array) -> Array:
    """The mirror image of joint positions (leg, 3): left and right legs change places, and hips their sign."""
    result: Array = joints[_OPPOSITE] * (-1.0, 1.0, 1.0)
    return result


def lying_on(up: Array) -> Lying:
    """The part on which a robot lies, or would lie, from the vertical in the trunk's frame (3,)."""
    if up[2] > LEVEL:
        return "belly"
    if up[2] < -LEVEL:
        return "back"
    return "left" if up[1] < 0.0 else "right"


def roll(up: Array) -> tuple[Move, ...]:
    """Moves to the belly, over the side that is lower."""
    over: Literal["left", "right"] = "left" if up[1] < 0.0 else "right"
    return tuple(Move(name=pose.name, goal=pose.joints(over), ramp=pose.ramp, hold=pose.hold) for pose in ROLL)


def rise(standing: Array) -> tuple[Move, ...]:
    """Moves from the belly to a standing pose (leg, 3)."""
    return (
        Move(name="crouch", goal=CROUCH, ramp=0.8, hold=0.3),
        Move(name="stand", goal=standing, ramp=1.2, hold=0.6),
    )


def within(low: Array, high: Array) -> bool:
    """Whether all poses but the standing one lie inside joint limits (leg, 3), rad."""
    sides: tuple[Literal["left", "right"], ...] = ("left", "right")
    poses = [CROUCH, *(pose.joints(side) for pose in ROLL for side in sides)]
    return all(bool(((low <= pose) & (pose <= high)).all()) for pose in poses)


class GettingUp:
    """One robot on its way up: `step` gives its joint targets until it stands, or until it gives up."""

    def __init__(self, begin: Array, standing: Array | None, *, attempts: int = ATTEMPTS) -> None:
        """Start with targets `begin` (leg, 3), where the joints are now; without a standing pose it ends on its belly.

        All targets lie between `begin`, the poses and the standing pose, joint by joint.
        """
        self.target = begin.copy()
        """(leg, 3) the last targets, rad."""
        self.attempt = 0
        """Number of the attempt, from 1 on after the first step; 0 if none was needed."""
        self.state: Literal["moving", "done", "given up"] = "moving"
        self.move = ""
        """Name of the move that goes on; empty before the first one."""
        self._standing, self._attempts = standing, attempts
        self._left: list[Move] = []
        self._before: Literal["", "roll", "rise"] = ""
        self._begin, self._elapsed = self.target, 0.0

    def step(self, up: Array, joints: Array, dt: float) -> Array:
        """Joint targets (leg, 3) for the next dt seconds; once it is done, or has given up, the last ones.

        up: (3,) the vertical in the trunk's frame. joints: (leg, 3) measured joint positions, rad.
        """
        if self.state == "moving" and not self._left:
            self._look(up, joints)
        if self.state != "moving":
            return self.target
        move = self._left[0]
        self.move = move.name
        self._elapsed += dt
        share = min(1.0, self._elapsed / move.ramp)
        self.target = self._begin + (move.goal - self._begin) * (3 - 2 * share) * share**2
        if self._elapsed > move.ramp + move.hold - dt / 2:
            self._left.pop(0)
            self._begin, self._elapsed = self.target, 0.0
        return self.target

    def _look(self, up: Array, joints: Array) -> None:
        """Choose what comes next from how the robot lies or stands."""
        on_belly = lying_on(up) == "belly"
        if self._standing is None:
            arrived = on_belly
        else:
            near = bool((np.abs(joints - self._standing) < NEAR).all())
            arrived = self._before == "rise" and near and bool(up[2] > UPRIGHT)
        if arrived:
            self.state = "done"
            return
        if self._before != "roll" or not on_belly:  # a rise after a roll belongs to the same attempt
            if self.attempt == self._attempts:
                self.state = "given up"
                return
            self.attempt += 1
        if on_belly and self._standing is not None:
            self._before, self._left = "rise", list(rise(self._standing))
        else:
            self._before, self._left = "roll", list(roll(up))
