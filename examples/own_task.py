"""Train on your own task: walking on ice.

A task is data. Give yours a name and put it among the others, and everything that knows tasks by name knows it. Run it
with `python examples/own_task.py`: some minutes on two cores. Ctrl-C loses nothing: the same command goes on. Commands
know the task too: `ncap evaluate ncap-flat-walk --task examples/own_task.py`.
"""

from dataclasses import replace
from pathlib import Path

import tyro

import ncap

ncap.TASKS["ice-walk"] = replace(ncap.TASKS["flat-walk"], name="ice-walk", friction=(0.15, 0.30))


def main(
    epochs: int = 60, population: int = 16, episodes: int = 5, out: Path = Path("runs/ice-walk"), threads: int = 2
) -> None:
    """Train the circuit on ice, and compare it there with what it was before."""
    ncap.train(ncap.Training(task="ice-walk", epochs=epochs, population=population), out, threads=threads)
    for name in ("untrained", "ncap-flat-walk", str(out)):
        found = ncap.evaluate(name, "ice-walk", range(episodes), threads=threads)
        print(f"{name}: return {found.return_mean:.3f}, {found.falls} falls, {found.speed_mean:.2f} m/s on ice")


if __name__ == "__main__":
    tyro.cli(main)
