"""Orientations: rotation matrices, the vertical in the trunk's frame, roll, pitch and tilt. Quaternions are w x y z."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# every entry of a rotation matrix, in rows, is one or nothing, plus or minus a sum of two doubled products of w x y z
_PRODUCTS: Final = [[("yy", "zz"), ("xy", "wz"), ("xz", "wy")],
                    [("xy", "wz"), ("xx", "zz"), ("yz", "wx")],
                    [("xz", "wy"), ("yz", "wx"), ("xx", "yy")]]  # fmt: skip
_FIRST, _SECOND = (
    np.array([4 * "wxyz".index(pair[i][0]) + "wxyz".index(pair[i][1]) for row in _PRODUCTS for pair in row])
    for i in (0, 1)
)
_ONES: Final = np.eye(3).ravel()
_OUTER: Final = 1 - 2 * _ONES
_INNER: Final = np.array([[1, -1, 1], [1, 1, -1], [-1, 1, 1]], float).ravel()


def rotation_of(quaternion: Array) -> Array:
    """(n, 3, 3) from the trunk's frame to the world's, of unit quaternions (n, 4)."""
    doubled = (2 * quaternion)[:, :, None] * quaternion[:, None]
    products = doubled.reshape(len(quaternion), 16)
    rotation: Array = _ONES + _OUTER * (products.take(_FIRST, axis=1) + _INNER * products.take(_SECOND, axis=1))
    return rotation.reshape(len(quaternion), 3, 3)


def pitch_of(up: Array) -> Array:
    """Pitch in rad, (n,), from the vertical in the trunk's frame (n, 3): positive with the nose down."""
    return np.arctan2(-up[:, 0], up[:, 2])


def roll_of(up: Array) -> Array:
    """Roll in rad, (n,), from the vertical in the trunk's frame (n, 3): positive with the left side up."""
    return np.arctan2(up[:, 1], up[:, 2])


def heading_of(quaternion: Array) -> Array:
    """Heading in rad, (n,), of unit quaternions (n, 4): 0 along the world's x, positive to the left."""
    w, x, y, z = quaternion.T
    heading: Array = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y**2 + z**2))
    return heading


def tilt_deg(quaternion: Array) -> float:
    """Roll or pitch in degrees, whichever is larger, of one orientation (4,), whatever its heading.

    Plain floats: the robot's control loop asks for it at every tick.
    """
    w, x, y, z = quaternion.tolist()
    up = w * w - x * x - y * y + z * z
    across = max(abs(2 * (x * z - w * y)), abs(2 * (y * z + w * x)))
    return math.degrees(math.atan2(across, up))
