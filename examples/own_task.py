"""Train on your own task: walking on ice.

A task is data. Give yours a name, put it among the others, and everything that knows tasks by name knows it. Run it
with `python examples/own_task.py`: some minutes on two cores. Ctrl-C loses nothing: the same command goes on.
"""

from dataclasses import replace
from pathlib import Path

import tyro

from ncap.experiments.evaluation import evaluate, find_controller
from ncap.learn import train as learning
from ncap.learn.executors import LocalExecutor
from ncap.runs import Run
from ncap.tasks import TASKS, find_task

TASKS["ice-walk"] = replace(TASKS["flat-walk"], name="ice-walk", friction=(0.15, 0.30))


def main(
    epochs: int = 60, population: int = 16, episodes: int = 5, out: Path = Path("runs/ice-walk"), threads: int = 2
) -> None:
    """Train the circuit on ice, and compare it there with what it was before."""
    if (out / "config.json").exists():
        training, run, state, _ = learning.resume(out)
    else:
        training = learning.Training(task="ice-walk", epochs=epochs, population=population)
        run, state = Run.create(out, learning.config_of(training)), None
    with run:
        executor = LocalExecutor(threads)
        try:
            learning.train(
                training, run, executor, state, lambda row: print(f"epoch {row['epoch']}: {row['test_return']:.3f}")
            )
        finally:
            executor.close()
    for name in ("untrained", "ncap-flat-walk", str(out)):
        controller, parameters = find_controller(name, "ice-walk", episodes)
        found = evaluate(find_task("ice-walk"), name, parameters, controller, range(episodes), threads)
        print(f"{name}: return {found.return_mean:.3f}, {found.falls} falls, {found.speed_mean:.2f} m/s on ice")


if __name__ == "__main__":
    tyro.cli(main)
