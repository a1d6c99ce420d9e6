"""Where an A1 went, from its own sensors: feet that stand do not move, so the trunk moves against them.

Shapes: T samples; legs FL, FR, HL, HR. It is dead reckoning: slipping feet and a drifting heading add up.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HIPS: Final = np.array([(0.183, 0.047, 0.0), (0.183, -0.047, 0.0), (-0.183, 0.047, 0.0), (-0.183, -0.047, 0.0)])
"""m, of the hip joints in the trunk."""
OUTWARD: Final = np.array([0.08505, -0.08505, 0.08505, -0.08505])
"""m from a hip joint to its thigh joint, to the left."""
LINK: Final = 0.2
"""m, length of thigh and of calf."""
FOOT_RADIUS: Final = 0.02
BELLY: Final = 0.057
"""m of the trunk's middle above the ground when it lies."""
STANDING: Final = 5.0
"""N. A foot pressed harder than this stands."""


def feet(position: Array, velocity: Array) -> tuple[Array, Array]:
    """(where feet are, how fast they move) in the trunk's frame, (T, leg, 3) each, from joints (T, leg, 3)."""
    hip, thigh, knee = position[..., 0], position[..., 1], position[..., 1] + position[..., 2]
    d_hip, d_thigh, d_knee = velocity[..., 0], velocity[..., 1], velocity[..., 1] + velocity[..., 2]
    forward = -LINK * (np.sin(thigh) + np.sin(knee))
    d_forward = -LINK * (np.cos(thigh) * d_thigh + np.cos(knee) * d_knee)
    down = -LINK * (np.cos(thigh) + np.cos(knee))  # before the hip turns the leg about x
    d_down = LINK * (np.sin(thigh) * d_thigh + np.sin(knee) * d_knee)
    left, up = (
        OUTWARD * np.cos(hip) - down * np.sin(hip),
        OUTWARD * np.sin(hip) + down * np.cos(hip),
    )
    d_left, d_up = -up * d_hip - d_down * np.sin(hip), left * d_hip + d_down * np.cos(hip)
    return np.stack((forward, left, up), axis=-1) + HIPS, np.stack((d_forward, d_left, d_up), axis=-1)


def reckon(
    time: Array, quaternion: Array, angular_velocity: Array, position: Array, velocity: Array, foot_force: Array
) -> tuple[Array, Array]:
    """(position in the world, velocity in the trunk's frame) of the trunk, (T, 3) each, from measurements."""
    place, speed = feet(position, velocity)
    speed[..., 0] -= FOOT_RADIUS * (velocity[..., 1] + velocity[..., 2] + angular_velocity[:, None, 1])  # feet roll
    standing = (foot_force > STANDING).astype(float)
    backward = speed + np.cross(angular_velocity[:, None], place)
    grounded = standing.sum(axis=1)
    trunk = -(backward * standing[..., None]).sum(axis=1) / np.maximum(grounded, 1.0)[:, None]
    last = np.maximum.accumulate(np.where(grounded > 0, np.arange(len(time)), 0))
    trunk = trunk[last]  # in the air: as fast as when the last foot left the ground
    rotation = rotation_of(quaternion)
    steps = np.diff(time, prepend=time[:1])[:, None]
    path = np.cumsum(np.einsum("tij,tj->ti", rotation, trunk) * steps, axis=0)
    heights = -np.einsum("tj,tlj->tl", rotation[:, 2], place) + FOOT_RADIUS
    path[:, 2] = np.maximum(heights.max(axis=1), BELLY)
    return path, trunk


def rotation_of(quaternion: Array) -> Array:
    """(T, 3, 3) from the trunk's frame to the world's, of unit quaternions (T, 4) w x y z."""
    w, x, y, z = quaternion.T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.moveaxis(np.array(rows), -1, 0)
