"""Generalisation (figure 6 of the paper): returns on terrains and bodies that were not trained on, NCAP beside MLPs.

The paper's MLP was trained by evolution. One by PPO stands beside it, which learns more from as many steps.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots, stats
from ncap.experiments.library import Library, Scale
from ncap.report.tables import read_table, write_table
from ncap.sim.robot import Robot
from ncap.sim.terrain import Bumpy
from ncap.sim.world import Variation
from ncap.tasks import Task, build, find_task

Array = NDArray[np.float64]

CONTENDERS: Final = ("ncap", "mlp-evolution", "mlp-ppo")
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
)
TASK: Final = "bumpy-walk"
"""The task of training and evaluation: every axis can be varied on it."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, evaluate along every axis, then write the table and the figure."""
    runs = {name: library.train(scale.trainings(TASK, name)) for name in CONTENDERS}
    trained = scale.trainings(TASK, "ncap")[0].world
    rows = []
    for axis in AXES:
        for value in np.linspace(axis.low, axis.high, scale.points):
            task = axis.vary(trained, float(value))
            for policy in (*CONTENDERS, "untrained"):
                places = [str(place) for place in runs.get(policy, ())] or ["untrained"]
                found = [library.evaluation(place, task, scale.episodes) for place in places]
                held_out = stats.estimate(np.array([one.return_mean for one in found]))
                rows.append(
                    {
                        "axis": axis.name,
                        "value": float(value),
                        "policy": policy,
                        "runs": len(found),
                        "return": held_out.value,
                        "low": held_out.low,
                        "high": held_out.high,
                        "falls": sum(one.falls for one in found),
                        "episodes": sum(one.episodes for one in found),
                    }
                )
        build.cache_clear()  # every bumpiness compiled a world of its own
    write_table(out / "generalization.csv", rows)
    draw(out)


def draw(tables: Path) -> None:
    """Draw generalization.png from the table in a folder."""
    _figure(read_table(tables / "generalization.csv"), tables / "generalization.png")


@plots.styled
def _figure(rows: list[dict[str, str]], path: Path) -> None:
    names = [axis.name.replace(" ", "_") for axis in AXES]
    fig, axes = plots.figure([" ".join(names[:2]), " ".join(names[2:])], size=(9, 6), heights=(1, 1))
    for axis, name in zip(AXES, names, strict=True):
        for policy in dict.fromkeys(row["policy"] for row in rows):
            mine = [row for row in rows if row["axis"] == axis.name and row["policy"] == policy]
            value, mean, low, high = (
                np.array([float(row[key]) for row in mine]) for key in ("value", "return", "low", "high")
            )
            plots.curve_band(axes[name], value, mean, low, high, policy)
        axes[name].axvline(axis.trained(find_task(TASK).robot), color="#777777", linestyle="--", linewidth=1)
        axes[name].axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        unit = f" ({axis.unit})" if axis.unit else ""
        axes[name].set(xlabel=f"{axis.name}{unit}", ylabel="return", ylim=(0, 1.02), xlim=(axis.low, axis.high))
    axes[names[0]].legend(frameon=False, loc="lower left")
    fig.suptitle(f"Trained on {TASK} at the dashed value", x=0.01, ha="left")
    plots.save_both(fig, path)
