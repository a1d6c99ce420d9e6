"""Variable speed, the paper's next step: one policy, and a brainstem that turns a target speed into the command.

The policy is trained at several speeds at once. A higher command means a faster rhythm and larger steps. The map from
speed to command is then fitted to what the policy does at constant commands. For a speed near zero the brainstem fades
the circuit out, and the robot keeps its standing pose.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.experiments.evaluation import STANCE_FORCE, foot_gait
from ncap.experiments.library import Library, Scale
from ncap.experiments.tables import write_table
from ncap.learn.train import Training
from ncap.policies.ncap import NCAPController, NCAPPolicy
from ncap.policies.storage import load_policy
from ncap.rollout import Episodes, rollout
from ncap.tasks import Task

Array = NDArray[np.float64]

TASK: Final = "flat-run"
SCHEDULE: Final = ((0.0, 0.0), (1 / 3, 0.5), (2 / 3, 1.0))
"""(from which part of the episode on, target speed in m/s)."""
TRAINED: Final = (0.15, 0.4, 0.7, 1.0, 1.3)
"""Target speeds of the training, m/s."""
COMMANDS: Final = tuple(np.linspace(0.0, 1.0, 21).round(2).tolist())
"""At which the map is measured."""
SPEEDS: Final = tuple(np.linspace(0.2, 1.2, 11).round(2).tolist())
"""At which it is tested, m/s."""
FADING: Final = 0.3
"""s in which the circuit's actions come and go."""
SETTLING: Final = 0.4
"""Part of a segment that does not count for its speed."""


@dataclass(frozen=True, kw_only=True)
class SpeedMap:
    """Which command gives which speed, piecewise linear; speeds rise."""

    speeds: tuple[float, ...]
    commands: tuple[float, ...]

    def command(self, speed: Array) -> Array:
        """Commands for target speeds, m/s; the nearest there is for speeds out of reach."""
        return np.interp(speed, self.speeds, self.commands)

    def moves(self, speed: Array) -> NDArray[np.bool_]:
        """Whether a target speed asks for steps: less than half the slowest speed means to stand."""
        return speed >= 0.5 * self.speeds[0]


def fit_map(commands: Sequence[float], speeds: Array) -> SpeedMap:
    """The map from speeds (C, seeds) at commands (C,): the first command that reaches each new highest mean speed.

    Commands at which the robot fell (NaN) are left out, unless it did at all of them.
    """
    safe = np.flatnonzero(np.isfinite(speeds).all(axis=1))
    if not len(safe):
        safe = np.arange(len(commands))
    means, chosen = np.nan_to_num(speeds[safe]).mean(axis=1), np.array(commands)[safe]
    highest = np.maximum.accumulate(means)
    rising = np.concatenate(([True], np.diff(highest) > 1e-6))
    return SpeedMap(speeds=tuple(highest[rising].tolist()), commands=tuple(chosen[rising].tolist()))


def fades(moving: NDArray[np.bool_], steps: int) -> Array:
    """(P, T) in [0, 1]: the share of the circuit in an action, which follows `moving` (P, T) within some steps."""
    share, shares = moving[:, 0].astype(float), []
    for now in moving.T:
        share = np.clip(share + np.where(now, 1, -1) / steps, 0.0, 1.0)
        shares.append(share)
    return np.stack(shares, axis=1)


class Brainstem:
    """A controller that sets the circuit's command from a target speed. Its state includes the time."""

    def __init__(self, controller: NCAPController, speed_map: SpeedMap, targets: Array, control_dt: float) -> None:
        """targets: (P, T) m/s."""
        self.controller = controller
        self.commands = speed_map.command(targets)
        self.shares = fades(speed_map.moves(targets), round(FADING / control_dt))

    def reset(self, seeds: Sequence[int]) -> tuple[int, Any]:
        """At the beginning of the schedule."""
        self.controller.command = self.commands[:, 0]
        return 0, self.controller.reset(seeds)

    def act(self, state: tuple[int, Any], observation: Array) -> tuple[tuple[int, Any], Array]:
        """((time, next state), action)."""
        step, inner = state
        self.controller.command, self.controller.share = self.commands[:, step], self.shares[:, step]
        inner, action = self.controller.act(inner, observation)
        return (step + 1, inner), action

    def signals(self, state: tuple[int, Any]) -> dict[str, Array]:
        """What the circuit offers, and the command."""
        step, inner = state
        return self.controller.signals(inner) | {"command": self.commands[:, max(0, step - 1)]}


def measured_speeds(policy: NCAPPolicy, theta: Array, task: Task, commands: Array, seeds: Sequence[int],
                    threads: int) -> Array:  # fmt: skip
    """(C, seeds) mean forward speed at constant commands (C,), m/s, NaN after a fall."""
    controller = policy.bind(np.tile(theta, (len(commands) * len(seeds), 1)))
    controller.command = np.repeat(commands, len(seeds))
    episodes = rollout(task, controller, list(seeds) * len(commands), threads=threads, record=("velocity",))
    settled = episodes.signals["velocity"][:, round(SETTLING * task.steps) :, 0]
    speeds = np.where(episodes.fell, np.nan, np.nan_to_num(settled).mean(axis=1))
    return speeds.reshape(len(commands), len(seeds))


def run(library: Library, scale: Scale, out: Path) -> None:
    """Fit the map of a trained policy, test it at speeds in between, and play the schedule."""
    training = Training(task=TASK, speeds=TRAINED, **scale.speeds)
    (place,) = library.train([training])
    policy, theta, _ = load_policy(place / "best.safetensors")
    assert isinstance(policy, NCAPPolicy)
    library.say("measuring speed against the command")
    task = replace(training.world, episode_seconds=scale.test_seconds)
    fitting, held_out = range(1000, 1000 + scale.episodes), range(scale.episodes)
    found = measured_speeds(policy, theta, task, np.array(COMMANDS), fitting, library.threads)
    speed_map = fit_map(COMMANDS, found)
    reached = measured_speeds(policy, theta, task, speed_map.command(np.array(SPEEDS)), held_out, library.threads)
    write_table(out / "variable-speed.csv", [_row(speed_map, *pair) for pair in zip(SPEEDS, reached, strict=True)])
    steps = np.arange(task.steps) / task.steps
    targets = np.array(SCHEDULE)[np.searchsorted([part for part, _ in SCHEDULE], steps, side="right") - 1, 1]
    controller = Brainstem(policy.bind(theta[None]), speed_map, targets[None], task.control_dt)
    played = rollout(task, controller, [0], record=("velocity", "command", "foot_force"))
    _figure(task, targets, played, speed_map, reached, out / "variable-speed.png")


def _row(speed_map: SpeedMap, target: float, speeds: Array) -> dict[str, object]:
    walked = speeds[np.isfinite(speeds)]
    speed = float(walked.mean()) if len(walked) else 0.0
    return {
        "target": target,
        "command": float(speed_map.command(np.array(target))),
        "speed": speed,
        "error": abs(speed - target),
        "falls": len(speeds) - len(walked),
        "episodes": len(speeds),
    }


@plots.styled
def _figure(task: Task, targets: Array, played: Episodes, speed_map: SpeedMap, reached: Array, path: Path) -> None:
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
    axes["map"].plot(speed_map.speeds, speed_map.commands, marker="o", markersize=3, color="#333333")
    axes["map"].set(xlabel="speed (m/s)", ylabel="command c", title="Fitted map", xlim=(0, 1.3), ylim=(-0.05, 1.05))
    axes["error"].axhspan(-0.1, 0.1, color="#EEEEEE")
    for target, speeds in zip(SPEEDS, reached, strict=True):
        axes["error"].plot([target] * len(speeds), speeds - target, ".", color=plots.POLICY_COLOURS["ncap"], alpha=0.6)
    axes["error"].set(xlabel="target speed (m/s)", ylabel="error (m/s)", title="Held-out episodes", ylim=(-0.75, 0.75))
    plots.save_both(fig, path)


def _gaits_by_segment(task: Task, force: Array) -> str:
    """What the gait was called in each segment, its first part left out."""
    edges = [round(part * len(force)) for part, _ in SCHEDULE] + [len(force)]
    labels = []
    for (_, speed), first, last in zip(SCHEDULE, edges[:-1], edges[1:], strict=True):
        settled = first + round(SETTLING * (last - first))
        gait = foot_gait(force[settled:last], task.control_dt)
        labels.append(f"{speed:g} m/s: {'stand' if gait.duty > 0.97 else gait.label}")
    return "   ".join(labels)
