"""Train on your own task: walking on ice.

A task is data. Give yours a name, put it among the others, and everything that knows tasks by name knows it. Run it
with `python examples/own_task.py`: some minutes on two cores. Ctrl-C loses nothing: the same command goes on.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import tyro

from ncap.experiments.evaluation import evaluate, find_controller
from ncap.learn.executors import LocalExecutor
from ncap.learn.start import go_on, read_training
from ncap.learn.train import Training
from ncap.runs import Run
from ncap.tasks import TASKS, find_task

TASKS["ice-walk"] = replace(TASKS["flat-walk"], name="ice-walk", friction=(0.15, 0.30))


def say(row: dict[str, Any]) -> None:
    """One line per epoch."""
    print(f"epoch {row['epoch']}: {row['test_return']:.3f}")


def main(
    epochs: int = 60, population: int = 16, episodes: int = 5, out: Path = Path("runs/ice-walk"), threads: int = 2
) -> None:
    """Train the circuit on ice, and compare it there with what it was before."""
    if (out / "config.json").exists():
        training, run = read_training(out), Run.open(out)
    else:
        training = Training(task="ice-walk", epochs=epochs, population=population)
        run = Run.create(out, asdict(training))
    with run:
        saved, _ = run.latest()
        go_on(training, run, saved, LocalExecutor(threads), threads, say)
    for name in ("untrained", "ncap-flat-walk", str(out)):
        controller, parameters = find_controller(name, "ice-walk", episodes)
        found = evaluate(find_task("ice-walk"), name, parameters, controller, range(episodes), threads)
        print(f"{name}: return {found.return_mean:.3f}, {found.falls} falls, {found.speed_mean:.2f} m/s on ice")


if __name__ == "__main__":
    tyro.cli(main)
