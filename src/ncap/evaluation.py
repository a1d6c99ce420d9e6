"""How well a policy does on a task: return, falls, speed, cost of transport, and the gait, which the return hides.

A body without feet has no gait; it undulates.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.analysis.driving import SETTLING, tracking_errors, wish_spans
from ncap.analysis.gait_summary import GaitSummary as GaitSummary
from ncap.analysis.gait_summary import summarise_gaits as summarise_gaits
from ncap.analysis.gaits import Gait, footfall_error, measure_footfalls
from ncap.analysis.motion import action_rate, smoothness, sway_deg
from ncap.analysis.rhythm import rhythm_gaits
from ncap.analysis.undulation import Undulation, measure_undulation, summarise_undulations
from ncap.circuits.rhythm import EXTENSOR_STANCE
from ncap.errors import UserError
from ncap.plan import LEGS
from ncap.policies.brainstem import STANDING, Brainstem, can_be_driven
from ncap.policies.controller import Command, Controller, check_seeds
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.seeker import Guide, Seeker, can_seek
from ncap.rollouts import Episodes, rollout
from ncap.sim.bodies import find_body
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
"""Task of a policy that was not trained."""
FOOTFALLS: Final = ("foot_force", "neurons")
"""Signals that `footfall_errors` needs."""
RECORDED: Final = ("foot_force", "torque", "joint_velocity", "velocity", "up", "action", "joint_position", "target")
DRIVEN: Final = ("angular_velocity", "wanted")
"""What is recorded beside it where wishes change."""
SHORTEST_WISH: Final = 3.0
"""Shortest time of a wish whose gait is looked at, s."""
COMMAND_STEP: Final = 0.05
"""Commands of wishes are rounded to multiples of this, to know the circuit's own gait."""


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
    roll_rms_deg: float
    """Root mean square of the trunk's roll, mean over episodes, degrees."""
    pitch_rms_deg: float
    """Root mean square of the trunk's pitch, mean over episodes, degrees."""
    action_rate: float
    """Mean |change| of an action from one control step to the next."""
    smoothness: float | None
    """Log dimensionless jerk of the forward speed over strides, mean over episodes with strides; higher is smoother."""
    gait: GaitSummary | None
    """None for a body without feet."""
    undulation: Undulation | None = None
    """Of a body without feet."""
    reached: int | None = None
    """Episodes in which the nose came to the target; None without one."""
    error_vel_x: float | None = None
    """Where wishes change: mean |error| of the forward speed over strides, without a wish's first second, m/s."""
    error_yaw: float | None = None
    """The same of the yaw rate, rad/s."""
    commands: int | None = None
    """Wishes that were played."""
    yaw_rate_mean: float | None = None
    """Mean yaw rate, positive to the left, rad/s."""

    @property
    def walk(self) -> GaitSummary:
        """The gait, of a body that has feet."""
        if self.gait is None:
            raise UserError(f"{self.policy} on {self.task}: a body without feet has no gait")
        return self.gait


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
    def theta(self) -> Array:
        """(D,) its weights."""
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
    if robot is None and task is not None and body is not None and find_body(body).plan.kind != found.robot.plan.kind:
        body = None  # it was trained with a body that is none for this task; whether it fits is for the policy to say
    if body is not None and body != found.robot.name:
        found = with_robot(found, body)
    if not np.isclose(player.policy.control_dt, found.control_dt):
        raise UserError(
            f"{player.name} acts every {player.policy.control_dt:g} s, but {found.name} every {found.control_dt:g} s"
        )
    return found


def own_command(player: Player, task: Task) -> float | Guide | None:
    """The command of a policy on a task: its own (None) if it was trained, otherwise the one that suits the task.

    Where a task's wishes change, a brainstem follows them, and where it has a target, a seeker leads there. A circuit
    that cannot turn is refused.
    """
    if task.target is not None and isinstance(player.policy, NCAPPolicy):
        if not can_seek(player.policy.circuit):
            raise UserError(
                f"{player.name} cannot turn, as {task.name} asks: --circuit swimmer-turning has such commands"
            )
        return Seeker()
    if task.drive is not None and isinstance(player.policy, NCAPPolicy):
        if not can_be_driven(player.policy.circuit):
            raise UserError(f"{player.name} cannot turn or stop, as {task.name} asks: its circuit has no such commands")
        return Brainstem()
    return None if player.about else task.command


def evaluate(
    player: Player,
    task: Task,
    seeds: Sequence[int] = range(5),
    *,
    command: Command | None = None,
    threads: int = 1,
) -> Evaluation:
    """Play one episode per seed and summarise. Without a command: the policy's own.

    A task with several paces is played at its own speed.
    """
    from ncap.analysis import stats  # SciPy's statistics take a second to import

    seeds, task = check_seeds(seeds), replace(task, paces=())
    said = own_command(player, task) if command is None else command
    driven = (*(DRIVEN if task.drive else ()), *(("command",) if isinstance(said, Brainstem) else ()))
    controller = player.controller(len(seeds))
    episodes = rollout(task, controller, seeds, command=said, threads=threads, record=(*RECORDED, *driven))
    speed = float(np.nanmean(episodes.signals["velocity"][..., 0]))
    mean = stats.estimate(episodes.returns)
    gaits = foot_gaits(task, episodes)
    if not gaits:
        summary = None
    elif isinstance(said, Brainstem):
        summary = _gaits_of_wishes(player, task, episodes)
    else:
        summary = summarise_gaits(gaits, None if isinstance(said, Seeker) else commanded_gait(player, said))
    sway = np.array([sway_deg(up) for up in _lived(episodes, "up")])
    rates = [action_rate(action) for action in _lived(episodes, "action")]
    jerks = [
        smoothness(velocity[:, 0], task.control_dt, gait.frequency_hz)
        for velocity, gait in zip(_lived(episodes, "velocity"), gaits, strict=False)
    ]
    smooth = [jerk for jerk in jerks if jerk is not None]
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
        roll_rms_deg=float(sway[:, 0].mean()),
        pitch_rms_deg=float(sway[:, 1].mean()),
        action_rate=float(np.mean(rates)),
        smoothness=float(np.mean(smooth)) if smooth else None,
        gait=summary,
        undulation=None if gaits else _undulation(task, episodes),
        reached=None if task.target is None else _reached(episodes, task.target.radius),
        **_driving(task, episodes),
    )


def _undulation(task: Task, episodes: Episodes) -> Undulation | None:
    """The undulation of all episodes in which there is one."""
    bends = [bend[..., 0] for bend in _lived(episodes, "joint_position") if len(bend) > 2]
    found = [wave for bend in bends if (wave := measure_undulation(bend, task.control_dt)) is not None]
    return summarise_undulations(found) if found else None


def _reached(episodes: Episodes, radius: float) -> int:
    """In how many episodes the nose came so near to the target, m."""
    return sum(bool((np.linalg.norm(way, axis=1) <= radius).any()) for way in _lived(episodes, "target"))


def _driving(task: Task, episodes: Episodes) -> dict[str, Any]:
    """Errors in a task whose wishes change; nothing in others."""
    if task.drive is None:
        return {}
    wishes = _lived(episodes, "wanted")
    motions = [
        np.stack((velocity[:, 0], turning[:, 2]), axis=1)
        for velocity, turning in zip(_lived(episodes, "velocity"), _lived(episodes, "angular_velocity"), strict=True)
    ]
    errors = [tracking_errors(*pair, task.control_dt) for pair in zip(wishes, motions, strict=True)]
    means = np.array([error.mean(axis=0) for error in errors if len(error)])
    return {
        "error_vel_x": float(means[:, 0].mean()) if len(means) else None,
        "error_yaw": float(means[:, 1].mean()) if len(means) else None,
        "commands": sum(len(wish_spans(wanted)) for wanted in wishes),
        "yaw_rate_mean": float(np.concatenate(motions)[:, 1].mean()),
    }


def _gaits_of_wishes(player: Player, task: Task, episodes: Episodes) -> GaitSummary:
    """The gaits of all wishes to walk that last long enough to be seen, each beside the circuit's at its command.

    That is the median of what the brainstem said meanwhile, which corrects the speed.
    """
    settling, shortest = round(SETTLING / task.control_dt), round(SHORTEST_WISH / task.control_dt)
    gaits, commanded = [], []
    known: dict[float, Gait | None] = {}
    signals = (_lived(episodes, name) for name in ("wanted", "foot_force", "command"))
    for wanted, force, said in zip(*signals, strict=True):
        for span in wish_spans(wanted):
            speed, yaw_rate = wanted[span.start]
            if span.stop - span.start < shortest or max(speed, abs(yaw_rate)) < STANDING:
                continue
            settled = slice(span.start + settling, span.stop)
            command = round(float(np.median(said[settled])) / COMMAND_STEP) * COMMAND_STEP
            if command not in known:
                known[command] = commanded_gait(player, command)
            gaits.append(foot_gait(force[settled], task.control_dt))
            commanded.append(known[command])
    if not gaits:
        return summarise_gaits(foot_gaits(task, episodes))
    pairs = [(gait, own) for gait, own in zip(gaits, commanded, strict=True) if own is not None]
    ratios = [gait.frequency_hz / own.frequency_hz for gait, own in pairs if gait.frequency_hz > 0 < own.frequency_hz]
    return replace(
        summarise_gaits(gaits),
        commanded="by speed",
        commanded_share=float(np.mean([gait.label == own.label for gait, own in pairs])) if pairs else None,
        rhythm_ratio=float(np.mean(ratios)) if ratios else None,
    )


def _lived(episodes: Episodes, name: str) -> list[Array]:
    """A signal (T, …) of every episode, until its end or its fall."""
    return [values[:lived] for values, lived in zip(episodes.signals[name], episodes.steps, strict=True)]


def commanded_gait(player: Player, command: Command | None) -> Gait | None:
    """The gait of a policy's circuit without a body at one command, the commonest over random starts.

    None for a policy without a circuit, for circuits without extensors, and for commands of several individuals.
    """
    policy = player.policy
    values = command.values() if isinstance(command, Mapping) else () if command is None else (command,)
    if not isinstance(policy, NCAPPolicy) or any(np.size(value) > 1 for value in values):
        return None
    if not any(row.name == "extensor" and policy.circuit.sites_of(row) == LEGS for row in policy.circuit.core):
        return None
    weights = policy.core.weights_from(policy.numbers(player.theta[None])[0]) if policy.core.trained else None
    said = dict(zip(policy.system.commands, policy.commands(command, 1)[0].tolist(), strict=True))
    gaits = rhythm_gaits(policy.circuit, said, weights)
    label = Counter(gait.label for gait in gaits).most_common(1)[0][0]
    chosen = [gait for gait in gaits if gait.label == label]
    return replace(chosen[0], frequency_hz=float(np.mean([gait.frequency_hz for gait in chosen])))


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
    """The gait of every episode, from its foot forces after the first seconds; none of a body without feet."""
    if not task.robot.feet:
        return []
    settled = round(GAIT_FROM / task.control_dt)
    return [
        foot_gait(force[settled:lived], task.control_dt)
        for force, lived in zip(episodes.signals["foot_force"], episodes.steps, strict=True)
    ]


def foot_gait(force: Array, control_dt: float) -> Gait:
    """The gait of foot forces (T, leg) in N."""
    return measure_footfalls(force > STANCE_FORCE, control_dt)


def footfall_errors(policy: NCAPPolicy, episodes: Episodes) -> Array:
    """(P,) how far the feet of every episode are from doing what their half-centres say."""
    extensors = policy.core.columns("extensor")
    return np.array(
        [
            footfall_error(force > STANCE_FORCE, neurons[:, extensors] > EXTENSOR_STANCE)
            for force, neurons in zip(_lived(episodes, "foot_force"), _lived(episodes, "neurons"), strict=True)
        ]
    )
