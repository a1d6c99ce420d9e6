"""Evolution: augmented random search (ARS) with antithetic Gaussian directions.

θ ← θ + (rate / pairs) Σ (F⁺ − F⁻) δ − decay · θ, where F are shaped returns. A candidate is addressed by (seed, epoch,
index), so that a worker can make it from the mean alone: candidate 2i is mean + σ δᵢ, candidate 2i + 1 is mean − σ δᵢ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError
from ncap.params import ParamSpace

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Evolution:
    """Settings of the search."""

    pairs: int
    sigma: float
    """Mutation: standard deviation of the directions."""
    rate: float
    """Step size: the paper's update uses sigma itself."""
    decay: float = 0.0
    copies: int = 1
    """Overparameterisation of linear layers (NCAP only)."""
    shaping: Literal["zscore", "rank"] = "zscore"

    def __post_init__(self) -> None:
        if self.pairs < 1 or not self.sigma > 0:
            raise UserError(f"evolution needs pairs >= 1 and sigma > 0, not {self.pairs} and {self.sigma:g}")

    @property
    def candidates(self) -> int:
        """Episodes per epoch."""
        return 2 * self.pairs


PRESETS: Final[dict[str, dict[str, Evolution]]] = {
    "default": {
        "ncap": Evolution(pairs=8, sigma=0.14, rate=0.14),
        "mlp": Evolution(pairs=32, sigma=0.05, rate=0.05),
    },
    "paper": {
        "ncap": Evolution(pairs=128, sigma=0.1, rate=0.1, copies=8),
        "mlp": Evolution(pairs=128, sigma=0.1, rate=0.1),
    },
    "released": {
        "ncap": Evolution(pairs=32, sigma=0.1, rate=0.1, decay=0.01, copies=8),
        "mlp": Evolution(pairs=32, sigma=0.02, rate=0.02),
    },
}
"""For every preset, the settings for each kind of policy."""


def direction(seed: int, epoch: int, pair: int, size: int) -> Array:
    """(D,) the Gaussian direction of a pair."""
    return seeding.generator(seed, "direction", epoch, pair).standard_normal(size)


def candidates(
    settings: Evolution, space: ParamSpace, mean: Array, seed: int, epoch: int, indices: Sequence[int]
) -> Array:
    """(len(indices), D) candidates of an epoch, their signs kept."""
    rows = [
        mean + (settings.sigma if index % 2 == 0 else -settings.sigma) * direction(seed, epoch, index // 2, space.size)
        for index in indices
    ]
    return space.constrain(np.array(rows))


def shape_returns(returns: Array, shaping: str) -> Array:
    """Returns (n,) made comparable across epochs. Equal returns shape to zeros; NaN ranks as the worst."""
    finite = np.isfinite(returns)
    if not finite.any():
        return np.zeros_like(returns)
    returns = np.where(finite, returns, returns[finite].min())
    if shaping == "rank":
        _, inverse, counts = np.unique(returns, return_inverse=True, return_counts=True)
        places = np.cumsum(counts) - (counts + 1) / 2  # mean place of equal returns
        scaled = places[inverse] / max(1, len(returns) - 1)
        returns = scaled
    spread = returns.std()
    if spread <= 1e-12:
        return np.zeros_like(returns)
    shaped: Array = (returns - returns.mean()) / spread
    return shaped


def update(settings: Evolution, space: ParamSpace, mean: Array, seed: int, epoch: int, returns: Array) -> Array:
    """The next mean (D,) from the returns (candidates,) of an epoch, in the order of their indices."""
    shaped = shape_returns(returns, settings.shaping)
    gains = shaped[0::2] - shaped[1::2]
    step = np.zeros_like(mean)
    for pair, gain in enumerate(gains):
        if gain:
            step += gain * direction(seed, epoch, pair, space.size)
    return space.constrain(mean + settings.rate / settings.pairs * step - settings.decay * mean)
