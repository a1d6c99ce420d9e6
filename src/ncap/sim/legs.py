"""Legs of a robot as geometry: where its feet are, and how hard they press, from angles and torques of its joints.

Shapes: any number of samples, then (leg, 3) for joints; legs FL, FR, HL, HR.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.sim.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LegGeometry:
    """Lengths of a robot, m. All legs are alike: left and right, front and hind mirror each other."""

    hip_x: float
    """Distance from the trunk's middle to the hip joints, forward or back."""
    hip_y: float
    """The same to the left or right."""
    outward: float
    """Distance from a hip joint to its thigh joint, sideways."""
    thigh: float
    calf: float
    foot_radius: float
    belly: float
    """Height of the trunk's middle above the ground when it lies."""

    @property
    def hips(self) -> Array:
        """(leg, 3) places of the hip joints in the trunk, m."""
        return np.array([(self.hip_x * along, self.hip_y * aside, 0.0) for along in (1, -1) for aside in (1, -1)])


A1_LEGS: Final = LegGeometry(
    hip_x=0.183, hip_y=0.047, outward=0.08505, thigh=0.2, calf=0.2, foot_radius=0.02, belly=0.057
)
_LEFT: Final = np.array([1.0, -1.0, 1.0, -1.0])
"""(leg,) which side is outward."""


def legs_of(robot: Robot) -> LegGeometry:
    """The legs of a robot, with the A1's lengths where its data sheet says nothing."""
    usual = A1_LEGS
    hip_x, hip_y = robot.hip_at or (usual.hip_x, usual.hip_y)
    outward, thigh, calf = robot.links or (usual.outward, usual.thigh, usual.calf)
    return LegGeometry(
        hip_x=hip_x,
        hip_y=hip_y,
        outward=outward,
        thigh=thigh,
        calf=calf,
        foot_radius=robot.foot_radius or usual.foot_radius,
        belly=robot.belly or usual.belly,
    )


def feet(position: Array, velocity: Array, legs: LegGeometry = A1_LEGS) -> tuple[Array, Array]:
    """(places in m, velocities in m/s) of the feet in the trunk's frame, (T, leg, 3) each.

    From joint positions in rad and joint velocities in rad/s, (T, leg, 3) each.
    """
    hip, thigh, knee = position[..., 0], position[..., 1], position[..., 1] + position[..., 2]
    d_hip, d_thigh, d_knee = velocity[..., 0], velocity[..., 1], velocity[..., 1] + velocity[..., 2]
    upper, lower, outward = legs.thigh, legs.calf, legs.outward * _LEFT
    forward = -(upper * np.sin(thigh) + lower * np.sin(knee))
    d_forward = -(upper * np.cos(thigh) * d_thigh + lower * np.cos(knee) * d_knee)
    down = -(upper * np.cos(thigh) + lower * np.cos(knee))  # before the hip turns the leg about x
    d_down = upper * np.sin(thigh) * d_thigh + lower * np.sin(knee) * d_knee
    left, up = (
        outward * np.cos(hip) - down * np.sin(hip),
        outward * np.sin(hip) + down * np.cos(hip),
    )
    d_left, d_up = -up * d_hip - d_down * np.sin(hip), left * d_hip + d_down * np.cos(hip)
    return np.stack((forward, left, up), axis=-1) + legs.hips, np.stack((d_forward, d_left, d_up), axis=-1)


STRAIGHT: Final = 0.2
"""Sine of a knee's angle below which a leg counts as that much bent: a straight leg carries without any torque."""


def foot_forces(position: Array, torque: Array, legs: LegGeometry = A1_LEGS) -> Array:
    """(…, leg) force of the ground on every foot, N, as the motors feel it: across the trunk's plane, never below 0.

    From joint positions in rad and motor torques in N m, (…, leg, 3) each. A massless leg at rest has torque = -Jᵀ f
    for thigh and calf, J the motion of its foot in the plane of the leg and f the ground's force; solved for the part
    of f across the trunk's plane. What a leg needs for its own weight and swing counts, too: a few N mean nothing.
    """
    thigh, bend = position[..., 1], position[..., 2]
    knee = thigh + bend
    # det J = -thigh * calf * sin(bend); the forward motion of the foot with the thigh joint and with the calf joint
    sine = np.sin(bend)
    sine = np.where(np.abs(sine) < STRAIGHT, np.where(sine < 0, -STRAIGHT, STRAIGHT), sine)
    with_calf = -legs.calf * np.cos(knee)
    with_thigh = -legs.thigh * np.cos(thigh) + with_calf
    force = (with_thigh * torque[..., 2] - with_calf * torque[..., 1]) / (legs.thigh * legs.calf * sine)
    return np.maximum(force, 0.0)
