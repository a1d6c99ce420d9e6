"""Driving: how well a circuit follows wishes for a speed and a yaw rate, and the paths that it takes.

The paper names variable speed and turning as its next steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.evaluation import Evaluation, evaluate
from ncap.experiments.library import Library, Scale
from ncap.policies.brainstem import Brainstem
from ncap.report.tables import write_table
from ncap.rollouts import rollout
from ncap.rotations import heading_of
from ncap.tasks import TASKS, Drive, with_wish
from ncap.trained import TrainedPolicy, load

Array = NDArray[np.float64]

POLICY: Final = "ncap-drive"
SPEEDS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Wanted straight ahead, m/s."""
YAW_RATES: Final = (-0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6)
"""Wanted at TURNING_SPEED, rad/s."""
TURNING_SPEED: Final = 0.5
"""Speed of turns, m/s."""
EPISODES: Final = 5
"""Episodes of each constant wish."""
RADIUS: Final = 2.0
"""Radius of the circle, m."""


@dataclass(frozen=True, kw_only=True)
class Course(Drive):
    """Wishes in a fixed order, the same for every seed."""

    plan: tuple[tuple[float, float, float], ...] = ()
    """(seconds, speed m/s, yaw rate rad/s) of each."""

    def wishes(self, seed: int, steps: int, dt: float) -> Array:
        """(steps, 2) the plan; its last wish goes on to the end."""
        rows = [row for seconds, *wish in self.plan for row in [wish] * round(seconds / dt)]
        return np.array((rows + rows[-1:] * steps)[:steps])

    @property
    def length(self) -> float:
        """All of it, s."""
        return sum(seconds for seconds, _, _ in self.plan)


def courses() -> dict[str, Course]:
    """Straight ahead for 15 s, and a circle and a figure of eight after two seconds to start."""
    rate = TURNING_SPEED / RADIUS
    circle = 2 * np.pi / rate
    tight = 0.4
    loop = 2 * np.pi / tight
    begin = (2.0, TURNING_SPEED, 0.0)
    return {
        "straight ahead": Course(plan=((15.0, TURNING_SPEED, 0.0),)),
        "circle": Course(plan=(begin, (circle, TURNING_SPEED, rate))),
        "figure of eight": Course(plan=(begin, (loop, TURNING_SPEED, tight), (loop, TURNING_SPEED, -tight))),
    }


def run(library: Library, scale: Scale, out: Path) -> None:
    """Measure the shipped circuit and draw its paths."""
    player = load(POLICY)
    rows = []
    for name in ("flat-drive", "bumpy-drive"):
        library.say(f"{player.name} on {name}")
        rows.append(_row(evaluate(player, TASKS[name], range(scale.episodes), threads=library.threads)))
    write_table(out / "driving.csv", rows)
    wishes = [(speed, 0.0) for speed in SPEEDS] + [(TURNING_SPEED, yaw) for yaw in YAW_RATES]
    done: list[dict[str, object]] = []
    for speed, yaw_rate in wishes:
        library.say(f"{player.name} at {speed:g} m/s and {yaw_rate:g} rad/s")
        task = with_wish(TASKS["flat-drive"], speed, yaw_rate)
        found = evaluate(player, task, range(EPISODES), threads=library.threads)
        done.append(
            {
                "wanted_speed": speed,
                "wanted_yaw_rate": yaw_rate,
                "speed": found.speed_mean,
                "yaw_rate": found.yaw_rate_mean,
                "falls": found.falls,
                "episodes": found.episodes,
                "gait": found.walk.label,
                "share": found.walk.share,
                "commanded_share": found.walk.commanded_share,
                "cost_of_transport": found.cost_of_transport,
            }
        )
    write_table(out / "driving-wishes.csv", done)
    paths = {name: paths_of(player, course, [0])[0] for name, course in courses().items()}
    straight = paths_of(player, courses()["straight ahead"], range(scale.straight))
    drifts = [abs(np.rad2deg(heading_change(path[:, 2]))) for path in straight]
    drift = float(np.mean(drifts))
    row = {"seconds": 15.0, "episodes": len(drifts), "drift_mean_deg": drift, "drift_max_deg": float(max(drifts))}
    write_table(out / "driving-straight.csv", [row])
    _figure(done, paths, drift, out / "driving.png")


def _row(found: Evaluation) -> dict[str, object]:
    return {
        "policy": found.policy,
        "task": found.task,
        "weights": found.parameters,
        "episodes": found.episodes,
        "return": found.return_mean,
        "falls": found.falls,
        "wishes": found.commands,
        "error_vel_x": found.error_vel_x,
        "error_yaw": found.error_yaw,
        "commanded_share": found.walk.commanded_share,
        "rhythm_ratio": found.walk.rhythm_ratio,
        "cost_of_transport": found.cost_of_transport,
        "smoothness": found.smoothness,
        "roll_rms_deg": found.roll_rms_deg,
        "pitch_rms_deg": found.pitch_rms_deg,
    }


def paths_of(player: TrainedPolicy, course: Course, seeds: Sequence[int]) -> list[Array]:
    """(T, 3) each: where the trunk is, m, and its heading, rad, on a course from its start to its end or a fall."""
    task = replace(TASKS["flat-drive"], drive=course, episode_seconds=course.length)
    names = ("position", "quaternion")
    played = rollout(task, player.controller(len(seeds)), seeds, command=Brainstem(), record=names)
    paths = []
    for position, turned, lived in zip(*(played.signals[name] for name in names), played.steps, strict=True):
        heading = np.unwrap(heading_of(turned[:lived]))
        paths.append(np.column_stack((position[:lived, :2], heading)))
    return paths


def heading_change(heading: Array, steps: int = 20) -> float:
    """Change of a heading (T,), rad, from its start to the mean of its last steps, about a stride."""
    return float(heading[-steps:].mean() - heading[0])


@plots.styled
def _figure(done: list[dict[str, object]], paths: dict[str, Array], drift: float, path: Path) -> None:
    fig, axes = plots.figure(["paths speed yaw"], size=(11, 3.8), heights=(1,))
    colours = list(plots.LEG_COLOURS)
    for (name, line), colour in zip(paths.items(), (colours[0], colours[2], plots.GAIT_COLOURS["trot"]), strict=True):
        axes["paths"].plot(line[:, 0], line[:, 1], color=colour, label=name)
    axes["paths"].set_aspect("equal", adjustable="datalim")
    axes["paths"].set_title(f"Paths (drift {drift:.1f}° in 15 s)")
    axes["paths"].set(xlabel="x (m)", ylabel="y (m)")
    axes["paths"].legend(frameon=False, fontsize=8, loc="lower right")
    for name, rows, wanted, unit in (
        ("speed", done[: len(SPEEDS)], "wanted_speed", "m/s"),
        ("yaw", done[len(SPEEDS) :], "wanted_yaw_rate", "rad/s"),
    ):
        got = wanted.removeprefix("wanted_")
        x, y = (np.array([row[key] for row in rows], np.float64) for key in (wanted, got))
        axes[name].plot(x, x, color="#bbbbbb", zorder=0)
        for gait in dict.fromkeys(str(row["gait"]) for row in rows):
            own = np.array([row["gait"] == gait for row in rows])
            axes[name].plot(x[own], y[own], "o", color=plots.GAIT_COLOURS[gait], label=gait)
        axes[name].set(xlabel=f"wanted ({unit})", ylabel=f"done ({unit})")
        axes[name].legend(frameon=False, fontsize=8, loc="upper left")
    axes["speed"].set_title("Speed, straight ahead")
    axes["yaw"].set_title(f"Yaw rate, at {TURNING_SPEED:g} m/s")
    plots.save_both(fig, path)
