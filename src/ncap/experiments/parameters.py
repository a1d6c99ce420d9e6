"""Parameter efficiency (figure 5 of the paper): MLPs of many sizes beside NCAP on the bumpy tasks."""

from pathlib import Path
from typing import Final

import numpy as np

from ncap.analysis import plots, stats
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import read_table, write_table

TASKS: Final = ("bumpy-walk", "bumpy-run")


def policies(scale: Scale) -> list[str]:
    """NCAP, and MLPs by size; the largest is the one of the other experiments."""
    return ["ncap", *("mlp-evolution" if size == 256 else f"mlp:{size}x{size}" for size in scale.sizes)]


def trainings(scale: Scale) -> list[Training]:
    """All runs of the experiment."""
    tasks = [task for task in TASKS if task in scale.tasks]
    return [one for policy in policies(scale) for task in tasks for one in scale.trainings(task, policy)]


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the table and the figure."""
    library.train(trainings(scale))
    rows = []
    for policy in policies(scale):
        for task in (task for task in TASKS if task in scale.tasks):
            found = [
                library.evaluation(str(library.place(one)), one.world, scale.episodes)
                for one in scale.trainings(task, policy)
            ]
            held_out = stats.estimate(np.array([one.return_mean for one in found]))
            rows.append(
                {
                    "task": task,
                    "policy": policy,
                    "parameters": found[0].parameters,
                    "runs": len(found),
                    "held_out": held_out.value,
                    "held_out_low": held_out.low,
                    "held_out_high": held_out.high,
                }
            )
    write_table(out / "parameters.csv", rows)
    draw(out)


def draw(tables: Path) -> None:
    """Draw parameters.png from the table in a folder."""
    _figure(read_table(tables / "parameters.csv"), tables / "parameters.png")


@plots.styled
def _figure(rows: list[dict[str, str]], path: Path) -> None:
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    names = [task.replace("-", "_") for task in tasks]
    fig, axes = plots.figure([" ".join(names)], size=(9, 3.4), heights=(1,))
    for task, name in zip(tasks, names, strict=True):
        for row in (row for row in rows if row["task"] == task):
            kind = "ncap" if row["policy"] == "ncap" else "mlp-evolution"
            x, y = float(row["parameters"]), float(row["held_out"])
            bars = [[y - float(row["held_out_low"])], [float(row["held_out_high"]) - y]]
            axes[name].errorbar(
                x, y, yerr=bars, color=plots.POLICY_COLOURS[kind], marker="o", markersize=7 if kind == "ncap" else 5
            )
            label = "NCAP" if kind == "ncap" else row["policy"].removeprefix("mlp:").replace("mlp-evolution", "256x256")
            axes[name].annotate(label, (x, y), (0, 9), textcoords="offset points", ha="center", fontsize=8)
        axes[name].axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        axes[name].set_xscale("log")
        axes[name].set(title=task, ylim=(0, 1.08), xlim=(50, 2e5), xlabel="parameters", ylabel="held-out return")
    plots.save_both(fig, path)
