"""Weights that an optimiser sees as a flat vector and people see by name: bounds and signs kept, copies summed.

Shapes: P individuals, D numbers in a flat vector. A weight may be spread over several copies whose sum is what acts
(the paper's overparameterisation trick); `compress` sums them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number that can be trained, as a table's rows give it."""

    block: str
    """Name of the block that it belongs to; numbers of a block stand together."""
    label: tuple[str, ...]
    """What it is called within its block: (target, source) of a weight, (neuron,) of a bias."""
    initial: float
    low: float = -np.inf
    high: float = np.inf
    spread: bool = True
    """Whether it may be spread over copies."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """A named array of weights."""

    name: str
    initial: Array
    """What acts before training, of the block's shape."""
    low: Array | float = -np.inf
    """Lowest value that may act, of the block's shape; 0 where a weight must not be negative."""
    high: Array | float = np.inf
    labels: tuple[tuple[str, ...], ...] = ()
    """Names along every axis."""
    copies: int = 1

    @property
    def size(self) -> int:
        """Numbers in the flat vector."""
        return self.copies * self.initial.size

    def flat(self, values: Array | float) -> Array:
        """Values of the block's shape, or one for all, as they stand in the flat vector: spread over the copies."""
        whole = np.broadcast_to(values, self.initial.shape).ravel()
        return np.tile(whole / self.copies, self.copies)

    @property
    def names(self) -> list[str]:
        """A name for every number in the flat vector that is the same wherever this weight occurs."""
        if not self.labels:
            labels = [str(i) for i in range(self.initial.size)]
        else:
            axes = np.meshgrid(*(np.array(axis, object) for axis in self.labels), indexing="ij")
            labels = [" < ".join(parts) for parts in zip(*(axis.ravel() for axis in axes), strict=True)]
        return [f"{self.name}: {label} #{copy}" for copy in range(self.copies) for label in labels]


class ParamSpace:
    """Blocks one after the other in a flat vector."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = tuple(blocks)
        ends = np.cumsum([block.size for block in self.blocks]).tolist()
        self._slices = {b.name: slice(end - b.size, end) for b, end in zip(self.blocks, ends, strict=True)}
        self.size: int = ends[-1] if ends else 0

    @classmethod
    def from_rows(cls, numbers: Iterable[Number], copies: int = 1) -> "ParamSpace":
        """The space of these numbers, those of a block next to each other. Copies: of what may be spread."""
        return cls(_block(name, list(members), copies) for name, members in groupby(numbers, lambda n: n.block))

    @cached_property
    def initial(self) -> Array:
        """(D,) the untrained weights, spread evenly over their copies."""
        return self._joined(block.flat(block.initial) for block in self.blocks)

    @cached_property
    def low(self) -> Array:
        """(D,) lowest values."""
        return self._joined(block.flat(block.low) for block in self.blocks)

    @cached_property
    def high(self) -> Array:
        """(D,) highest values."""
        return self._joined(block.flat(block.high) for block in self.blocks)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """(D,) a name for every number of the flat vector."""
        return tuple(name for block in self.blocks for name in block.names)

    @staticmethod
    def _joined(parts: Iterable[Array]) -> Array:
        return np.concatenate([np.zeros(0), *parts])

    def constrain(self, theta: Array) -> Array:
        """The nearest vectors (..., D) within the bounds."""
        return np.minimum(np.maximum(theta, self.low), self.high)

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
        return np.concatenate([np.zeros((*theta.shape[:-1], 0)), *parts], axis=-1)

    def carried(self, theta: Array, other: "ParamSpace") -> Array:
        """The vector (D,) of another space with the weights that both have by name; the rest stays untrained."""
        mine = dict(zip(self.names, theta.tolist(), strict=True))
        return np.array([mine.get(name, value) for name, value in zip(other.names, other.initial, strict=True)], float)


def _block(name: str, numbers: Sequence[Number], copies: int) -> Block:
    """A matrix where the labels are all pairs of some targets and some sources in order, otherwise a list."""
    labels = [number.label for number in numbers]
    axes = tuple(tuple(dict.fromkeys(part)) for part in zip(*labels, strict=False))
    if labels != [(a, b) for a in axes[0] for b in axes[-1]]:
        axes = (tuple(" < ".join(label) for label in labels),)
    shape = tuple(len(axis) for axis in axes)
    return Block(
        name=name,
        initial=np.array([number.initial for number in numbers]).reshape(shape),
        low=np.array([number.low for number in numbers]).reshape(shape),
        high=np.array([number.high for number in numbers]).reshape(shape),
        labels=axes,
        copies=copies if all(number.spread for number in numbers) else 1,
    )
