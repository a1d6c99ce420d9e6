"""Evolution, PPO and D4PG (figure 7 of the paper): test return against environment steps and against CPU time.

Its runs stand in the tables of the performance experiment: most of them are the same.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from ncap.experiments import performance
from ncap.experiments.library import Library, Scale
from ncap.experiments.performance_figures import draw_algorithms

TASKS: Final = performance.WALKS


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the tables and the figure."""
    tasks = tuple(task for task in TASKS if task in scale.tasks)
    part = replace(scale, tasks=tasks, contenders=("ncap", "mlp-evolution", "ncap-ppo", "mlp-ppo", "mlp-d4pg"))
    performance.train_and_tabulate(library, part, out)
    draw_algorithms(out)
