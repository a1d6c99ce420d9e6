"""Does the rhythm lead the body? Training with all that is to make it lead, and with one part changed at a time.

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
from ncap.circuits.animal import AFFERENT_LIMIT, LATE, LATE_TIME, animal
from ncap.circuits.spec import CircuitSpec, Neuron
from ncap.circuits.tables import save_circuit
from ncap.circuits.units import BasicUnit, SumUnit, Unit
from ncap.evaluation import Evaluation
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import FOOTFALL_WEIGHT, Training
from ncap.report.tables import write_table

TASKS: Final = ("flat-walk", "flat-run")
EPOCHS: Final = 20
"""Epochs of a training, unless the scale has fewer."""
AT_ONCE: Final = 0.001
"""T_v of late neurons that are not late, s: within a control step they follow their half-centres."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What is varied."""

    limit: float | None = AFFERENT_LIMIT
    """Bound of the afferents' sums; None: there is none."""
    late_time: float = LATE_TIME
    """T_v of the neurons that move the thighs, s."""
    footfalls: float = FOOTFALL_WEIGHT
    """Weight of the footfalls when evolution selects."""


CONDITIONS: Final = {
    "afferents unbounded": Condition(limit=None),
    "thighs at once": Condition(late_time=AT_ONCE),
    "footfalls do not count": Condition(footfalls=0.0),
    "everything": Condition(),
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
    """Train what is missing, evaluate, then write the table and the figure of docs/concepts/rhythm.md."""
    rows = []
    for task in (task for task in TASKS if task in scale.tasks):
        for name, condition in CONDITIONS.items():
            own = library.within(f"leading/{name.replace(' ', '-')}")
            places = own.train(trainings(task, condition, scale, own.folder / "leading.json"))
            for seed, place in enumerate(places):
                found = library.evaluation(str(place), Training(task=task).world, scale.episodes)
                rows.append({"task": task, "condition": name, "seed": seed} | _row(found))
    write_table(out / "leading.csv", rows)
    _figure(rows, out / "leading.png")


def trainings(task: str, condition: Condition, scale: Scale, table: Path) -> list[Training]:
    """One training per seed of a condition, whose circuit is written to a file."""
    save_circuit(changed(animal(), condition), table)
    settings = dict(scale.ncap) | {"epochs": min(EPOCHS, scale.ncap["epochs"])}
    whole = Training(task=task, circuit=str(table), footfalls=condition.footfalls, **settings)
    return [replace(whole, seed=seed).filled() for seed in range(scale.seeds)]


def changed(spec: CircuitSpec, condition: Condition) -> CircuitSpec:
    """A table with another bound of its afferents' sums, and other late neurons."""

    def unit(row: Neuron) -> Unit:
        if isinstance(row.unit, SumUnit):
            return SumUnit(limit=condition.limit)
        return BasicUnit(voltage_time=condition.late_time) if row.name in LATE.values() else row.unit

    return replace(spec, neurons=tuple(replace(row, unit=unit(row)) for row in spec.neurons))


def _row(found: Evaluation) -> dict[str, object]:
    gait = found.walk
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
    """A row per task with a panel per measure, in it a line of dots per condition: one for every seed."""
    names, tasks = list(CONDITIONS), list(dict.fromkeys(row["task"] for row in rows))
    panels = [" ".join(f"{task}/{measure}" for measure in MEASURES) for task in tasks]
    fig, axes = plots.figure(panels, size=(15, 2.6 * len(tasks) + 0.6), heights=(1,) * len(tasks))
    for task in tasks:
        for measure, heading in MEASURES.items():
            here = axes[f"{task}/{measure}"]
            for row in (row for row in rows if row["task"] == task and row[measure] is not None):
                height = len(names) - 1 - names.index(row["condition"])
                here.plot(row[measure], height, "o", color=plots.POLICY_COLOURS["ncap"], markersize=6, alpha=0.6)
            here.set(title=f"{task}: {heading}" if measure == "return" else heading, ylim=(-0.6, len(names) - 0.4))
            here.set_yticks(np.arange(len(names))[::-1], names if measure == "return" else [""] * len(names))
            if measure in ("rhythm_ratio", "touchdowns_per_stride"):
                here.axvline(1.0, color="#999999", linestyle=":", linewidth=1)
    plots.save_both(fig, path)
