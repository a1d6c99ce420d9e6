"""Learning to drive: a circuit by evolution and an MLP by PPO on the same wishes, with the same control steps.

Both begin untrained.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ncap.analysis import plots
from ncap.evaluation import Evaluation
from ncap.experiments.curves import Curve, read_curve
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import write_table

TASK: Final = "flat-drive"
CONTENDERS: Final[dict[str, dict[str, Any]]] = {
    "ncap": {"sigma": 0.1, "population": 12, "episodes": 5, "training_seconds": 8.0, "footfalls": 0.3},
    "mlp-ppo": {"algorithm": "ppo", "policy": "mlp:64x64"},
}
"""Settings of Training by the names in the table."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, one seed of each after the other, and write table and figure after every run."""
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in CONTENDERS}
    curves: dict[str, list[Curve]] = {name: [] for name in CONTENDERS}
    for seed in range(scale.seeds):
        for name in CONTENDERS:
            training = trainings(scale)[name]
            (place,) = library.train([replace(training, seed=seed)])
            curve = read_curve(place)
            curves[name].append(curve)
            found = library.evaluation(str(place), training.world, scale.trials)
            rows[name].append(_row(name, seed, curve, found))
            write_table(out / "driving-training.csv", [row for mine in rows.values() for row in mine])
            _figure(curves, rows, out / "driving-training.png")


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


def _row(name: str, seed: int, curve: Curve, found: Evaluation) -> dict[str, object]:
    return {
        "policy": name,
        "seed": seed,
        "weights": found.parameters,
        "steps": int(curve.steps[-1]),
        "cpu_minutes": curve.cpu_seconds[-1] / 60,
        "episodes": found.episodes,
        "return": found.return_mean,
        "falls": found.falls,
        "error_vel_x": found.error_vel_x,
        "error_yaw": found.error_yaw,
        "commanded_share": found.gait.commanded_share,
        "cost_of_transport": found.cost_of_transport,
        "smoothness": found.smoothness,
        "action_rate": found.action_rate,
    }


@plots.styled
def _figure(curves: dict[str, list[Curve]], rows: dict[str, list[dict[str, object]]], path: Path) -> None:
    """Test returns while learning, a line per seed, and the two errors of the best policies, a point per seed."""
    fig, axes = plots.figure(["learning errors"], size=(9.5, 3.6), heights=(1,))
    for name, found in curves.items():
        for seed, curve in enumerate(found):
            label = plots.POLICY_NAMES[name] if seed == 0 else None
            axes["learning"].plot(
                curve.steps / 1e6, curve.returns, color=plots.POLICY_COLOURS[name], linewidth=1.2, label=label
            )
        axes["errors"].plot(
            [float(str(row["error_vel_x"])) for row in rows[name]],
            [float(str(row["error_yaw"])) for row in rows[name]],
            "o",
            color=plots.POLICY_COLOURS[name],
        )
    axes["learning"].set(xlabel="million control steps", ylabel="test return", ylim=(0, 1.02))
    axes["learning"].set_xlim(left=0)
    axes["errors"].set(xlabel="error of the speed (m/s)", ylabel="error of the yaw rate (rad/s)")
    axes["errors"].set_xlim(left=0)
    axes["errors"].set_ylim(bottom=0)
    axes["learning"].legend(frameon=False, fontsize=8)
    plots.save_both(fig, path)
