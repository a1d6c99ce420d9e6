"""Generalisation (figure 6 of the paper): returns on terrains and bodies that were not trained on, NCAP beside MLPs.

The paper has four axes: bumpiness, trunk mass and the two gains. The others are ours. The paper's MLP was trained by
evolution. One by PPO stands beside it, which learns more from as many steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots, stats
from ncap.experiments.library import Library, Scale
from ncap.experiments.performance import player
from ncap.report.tables import merge_table, read_table, write_table
from ncap.sim.bodies import legged
from ncap.sim.robot import Robot
from ncap.sim.terrain import Bumpy
from ncap.sim.world import Variation
from ncap.tasks import Task, build, find_task

Array = NDArray[np.float64]

UNTRAINED: Final = "untrained"
TRUNK_KG: Final = 4.713
"""Mass of the A1's trunk, kg."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A quantity of the world that is varied, and its range."""

    name: str
    unit: str
    low: float
    high: float
    trained: Callable[[Robot], float]
    """The value in training."""
    vary: Callable[[Task, float], Task]
    """The task with another value."""
    whole: bool = False
    """Whether it has whole values only."""

    def values(self, points: int) -> list[float]:
        """That many values from the lowest to the highest, or all where only whole ones are possible."""
        count = round(self.high - self.low) + 1 if self.whole else points
        return [float(value) for value in np.linspace(self.low, self.high, count)]


def _with(task: Task, variation: Variation) -> Task:
    return replace(task, variation=variation)


AXES: Final = (
    Axis(
        name="bumpiness",
        unit="",
        low=0.0,
        high=1.0,
        trained=lambda _: 0.5,
        vary=lambda task, value: replace(task, terrain=Bumpy(bumpiness=value)),
    ),
    Axis(
        name="trunk mass",
        unit="kg",
        low=2.4,
        high=14.1,
        trained=lambda _: TRUNK_KG,
        vary=lambda task, value: _with(task, Variation(trunk_mass_scale=value / TRUNK_KG)),
    ),
    Axis(
        name="kp",
        unit="N m / rad",
        low=20.0,
        high=120.0,
        trained=lambda robot: robot.kp,
        vary=lambda task, value: _with(task, Variation(kp=value)),
    ),
    Axis(
        name="kd",
        unit="N m s / rad",
        low=2.0,
        high=20.0,
        trained=lambda robot: robot.kd,
        vary=lambda task, value: _with(task, Variation(kd=value)),
    ),
    Axis(
        name="friction",
        unit="",
        low=0.2,
        high=1.4,
        trained=lambda _: 1.0,
        vary=lambda task, value: replace(task, friction=(value, value)),
    ),
    Axis(
        name="motor strength",
        unit="times the largest torque",
        low=0.2,
        high=1.0,
        trained=lambda _: 1.0,
        vary=lambda task, value: _with(task, Variation(motor_strength=value)),
    ),
    Axis(
        name="latency",
        unit="control steps",
        low=0,
        high=2,
        trained=lambda _: 0.0,
        vary=lambda task, value: replace(task, latency=round(value)),
        whole=True,
    ),
    Axis(
        name="sensor noise",
        unit="of a sense's range",
        low=0.0,
        high=0.4,
        trained=lambda _: 0.0,
        vary=lambda task, value: replace(task, sensor_noise=value),
    ),
)
TASK: Final = "bumpy-walk"
"""The task of training and evaluation: every axis can be varied on it."""


TABLE: Final = "generalization.csv"
SUMMARY: Final = "generalization-summary.csv"
POINT: Final = ("axis", "value", "policy", "seed")
"""Columns that name a row."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing and evaluate every policy along every axis; the table is written after each policy.

    A policy that the performance experiment has kept beside the tables is not trained again.
    """
    trained = scale.trainings(TASK, "ncap")[0].world
    tabulate(library, scale, out, trained, UNTRAINED, 0, UNTRAINED)
    for policy in scale.contenders:
        for training in scale.trainings(TASK, policy):
            tabulate(library, scale, out, trained, policy, training.seed, player(library, training, policy, out))
    draw(out)


def tabulate(library: Library, scale: Scale, out: Path, trained: Task, policy: str, seed: int, place: str) -> None:
    """Write the rows of one trained policy; `place`: its name, its file or its run."""
    rows = []
    for axis in AXES:
        for value in axis.values(scale.points):
            found = library.evaluation(place, axis.vary(trained, value), scale.variations)
            row = dict(zip(POINT, (axis.name, plain(value), policy, seed), strict=True))
            rows.append(row | {"return": found.return_mean, "falls": found.falls, "episodes": found.episodes})
        build.cache_clear()  # every bumpiness compiled a world of its own
    merge_table(out / TABLE, rows, POINT)


def plain(value: float) -> str:
    """A value as it stands in the table."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def draw(tables: Path) -> None:
    """Write the summary over seeds, and draw generalization.png, from the table in a folder."""
    rows = read_table(tables / TABLE)
    write_table(tables / SUMMARY, summary(rows))
    _figure(rows, tables / "generalization.png")


def summary(rows: Sequence[dict[str, str]]) -> list[dict[str, object]]:
    """A row per axis and value, marked at either end of an axis, with every policy's mean return and falls."""
    found: list[dict[str, object]] = []
    for axis in AXES:
        here = [row for row in rows if row["axis"] == axis.name]
        values = sorted({row["value"] for row in here}, key=float)
        for value in values:
            end = {values[0]: "low", values[-1]: "high"}.get(value, "")
            cells: dict[str, object] = {"axis": axis.name, "unit": axis.unit, "value": value, "end": end}
            for policy in plots.POLICY_NAMES:
                if points := [row for row in here if (row["value"], row["policy"]) == (value, policy)]:
                    falls, episodes = (sum(int(row[name]) for row in points) for name in ("falls", "episodes"))
                    mean = np.mean([float(row["return"]) for row in points])
                    cells |= {policy: mean, f"{policy} falls": falls, f"{policy} episodes": episodes}
            found.append(cells)
    return found


@plots.styled
def _figure(rows: list[dict[str, str]], path: Path) -> None:
    names = [axis.name.replace(" ", "_") for axis in AXES]
    lines = [" ".join(names[i : i + 4]) for i in range(0, len(names), 4)]
    fig, axes = plots.figure(lines, size=(13, 6.4), heights=(1,) * len(lines))
    policies = [policy for policy in plots.POLICY_NAMES if any(row["policy"] == policy for row in rows)]
    for axis, name in zip(AXES, names, strict=True):
        here = axes[name]
        for policy in policies:
            points: dict[float, list[float]] = {}
            for row in rows:
                if row["axis"] == axis.name and row["policy"] == policy:
                    points.setdefault(float(row["value"]), []).append(float(row["return"]))
            values = sorted(points)
            found = [stats.estimate(np.array(points[value])) for value in values]
            mean, low, high = np.array(found).reshape(-1, 3).T
            plots.curve_band(here, np.array(values), mean, low, high, policy)
        here.axvline(axis.trained(legged(find_task(TASK).robot)), color="#777777", linestyle="--", linewidth=1)
        here.axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        unit = f" ({axis.unit})" if axis.unit else ""
        here.set(xlabel=f"{axis.name}{unit}", ylim=(0, 1.02), xlim=(axis.low, axis.high))
        if axis.whole:
            here.set_xticks(axis.values(0))
    for line in lines:
        axes[line.split()[0]].set_ylabel("return")
    handles, labels = axes[names[0]].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=len(policies), frameon=False)
    fig.suptitle(f"Trained on {TASK} at the dashed value", x=0.01, ha="left")
    plots.save_both(fig, path)
