"""Which settings of evolution suit an MLP: one changed at a time, then the best of them for both sizes and tasks."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.experiments.curves import LEARNED, Curve, read_curve
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import write_table

TASKS: Final = ("flat-walk", "bumpy-run")
SIZES: Final = ("mlp:64x64", "mlp:256x256")
CONDITIONS: Final[dict[str, dict[str, Any]]] = {
    "σ 0.1": {"sigma": 0.1, "population": 64},
    "σ 0.05": {"sigma": 0.05, "population": 64},
    "σ 0.2": {"sigma": 0.2, "population": 64},
    "32 candidates": {"sigma": 0.1, "population": 32},
    "16 candidates": {"sigma": 0.1, "population": 16},
    "as released": {"preset": "released"},
    "ranks": {"preset": "ranks", "population": 64},
    "decay 0.01": {"preset": "decay", "population": 64},
    "no normaliser": {"preset": "raw", "population": 64},
    "episodes of 5 s": {"sigma": 0.1, "population": 64, "training_seconds": 5.0},
    "32 candidates, σ 0.05": {"sigma": 0.05, "population": 32},
    "32 candidates, σ 0.2": {"sigma": 0.2, "population": 32},
}
"""Settings of Training by the names in table and figure: the first, and what is changed of it."""
FIRST: Final = tuple(CONDITIONS)[:10]
"""What is compared on the first task with the smaller network."""
THEN: Final = ("32 candidates", "32 candidates, σ 0.05", "as released", "32 candidates, σ 0.2")
"""What is compared in the other cases."""
PLAN: Final = (
    *((TASKS[0], SIZES[0], name) for name in FIRST[:5]),
    *((*case, name) for name in THEN for case in tuple(product(TASKS, SIZES))[1:]),
    *((TASKS[0], SIZES[0], name) for name in FIRST[5:]),
)
"""(task, policy, condition) in the order in which they are trained."""
PLATEAU: Final = 0.01
"""A curve is on its plateau from where its running mean is this close to its highest."""
RUNNING: Final = 5
"""Tests of which the running mean is taken."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the table of docs/design/evolution.md and draw the curves."""
    curves: dict[tuple[str, str], dict[str, list[Curve]]] = {}
    for task, size, condition in (case for case in PLAN if case[0] in scale.tasks):
        curves.setdefault((task, size), {})[condition] = play(library, task, size, condition, scale)
        rows = [_row(*place, name, found) for place, own in curves.items() for name, found in own.items()]
        write_table(out / "mlp-evolution.csv", rows)  # at once: every condition takes long
        _figure(curves, out / "mlp-evolution.png")


def play(library: Library, task: str, size: str, condition: str, scale: Scale) -> list[Curve]:
    """The learning curves of a condition, one per seed. Its runs are in a folder of their own."""
    own = library.within(f"mlp-evolution/{condition.replace(' ', '-')}")
    return [read_curve(place) for place in own.train(trainings(task, size, condition, scale))]


def trainings(task: str, size: str, condition: str, scale: Scale) -> list[Training]:
    """One training per seed, with as many epochs as the control steps allow."""
    settings = CONDITIONS[condition]
    one = Training(task=task, policy=size, episode_seconds=scale.test_seconds, **settings)
    steps = one.evolution.population * one.candidate_episodes * one.practice.steps
    return [replace(one, epochs=1 + scale.mlp_steps // steps, seed=seed).filled() for seed in range(scale.seeds)]


def plateau(curve: Curve) -> int:
    """Which test of a curve is the first on its plateau."""
    if len(curve.returns) < RUNNING:
        return len(curve.returns) - 1
    running = np.convolve(curve.returns, np.full(RUNNING, 1 / RUNNING), mode="valid")
    return int(np.argmax(running >= running.max() - PLATEAU)) + RUNNING - 1


def _row(task: str, size: str, condition: str, found: list[Curve]) -> dict[str, object]:
    needed = [curve.until_learned("steps") for curve in found]
    reached = [plateau(curve) for curve in found]
    return {
        "task": task,
        "policy": size,
        "condition": condition,
        "seeds": len(found),
        "steps_to_0.9": ", ".join("never" if np.isinf(n) else f"{n:.0f}" for n in needed),
        "cpu_seconds_to_0.9": np.median([curve.until_learned("cpu_seconds") for curve in found]),
        "best": np.mean([curve.returns.max() for curve in found]),
        "plateau_steps": np.median([c.steps[i] for c, i in zip(found, reached, strict=True)]),
        "plateau_cpu_seconds": np.median([c.cpu_seconds[i] for c, i in zip(found, reached, strict=True)]),
        "plateau_return": np.mean([c.returns[i:].mean() for c, i in zip(found, reached, strict=True)]),
        "steps": np.mean([curve.steps[-1] for curve in found]),
    }


@plots.styled
def _figure(curves: dict[tuple[str, str], dict[str, list[Curve]]], path: Path) -> None:
    """Test return against control steps, a panel per task and size, a colour per condition."""
    names = [f"p{i}" for i in range(len(curves))]
    rows = [" ".join((*names, ".")[i : i + 2]) for i in range(0, len(names), 2)]
    fig, axes = plots.figure(rows, size=(10, 3.4 * len(rows)), heights=(1,) * len(rows))
    for place, ((task, size), own) in zip(names, curves.items(), strict=True):
        for number, (name, found) in enumerate(own.items()):
            for seed, curve in enumerate(found):
                label = name if seed == 0 else None
                axes[place].plot(curve.steps / 1e6, curve.returns, color=f"C{number}", linewidth=1.2, label=label)
        axes[place].axhline(LEARNED, color="#999999", linestyle=":", linewidth=1)
        axes[place].set(title=f"{task}, {size}", ylim=(0.3, 1.0), xlabel="million control steps", ylabel="test return")
        axes[place].legend(fontsize=7, ncols=2, loc="lower right")
    plots.save_both(fig, path)
