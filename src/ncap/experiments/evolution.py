"""Which settings of evolution learn fastest: rollouts until the test return first reaches a mark, over several seeds.

Conditions are data. Every (condition, seed) is a run directory, so an interrupted experiment goes on where it stopped.
Run it with `python -m ncap.experiments.evolution FOLDER`.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.learn import train as learning
from ncap.learn.executors import LocalExecutor
from ncap.learn.train import Training
from ncap.runs import Run, read_progress

ROLLOUTS: Final = 320
SEEDS: Final = range(5)
MARK: Final = 0.90

CONDITIONS: Final[dict[str, dict[str, Any]]] = {
    "8 pairs, σ 0.28": {"pairs": 8, "sigma": 0.28},
    "8 pairs, σ 0.14": {"pairs": 8, "sigma": 0.14},
    "8 pairs, σ 0.07": {"pairs": 8, "sigma": 0.07},
    "4 pairs, σ 0.14": {"pairs": 4, "sigma": 0.14},
    "released": {"preset": "released"},
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One run."""

    rollouts_to_mark: float
    """Infinite if it was never reached."""
    best: float
    last: float


def play(folder: Path, name: str, seed: int, threads: int) -> Outcome:
    """Do a run, or what is left of it."""
    settings = CONDITIONS[name]
    training = Training(task="flat-walk", seed=seed, **settings)
    epochs = ROLLOUTS // training.evolution.candidates
    training = Training(task="flat-walk", seed=seed, epochs=epochs, **settings)
    place = folder / f"{name.replace(' ', '-').replace(',', '')}-{seed}"
    if (place / "config.json").exists():
        training, run, state, _ = learning.resume(place)
    else:
        run, state = Run.create(place, learning.config_of(training)), None
    with run:
        if not (place / "last.safetensors").exists():
            learning.train(training, run, LocalExecutor(threads), state, lambda _: None)
    rows = read_progress(place)
    reached = [row["rollouts"] for row in rows if row["test_return"] >= MARK]
    return Outcome(
        rollouts_to_mark=min(reached, default=np.inf),
        best=max(row["test_return"] for row in rows),
        last=rows[-1]["test_return"],
    )


def main() -> None:
    """Print a row per condition as soon as its seeds are done."""
    folder = Path(sys.argv[1])
    print(f"| condition | rollouts to {MARK} per seed | median | best test return | last |")
    print("|---|---|---|---|---|")
    for name in CONDITIONS:
        found = [play(folder, name, seed, threads=2) for seed in SEEDS]
        marks = [one.rollouts_to_mark for one in found]
        shown = ", ".join("never" if np.isinf(mark) else f"{mark:.0f}" for mark in marks)
        median = np.median(marks)
        best, last = (np.mean([getattr(one, field) for one in found]) for field in ("best", "last"))
        middle = "never" if np.isinf(median) else f"{median:.0f}"
        print(f"| {name} | {shown} | {middle} | {best:.3f} | {last:.3f} |", flush=True)


if __name__ == "__main__":
    main()
