"""Dead reckoning of a robot from its own sensors: feet that stand do not move, so the trunk moves against them.

Shapes: T samples; legs FL, FR, HL, HR. Slipping feet and a drifting heading add up.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.rotations import rotation_of
from ncap.sim.legs import A1_LEGS, LegGeometry, feet

Array = NDArray[np.float64]

STANDING: Final = 5.0
"""Force on a foot above which it stands, N."""


def trunk_velocity(
    angular_velocity: Array, position: Array, velocity: Array, foot_force: Array, legs: LegGeometry = A1_LEGS
) -> tuple[Array, NDArray[np.bool_]]:
    """(velocity of the trunk in its own frame in m/s (T, 3), whether a foot stands (T,)); 0 where none does.

    From angular velocity (T, 3) in rad/s, joint positions and velocities (T, leg, 3) in rad and rad/s, and foot forces
    (T, leg) in N.
    """
    place, speed = feet(position, velocity, legs)
    speed[..., 0] -= legs.foot_radius * (
        velocity[..., 1] + velocity[..., 2] + angular_velocity[:, None, 1]
    )  # feet roll
    standing = (foot_force > STANDING).astype(float)
    backward = speed + np.cross(angular_velocity[:, None], place)
    grounded = standing.sum(axis=1)
    return -(backward * standing[..., None]).sum(axis=1) / np.maximum(grounded, 1.0)[:, None], grounded > 0


def reckon(
    time: Array,
    quaternion: Array,
    angular_velocity: Array,
    position: Array,
    velocity: Array,
    foot_force: Array,
    legs: LegGeometry = A1_LEGS,
) -> tuple[Array, Array]:
    """(position in the world in m, velocity in its own frame in m/s) of the trunk, (T, 3) each.

    From time (T,) in s, orientation (T, 4), angular velocity (T, 3) in rad/s, joint positions and velocities
    (T, leg, 3) in rad and rad/s, and foot forces (T, leg) in N.
    """
    place, _ = feet(position, velocity, legs)
    trunk, grounded = trunk_velocity(angular_velocity, position, velocity, foot_force, legs)
    last = np.maximum.accumulate(np.where(grounded, np.arange(len(time)), 0))
    trunk = trunk[last]  # in the air: as fast as when the last foot left the ground
    rotation = rotation_of(quaternion)
    steps = np.diff(time, prepend=time[:1])[:, None]
    path = np.cumsum(np.einsum("tij,tj->ti", rotation, trunk) * steps, axis=0)
    heights = -np.einsum("tj,tlj->tl", rotation[:, 2], place) + legs.foot_radius
    path[:, 2] = np.maximum(heights.max(axis=1), legs.belly)
    return path, trunk
