"""Weights (figure 8 of the paper): NCAP's by name, before and after training, and an MLP's layers."""

from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from ncap.analysis import plots
from ncap.experiments.library import Library, Scale
from ncap.experiments.performance import player
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.report.weights import circuit_weights, network_weights
from ncap.trained import TrainedPolicy, load

TASK: Final = "flat-walk"


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then draw the weights of the first seed."""
    for name in ("ncap", "mlp-evolution"):
        first = scale.trainings(TASK, name)[0]
        _save(load(player(library, first, name, out)), out / f"weights-{name}.png")


@plots.styled
def _save(trained: TrainedPolicy, path: Path) -> None:
    plots.save_both(_figure(trained), path)


def _figure(trained: TrainedPolicy) -> Figure:
    if isinstance(trained.policy, NCAPPolicy):
        return circuit_weights(trained.policy, trained.theta)
    assert isinstance(trained.policy, MLPPolicy)
    return network_weights(trained.policy, trained.theta)
