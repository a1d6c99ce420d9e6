"""Footfalls (figure 4 of the paper): how policies of three seeds walk on flat ground, shaded by pressure."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.evaluation import STANCE_FORCE, Evaluation, own_command
from ncap.experiments.library import Library, Scale
from ncap.report.tables import write_table
from ncap.rollouts import rollout
from ncap.tasks import Task
from ncap.trained import TrainedPolicy, load

Array = NDArray[np.float64]

TASK: Final = "flat-walk"
SHOWN_SEEDS: Final = 3
"""Runs of each policy that are drawn."""
SECONDS: Final = 3.0
"""Part at the end of an episode that is drawn, s."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the gaits of every run and draw strips."""
    strips: dict[str, tuple[Array, Evaluation]] = {}
    rows = []
    for policy in ("ncap", "mlp-evolution"):
        for training in scale.trainings(TASK, policy)[:SHOWN_SEEDS]:
            (place,) = library.train([training])
            found = library.evaluation(str(place), training.world, scale.episodes)
            strips[f"{plots.POLICY_NAMES[policy]}, seed {training.seed}"] = (
                last_seconds(load(place), training.world),
                found,
            )
            rows.append(gait_row(policy, training.seed, found))
    write_table(out / "footfalls.csv", rows)
    _figure(strips, scale.ncap.get("episode_seconds", 15.0), out / "footfalls.png")


def gait_row(policy: str, seed: int, found: Evaluation) -> dict[str, object]:
    """A row of the table: a run's return, falls, speed and gait."""
    gait = found.walk
    return {
        "policy": policy,
        "seed": seed,
        "return": found.return_mean,
        "falls": found.falls,
        "speed": found.speed_mean,
        "cost_of_transport": found.cost_of_transport,
        "gait": gait.label,
        "frequency_hz": gait.frequency_hz,
        "duty": gait.duty,
        "concentration": gait.concentration,
    }


def last_seconds(player: TrainedPolicy, task: Task) -> Array:
    """(T, leg) foot forces, N, at the end of an episode."""
    played = rollout(task, player.controller(1), [0], command=own_command(player, task), record=("foot_force",))
    shown: Array = np.nan_to_num(played.signals["foot_force"][0, -round(SECONDS / task.control_dt) :])
    return shown


@plots.styled
def _figure(strips: dict[str, tuple[Array, Evaluation]], episode_seconds: float, path: Path) -> None:
    names = [f"s{i}" for i in range(len(strips))]
    fig, axes = plots.figure(names, size=(9, 1.35 * len(names) + 0.4), heights=(1,) * len(names))
    for name, (title, (force, found)) in zip(names, strips.items(), strict=True):
        time = np.arange(len(force)) * min(SECONDS, episode_seconds) / len(force)
        plots.pressure_strips(axes[name], time, force, STANCE_FORCE)
        gait = found.walk
        axes[name].set_title(
            f"{title}: return {found.return_mean:.2f}, {gait.label}, {gait.frequency_hz:.1f} Hz,"
            f" R {gait.concentration:.2f}"
        )
        if name != names[-1]:
            axes[name].set_xticklabels([])
    axes[names[-1]].set_xlabel("time (s)")
    plots.save_both(fig, path)
