"""Orientations: rotation matrices, the vertical in the trunk's frame, roll, pitch and tilt. Quaternions are w x y z."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rotation_of(quaternion: Array) -> Array:
    """(n, 3, 3) from the trunk's frame to the world's, of unit quaternions (n, 4)."""
    w, x, y, z = quaternion.T
    rotation = np.empty((len(quaternion), 3, 3))
    rotation[:, 0] = np.stack((1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)), axis=1)
    rotation[:, 1] = np.stack((2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)), axis=1)
    rotation[:, 2] = np.stack((2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)), axis=1)
    return rotation


def pitch_of(up: Array) -> Array:
    """Pitch in rad, (n,), from the vertical in the trunk's frame (n, 3): positive with the nose down."""
    return np.arctan2(-up[:, 0], up[:, 2])


def roll_of(up: Array) -> Array:
    """Roll in rad, (n,), from the vertical in the trunk's frame (n, 3): positive with the left side up."""
    return np.arctan2(up[:, 1], up[:, 2])


def tilt_deg(quaternion: Array) -> float:
    """Roll or pitch in degrees, whichever is larger, of one orientation (4,), whatever its heading.

    Plain floats: the robot's control loop asks for it at every tick.
    """
    w, x, y, z = quaternion.tolist()
    up = w * w - x * x - y * y + z * z
    across = max(abs(2 * (x * z - w * y)), abs(2 * (y * z + w * x)))
    return math.degrees(math.atan2(across, up))
