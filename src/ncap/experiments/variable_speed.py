"""Variable speed, the paper's next step: one circuit, and a brainstem that turns a target speed into the command.

The circuit is trained at several commands at once, each with its speed (task flat-speeds), and has one set of weights:
as the command rises, the rhythm changes, and fast motor pools are recruited. The map from speed to command is chosen
from what it does at constant commands. For a speed near zero the brainstem fades the circuit out, and the robot keeps
its standing pose. It raises and lowers the command gradually: a robot that begins to run from standing may fall.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.evaluation import STANCE_FORCE, GaitSummary, commanded_gait, foot_gait, foot_gaits, summarise_gaits
from ncap.experiments.library import Library, Scale
from ncap.policies.controller import Command, Controller
from ncap.report.tables import write_table
from ncap.rollouts import Episodes, rollout
from ncap.tasks import TASKS, Task
from ncap.trained import TrainedPolicy, load

Array = NDArray[np.float64]


POLICY: Final = "ncap-flat-speeds"
WORLD: Final = "flat-speeds"
"""The task of its training, whose episodes are played."""
SCHEDULE: Final = ((0.0, 0.0), (1 / 8, 0.3), (3 / 8, 0.8), (5 / 8, 1.1))
"""Segments of the episode that is drawn: (part of the episode at which it begins, target speed in m/s)."""
COMMANDS: Final = tuple(np.linspace(0.0, 1.0, 41).round(3).tolist())
"""Commands at which the policy is measured for the map."""
SPEEDS: Final = tuple(np.linspace(0.2, 1.2, 11).round(2).tolist())
"""Target speeds at which the map is tested, m/s."""
FALL_COST: Final = 1.0
"""Error of the speed that counts as much as a certain fall, m/s."""
OTHER_GAIT_COST: Final = 0.1
"""Error of the speed that counts as much as feet that never have the commanded gait, m/s."""
FADING: Final = 0.3
"""Time in which the circuit's actions fade in or out, s."""
RISING: Final = 2.5
"""Time in which the command goes from 0 to 1, s."""
UNSETTLED: Final = 0.4
"""Part of an episode or segment, at its start, that does not count for its speed and gait."""
ALWAYS_ON_GROUND: Final = 0.97
"""Duty factor above which the robot stands."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Speed and gait of a policy at a constant command, over several episodes."""

    command: float
    speeds: Array
    """(episodes,) mean forward speed, m/s, NaN after a fall."""
    gait: GaitSummary

    @property
    def speed(self) -> float:
        """Mean of the episodes without a fall, 0 if there is none."""
        return float(np.nanmean(self.speeds)) if self.falls < len(self.speeds) else 0.0

    @property
    def falls(self) -> int:
        """Episodes with a fall."""
        return int(np.isnan(self.speeds).sum())


@dataclass(frozen=True, kw_only=True)
class SpeedMap:
    """Which command gives which speed: for every target the best of some trials, in the order of their commands."""

    trials: Sequence[Trial]

    @cached_property
    def _risks(self) -> Array:
        """(trials,) cost of falls and of another gait than the commanded one, as an error of the speed in m/s.

        A fall is rare, so the trials at the commands before and after count too.
        """
        falls = np.array([np.isnan(trial.speeds).mean() for trial in self.trials])
        around = np.array([falls[max(0, i - 1) : i + 2].mean() for i in range(len(falls))])
        commanded = np.array([trial.gait.commanded_share or 0.0 for trial in self.trials])
        risks: Array = FALL_COST * np.maximum(falls, around) + OTHER_GAIT_COST * (1.0 - commanded)
        return risks

    def costs(self, speed: Array) -> Array:
        """(T, trials) cost of taking a trial for target speeds (T,): error and risk, m/s."""
        errors: Array = np.abs(np.subtract.outer(speed, [trial.speed for trial in self.trials]))
        return errors + self._risks

    def command(self, speed: Array) -> Array:
        """Commands for target speeds (T,) in m/s."""
        commands: Array = np.array([trial.command for trial in self.trials])
        best: Array = commands[np.argmin(self.costs(speed), axis=-1)]
        return best

    def moves(self, speed: Array) -> NDArray[np.bool_]:
        """Whether a target speed asks for steps: less than half the speed of the lowest command means to stand."""
        return speed >= 0.5 * self.trials[0].speed


def gradual(goals: Array, step: float) -> Array:
    """(P, T) values that begin at 0 and follow goals (P, T) by at most a step at a time."""
    now, values = np.zeros(len(goals)), []
    for goal in goals.T:
        now = now + np.clip(goal - now, -step, step)
        values.append(now)
    return np.stack(values, axis=1)


class Brainstem:
    """A controller that raises and lowers the command of another one, and fades its actions out where it stands.

    Its state is (control steps done, state of the other controller).
    """

    def __init__(self, controller: Controller, commands: Array, moving: NDArray[np.bool_], control_dt: float) -> None:
        """commands: (P, T) in [0, 1]. moving: (P, T) whether it is asked to move at all, or to stand."""
        self.controller = controller
        self.commands = gradual(commands, control_dt / RISING)
        self.shares = gradual(moving.astype(float), control_dt / FADING)

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> tuple[int, Any]:
        """The start of the circuit at the first command; that of the caller is not used."""
        return 0, self.controller.reset(seeds, self.commands[:, 0])

    def act(
        self, state: tuple[int, Any], observation: Array, command: Command | None = None
    ) -> tuple[tuple[int, Any], Array]:
        """(next state, action): the circuit's action at the command of this step, times its share."""
        step, inner = state
        inner, action = self.controller.act(inner, observation, self.commands[:, step])
        return (step + 1, inner), action * self.shares[:, step, None, None]

    def signals(self, state: tuple[int, Any]) -> dict[str, Array]:
        """The circuit's signals, and the command."""
        step, inner = state
        return self.controller.signals(inner) | {"command": self.commands[:, max(0, step - 1)]}


def try_commands(
    player: TrainedPolicy, task: Task, commands: Sequence[float], seeds: Sequence[int], threads: int
) -> list[Trial]:
    """One trial per command, with an episode per seed."""
    goals = np.repeat(commands, len(seeds))[:, None] * np.ones(task.steps)
    brainstem = Brainstem(player.controller(len(goals)), goals, goals >= 0, task.control_dt)
    record = ("velocity", "foot_force")
    episodes = rollout(task, brainstem, list(seeds) * len(commands), threads=threads, record=record)
    settled = episodes.signals["velocity"][:, round(UNSETTLED * task.steps) :, 0]
    speeds = np.where(episodes.fell, np.nan, np.nan_to_num(settled).mean(axis=1)).reshape(len(commands), -1)
    gaits = foot_gaits(task, episodes)
    return [
        Trial(
            command=command,
            speeds=row,
            gait=summarise_gaits(gaits[i * len(seeds) :][: len(seeds)], commanded_gait(player, command)),
        )
        for i, (command, row) in enumerate(zip(commands, speeds, strict=True))
    ]


def run(library: Library, scale: Scale, out: Path) -> None:
    """Measure the shipped circuit at all commands, choose the map, test it at target speeds, and play the schedule."""
    task = replace(TASKS[WORLD], episode_seconds=scale.test_seconds)
    fitting, held_out = (range(first, first + scale.episodes) for first in (1000, 3000))
    player = load(POLICY)
    library.say(f"measuring speed against the command: {player.name}")
    speed_map = SpeedMap(trials=try_commands(player, task, COMMANDS, fitting, library.threads))
    write_table(out / "variable-speed-commands.csv", [_trial(trial) for trial in speed_map.trials])
    tests = try_commands(player, task, speed_map.command(np.array(SPEEDS)).tolist(), held_out, library.threads)
    rows = [
        {"target": target, "error": abs(trial.speed - target)} | _trial(trial)
        for target, trial in zip(SPEEDS, tests, strict=True)
    ]
    write_table(out / "variable-speed.csv", rows)
    steps = np.arange(task.steps) / task.steps
    targets = np.array(SCHEDULE)[np.searchsorted([part for part, _ in SCHEDULE], steps, side="right") - 1, 1]
    commands, moving = speed_map.command(targets)[None], speed_map.moves(targets)[None]
    controller = Brainstem(player.controller(1), commands, moving, task.control_dt)
    played = rollout(task, controller, [0], record=("velocity", "command", "foot_force"))
    _figure(task, targets, played, speed_map.trials, tests, out / "variable-speed.png")


def _trial(trial: Trial) -> dict[str, object]:
    return {
        "command": trial.command,
        "speed": trial.speed,
        "falls": trial.falls,
        "episodes": len(trial.speeds),
        "gait": trial.gait.label,
        "share": trial.gait.share,
        "commanded": trial.gait.commanded,
        "commanded_share": trial.gait.commanded_share,
        "regular_share": trial.gait.regular_share,
        "rhythm_ratio": trial.gait.rhythm_ratio,
        "touchdowns_per_stride": trial.gait.touchdowns_per_stride,
        "frequency_hz": trial.gait.frequency_hz,
    }


@plots.styled
def _figure(
    task: Task, targets: Array, played: Episodes, fit: Sequence[Trial], tests: Sequence[Trial], path: Path
) -> None:
    fig, axes = plots.figure(["speed speed speed map", "feet feet feet error"], size=(11, 5), heights=(1, 1))
    time: Array = np.arange(task.steps) * np.float64(task.control_dt)
    signals = {name: values[0] for name, values in played.signals.items()}
    second = np.ones(round(1 / task.control_dt))
    forward = np.nan_to_num(signals["velocity"][:, 0])
    smooth = np.convolve(forward, second, mode="same") / np.convolve(np.ones(len(forward)), second, mode="same")
    axes["speed"].step(time, targets, color="#777777", linestyle="--", where="post", label="target speed (m/s)")
    axes["speed"].plot(time, smooth, color=plots.POLICY_COLOURS["ncap"], label="speed, mean over 1 s")
    axes["speed"].plot(time, signals["command"], color=plots.GAIT_COLOURS["walk"], linewidth=1, label="command c")
    axes["speed"].set(xlim=(0, time[-1]), ylim=(-0.1, 1.35), title="One policy, one command")
    axes["speed"].legend(frameon=False, loc="upper left", ncols=3)
    force: Array = np.nan_to_num(signals["foot_force"])
    plots.pressure_strips(axes["feet"], time, force, STANCE_FORCE)
    axes["feet"].set(xlabel="time (s)", title=_gaits_by_segment(task, force))
    for gait, colour in plots.GAIT_COLOURS.items():
        having = [(trial.speed, trial.command) for trial in fit if trial.gait.label == gait and not trial.falls]
        if having:
            axes["map"].plot(*zip(*having, strict=True), "o", markersize=4, color=colour, label=gait)
    axes["map"].set(xlabel="speed (m/s)", ylabel="command c", title="Speed and gait by the command")
    axes["map"].set(xlim=(0, 1.3), ylim=(-0.05, 1.05))
    axes["map"].legend(frameon=False, loc="lower right")
    axes["error"].axhspan(-0.1, 0.1, color="#EEEEEE")
    for target, trial in zip(SPEEDS, tests, strict=True):
        errors, colour = trial.speeds - target, plots.GAIT_COLOURS[trial.gait.label]
        axes["error"].plot([target] * len(errors), errors, ".", color=colour, alpha=0.6)
    axes["error"].set(xlabel="target speed (m/s)", ylabel="error (m/s)", title="Held-out episodes", ylim=(-0.4, 0.4))
    plots.save_both(fig, path)


def _gaits_by_segment(task: Task, force: Array) -> str:
    """Name of the gait in each segment of the schedule."""
    edges = [round(part * len(force)) for part, _ in SCHEDULE] + [len(force)]
    labels = []
    for (_, speed), first, last in zip(SCHEDULE, edges[:-1], edges[1:], strict=True):
        settled = first + round(UNSETTLED * (last - first))
        gait = foot_gait(force[settled:last], task.control_dt)
        labels.append(f"{speed:g} m/s: {'stand' if gait.duty > ALWAYS_ON_GROUND else gait.label}")
    return "   ".join(labels)
