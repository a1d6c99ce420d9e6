"""The data sheets of Unitree's Go1 and Go2, to go with go1.xml and go2.xml.

docs/reference/robots.md says where they are from.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from ncap.plan import LEGS
from ncap.sim.robot import ROBOTS, Robot

_FORE, _HIND = 2, 2
"""Legs of a girdle: tables have both rows of the front legs, then both of the hind legs."""

GO2: Final = Robot(
    name="go2",
    model=Path(__file__).with_name("go2.xml"),
    trunk="trunk",
    joints=tuple((f"{leg}_hip", f"{leg}_thigh", f"{leg}_calf") for leg in LEGS),
    feet=tuple(f"{leg}_foot" for leg in LEGS),
    ground_geoms=("trunk_box", "head", "chin", *(f"{leg}_thigh" for leg in LEGS)),
    position_min=((-0.15, -0.50, -2.10),) * _FORE + ((-0.15, -0.20, -2.10),) * _HIND,
    position_mid=((0.0, 0.50, -1.30),) * _FORE + ((0.0, 0.80, -1.30),) * _HIND,
    position_max=((0.15, 1.30, -1.00),) * _FORE + ((0.15, 1.60, -1.00),) * _HIND,
    kp=50.0,
    kd=4.0,
    torque_limit=(23.7, 23.7, 45.43),
    velocity_limit=15.0,
    foot_force_max=50.0,
    leg_length=0.33,
    joint_min=((-1.0472, -1.5708, -2.7227),) * _FORE + ((-1.0472, -0.5236, -2.7227),) * _HIND,
    joint_max=((1.0472, 3.4907, -0.83776),) * _FORE + ((1.0472, 4.5379, -0.83776),) * _HIND,
    motor_speed=(30.1, 30.1, 15.70),
    hip_at=(0.1934, 0.0465),
    links=(0.0955, 0.213, 0.213),
    foot_radius=0.022,
    belly=0.057,
)
GO1: Final = replace(
    GO2,
    name="go1",
    model=Path(__file__).with_name("go1.xml"),
    ground_geoms=("trunk_box", "trunk_left", "trunk_right", "head_box", *(f"{leg}_thigh_knee" for leg in LEGS)),
    torque_limit=(23.7, 23.7, 35.55),
    joint_min=((-0.863, -0.663, -2.721),) * len(LEGS),
    joint_max=((0.863, 2.966, -0.888),) * len(LEGS),
    motor_speed=(30.1, 30.1, 20.06),
    hip_at=(0.1881, 0.04675),
    links=(0.08, 0.213, 0.213),
    foot_radius=0.023,
)
_FAR: Final = 0.3
"""How far hips go for a turn, rad."""


def _turning(robot: Robot) -> Robot:
    """The same robot with hips that are allowed to go far enough for turns."""
    return replace(
        robot,
        name=f"{robot.name}-turning",
        position_min=tuple((-_FAR, *leg[1:]) for leg in robot.position_min),
        position_max=tuple((_FAR, *leg[1:]) for leg in robot.position_max),
    )


GO1_TURNING: Final = _turning(GO1)
GO2_TURNING: Final = _turning(GO2)
GO2_NUMB: Final = replace(GO2, name="go2-numb", foot_sensors=False)
"""A Go2 whose feet feel nothing: contact is estimated from its joint torques."""
for _robot in (GO1, GO1_TURNING, GO2, GO2_TURNING, GO2_NUMB):
    ROBOTS[_robot.name] = _robot
