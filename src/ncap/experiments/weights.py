"""Weights (figure 8 of the paper): NCAP's by name, before and after training, and an MLP's layers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.experiments.library import Library, Scale
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.storage import load_policy

Array = NDArray[np.float64]

TASK: Final = "flat-walk"
LARGEST_SHOWN: Final = 40
"""Rows and columns of a large matrix that are drawn."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then draw."""
    ncap, mlp = (library.train(scale.trainings(TASK, policy)[:1])[0] for policy in ("ncap", "mlp"))
    policy, theta, _ = load_policy(ncap / "best.safetensors")
    assert isinstance(policy, NCAPPolicy)
    _save(circuit_weights, policy, theta, out / "weights-ncap.png")
    network, theta, _ = load_policy(mlp / "best.safetensors")
    assert isinstance(network, MLPPolicy)
    _save(network_weights, network, theta, out / "weights-mlp.png")


def circuit_weights(policy: NCAPPolicy, theta: Array) -> Figure:
    """Every block of the circuit's weights by name, untrained above trained."""
    before, after = policy.space.unpack(policy.space.initial), policy.space.unpack(theta)
    blocks = [block for block in policy.space.blocks if block.initial.ndim == 2]
    rows = ["AF.fore AF.fore", "AF.hind AF.hind", "PF.fore PF.hind"]
    fig, axes = plots.figure(rows, size=(9, 6), heights=(2, 2, 1.6))
    for block in blocks:
        plots.named_weights(axes[block.name], block.labels, before[block.name], after[block.name])
        axes[block.name].set_title(block.name)
    axes["AF.fore"].set_xticklabels([])  # as below
    fig.suptitle("Red: excitatory, blue: inhibitory; area: size of the weight", x=0.99, ha="right", fontsize=9)
    return fig


def network_weights(policy: MLPPolicy, theta: Array) -> Figure:
    """The MLP's matrices, cut to what can be seen, each scaled to its largest weight."""
    matrices = {name: values for name, values in policy.space.unpack(theta).items() if values.ndim == 2}
    names = [f"m{i}" for i in range(len(matrices))]
    fig, axes = plots.figure([" ".join(names)], size=(11, 4.2), heights=(1,))
    for place, (name, values) in zip(names, matrices.items(), strict=True):
        shown = values[:LARGEST_SHOWN, :LARGEST_SHOWN]
        plots.weight_circles(axes[place], 0.25 * shown / max(1e-9, np.abs(shown).max()))
        cut = "" if shown.shape == values.shape else f", {shown.shape[0]} × {shown.shape[1]} of it shown"
        axes[place].set_title(f"{name}: {values.shape[0]} × {values.shape[1]}{cut}")
        axes[place].set(xticks=(), yticks=())
    return fig


@plots.styled
def _save(draw: Callable[[Any, Array], Figure], policy: NCAPPolicy | MLPPolicy, theta: Array, path: Path) -> None:
    plots.save_both(draw(policy, theta), path)
