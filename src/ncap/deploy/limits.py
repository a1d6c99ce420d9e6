"""Limits that the safety layer keeps, per joint and girdle where they differ, and those of a robot's data sheet."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.messages import TABLE
from ncap.sim.robot import LegTriple, PerJoint, Robot, leg_rows

Array = NDArray[np.float64]
JointValues = PerJoint | LegTriple
"""One number for all joints, one each for hip, thigh and calf, or those three for every leg."""

ROUNDING: Final = 0.001
"""Distance that targets keep from the ends of a joint, rad, because messages round."""
TORQUE_MARGIN: Final = 1.2
"""Torque that a motor may report over its limit; more is a collision, or a broken sensor."""
SPEED_MARGIN: Final = 4.0
"""Velocity by which a joint may be faster than its motor turns it, because it is pushed, rad/s."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of commands and measurements. The defaults are the A1's; `limits_of` gives those of any robot."""

    position_low: JointValues = (-0.801, -1.049, -2.699)
    """Lowest targets, rad. A milliradian inside the SDK's limits, because messages round."""
    position_high: JointValues = (0.801, 4.189, -0.917)
    """Highest targets, rad."""
    position_margin: float = 0.3
    """Angle by which a joint may report a position beyond its limits, rad; more is a broken encoder."""
    slew: JointValues = 21.0
    """Fastest change of a target, rad/s: the fastest that the motors turn."""
    torque: JointValues = 33.5
    """Torque that a command may ask for in the measured state, N m."""
    measured_torque: JointValues = 40.0
    """Torque that a motor may report, N m; more is a collision, or a broken sensor."""
    velocity: JointValues = 25.0
    """Velocity that a joint may report, rad/s."""
    patience: int = 3
    """Successive states beyond a limit of position, velocity or torque that make a fault: single ones are noise."""
    tilt_deg: float = 45.0
    """Largest roll or pitch, degrees."""
    state_age: float = 0.040
    """Age of the newest state, s: damping must have reached the robot when the state is 50 ms old."""
    tick_jump: float = 0.1
    """Time by which the robot's clock may run ahead of ours between two states, s."""
    following: float = 0.2
    """Smallest share of the asked torque that the motors must report; less is a robot that hears no commands."""
    warm: float = 50.0
    """Temperature of a motor that is worth a warning, °C."""
    hot: float = 60.0
    """Temperature of a motor that is a fault, °C."""
    deadline: float = 0.020
    """Time between two commands, s: the SDK's server gives up after 22 ms."""
    missed_deadlines: int = 3
    """Missed deadlines within a second that make a fault."""
    longest_gap: float = 0.050
    """Time between two commands that is a fault at once, s."""


def of_joints(values: JointValues) -> Array:
    """(leg, 3) the values of all joints."""
    return np.full(TABLE, values, float)


def limits_of(robot: Robot) -> Limits:
    """The limits of a robot: what its data sheet says of its joints and motors, and the A1's where it says nothing.

    Without the speed of its motors the motors are not known, and no torque beyond the A1's is allowed.
    """
    usual, torque = Limits(), robot.torque_limits
    if robot.motor_speed is None:
        torque = np.minimum(torque, usual.torque)
    known: dict[str, JointValues] = {"torque": leg_rows(torque)}
    if (torque != usual.torque).any():
        known["measured_torque"] = leg_rows(TORQUE_MARGIN * torque)
    if robot.joint_min is not None:
        known["position_low"] = leg_rows(np.array(robot.joint_min) + ROUNDING)
    if robot.joint_max is not None:
        known["position_high"] = leg_rows(np.array(robot.joint_max) - ROUNDING)
    if robot.motor_speed is not None:
        known["slew"] = robot.motor_speed
        known["velocity"] = leg_rows(of_joints(robot.motor_speed) + SPEED_MARGIN)
    return replace(usual, **known)  # type: ignore[arg-type]
