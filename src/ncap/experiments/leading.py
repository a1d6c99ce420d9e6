"""Does the rhythm lead the body? Training with and without what is to make it lead, over several seeds.

Every condition is a table and a setting of the training; the rest is the same. Reported are the return and, over all
held-out episodes, what the feet do: the share with the circuit's own gait, regularity, the body's rhythm over that of
the circuit alone, and touchdowns per stride.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.circuits.animal import AFFERENT_LIMIT, animal
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.tables import save_circuit
from ncap.circuits.units import SumUnit
from ncap.evaluation import Evaluation
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import FOOTFALL_WEIGHT, Training
from ncap.report.tables import write_table

TASKS: Final = ("flat-walk",)
EPOCHS: Final = 20
"""Epochs of a training, unless the scale has fewer."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What is varied."""

    limit: float | None = AFFERENT_LIMIT
    """Bound of the afferents' sums; None: there is none."""
    footfalls: float = FOOTFALL_WEIGHT
    """Weight of the footfalls when evolution selects."""


CONDITIONS: Final = {
    "unbounded": Condition(limit=None, footfalls=0.0),
    "bounded": Condition(footfalls=0.0),
    "bounded, footfalls count": Condition(),
}
"""The last one is the default of `ncap train`."""
MEASURES: Final = {
    "return": "return",
    "commanded_share": "commanded gait, share",
    "regular_share": "R ≥ 0.8, share",
    "rhythm_ratio": "rhythm ratio",
    "touchdowns_per_stride": "touchdowns per stride",
    "cost_of_transport": "cost of transport",
}
"""What is drawn, with its name in the figure."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, evaluate, then write the table and the figure of docs/rhythm.md."""
    rows = []
    for task in (task for task in TASKS if task in scale.tasks):
        for name, condition in CONDITIONS.items():
            own = library.within(f"leading/{name.replace(' ', '-').replace(',', '')}")
            places = own.train(trainings(task, condition, scale, own.folder / "leading.json"))
            for seed, place in enumerate(places):
                found = library.evaluation(str(place), Training(task=task).world, scale.episodes)
                rows.append({"task": task, "condition": name, "seed": seed} | _row(found))
    write_table(out / "leading.csv", rows)
    _figure(rows, out / "leading.png")


def trainings(task: str, condition: Condition, scale: Scale, table: Path) -> list[Training]:
    """One training per seed of a condition, whose circuit is written to a file."""
    save_circuit(limited(animal(), condition.limit), table)
    settings = dict(scale.ncap) | {"epochs": min(EPOCHS, scale.ncap["epochs"])}
    whole = Training(task=task, circuit=str(table), footfalls=condition.footfalls, **settings)
    return [replace(whole, seed=seed).filled() for seed in range(scale.seeds)]


def limited(spec: CircuitSpec, limit: float | None) -> CircuitSpec:
    """A table with another bound of its afferents' sums."""
    neurons = (
        replace(row, unit=SumUnit(limit=limit)) if isinstance(row.unit, SumUnit) else row for row in spec.neurons
    )
    return replace(spec, neurons=tuple(neurons))


def _row(found: Evaluation) -> dict[str, object]:
    gait = found.gait
    return {
        "return": found.return_mean,
        "falls": found.falls,
        "episodes": found.episodes,
        "speed": found.speed_mean,
        "gait": gait.label,
        "share": gait.share,
        "commanded": gait.commanded,
        "commanded_share": gait.commanded_share,
        "regular_share": gait.regular_share,
        "rhythm_ratio": gait.rhythm_ratio,
        "touchdowns_per_stride": gait.touchdowns_per_stride,
        "cost_of_transport": found.cost_of_transport,
        "action_rate": found.action_rate,
        "smoothness": found.smoothness,
    }


@plots.styled
def _figure(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """A panel per measure, a line of dots per condition: one for every seed."""
    names = list(CONDITIONS)
    fig, axes = plots.figure([" ".join(MEASURES)], size=(15, 3.4), heights=(1,))
    for measure, heading in MEASURES.items():
        here = axes[measure]
        for row in rows:
            height = len(names) - 1 - names.index(row["condition"])
            if row[measure] is not None:
                here.plot(row[measure], height, "o", color=plots.POLICY_COLOURS["ncap"], markersize=6, alpha=0.6)
        here.set(title=heading, ylim=(-0.6, len(names) - 0.4))
        here.set_yticks(np.arange(len(names))[::-1], names if measure == "return" else [""] * len(names))
        if measure in ("rhythm_ratio", "touchdowns_per_stride"):
            here.axvline(1.0, color="#999999", linestyle=":", linewidth=1)
    plots.save_both(fig, path)
