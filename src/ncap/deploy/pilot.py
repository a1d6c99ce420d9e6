"""The policy that is to drive a robot, found without the simulator, and the contract between the two."""

import hashlib
import json
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.messages import damping_command, decode_command, encode_command
from ncap.deploy.safety import Limits
from ncap.errors import UserError
from ncap.legs import LEGS
from ncap.policies.ncap import COMMANDS, NCAPPolicy
from ncap.policies.policy import Controller, ZeroController
from ncap.policies.storage import Policy, describe, find_policy
from ncap.sim.robot import OBSERVATIONS, Robot

Array = NDArray[np.float64]

CONTROL_DT: Final = 0.030
"""s between two actions, as in training."""
BUILT_IN: Final = ("zero", "untrained")


@dataclass(frozen=True, kw_only=True, eq=False)
class Pilot:
    """A policy with its weights, ready to act for one robot."""

    name: str
    controller: Controller
    control_dt: float
    checksum: str
    """Of its description and weights: the same policy has the same one on every machine."""
    neuron_names: tuple[str, ...] = ()
    task: str = "flat-walk"
    """What it was trained for."""


def find_pilot(name: str) -> Pilot:
    """A built-in policy, a shipped one, a run directory (its best policy) or a policy file."""
    if name == "zero":
        return Pilot(name=name, controller=ZeroController(), control_dt=CONTROL_DT, checksum=_digest("zero", b""))
    policy: Policy
    task = "flat-walk"
    if name == "untrained":
        policy = NCAPPolicy(command=COMMANDS["walk"])
        theta = policy.space.initial
    else:
        policy, theta, about = find_policy(name, *BUILT_IN)
        task = about.get("training", {}).get("task", task)
    return Pilot(
        name=name,
        controller=policy.bind(theta[None]),
        control_dt=getattr(policy, "control_dt", CONTROL_DT),
        checksum=_digest(json.dumps(describe(policy), sort_keys=True), theta.tobytes()),
        neuron_names=policy.circuit.neurons if isinstance(policy, NCAPPolicy) else (),
        task=task,
    )


def check_contract(pilot: Pilot, robot: Robot, limits: Limits) -> dict[str, str]:
    """What policy, data sheet and messages must agree on, each with what was found. Disagreement is a UserError."""
    named = [[joint.split("_") for joint in joints] for joints in robot.joints]
    if named != [[[leg, joint] for joint in ("hip", "thigh", "calf")] for leg in LEGS]:
        raise UserError(f"robot {robot.name}: joints are not in the order {', '.join(LEGS)}; hip, thigh, calf")
    probe = damping_command()._replace(position=np.arange(12.0).reshape(4, 3))
    if not np.array_equal(decode_command(encode_command(probe)).position, probe.position):
        raise UserError("joints do not come out of a message in the order in which they went in")
    low, high = np.array(limits.position_low), np.array(limits.position_high)
    if (robot.low < low).any() or (robot.high > high).any():
        raise UserError(f"robot {robot.name}: actions reach positions beyond the joint limits")
    if robot.torque_limit > limits.torque:
        raise UserError(f"robot {robot.name}: its torque limit of {robot.torque_limit:g} N m is beyond the allowed one")
    if not np.isclose(pilot.control_dt, CONTROL_DT):
        raise UserError(f"policy {pilot.name} acts every {pilot.control_dt:g} s, but the loop every {CONTROL_DT:g} s")
    action = pilot.controller.act(pilot.controller.reset([0]), np.zeros((1, 4, OBSERVATIONS)))[1]
    if action.shape != (1, 4, 3) or not (np.abs(action) <= 1.0).all():
        raise UserError(f"policy {pilot.name} does not answer with 12 numbers in [-1, 1]")
    return {
        "policy": f"{pilot.name}, checksum {pilot.checksum}, trained for {pilot.task}",
        "joint order": f"{', '.join(LEGS)}; hip, thigh, calf",
        "joint limits": f"actions stay inside {low.tolist()} … {high.tolist()} rad",
        "gains": f"kp {robot.kp:g}, kd {robot.kd:g}, at most {limits.torque:g} N m",
        "time step": f"{pilot.control_dt:g} s",
    }


def _digest(description: str, weights: bytes) -> str:
    return hashlib.sha256(description.encode() + weights).hexdigest()[:16]
