"""Learning to drive: a circuit by evolution and an MLP by PPO on the same wishes, with the same control steps.

Both begin untrained.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.evaluation import Evaluation
from ncap.experiments.curves import Curve, read_curve
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import merge_table, read_table

TASK: Final = "flat-drive"
CONTENDERS: Final[dict[str, dict[str, Any]]] = {
    "ncap": {"sigma": 0.1, "population": 12, "episodes": 5, "training_seconds": 8.0, "footfalls": 0.3},
    "mlp-ppo": {"algorithm": "ppo", "policy": "mlp:64x64"},
}
"""Settings of Training by the names in the table."""


RUNS: Final = "driving-training.csv"
CURVES: Final = "driving-training-curves.csv"
RUN: Final = ("policy", "seed")
"""Columns that name a run in both tables."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, one seed of each after the other, and write tables and figure after every run."""
    for seed in range(scale.seeds):
        for name, training in trainings(scale).items():
            (place,) = library.train([replace(training, seed=seed)])
            curve, key = read_curve(place), dict(zip(RUN, (name, seed), strict=True))
            found = library.evaluation(str(place), training.world, scale.trials)
            merge_table(out / RUNS, [key | _row(curve, found)], RUN)
            points = zip(curve.steps, curve.returns, strict=True)
            merge_table(out / CURVES, [key | {"steps": int(n), "test_return": float(r)} for n, r in points], RUN)
            draw(out)


def trainings(scale: Scale) -> dict[str, Training]:
    """The training of every contender, with as many epochs as the control steps allow."""
    found = {}
    for name, settings in CONTENDERS.items():
        one, epochs, steps = Training(task=TASK, **settings), 0, 0
        while steps < scale.drive_steps:
            steps += steps_in(one, epochs)
            epochs += 1
        found[name] = replace(one, epochs=max(1, epochs)).filled()
    return found


def steps_in(training: Training, epoch: int) -> int:
    """Control steps of an epoch's training episodes, if none ends early."""
    robots = training.environments
    if training.algorithm == "evolution":
        robots = training.evolution.population * training.episodes_in(epoch)
    return robots * training.practice.steps


def _row(curve: Curve, found: Evaluation) -> dict[str, object]:
    return {
        "weights": found.parameters,
        "steps": int(curve.steps[-1]),
        "cpu_minutes": curve.cpu_seconds[-1] / 60,
        "episodes": found.episodes,
        "return": found.return_mean,
        "falls": found.falls,
        "error_vel_x": found.error_vel_x,
        "error_yaw": found.error_yaw,
        "commanded_share": found.walk.commanded_share,
        "cost_of_transport": found.cost_of_transport,
        "smoothness": found.smoothness,
        "action_rate": found.action_rate,
    }


def draw(tables: Path) -> None:
    """Draw driving-training.png from the tables in a folder."""
    _figure(read_table(tables / CURVES), read_table(tables / RUNS), tables / "driving-training.png")


@plots.styled
def _figure(points: list[dict[str, str]], runs: list[dict[str, str]], path: Path) -> None:
    """Test returns while learning, a line per seed, and the two errors of the best policies, a point per seed."""
    fig, axes = plots.figure(["learning errors"], size=(9.5, 3.6), heights=(1,))
    for row in runs:
        colour = plots.POLICY_COLOURS[row["policy"]]
        label = plots.POLICY_NAMES[row["policy"]] if row["seed"] == "0" else None
        mine = [point for point in points if all(point[column] == row[column] for column in RUN)]
        steps, returns = (np.array([float(point[column]) for point in mine]) for column in ("steps", "test_return"))
        axes["learning"].plot(steps / 1e6, returns, color=colour, linewidth=1.2, label=label)
        axes["errors"].plot(float(row["error_vel_x"]), float(row["error_yaw"]), "o", color=colour)
    axes["learning"].set(xlabel="million control steps", ylabel="test return", ylim=(0, 1.02))
    axes["learning"].set_xlim(left=0)
    axes["errors"].set(xlabel="error of the speed (m/s)", ylabel="error of the yaw rate (rad/s)")
    axes["errors"].set_xlim(left=0)
    axes["errors"].set_ylim(bottom=0)
    axes["learning"].legend(frameon=False, fontsize=8, loc="lower right")
    plots.save_both(fig, path)
