"""Evolution, PPO and D4PG (figure 7 of the paper): test return against environment steps and against CPU time.

The runs of evolution are those of the performance experiment.
"""

from pathlib import Path
from typing import Final

import numpy as np

from ncap.analysis import plots
from ncap.experiments.curves import Curve, read_curve
from ncap.experiments.library import Library, Scale
from ncap.report.tables import write_table

TASKS: Final[tuple[str, ...]] = ("flat-walk", "bumpy-walk")
CONDITIONS: Final = {
    "evolution, NCAP": {"policy": "ncap"},
    "evolution, MLP": {"policy": "mlp"},
    "PPO, NCAP": {"algorithm": "ppo", "policy": "ncap"},
    "PPO, MLP": {"algorithm": "ppo", "policy": "mlp"},
    "D4PG, MLP": {"algorithm": "d4pg", "policy": "mlp"},
}
"""Settings of Training by the names of the curves."""
COLOURS: Final = dict(zip(CONDITIONS, ("#D55E00", "#0072B2", "#E69F00", "#56B4E9", "#009E73"), strict=True))
"""Circuits in red and yellow, MLPs in blue and green."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the table and the figure."""
    tasks = [task for task in TASKS if task in scale.tasks]
    wanted = {
        (task, name): scale.trainings(task, **settings) for name, settings in CONDITIONS.items() for task in tasks
    }
    library.train([one for runs in wanted.values() for one in runs])
    found = {key: [read_curve(library.place(one)) for one in runs] for key, runs in wanted.items()}
    rows = [
        {
            "task": task,
            "condition": name,
            "runs": len(runs),
            "last": np.mean([one.returns[-1] for one in runs]),
            "best": np.mean([one.returns.max() for one in runs]),
            "steps": np.mean([one.steps[-1] for one in runs]),
            "cpu_seconds": np.mean([one.cpu_seconds[-1] for one in runs]),
            "steps_to_0.9_median": np.median([one.until_learned("steps") for one in runs]),
            "cpu_seconds_to_0.9_median": np.median([one.until_learned("cpu_seconds") for one in runs]),
        }
        for (task, name), runs in found.items()
    ]
    write_table(out / "algorithms.csv", rows)
    _figure(found, tasks, out / "algorithms.png")


@plots.styled
def _figure(found: dict[tuple[str, str], list[Curve]], tasks: list[str], path: Path) -> None:
    """A row for steps and one for CPU time, a column per task, a thin line per seed."""
    kinds = {"steps": ("environment steps (million)", 1e6), "cpu_seconds": ("CPU-minutes", 60.0)}
    fig, axes = plots.figure(
        [" ".join(f"{kind}:{task}" for task in tasks) for kind in kinds], size=(10, 6.5), heights=(1, 1)
    )
    for (task, name), runs in found.items():
        for kind, (_, unit) in kinds.items():
            for i, curve in enumerate(runs):
                label = name if i == 0 else None
                along = getattr(curve, kind) / unit
                axes[f"{kind}:{task}"].plot(along, curve.returns, color=COLOURS[name], label=label, linewidth=1)
    for place, axis in axes.items():
        kind, task = place.split(":")
        axis.axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        axis.set(ylim=(0, 1.02), xlabel=kinds[kind][0], ylabel="test return", title=task if kind == "steps" else "")
        axis.set_xlim(left=0)
    axes[f"steps:{tasks[0]}"].legend(frameon=False, loc="lower right", fontsize=8)
    plots.save_both(fig, path)
