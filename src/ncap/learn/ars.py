"""Augmented random search (ARS) with antithetic Gaussian directions.

θ ← θ + σ / pairs · Σ (F⁺ − F⁻) δ − decay · θ, where F are returns less their mean over their standard deviation, or the
same of their ranks, and pairs is half the population. Candidate 2i is mean + σ δᵢ, candidate 2i + 1 is mean − σ δᵢ.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ncap.errors import UserError
from ncap.learn.search import Array, Search, direction, worst_if_nan
from ncap.params import ParamSpace


@dataclass(frozen=True, kw_only=True)
class ARS:
    """Settings of the search."""

    population: int
    """Twice the number of directions."""
    sigma: float
    """Standard deviation of the directions, and the size of steps."""
    decay: float = 0.0
    copies: int = 1
    ranks: bool = False
    """Whether only the order of the returns counts."""
    normalises: bool = True
    """Whether an MLP's observations are normalised by their running mean and standard deviation."""

    def __post_init__(self) -> None:
        if self.population < 2 or self.population % 2 or not 0 < self.sigma < np.inf:
            raise UserError(
                f"ARS needs an even population >= 2 and sigma > 0, not {self.population} and {self.sigma:g}"
            )

    def start(self, space: ParamSpace, mean: Array) -> Search:
        """A search that begins at these weights (D,) of a space."""
        return Search(mean=mean)

    def candidates(self, space: ParamSpace, search: Search, seed: int, epoch: int, indices: Sequence[int]) -> Array:
        """(len(indices), D) candidates of an epoch, within their bounds."""
        signed = [
            (self.sigma if index % 2 == 0 else -self.sigma) * direction(seed, epoch, index // 2, space.size)
            for index in indices
        ]
        return space.constrain(search.mean + np.array(signed))

    def update(self, space: ParamSpace, search: Search, seed: int, epoch: int, returns: Array) -> Search:
        """The search after an epoch, from the returns (population,) in the order of the candidates' indices."""
        shaped = shape_returns(rank_returns(returns) if self.ranks else returns)
        step = np.zeros_like(search.mean)
        for pair, gain in enumerate(shaped[0::2] - shaped[1::2]):
            if gain:
                step += gain * direction(seed, epoch, pair, space.size)
        moved = search.mean + self.sigma / (self.population // 2) * step - self.decay * search.mean
        return Search(mean=space.constrain(moved))


def rank_returns(returns: Array) -> Array:
    """The rank of every return (n,), from 0; equal returns share a rank, and NaN counts as the worst."""
    ranks: Array = rankdata(worst_if_nan(returns)) - 1.0
    return ranks


def shape_returns(returns: Array) -> Array:
    """Returns (n,) made comparable across epochs. Equal returns shape to zeros; NaN counts as the worst."""
    returns = worst_if_nan(returns)
    spread = returns.std()
    if spread <= 1e-12:
        return np.zeros_like(returns)
    shaped: Array = (returns - returns.mean()) / spread
    return shaped
