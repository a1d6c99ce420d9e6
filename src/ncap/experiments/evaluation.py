"""How well a policy does on a task: return, falls, speed, cost of transport, and the gait, which the return hides."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis.gaits import Gait, circular_mean, measure_footfalls
from ncap.learn.train import default_command
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.policy import Controller, RandomController, ZeroController
from ncap.policies.storage import Policy, find_policy
from ncap.rollout import Episodes, rollout
from ncap.tasks import Task, build

Array = NDArray[np.float64]

STANCE_FORCE: Final = 5.0
"""N. A foot pressed harder than this stands."""
SETTLING: Final = 3.0
"""s at the start of an episode that do not count for the gait."""
RECORDED: Final = ("foot_force", "torque", "joint_velocity", "velocity")


@dataclass(frozen=True, kw_only=True)
class GaitSummary:
    """The commonest gait over episodes, with the mean numbers of those that have it."""

    label: str
    frequency_hz: float
    duty: float
    left_right_phase: tuple[float, float] | None
    """Fore, hind; None when the legs do not step."""
    fore_hind_phase: tuple[float, float] | None
    """Left, right."""
    concentration: float


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What `ncap evaluate` reports."""

    task: str
    policy: str
    parameters: int
    episodes: int
    returns: list[float]
    return_mean: float
    falls: int
    speed_mean: float
    """m/s forward, in the robot's frame."""
    cost_of_transport: float | None
    """Mean motor power over weight times speed; None when the robot does not move forward."""
    gait: GaitSummary


BUILT_IN: Final = ("zero", "random", "untrained")


def find_controller(name: str, task: str, individuals: int) -> tuple[Controller, int]:
    """(controller, number of weights) of a built-in policy, a run directory (its best policy) or a policy file."""
    if name == "zero":
        return ZeroController(), 0
    if name == "random":
        return RandomController(), 0
    policy: Policy
    if name == "untrained":
        policy = NCAPPolicy(command=default_command(task))
        theta = policy.space.initial
    else:
        policy, theta, _ = find_policy(name, *BUILT_IN)
    return policy.bind(np.tile(theta, (individuals, 1))), policy.space.size


def evaluate(
    task: Task, policy: str, parameters: int, controller: Controller, seeds: Sequence[int], threads: int
) -> Evaluation:
    """Play one episode per seed and summarise."""
    episodes = rollout(task, controller, seeds, threads=threads, record=RECORDED)
    speed = float(np.nanmean(episodes.signals["velocity"][..., 0]))
    return Evaluation(
        task=task.name,
        policy=policy,
        parameters=parameters,
        episodes=len(seeds),
        returns=[float(value) for value in episodes.returns],
        return_mean=float(episodes.returns.mean()),
        falls=int(episodes.fell.sum()),
        speed_mean=speed,
        cost_of_transport=cost_of_transport(task, episodes, speed),
        gait=summarise_gaits(foot_gaits(task, episodes)),
    )


def cost_of_transport(task: Task, episodes: Episodes, speed: float) -> float | None:
    """Mean sum of |torque times joint velocity| over mass times gravity times mean speed."""
    if speed < 0.02:
        return None
    power = np.abs(episodes.signals["torque"] * episodes.signals["joint_velocity"]).sum(axis=(2, 3))
    mass = build(task).mass(task.variation)
    return float(np.nanmean(power) / (mass * 9.81 * speed))


def foot_gaits(task: Task, episodes: Episodes) -> list[Gait]:
    """The gait of every episode, from its foot forces after the first seconds."""
    settled = round(SETTLING / task.control_dt)
    return [
        foot_gait(force[settled:lived], task.control_dt)
        for force, lived in zip(episodes.signals["foot_force"], episodes.steps, strict=True)
    ]


def foot_gait(force: Array, control_dt: float) -> Gait:
    """The gait of foot forces (T, leg) in N."""
    return measure_footfalls(force > STANCE_FORCE, control_dt)


def summarise_gaits(gaits: Sequence[Gait]) -> GaitSummary:
    """The commonest label, and the mean numbers of the episodes that have it."""
    label = Counter(gait.label for gait in gaits).most_common(1)[0][0]
    chosen = [gait for gait in gaits if gait.label == label]
    stepping = [gait for gait in chosen if gait.frequency_hz > 0]

    def phases(name: str) -> tuple[float, float] | None:
        if not stepping:
            return None
        first, second = (circular_mean(np.array([getattr(gait, name)[i] for gait in stepping]))[0] for i in (0, 1))
        return first, second

    return GaitSummary(
        label=label,
        frequency_hz=float(np.mean([gait.frequency_hz for gait in chosen])),
        duty=float(np.mean([gait.duty for gait in chosen])),
        left_right_phase=phases("left_right_phase"),
        fore_hind_phase=phases("fore_hind_phase"),
        concentration=float(np.mean([gait.concentration for gait in chosen])),
    )
