"""Which settings of evolution suit an MLP: one changed at a time, then the best of them for both sizes and tasks.

A condition takes long, so what stands in the table with as many seeds is not done again, whoever did it.
"""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.experiments.curves import LEARNED, Curve, read_curve
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import merge_table, read_table

TASKS: Final = ("flat-walk", "bumpy-run")
SIZES: Final = ("mlp:64x64", "mlp:256x256")
CONDITIONS: Final[dict[str, dict[str, Any]]] = {
    "σ 0.1": {"sigma": 0.1, "population": 64},
    "σ 0.05": {"sigma": 0.05, "population": 64},
    "σ 0.2": {"sigma": 0.2, "population": 64},
    "32 candidates": {"sigma": 0.1, "population": 32},
    "16 candidates": {"sigma": 0.1, "population": 16},
    "as released": {"preset": "released"},
    "32 candidates, ranks": {"preset": "ranks"},
    "32 candidates, decay 0.01": {"preset": "decay"},
    "32 candidates, no normaliser": {"preset": "raw"},
    "32 candidates, episodes of 5 s": {"sigma": 0.1, "population": 32, "training_seconds": 5.0},
}
"""Settings of Training by the names in table and figure: the first, and what is changed of it. Training episodes are as
long as those of tests where nothing else is said."""
DEFAULT: Final = "32 candidates, episodes of 5 s"
"""What `ncap train` does with an MLP."""
_FIRST: Final = (TASKS[0], SIZES[0])
"""Where single settings are compared."""
_OTHERS: Final = tuple(case for case in product(TASKS, SIZES) if case != _FIRST)
_PAPERS: Final = tuple((task, SIZES[-1]) for task in TASKS)
"""The paper's size, for which the released settings were made."""
PLAN: Final = (
    *((*_FIRST, name) for name in ("σ 0.1", "σ 0.05", "σ 0.2", "32 candidates", "16 candidates")),
    *((*case, "32 candidates") for case in _OTHERS),
    *((*case, "as released") for case in _PAPERS),
    *((*_FIRST, f"32 candidates, {change}") for change in ("ranks", "no normaliser", "decay 0.01", "episodes of 5 s")),
    *((*case, DEFAULT) for case in _OTHERS),
)
"""(task, policy, condition) in the order in which they are trained."""
HALF: Final = ("as released", *(name for name in CONDITIONS if name.startswith("32 candidates, ")))
"""Conditions that are given half of the steps: enough to see which of two curves leads."""
CASE: Final = ("task", "policy", "condition")
"""Columns that name a case in both tables."""
SUMMARY: Final = "mlp-evolution.csv"
CURVES: Final = "mlp-evolution-curves.csv"
PLATEAU: Final = 0.01
"""A curve is on its plateau from where its running mean is this close to its highest."""
RUNNING: Final = 5
"""Tests of which the running mean is taken."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, write the tables after every condition, and draw the curves."""
    rows = read_table(out / SUMMARY) if (out / SUMMARY).exists() else []
    done = {tuple(row[column] for column in CASE) for row in rows if int(row["seeds"]) >= scale.seeds}
    for task, size, condition in (case for case in PLAN if case[0] in scale.tasks and case not in done):
        found = play(library, task, size, condition, scale)
        case = dict(zip(CASE, (task, size, condition), strict=True))
        merge_table(out / SUMMARY, [case | _row(found)], CASE)
        points = [
            case | {"seed": seed, "steps": int(steps), "test_return": float(value)}
            for seed, curve in enumerate(found)
            for steps, value in zip(curve.steps, curve.returns, strict=True)
        ]
        merge_table(out / CURVES, points, CASE)
        draw(out)


def play(library: Library, task: str, size: str, condition: str, scale: Scale) -> list[Curve]:
    """The learning curves of a condition, one per seed. Its runs are in a folder of their own."""
    own = library.within(f"mlp-evolution/{condition.replace(' ', '-')}")
    return [read_curve(place) for place in own.train(trainings(task, size, condition, scale))]


def trainings(task: str, size: str, condition: str, scale: Scale) -> list[Training]:
    """One training per seed, with as many epochs as the control steps allow."""
    settings = {"training_seconds": scale.test_seconds} | CONDITIONS[condition]
    one = Training(task=task, policy=size, episode_seconds=scale.test_seconds, **settings)
    steps = one.evolution.population * one.candidate_episodes * one.practice.steps
    given = scale.mlp_steps // (2 if condition in HALF else 1)
    return [replace(one, epochs=1 + given // steps, seed=seed).filled() for seed in range(scale.seeds)]


def plateau(curve: Curve) -> int:
    """Which test of a curve is the first on its plateau."""
    if len(curve.returns) < RUNNING:
        return len(curve.returns) - 1
    running = np.convolve(curve.returns, np.full(RUNNING, 1 / RUNNING), mode="valid")
    return int(np.argmax(running >= running.max() - PLATEAU)) + RUNNING - 1


def _row(found: list[Curve]) -> dict[str, object]:
    needed = [curve.until_learned("steps") for curve in found]
    seconds = np.median([curve.until_learned("cpu_seconds") for curve in found])
    reached = [plateau(curve) for curve in found]
    return {
        "seeds": len(found),
        "steps_to_0.9": ", ".join("never" if np.isinf(n) else f"{n:.0f}" for n in needed),
        "cpu_seconds_to_0.9": seconds if np.isfinite(seconds) else "never",
        "best": np.mean([curve.returns.max() for curve in found]),
        "plateau_steps": np.median([c.steps[i] for c, i in zip(found, reached, strict=True)]),
        "plateau_cpu_seconds": np.median([c.cpu_seconds[i] for c, i in zip(found, reached, strict=True)]),
        "plateau_return": np.mean([c.returns[i:].mean() for c, i in zip(found, reached, strict=True)]),
        "steps": np.mean([curve.steps[-1] for curve in found]),
    }


def draw(tables: Path) -> None:
    """Draw mlp-evolution.png from the curves in a folder."""
    _figure(read_table(tables / CURVES), tables / "mlp-evolution.png")


@plots.styled
def _figure(points: list[dict[str, str]], path: Path) -> None:
    """Test return against control steps, a panel per task and size, a colour per condition."""
    panels = list(dict.fromkeys((row["task"], row["policy"]) for row in points))
    names = [f"p{i}" for i in range(len(panels))]
    rows = [" ".join((*names, ".")[i : i + 2]) for i in range(0, len(names), 2)]
    fig, axes = plots.figure(rows, size=(10, 3.4 * len(rows)), heights=(1,) * len(rows))
    for place, panel in zip(names, panels, strict=True):
        own = [row for row in points if (row["task"], row["policy"]) == panel]
        for number, condition in enumerate(CONDITIONS):
            for seed in dict.fromkeys(row["seed"] for row in own if row["condition"] == condition):
                mine = [row for row in own if row["condition"] == condition and row["seed"] == seed]
                steps, returns = ([float(row[column]) for row in mine] for column in ("steps", "test_return"))
                label = condition if seed == "0" else None
                colour = f"C{number % 10}"
                axes[place].plot(np.array(steps) / 1e6, returns, color=colour, linewidth=1.2, label=label)
        axes[place].axhline(LEARNED, color="#999999", linestyle=":", linewidth=1)
        axes[place].set(title=", ".join(panel), ylim=(0.3, 1.0), xlabel="million control steps", ylabel="test return")
        axes[place].legend(fontsize=7, ncols=2, loc="lower right")
    plots.save_both(fig, path)
