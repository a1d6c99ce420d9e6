"""The interface of every method of evolution: a state, how candidates are made, and how returns move the state."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.params import ParamSpace

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """The state of a search. Everything in it goes into a checkpoint and to the workers."""

    mean: Array
    """(D,) the weights around which candidates are made, within their bounds."""
    memory: dict[str, Array] = field(default_factory=dict)
    """Arrays that the method keeps beside the mean, by name."""


class Method(Protocol):
    """How a search makes candidates and moves.

    A candidate is addressed by (seed, epoch, index), so that a worker makes its own from the search alone.
    """

    @property
    def population(self) -> int:
        """Candidates per epoch."""
        ...

    @property
    def copies(self) -> int:
        """Overparameterisation of linear layers (NCAP only)."""
        ...

    def start(self, space: ParamSpace, mean: Array) -> Search:
        """A search that begins at these weights (D,) of a space."""
        ...

    def candidates(self, space: ParamSpace, search: Search, seed: int, epoch: int, indices: Sequence[int]) -> Array:
        """(len(indices), D) candidates of an epoch, within their bounds."""
        ...

    def update(self, space: ParamSpace, search: Search, seed: int, epoch: int, returns: Array) -> Search:
        """The search after an epoch, from the returns (population,) in the order of the candidates' indices."""
        ...


def direction(seed: int, epoch: int, index: int, size: int) -> Array:
    """(size,) independent standard normal numbers for every address."""
    return seeding.generator(seed, "direction", epoch, index).standard_normal(size)


def worst_if_nan(returns: Array) -> Array:
    """Returns (n,) in which NaN counts as the worst of the others; zeros if there are no others."""
    finite = np.isfinite(returns)
    return np.where(finite, returns, returns[finite].min()) if finite.any() else np.zeros_like(returns)
