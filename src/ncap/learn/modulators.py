"""Neuromodulators: numbers that move many weights of a circuit together, so that a search finds large changes first.

A search in single weights changes a stride by luck: it takes several weights of both girdles. In its place every weight
of the pattern formation (PF) is also moved together with the same weight of the other girdles, and all weights onto a
joint are made stronger or weaker in proportion. Weights are then sums of these coordinates, which is one more way to
write them: whatever single weights can reach is still reached.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.params import ParamSpace

Array = NDArray[np.float64]

PATTERN: Final = "PF"
"""How the names of the blocks of pattern formation begin."""
REFLEX, SINGLE, TOGETHER, GAIN = 0.2, 1.0, 2.0, 6.0
"""Size of the first mutations, in units of σ: of weights that are no pattern formation, of single weights that are, of
the same weight of all girdles, and of all weights onto a joint."""


def coordinates(space: ParamSpace, mean: Array) -> tuple[Array, Array]:
    """(directions (n, D), sizes (n,)) of a search that begins at weights (D,): single weights, then modulators.

    Every direction has the length 1.
    """
    pattern = np.array([name.startswith(PATTERN) for name in space.names])
    directions = [np.eye(space.size)]
    sizes = [np.where(pattern, SINGLE, REFLEX)]
    same: dict[str, list[int]] = {}
    joint: dict[str, list[int]] = {}
    for i in np.flatnonzero(pattern).tolist():
        block, _, label = space.names[i].partition(": ")
        part = [word for word in block.split(".")[1:] if word != "bias"]
        if not part:
            sizes[0][i] = TOGETHER  # the whole body shares it
            continue
        same.setdefault(f"{block.replace(part[0], '')}: {label}", []).append(i)
        if not block.endswith(".bias"):
            joint.setdefault(label.partition(" < ")[0], []).append(i)
    for members in (members for members in same.values() if len(members) > 1):
        directions.append(_direction(space.size, members, np.ones(len(members))))
        sizes.append(np.array([TOGETHER]))
    for members in joint.values():
        if mean[members].any():
            directions.append(_direction(space.size, members, mean[members]))
            sizes.append(np.array([GAIN]))
    return np.concatenate(directions), np.concatenate(sizes)


def _direction(size: int, members: list[int], values: Array) -> Array:
    """(1, D) these values at some places and 0 elsewhere, of length 1."""
    found = np.zeros((1, size))
    found[0, members] = values / np.linalg.norm(values)
    return found
