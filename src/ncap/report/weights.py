"""Figures of weights: a circuit's by name, before and after training, and the matrices of a network."""

from itertools import pairwise
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

Array = NDArray[np.float64]

LARGEST_SHOWN: Final = 40
"""Rows and columns of a large matrix that are drawn."""
SHORT_ROW: Final = 6
"""Up to so many columns of a matrix of named weights, it shares its row of the figure with the next one."""


def circuit_weights(policy: NCAPPolicy, theta: Array) -> Figure:
    """The circuit's trained weights by name, block by block, untrained above trained; biases are left out."""
    before, after = policy.space.unpack(policy.space.initial), policy.space.unpack(theta)
    blocks = {block.name: block for block in policy.space.blocks if ".bias" not in block.name}
    labels = {
        name: block.labels if len(block.labels) == 2 else (("",), *block.labels)  # a list is drawn as one row
        for name, block in blocks.items()
    }
    rows = _rows({name: len(columns) for name, (_, columns) in labels.items()})
    heights = [2.0 if len(labels[row[0]][1]) > SHORT_ROW else 1.6 for row in rows]
    mosaic = [" ".join(row if len(row) == 2 else 2 * row) for row in rows]
    fig, axes = plots.figure(mosaic or ["none"], size=(9, 2 * max(1, len(rows))), heights=heights or [1])
    for name, (targets, sources) in labels.items():
        shape = (len(targets), len(sources))
        here = axes[name]
        shown = [target.removeprefix("afferent_") for target in targets]
        plots.named_weights(here, (shown, sources), before[name].reshape(shape), after[name].reshape(shape))
        here.set_title(name)
    for (upper, *_), (lower, *_) in pairwise(rows):
        if labels[upper][1] == labels[lower][1]:
            axes[upper].set_xticklabels([])  # as below
    fig.suptitle("Red: excitatory, blue: inhibitory; area: size of the weight", x=0.99, ha="right", fontsize=9)
    return fig


def _rows(columns: dict[str, int]) -> list[list[str]]:
    """Which matrices stand side by side: neighbours with few columns, two to a row; {name: columns} in order."""
    rows: list[list[str]] = []
    for name, count in columns.items():
        fits = rows and len(rows[-1]) == 1 and max(count, columns[rows[-1][0]]) <= SHORT_ROW
        if fits:
            rows[-1].append(name)
        else:
            rows.append([name])
    return rows


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
