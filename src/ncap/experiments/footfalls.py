"""Footfalls (figure 4 of the paper): how three runs of every policy walk and run, shaded by pressure, task by task."""

from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.evaluation import STANCE_FORCE, Evaluation, own_command
from ncap.experiments.library import Library, Scale
from ncap.experiments.performance import RUN, player
from ncap.report.tables import merge_table
from ncap.rollouts import rollout
from ncap.tasks import Task
from ncap.trained import TrainedPolicy, load

Array = NDArray[np.float64]

POLICIES: Final = ("ncap", "ncap-paper", "mlp-evolution", "mlp-ppo")
"""What is drawn, from the top."""
SHOWN_SEEDS: Final = 3
"""Runs of each policy that are drawn."""
SECONDS: Final = 2.0
"""Part at the end of an episode that is drawn, s."""
TABLE: Final = "footfalls.csv"


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the gaits of every run and draw a figure for each task."""
    shown = [policy for policy in POLICIES if policy in scale.contenders]
    for task in scale.tasks:
        strips: list[list[tuple[Array, Evaluation]]] = []
        for policy in shown:
            strips.append([])
            for training in scale.trainings(task, policy)[:SHOWN_SEEDS]:
                place = player(library, training, policy, out)
                found = library.evaluation(place, training.world, scale.episodes)
                strips[-1].append((last_seconds(load(place), training.world), found))
                row = dict(zip(RUN, (task, policy, training.seed), strict=True))
                merge_table(out / TABLE, [row | _gait_cells(found)], RUN)
        names = [plots.POLICY_NAMES[policy] for policy in shown]
        seconds = min(SECONDS, scale.ncap.get("episode_seconds", SECONDS))
        _figure(task, dict(zip(names, strips, strict=True)), seconds, out / f"footfalls-{task}.png")


def _gait_cells(found: Evaluation) -> dict[str, object]:
    """Cells of a run's row: return, falls, speed and gait."""
    gait = found.walk
    return {
        "return": found.return_mean,
        "falls": found.falls,
        "speed": found.speed_mean,
        "cost_of_transport": found.cost_of_transport,
        "gait": gait.label,
        "gait_share": gait.share,
        "frequency_hz": gait.frequency_hz,
        "duty": gait.duty,
        "concentration": gait.concentration,
    }


def last_seconds(trained: TrainedPolicy, task: Task) -> Array:
    """(T, leg) foot forces, N, at the end of an episode, or before the fall that ends it."""
    played = rollout(task, trained.controller(1), [0], command=own_command(trained, task), record=("foot_force",))
    lived = max(round(SECONDS / task.control_dt), int(played.steps[0]))
    shown: Array = np.nan_to_num(played.signals["foot_force"][0, :lived][-round(SECONDS / task.control_dt) :])
    return shown


@plots.styled
def _figure(task: str, strips: dict[str, list[tuple[Array, Evaluation]]], seconds: float, path: Path) -> None:
    """A row per policy, a column per run."""
    columns = max(len(runs) for runs in strips.values())
    rows = [" ".join(f"{i}:{j}" for j in range(columns)) for i in range(len(strips))]
    fig, axes = plots.figure(rows, size=(3.6 * columns + 0.6, 1.45 * len(rows) + 0.9), heights=(1,) * len(rows))
    many = ", a column per seed" if columns > 1 else ""
    fig.suptitle(f"{task}: the feet in the last {seconds:g} s of an episode{many}", x=0.01, ha="left")
    for i, (name, runs) in enumerate(strips.items()):
        for j in range(columns):
            here = axes[f"{i}:{j}"]
            if j >= len(runs):
                here.set_axis_off()
                continue
            _strip(here, *runs[j], seconds)
            if j == 0:
                here.set_ylabel(name.replace(" ", "\n", 1), fontsize=8)
            else:
                here.set_yticklabels([])
            if i == len(strips) - 1:
                here.set_xlabel("time (s)")
            else:
                here.set_xticklabels([])
    plots.save_both(fig, path)


def _strip(axes: Axes, force: Array, found: Evaluation, seconds: float) -> None:
    plots.pressure_strips(axes, np.arange(len(force)) * seconds / len(force), force, STANCE_FORCE)
    gait = found.walk
    axes.set_title(f"{found.return_mean:.2f}, {gait.label} in {gait.share:.0%}, {gait.frequency_hz:.1f} Hz", fontsize=8)
