"""Which optimiser learns to walk fastest: rollouts until the test return first reaches 0.90, over several seeds."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.experiments.curves import LEARNED, Curve, read_curve
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import write_table

TASK: Final = "flat-walk"
CONDITIONS: Final[dict[str, dict[str, Any]]] = {
    "neuromodulators": {},
    "the same, 1 × 15 s": {"episodes": 1, "training_seconds": 15.0},
    "single weights": {"preset": "plain"},
    "ARS": {"preset": "ars", "training_seconds": 15.0},
    "ARS as released": {"preset": "released"},
}
"""Settings of Training by the names in table and figure; the first is the default of `ncap train`."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the table of docs/design/evolution.md and draw the curves."""
    curves = {name: play(library, name, scale) for name in CONDITIONS}
    write_table(out / "evolution.csv", [_row(name, found) for name, found in curves.items()])
    _figure(curves, scale.rollouts, out / "evolution.png")


def play(library: Library, condition: str, scale: Scale) -> list[Curve]:
    """The learning curves of a condition, one per seed. Its runs are in a folder of their own."""
    own = library.within(f"evolution/{condition.replace(' ', '-').replace(',', '')}")
    return [read_curve(place) for place in own.train(trainings(condition, scale))]


def trainings(condition: str, scale: Scale) -> list[Training]:
    """One training per seed, with as many epochs as the rollouts allow."""
    settings = dict(CONDITIONS[condition])
    if (seconds := scale.ncap.get("episode_seconds")) is not None:  # a scale with short episodes
        settings |= {"episode_seconds": seconds, "training_seconds": seconds}
    one = Training(task=TASK, **settings)
    epochs = scale.rollouts // one.evolution.population + 1  # the last epoch shows the test return of all rollouts
    return [replace(one, epochs=epochs, seed=seed).filled() for seed in range(scale.seeds)]


def _row(name: str, found: list[Curve]) -> dict[str, object]:
    needed = [curve.until_learned("rollouts") for curve in found]
    return {
        "condition": name,
        "rollouts_to_0.9": ", ".join("never" if np.isinf(n) else f"{n:.0f}" for n in needed),
        "median": np.median(needed),
        "median_steps": np.median([curve.until_learned("steps") for curve in found]),
        "median_cpu_seconds": np.median([curve.until_learned("cpu_seconds") for curve in found]),
        "best": np.mean([curve.returns.max() for curve in found]),
        "last": np.mean([curve.returns[-1] for curve in found]),
    }


@plots.styled
def _figure(curves: dict[str, list[Curve]], rollouts: int, path: Path) -> None:
    """Test return against rollouts, a panel per condition, a line per seed."""
    names = [f"p{i}" for i in range(len(curves))]
    rows = [" ".join((*names, ".")[i : i + 2]) for i in range(0, len(names), 2)]
    fig, axes = plots.figure(rows, size=(9, 2.7 * len(rows)), heights=(1,) * len(rows))
    for place, (name, found) in zip(names, curves.items(), strict=True):
        for curve in found:
            axes[place].plot(curve.rollouts, curve.returns, color=plots.LEG_COLOURS[0], linewidth=1, alpha=0.7)
        axes[place].axhline(LEARNED, color="#999999", linestyle=":", linewidth=1)
        axes[place].set(title=name, xlim=(0, rollouts), ylim=(0.5, 1.0))
        axes[place].set_xlabel("rollouts")
    plots.save_both(fig, path)
