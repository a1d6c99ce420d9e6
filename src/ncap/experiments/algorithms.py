"""Evolution, PPO and D4PG on the same tasks: test return per step and per CPU-second (the paper's comparison of MLPs).

Conditions are data. Every (task, condition, seed) is a run directory, so an interrupted experiment goes on where it
stopped. `python -m ncap.experiments.algorithms FOLDER [STEPS [SEEDS]]` does the runs, with that many
training steps each, prints the table and draws the figure.
"""

import csv
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.errors import UserError
from ncap.learn import reinforcement
from ncap.learn import train as evolution
from ncap.learn.executors import LocalExecutor
from ncap.learn.reinforcement import Reinforcement
from ncap.learn.train import Training
from ncap.runs import Run, read_progress

Array = NDArray[np.float64]

TASKS: Final = ("flat-walk", "bumpy-walk")
CONDITIONS: Final[dict[str, dict[str, Any]]] = {
    "evolution, NCAP": {"policy": "ncap"},
    "evolution, MLP": {"policy": "mlp"},
    "PPO, NCAP": {"algorithm": "ppo", "policy": "ncap"},
    "PPO, MLP": {"algorithm": "ppo", "policy": "mlp"},
    "D4PG, MLP": {"algorithm": "d4pg", "policy": "mlp"},
}
COLOURS: Final = dict(zip(CONDITIONS, ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"), strict=True))
STEPS: Final = 480_000
"""By default as many as 60 epochs of 16 episodes have."""
SEEDS: Final = 3
_CPU: Final = "cpu.csv"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Test returns of one run, before each of its epochs."""

    steps: Array
    cpu_seconds: Array
    """Of learning and testing together, on however many threads."""
    returns: Array


def training_for(task: str, name: str, seed: int, steps: int) -> Training | Reinforcement:
    """A condition with as many epochs as the steps need, and one more, whose test shows what the last has learned."""
    settings = {"task": task, "seed": seed} | CONDITIONS[name]
    training = reinforcement.training_of(settings)
    episodes = training.environments if isinstance(training, Reinforcement) else training.evolution.population
    return replace(training, epochs=-(-steps // (episodes * training.world.steps)) + 1)


def play(folder: Path, task: str, name: str, seed: int, steps: int, threads: int) -> Curve:
    """Do a run, or what is left of it."""
    place = folder / f"{task}-{name.replace(', ', '-').lower()}-{seed}"
    wanted = training_for(task, name, seed, steps)
    run = Run.open(place) if (place / "config.json").exists() else Run.create(place, asdict(wanted))
    with run:
        if run.config != asdict(wanted):
            raise UserError(f"{place} was begun with other settings: choose another folder, or the same steps")
        saved, _ = run.latest()
        if saved is None or saved.epoch < wanted.epochs:
            _train(wanted, run, saved, threads)
    rows = read_progress(place)
    with (place / _CPU).open(newline="") as file:
        spent = {int(row["epoch"]): float(row["cpu_seconds"]) for row in csv.DictReader(file)}
    return Curve(
        steps=np.array([row["steps"] for row in rows]),
        # a kill between the two files leaves only the wall-clock time of an epoch
        cpu_seconds=np.cumsum([0.0] + [spent.get(int(row["epoch"]), row["seconds"]) for row in rows[:-1]]),
        returns=np.array([row["test_return"] for row in rows]),
    )


def _train(training: Training | Reinforcement, run: Run, saved: Any, threads: int) -> None:
    """Train, noting the CPU time of every epoch."""
    started = time.process_time()

    def report(row: dict[str, Any]) -> None:
        nonlocal started
        now = time.process_time()
        path = run.folder / _CPU
        new = not path.exists()
        with path.open("a") as file:
            file.write(("epoch,cpu_seconds\n" if new else "") + f"{row['epoch']},{now - started:.3f}\n")
        started = now

    if isinstance(training, Reinforcement):
        reinforcement.train(training, run, threads, saved, report)
    else:
        state = None if saved is None else evolution.State.from_checkpoint(saved)
        evolution.train(training, run, LocalExecutor(threads), state, report)


@plots.styled
def figure(curves: dict[tuple[str, str], list[Curve]], path: Path) -> None:
    """Test return against steps and against CPU time, a column per task, a thin line per seed."""
    fig, axes = plots.figure(
        [" ".join(f"{kind}:{task}" for task in TASKS) for kind in ("steps", "cpu_seconds")],
        size=(10, 7),
        heights=(1, 1),
    )
    for (task, name), runs in curves.items():
        for kind in ("steps", "cpu_seconds"):
            for i, curve in enumerate(runs):
                label = name if i == 0 else None
                axes[f"{kind}:{task}"].plot(getattr(curve, kind), curve.returns, color=COLOURS[name], label=label, lw=1)
    for name, axis in axes.items():
        kind, task = name.split(":")
        axis.axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        axis.set(ylim=(0, 1.02), xlabel=kind.replace("_", "-").replace("cpu", "CPU"), ylabel="test return")
        axis.set_title(task if kind == "steps" else "")
    axes[f"steps:{TASKS[0]}"].legend(frameon=False, loc="lower right")
    plots.save(fig, path)


def main() -> None:
    """Print a row per task and condition as soon as its seeds are done; draw all at the end."""
    folder = Path(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS
    seeds = int(sys.argv[3]) if len(sys.argv) > 3 else SEEDS
    print(f"| task | condition | test return after {steps:,} steps, per seed | best | CPU-seconds |")
    print("|---|---|---|---|---|")
    curves = {}
    for task in TASKS:
        for name in CONDITIONS:
            found = curves[task, name] = [play(folder, task, name, seed, steps, threads=2) for seed in range(seeds)]
            last = ", ".join(f"{one.returns[-1]:.3f}" for one in found)
            best, spent = np.mean([(one.returns.max(), one.cpu_seconds[-1]) for one in found], axis=0)
            print(f"| {task} | {name} | {last} | {best:.3f} | {spent:.0f} |", flush=True)
    figure(curves, folder / "algorithms.png")


if __name__ == "__main__":
    main()
