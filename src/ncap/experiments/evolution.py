"""Which optimiser learns to walk fastest: rollouts until the test return first reaches a mark, over several seeds.

Conditions are data. Every (condition, seed) is a folder with its progress, so an interrupted experiment goes on where
it stopped. `python -m ncap.experiments.evolution FOLDER` prints the table and draws the figure of docs/evolution.md.
"""

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.errors import UserError
from ncap.experiments.library import MARK
from ncap.learn.executors import LocalExecutor
from ncap.learn.start import go_on, read_training
from ncap.learn.train import Training
from ncap.runs import Run, read_progress

TASK: Final = "flat-walk"
ROLLOUTS: Final = 256
"""Of 15 s; three training episodes of 5 s count as one."""
SEEDS: Final = range(5)


CONDITIONS: Final[dict[str, dict[str, Any]]] = {
    "CMA-ES, diagonal, 3 × 5 s": {"preset": "default", "episodes": 3, "training_seconds": 5.0},
    "CMA-ES, diagonal, 1 × 15 s": {"preset": "default", "episodes": 1, "training_seconds": 15.0},
    "ARS, 8 pairs, σ 0.14": {"preset": "ars"},
    "ARS as released": {"preset": "released"},
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Test returns of one run."""

    rollouts: list[float]
    returns: list[float]

    @property
    def rollouts_to_mark(self) -> float:
        """Infinite if it was never reached."""
        return min((n for n, r in zip(self.rollouts, self.returns, strict=True) if r >= MARK), default=np.inf)


def play(folder: Path, name: str, seed: int, threads: int) -> Curve:
    """Do a run, or what is left of it."""
    place = folder / f"{name.replace(' ', '-').replace(',', '')}-{seed}"
    _run(place, CONDITIONS[name], seed, threads)
    rows = read_progress(place)
    return Curve(rollouts=[row["rollouts"] for row in rows], returns=[row["test_return"] for row in rows])


def _run(place: Path, settings: dict[str, Any], seed: int, threads: int) -> None:
    training = Training(task=TASK, seed=seed, **settings)
    epochs = ROLLOUTS // training.evolution.population + 1  # the last epoch shows the test return of all rollouts
    training = replace(training, epochs=epochs)
    run = Run.open(place) if (place / "config.json").exists() else Run.create(place, asdict(training))
    with run:
        if read_training(place) != training:
            raise UserError(f"{place} was made with other settings: choose another folder")
        saved, _ = run.latest()
        if saved is None or saved.epoch < training.epochs:
            go_on(training, run, saved, LocalExecutor(threads), threads, lambda _: None)


@plots.styled
def figure(curves: dict[str, list[Curve]], path: Path) -> None:
    """Test return against rollouts, a panel per condition, a line per seed."""
    names = [f"p{i}" for i in range(len(curves))]
    rows = [" ".join((*names, ".")[i : i + 2]) for i in range(0, len(names), 2)]
    fig, axes = plots.figure(rows, size=(9, 2.7 * len(rows)), heights=(1,) * len(rows))
    for place, (name, runs) in zip(names, curves.items(), strict=True):
        for curve in runs:
            axes[place].plot(curve.rollouts, curve.returns, color=plots.LEG_COLOURS[0], linewidth=1, alpha=0.7)
        axes[place].axhline(MARK, color="#999999", linestyle=":", linewidth=1)
        axes[place].set(title=name, xlim=(0, ROLLOUTS), ylim=(0.5, 1.0))
        axes[place].set_xlabel("rollouts")
    plots.save(fig, path)


def main() -> None:
    """Print a row per condition as soon as its seeds are done; draw all at the end."""
    folder = Path(sys.argv[1])
    print(f"| condition | rollouts to {MARK} per seed | median | best test return | last |")
    print("|---|---|---|---|---|")
    curves = {}
    for name in CONDITIONS:
        found = curves[name] = [play(folder, name, seed, threads=2) for seed in SEEDS]
        marks = [one.rollouts_to_mark for one in found]
        shown = ", ".join("never" if np.isinf(mark) else f"{mark:.0f}" for mark in marks)
        best, last = np.mean([(max(one.returns), one.returns[-1]) for one in found], axis=0)
        middle = "never" if np.isinf(np.median(marks)) else f"{np.median(marks):.0f}"
        print(f"| {name} | {shown} | {middle} | {best:.3f} | {last:.3f} |", flush=True)
    figure(curves, folder / "evolution.png")


if __name__ == "__main__":
    main()
