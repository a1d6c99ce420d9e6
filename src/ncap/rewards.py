"""What a task rewards, as pure functions of measurements. All arrays are (P,)."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def speed_reward(forward_velocity: Array, target: float) -> Array:
    """1 for velocities in [target, 2 target], falling linearly to 0 at -target and 4 target. m/s, (P,)."""
    rising = (forward_velocity + target) / (2 * target)
    falling = (4 * target - forward_velocity) / (2 * target)
    return np.clip(np.minimum(rising, falling), 0.0, 1.0)


def yaw_penalty(yaw_rate: Array, weight: float) -> Array:
    """-weight times the squared yaw rate in rad/s. (P,)."""
    return -weight * yaw_rate**2


def pitch_of(up: Array) -> Array:
    """Pitch in rad, (P,), from the vertical in the trunk's frame (P, 3): positive with the nose down."""
    return np.arctan2(-up[:, 0], up[:, 2])


def roll_of(up: Array) -> Array:
    """Roll in rad, (P,), from the vertical in the trunk's frame (P, 3): positive with the left side up."""
    return np.arctan2(up[:, 1], up[:, 2])
