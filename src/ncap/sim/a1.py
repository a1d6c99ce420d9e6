"""The Unitree A1's data sheet, to go with a1.xml. Ranges are those of the paper."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from ncap.plan import LEGS
from ncap.sim.robot import ROBOTS, Robot

A1: Final = Robot(
    name="a1",
    model=Path(__file__).with_name("a1.xml"),
    trunk="trunk",
    joints=tuple((f"{leg}_hip", f"{leg}_thigh", f"{leg}_calf") for leg in LEGS),
    feet=tuple(f"{leg}_foot" for leg in LEGS),
    ground_geoms=(
        *("trunk_box", "trunk_left", "trunk_right", "head_box"),
        *(f"{leg}_thigh_knee" for leg in LEGS),
    ),
    position_min=((-0.15, -0.60, -2.00),) * 2 + ((-0.15, -0.30, -2.00),) * 2,
    position_mid=((0.0, 0.40, -1.20),) * 2 + ((0.0, 0.70, -1.20),) * 2,
    position_max=((0.15, 1.20, -0.92),) * 2 + ((0.15, 1.50, -0.92),) * 2,
    kp=60.0,
    kd=10.0,
    torque_limit=33.5,
    velocity_limit=15.0,
    foot_force_max=50.0,
    leg_length=0.31,
)
_FAR: Final = 0.3
"""How far hips go for a turn, rad: twice as far as in the paper, and less than half of their range."""
A1_TURNING: Final = replace(
    A1,
    name="a1-turning",
    position_min=tuple((-_FAR, *leg[1:]) for leg in A1.position_min),
    position_max=tuple((_FAR, *leg[1:]) for leg in A1.position_max),
)
"""The same robot with hips that are allowed to go far enough for turns."""
for _robot in (A1, A1_TURNING):
    ROBOTS[_robot.name] = _robot
