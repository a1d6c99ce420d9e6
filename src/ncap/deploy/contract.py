"""The contract between a policy and a robot: time step, order of joints, limits, and a probe of the policy.

A policy is found by `ncap.trained.find_policy` and remembers the robot and the task that it was trained for. Nothing
here needs the simulator.
"""

import hashlib
import json
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.limits import Limits, of_joints
from ncap.deploy.messages import TABLE, damping_command, decode_command, encode_command
from ncap.errors import UserError
from ncap.plan import LEGS
from ncap.policies.controller import Controller, RandomPolicy
from ncap.policies.description import describe
from ncap.sim.a1 import A1
from ncap.sim.robot import POSTURE, SENSES, Robot, find_robot
from ncap.trained import TrainedPolicy

Array = NDArray[np.float64]

TICK: Final = 0.002
"""Time between two commands, s."""
CONTROL_DT: Final = 0.030
"""Time between two actions of a policy, s, as in training."""
_JOINTS: Final = ("hip", "thigh", "calf")


def checksum(policy: TrainedPolicy) -> str:
    """Sixteen hexadecimal digits of a policy's description and weights: the same on every machine."""
    description = json.dumps(describe(policy.policy), sort_keys=True)
    return hashlib.sha256(description.encode() + policy.theta.tobytes()).hexdigest()[:16]


def robot_of(policy: TrainedPolicy, asked: str | None = None) -> Robot:
    """The data sheet of the robot that is asked for, or that a policy was trained for; the A1's if it was not trained.

    A Python file that only the policy's file names is not run.
    """
    if asked is None and str(policy.robot).endswith(".py"):
        raise UserError(f"{policy.name} was trained with the robot of {policy.robot!r}: say --robot")
    return find_robot(asked if asked is not None else policy.robot or A1.name)


def check_policy(policy: TrainedPolicy) -> None:
    """Refuse a policy that must not drive a robot: one that acts at random, or in another time step than the loop."""
    if isinstance(policy.policy, RandomPolicy):
        raise UserError(f"policy {policy.name!r} acts at random, which would harm a robot; for a first try use zero")
    if not np.isclose(policy.policy.control_dt, CONTROL_DT):
        raise UserError(
            f"policy {policy.name} acts every {policy.policy.control_dt:g} s, but the loop every {CONTROL_DT:g} s"
        )


def check_contract(policy: TrainedPolicy, controller: Controller, robot: Robot, limits: Limits) -> dict[str, str]:
    """What policy, data sheet and messages agree on, each with what was found. Disagreement is a UserError.

    The controller is the policy's, for one individual.
    """
    check_policy(policy)
    order = f"{', '.join(LEGS)}; {', '.join(_JOINTS)}"
    if [[joint.split("_") for joint in leg] for leg in robot.joints] != [[[leg, j] for j in _JOINTS] for leg in LEGS]:
        raise UserError(f"robot {robot.name}: joints are not in the order {order}")
    probe = damping_command()._replace(position=np.arange(float(np.prod(TABLE))).reshape(TABLE))
    if not np.array_equal(decode_command(encode_command(probe)).position, probe.position):
        raise UserError("joints do not come out of a message in the order in which they went in")
    low, high = of_joints(limits.position_low), of_joints(limits.position_high)
    if (robot.low < low).any() or (robot.high > high).any():
        raise UserError(f"robot {robot.name}: actions reach positions beyond the joint limits")
    torque = of_joints(limits.torque)
    if (robot.torque_limits > torque).any():
        most = robot.torque_limits[robot.torque_limits > torque].max()
        raise UserError(f"robot {robot.name}: its torque limit of {most:g} N m is beyond the allowed one")
    action = controller.act(controller.reset([0]), np.zeros((1, len(LEGS), SENSES + POSTURE)))[1]
    if action.shape != (1, *TABLE) or not (np.abs(action) <= 1.0).all():
        raise UserError(f"policy {policy.name} does not answer with {np.prod(TABLE)} numbers in [-1, 1]")
    return {
        "policy": f"{policy.name}, checksum {checksum(policy)}, trained for {policy.task or 'nothing'}",
        "robot": f"the data sheet of {robot.name}",
        "joint order": order,
        "joint limits": f"actions stay inside {_shown(low)} … {_shown(high)} rad",
        "gains": f"kp {robot.kp:g}, kd {robot.kd:g}, at most {_shown(torque)} N m",
        "time step": f"{policy.policy.control_dt:g} s",
    }


def _shown(table: Array) -> str:
    """A table (leg, 3), as briefly as its equal rows and numbers allow."""
    rows = [f"[{', '.join(f'{value:g}' for value in row)}]" for row in table]
    if (table == table[0, 0]).all():
        return f"{table[0, 0]:g}"
    return rows[0] if len(set(rows)) == 1 else f"{rows[0]} front, {rows[-1]} hind"
