"""How well a policy does on a task: return, falls, speed, cost of transport, and the gait, which the return hides."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.analysis.gaits import Gait, circular_mean, measure_footfalls
from ncap.errors import UserError
from ncap.policies.controller import Command, Controller, check_seeds
from ncap.rollouts import Episodes, rollout
from ncap.tasks import TASKS, Task, build, find_task, with_robot

Array = NDArray[np.float64]

STANCE_FORCE: Final = 5.0
"""Foot force above which a foot stands, N."""
GAIT_FROM: Final = 3.0
"""Time at the start of an episode that does not count for the gait, s."""
SLOWEST: Final = 0.02
"""Speed below which a robot does not move forward, and has no cost of transport, m/s."""
GRAVITY: Final = 9.81
DEFAULT_TASK: Final = "flat-walk"
"""For a policy that was not trained."""
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
    return_interval: tuple[float, float]
    """95 % interval of the mean return, from a bootstrap over episodes."""
    falls: int
    speed_mean: float
    """Mean forward speed in the robot's frame, m/s."""
    cost_of_transport: float | None
    """Mean motor power over weight times speed; None when the robot does not move forward."""
    gait: GaitSummary


class Player(Protocol):
    """What is measured: a policy with its weights."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def about(self) -> dict[str, Any]:
        """The "task" and "robot" that it was trained for, and more."""
        ...

    @property
    def policy(self) -> Any:
        """Its description."""
        ...

    @property
    def parameters(self) -> int:
        """How many weights it has."""
        ...

    def controller(self, individuals: int) -> Controller:
        """That many individuals, ready to act."""
        ...


def known_task(task: str | Task) -> Task:
    """A task, given itself or by its name."""
    if not isinstance(task, str | Task):
        raise UserError(f"a task is a name or a Task, not {type(task).__name__}")
    return find_task(task) if isinstance(task, str) else task


def task_for(player: Player, task: str | Task | None = None, robot: str | None = None) -> Task:
    """The task to measure a policy on: the given one, or the one that it was trained for; on its robot or another.

    A policy that acts in another control step than the task is refused: it would not be the policy that was trained.
    """
    trained_for = player.about.get("task")
    if task is None and trained_for is not None and trained_for not in TASKS:  # a file's word runs no Python file
        raise UserError(f"{player.name} was trained for {trained_for!r}, which is not known here: say --task")
    found = known_task(task if task is not None else trained_for or DEFAULT_TASK)
    body = robot or player.about.get("robot")
    if robot is None and str(body).endswith(".py"):
        raise UserError(f"{player.name} was trained with the robot of {body!r}: say --robot")
    if body is not None and body != found.robot.name:
        found = with_robot(found, body)
    if not np.isclose(player.policy.control_dt, found.control_dt):
        raise UserError(
            f"{player.name} acts every {player.policy.control_dt:g} s, but {found.name} every {found.control_dt:g} s"
        )
    return found


def own_command(player: Player, task: Task) -> float | None:
    """The command of a policy on a task: its own (None) if it was trained, otherwise the one that suits the task."""
    return None if player.about else task.command


def evaluate(
    player: Player,
    task: Task,
    seeds: Sequence[int] = range(5),
    *,
    command: Command | None = None,
    threads: int = 1,
) -> Evaluation:
    """Play one episode per seed and summarise. Without a command: the policy's own."""
    from ncap.analysis import stats  # SciPy's statistics take a second to import

    seeds = check_seeds(seeds)
    said = own_command(player, task) if command is None else command
    episodes = rollout(task, player.controller(len(seeds)), seeds, command=said, threads=threads, record=RECORDED)
    speed = float(np.nanmean(episodes.signals["velocity"][..., 0]))
    mean = stats.estimate(episodes.returns)
    return Evaluation(
        task=task.name,
        policy=player.name,
        parameters=player.parameters,
        episodes=len(seeds),
        returns=[float(value) for value in episodes.returns],
        return_mean=float(episodes.returns.mean()),
        return_interval=(mean.low, mean.high),
        falls=int(episodes.fell.sum()),
        speed_mean=speed,
        cost_of_transport=transport_cost(task, episodes, speed),
        gait=summarise_gaits(foot_gaits(task, episodes)),
    )


def cost_of_transport(power: float, mass: float, speed: float) -> float | None:
    """Motor power (W) over weight (kg) times speed (m/s); None for a robot that does not move forward."""
    return None if speed < SLOWEST else power / (mass * GRAVITY * speed)


def motor_power(torque: Array, joint_velocity: Array) -> Array:
    """Sum of |torque times joint velocity| over the joints (..., leg, joint), W."""
    power: Array = np.abs(torque * joint_velocity).sum(axis=(-2, -1))
    return power


def transport_cost(task: Task, episodes: Episodes, speed: float) -> float | None:
    """Mean cost of transport of episodes whose torques and joint velocities were recorded."""
    power = motor_power(episodes.signals["torque"], episodes.signals["joint_velocity"])
    return cost_of_transport(float(np.nanmean(power)), build(task).mass(task.variation), speed)


def foot_gaits(task: Task, episodes: Episodes) -> list[Gait]:
    """The gait of every episode, from its foot forces after the first seconds."""
    settled = round(GAIT_FROM / task.control_dt)
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
