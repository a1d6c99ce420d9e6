"""What a task rewards: named terms, each a pure function of what was measured, asked for, and of the task.

All arrays are (P,).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.rotations import pitch_of
from ncap.sim.simulation import Measurements

if TYPE_CHECKING:
    from ncap.tasks import Task

Array = NDArray[np.float64]

TRACKING_WIDTH: Final = 0.6
"""Distance from the target speed at which `tracking_reward` is 0, m/s."""


DRIVE_WIDTH: Final = 0.25
"""Squared error, of the speed in m/s and of the yaw rate in rad/s, at which the reward for it is 1/e."""
DRIVE_SHARE: Final = 0.5
"""Share of the speed in the reward for driving; the rest is the yaw rate's."""
STRIDE: Final = 0.6
"""Time over which a drive's speed and yaw rate are averaged, s: within a stride both swing by more than any error, and
a reward for every single moment is highest for hips that hardly move."""


class Goal(NamedTuple):
    """What everybody is asked for in a control step."""

    speed: Array
    """(P,) forward, m/s."""
    yaw_rate: Array
    """(P,) to the left, rad/s."""
    ahead: Array
    """(P,) distance from the nose to the target along the trunk, m; 0 in a task without a target."""
    left: Array
    """(P,) the same to the left, m."""


@dataclass(frozen=True)
class RewardTerm:
    """One term of a reward."""

    name: str
    value: "Callable[[Measurements, Goal, Task], Array]"
    """(P,) for every individual in a control step; a perfect step adds up to 1 over all terms."""


def speed_reward(forward_velocity: Array, target: float | Array) -> Array:
    """1 for velocities in [target, 2 target], falling linearly to 0 at -target and 4 target. m/s, (P,)."""
    rising = (forward_velocity + target) / (2 * target)
    falling = (4 * target - forward_velocity) / (2 * target)
    reward: Array = np.minimum(np.maximum(np.minimum(rising, falling), 0.0), 1.0)
    return reward


def tracking_reward(forward_velocity: Array, target: float | Array) -> Array:
    """1 at the target velocity, falling linearly to 0 at a distance of TRACKING_WIDTH. m/s, (P,)."""
    return np.maximum(1 - np.abs(forward_velocity - target) / TRACKING_WIDTH, 0.0)


def yaw_penalty(yaw_rate: Array, weight: float) -> Array:
    """-weight times the squared yaw rate in rad/s. (P,)."""
    return -weight * yaw_rate**2


def _speed(now: Measurements, goal: Goal, _: "Task") -> Array:
    return speed_reward(now.velocity[:, 0] * np.cos(pitch_of(now.up)), goal.speed)


def _yaw(now: Measurements, _: Goal, task: "Task") -> Array:
    return yaw_penalty(now.angular_velocity[:, 2], task.yaw_weight)


def _tracking(now: Measurements, goal: Goal, _: "Task") -> Array:
    return tracking_reward(now.velocity[:, 0] * np.cos(pitch_of(now.up)), goal.speed)


def _drive_speed(now: Measurements, goal: Goal, _: "Task") -> Array:
    error = now.velocity[:, 0] * np.cos(pitch_of(now.up)) - goal.speed
    kept: Array = DRIVE_SHARE * np.exp(-(error**2) / DRIVE_WIDTH)
    return kept


def _drive_yaw(now: Measurements, goal: Goal, _: "Task") -> Array:
    error = now.angular_velocity[:, 2] - goal.yaw_rate
    kept: Array = (1 - DRIVE_SHARE) * np.exp(-(error**2) / DRIVE_WIDTH)
    return kept


def _swim(now: Measurements, goal: Goal, _: "Task") -> Array:
    forward: Array = np.clip(now.velocity[:, 0] / goal.speed, 0.0, 1.0)
    return forward


def nearness(distance: Array, radius: float) -> Array:
    """1 within a radius of the target, a tenth at six times that distance, and never quite 0. (P,), m."""
    beyond = np.maximum(distance - radius, 0.0) / (5 * radius)
    return 1 / (1 + 9 * beyond**2)


def _near(now: Measurements, goal: Goal, task: "Task") -> Array:
    assert task.target is not None
    return nearness(np.hypot(goal.ahead, goal.left), task.target.radius)


SWIM: Final = RewardTerm("speed", _swim)
"""Forward speed of the head over the goal, within [0, 1]: dense, and nothing for swimming backwards."""
NEAR: Final = RewardTerm("nearness", _near)
"""Nearness of the nose to the target."""
SPEED: Final = RewardTerm("speed", _speed)
"""Forward speed in the robot's frame, near the goal."""
TRACKING: Final = RewardTerm("tracking", _tracking)
"""Forward speed in the robot's frame, at the goal and neither slower nor faster."""
DRIVE_SPEED: Final = RewardTerm("speed", _drive_speed)
"""Forward speed as wanted: exp(-error² / DRIVE_WIDTH), as in legged_gym and its descendants, but over strides."""
DRIVE_YAW: Final = RewardTerm("yaw", _drive_yaw)
"""Yaw rate as wanted, in the same way."""
YAW: Final = RewardTerm("yaw", _yaw)
"""Less for turning."""
FALL: Final = "fall"
"""Name of the term that every task has beside its own: the penalty for a fall."""
