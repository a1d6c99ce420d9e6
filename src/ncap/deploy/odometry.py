"""Dead reckoning of an A1 from its own sensors: feet that stand do not move, so the trunk moves against them.

Shapes: T samples; legs FL, FR, HL, HR. Slipping feet and a drifting heading add up.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.rotations import rotation_of

Array = NDArray[np.float64]

HIPS: Final = np.array([(0.183, 0.047, 0.0), (0.183, -0.047, 0.0), (-0.183, 0.047, 0.0), (-0.183, -0.047, 0.0)])
"""(leg, 3) places of the hip joints in the trunk, m."""
OUTWARD: Final = np.array([0.08505, -0.08505, 0.08505, -0.08505])
"""(leg,) distance from a hip joint to its thigh joint, to the left, m."""
LINK: Final = 0.2
"""Length of thigh and of calf, m."""
FOOT_RADIUS: Final = 0.02
"""Radius of a foot, m."""
BELLY: Final = 0.057
"""Height of the trunk's middle above the ground when it lies, m."""
STANDING: Final = 5.0
"""Force on a foot above which it stands, N."""


def feet(position: Array, velocity: Array) -> tuple[Array, Array]:
    """(places in m, velocities in m/s) of the feet in the trunk's frame, (T, leg, 3) each.

    From joint positions in rad and joint velocities in rad/s, (T, leg, 3) each.
    """
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


def trunk_velocity(
    angular_velocity: Array, position: Array, velocity: Array, foot_force: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """(velocity of the trunk in its own frame in m/s (T, 3), whether a foot stands (T,)); 0 where none does.

    From angular velocity (T, 3) in rad/s, joint positions and velocities (T, leg, 3) in rad and rad/s, and foot forces
    (T, leg) in N.
    """
    place, speed = feet(position, velocity)
    speed[..., 0] -= FOOT_RADIUS * (velocity[..., 1] + velocity[..., 2] + angular_velocity[:, None, 1])  # feet roll
    standing = (foot_force > STANDING).astype(float)
    backward = speed + np.cross(angular_velocity[:, None], place)
    grounded = standing.sum(axis=1)
    return -(backward * standing[..., None]).sum(axis=1) / np.maximum(grounded, 1.0)[:, None], grounded > 0


def reckon(
    time: Array, quaternion: Array, angular_velocity: Array, position: Array, velocity: Array, foot_force: Array
) -> tuple[Array, Array]:
    """(position in the world in m, velocity in its own frame in m/s) of the trunk, (T, 3) each.

    From time (T,) in s, orientation (T, 4), angular velocity (T, 3) in rad/s, joint positions and velocities
    (T, leg, 3) in rad and rad/s, and foot forces (T, leg) in N.
    """
    place, _ = feet(position, velocity)
    trunk, grounded = trunk_velocity(angular_velocity, position, velocity, foot_force)
    last = np.maximum.accumulate(np.where(grounded, np.arange(len(time)), 0))
    trunk = trunk[last]  # in the air: as fast as when the last foot left the ground
    rotation = rotation_of(quaternion)
    steps = np.diff(time, prepend=time[:1])[:, None]
    path = np.cumsum(np.einsum("tij,tj->ti", rotation, trunk) * steps, axis=0)
    heights = -np.einsum("tj,tlj->tl", rotation[:, 2], place) + FOOT_RADIUS
    path[:, 2] = np.maximum(heights.max(axis=1), BELLY)
    return path, trunk
