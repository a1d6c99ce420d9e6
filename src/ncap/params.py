"""Weights that an optimiser sees as a flat vector and people see by name: signs kept, copies summed.

Shapes: P individuals, D numbers in a flat vector. A weight may be spread over several copies whose sum is what acts
(the paper's overparameterisation trick); `compress` sums them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """A named array of weights."""

    name: str
    initial: Array
    """What acts before training, of the block's shape."""
    signs: Array | None = None
    """+1 or -1 where a weight must keep that sign, 0 where it is free; None: free everywhere."""
    labels: tuple[tuple[str, ...], ...] = ()
    """Names along every axis."""
    copies: int = 1

    @property
    def size(self) -> int:
        """Numbers in the flat vector."""
        return self.copies * self.initial.size


class ParamSpace:
    """Blocks one after the other in a flat vector."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = tuple(blocks)
        ends = np.cumsum([block.size for block in self.blocks]).tolist()
        self._slices = {b.name: slice(end - b.size, end) for b, end in zip(self.blocks, ends, strict=True)}
        self.size: int = ends[-1] if ends else 0

    @cached_property
    def initial(self) -> Array:
        """(D,) the untrained weights, spread evenly over their copies."""
        parts = [np.tile(block.initial.ravel() / block.copies, block.copies) for block in self.blocks]
        return np.concatenate(parts) if parts else np.zeros(0)

    @cached_property
    def signs(self) -> Array:
        """(D,) +1 or -1 where the sign is kept, otherwise 0."""
        parts = [
            np.tile((np.zeros(b.initial.size) if b.signs is None else b.signs.ravel()), b.copies) for b in self.blocks
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def constrain(self, theta: Array) -> Array:
        """The nearest vectors (..., D) in which every constrained weight has its sign."""
        return np.where(self.signs * theta < 0, 0.0, theta)

    def unpack(self, theta: Array) -> dict[str, Array]:
        """The weights that act, {name: (..., shape)}, copies summed."""
        if theta.shape[-1] != self.size:
            raise UserError(f"{self.size} weights are needed, not {theta.shape[-1]}")
        result = {}
        for block in self.blocks:
            part = theta[..., self._slices[block.name]]
            spread = part.reshape(*theta.shape[:-1], block.copies, *block.initial.shape)
            axis = theta.ndim - 1
            result[block.name] = spread[(slice(None),) * axis + (0,)] if block.copies == 1 else spread.sum(axis=axis)
        return result

    def compress(self, theta: Array) -> Array:
        """The vector (..., D') of the same weights in the space without copies."""
        parts = [
            values.reshape(*theta.shape[:-1], block.initial.size)
            for block, values in zip(self.blocks, self.unpack(theta).values(), strict=True)
        ]
        return np.concatenate(parts, axis=-1)
