"""What a program must know to use an exported policy on a robot, as JSON: order, ranges, gains, time step, state."""

from typing import Any, Final

import numpy as np

from ncap.errors import UserError
from ncap.plan import LEGS, QUADRUPED
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.sim.robot import POSTURE, POSTURE_FULL, SINKS, Robot
from ncap.tasks import Task
from ncap.trained import TrainedPolicy

Exported = NCAPPolicy | MLPPolicy

FORMAT: Final = 1
_UNITS: Final = {"position": "rad", "torque": "N m", "velocity": "rad/s"}
_WISHES: Final = ("wanted speed", "wanted yaw rate", "yaw rate")
ABOUT: Final = (
    "Call the model once per control_dt. Numbers of an observation: 'at' has the values at which they are -1, 0 and 1, "
    "linear between them and clipped beyond; roll is positive with the left side up, pitch with the nose down. "
    "Numbers of an action: the joint's position target is 'at' those places for -1, 0 and 1, linear between them, held "
    "by kp and kd until the next one. A circuit also takes its commands, in [0, 1], and its state, which is 'start' at "
    "first and next_state from then on."
)


def contract(trained: TrainedPolicy, task: Task) -> dict[str, Any]:
    """Joints, senses, gains, time step, commands and the state at the start, for a policy on the robot of a task."""
    policy, robot = trained.policy, task.robot
    if not isinstance(policy, Exported):
        raise UserError(f"{trained.name} has no weights to export: it is no circuit and no MLP")
    if not isinstance(robot, Robot):
        raise UserError(f"{robot.name} has no legs with joints that hold positions: there is nothing to export")
    posture = isinstance(policy, NCAPPolicy) and policy.feels_posture
    inputs: dict[str, Any] = {"observation": _senses(robot, posture=posture)}
    if isinstance(policy, NCAPPolicy):
        acting = policy.bind(trained.theta[None])
        own = policy.commands(None, 1)[0]
        names = zip(policy.system.commands, own.tolist(), strict=True)
        inputs["command"] = [{"name": name, "own": value} for name, value in names]
        inputs["state"] = {"start": acting.reset([0]).flat()[0].tolist()}
    elif policy.wishes:
        inputs["wish"] = _wishes(task, policy.wishes)
    return {
        "format": FORMAT,
        "about": ABOUT,
        "policy": trained.name,
        "trained_for": trained.task,
        "robot": robot.name,
        "control_dt": policy.control_dt,
        "gains": {"kp": robot.kp, "kd": robot.kd},
        "numbers": "float64, (batch, numbers)",
        "inputs": inputs,
        "action": _joints(robot),
    }


def _joints(robot: Robot) -> list[dict[str, Any]]:
    """The joints in the order of the action, each with the targets of -1, 0 and 1 and the largest torque."""
    return [
        {
            "joint": robot.joints[leg][joint],
            "leg": name,
            "part": part,
            "unit": "rad",
            "at": [float(table[leg, joint]) for table in (robot.low, robot.mid, robot.high)],
            "torque_limit": float(robot.torque_limits[leg, joint]),
        }
        for leg, name in enumerate(LEGS)
        for joint, part in enumerate(QUADRUPED.joints)
    ]


def _senses(robot: Robot, *, posture: bool) -> list[dict[str, Any]]:
    """The numbers of an observation in their order, with what gives -1, 0 and 1."""
    senses, nothing = [], np.zeros_like(robot.mid)
    for leg, name in enumerate(LEGS):
        for sense in QUADRUPED.senses[:-1]:
            part, kind = sense.split()
            joint = QUADRUPED.joints.index(part)
            places = {
                "position": (robot.low, robot.mid, robot.high),
                "torque": (-robot.torque_limits, nothing, robot.torque_limits),
                "velocity": (-robot.velocity_limits, nothing, robot.velocity_limits),
            }[kind]
            at = [float(table[leg, joint]) for table in places]
            senses.append({"name": f"{sense}.{name}", "unit": _UNITS[kind], "at": at})
        most = robot.foot_force_max
        senses.append({"name": f"foot.{name}", "unit": "N", "at": [0.0, most / 2, most]})
        for number in range(POSTURE if posture else 0):
            unit, full = ("rad", "rad/s")[number % 2], float(SINKS[leg, number] * POSTURE_FULL[number])
            senses.append({"name": f"{QUADRUPED.posture[number]}.{name}", "unit": unit, "at": [-full, 0.0, full]})
    return senses


def _wishes(task: Task, size: int) -> list[dict[str, Any]]:
    from ncap.rollouts import FASTEST_TURN
    from ncap.tasks import FASTEST, SHARPEST

    if task.wish_size != size or not task.drive:
        raise UserError(f"this MLP hears {size} wishes, which {task.name} does not have: say --task")
    full = (FASTEST, SHARPEST, FASTEST_TURN)
    units = ("m/s", "rad/s", "rad/s")
    return [
        {"name": name, "unit": unit, "at": [-most, 0.0, most]}
        for name, unit, most in zip(_WISHES, units, full, strict=True)
    ]
