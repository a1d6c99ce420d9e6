"""Parameter efficiency (figure 5 of the paper): MLPs of many sizes beside NCAP on the bumpy tasks."""

from pathlib import Path
from typing import Final

import numpy as np

from ncap.analysis import plots, stats
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import merge_table, read_table

TASKS: Final = ("bumpy-walk", "bumpy-run")
TABLE: Final = "parameters.csv"
RUN: Final = ("task", "policy", "seed")
"""Columns that name a run."""


def policies(scale: Scale) -> list[str]:
    """NCAP, and MLPs by size; the largest is the one of the other experiments."""
    return ["ncap", *("mlp-evolution" if size == 256 else f"mlp:{size}x{size}" for size in scale.sizes)]


def trainings(scale: Scale) -> list[Training]:
    """All runs of the experiment."""
    tasks = [task for task in TASKS if task in scale.tasks]
    return [one for policy in policies(scale) for task in tasks for one in scale.trainings(task, policy)]


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, one run after the other, then write the table and the figure."""
    for training in trainings(scale):
        (place,) = library.train([training])
        found = library.evaluation(str(place), training.world, scale.episodes)
        row = dict(zip(RUN, (training.task, _name(training), training.seed), strict=True))
        row |= {"parameters": found.parameters, "episodes": found.episodes, "return_mean": found.return_mean}
        merge_table(out / TABLE, [row], RUN)
    draw(out)


def _name(training: Training) -> str:
    return {"ncap": "ncap", "mlp": "mlp-evolution"}.get(training.kind, training.kind)


def draw(tables: Path) -> None:
    """Draw parameters.png from the table in a folder."""
    _figure(read_table(tables / TABLE), tables / "parameters.png")


@plots.styled
def _figure(rows: list[dict[str, str]], path: Path) -> None:
    """Held-out return against the number of weights: means over seeds with intervals, and a ring for every seed."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    names = [task.replace("-", "_") for task in tasks]
    fig, axes = plots.figure([" ".join(names)], size=(9, 3.4), heights=(1,))
    for task, name in zip(tasks, names, strict=True):
        here = [row for row in rows if row["task"] == task]
        for policy in dict.fromkeys(row["policy"] for row in here):
            mine = [row for row in here if row["policy"] == policy]
            ours = policy == "ncap"
            colour = plots.POLICY_COLOURS["ncap" if ours else "mlp-evolution"]
            x, runs = float(mine[0]["parameters"]), np.array([float(row["return_mean"]) for row in mine])
            found = stats.estimate(runs)
            bars = [[found.value - found.low], [found.high - found.value]]
            axes[name].errorbar(x, found.value, yerr=bars, color=colour, marker="o", markersize=7 if ours else 5)
            axes[name].plot([x] * len(runs), runs, "o", color=colour, fillstyle="none", markersize=3)
            label = "NCAP" if ours else policy.removeprefix("mlp:").replace("mlp-evolution", "256x256")
            axes[name].annotate(label, (x, found.high), (0, 9), textcoords="offset points", ha="center", fontsize=8)
        axes[name].axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        axes[name].set_xscale("log")
        axes[name].set(title=task, ylim=(0, 1.08), xlim=(50, 2e5), xlabel="parameters", ylabel="held-out return")
    plots.save_both(fig, path)
