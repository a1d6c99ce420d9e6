"""Covariance matrix adaptation with a diagonal matrix (sep-CMA-ES), for spaces of about a hundred weights.

Candidates are centre + σ s ⊙ δ with a step size σ and a scale s for every weight. The centre moves to the weighted mean
of the better half. σ grows while steps agree with each other and shrinks while they cancel; s grows along weights in
which good candidates lie far out. The centre knows no signs; what is played and kept is the centre with its signs, for
a centre held back at a bound would look like steps that agree.

After Ros and Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity" (2008), with the
constants of the cmaes library; the usual names are in the comments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ncap.errors import UserError
from ncap.learn.search import Array, Search, direction, worst_if_nan
from ncap.params import ParamSpace


@dataclass(frozen=True, kw_only=True)
class CMA:
    """Settings of the search."""

    population: int
    sigma: float
    """Standard deviation of the first candidates."""
    copies: int = 1

    def __post_init__(self) -> None:
        if self.population < 4 or not self.sigma > 0:
            raise UserError(f"CMA-ES needs population >= 4 and sigma > 0, not {self.population} and {self.sigma:g}")

    @cached_property
    def weights(self) -> Array:
        """(population // 2,) weights of the better half, the best first; their sum is 1."""
        better = self.population // 2
        raw = np.log(better + 1) - np.log(np.arange(1, better + 1))
        weights: Array = raw / raw.sum()
        return weights

    def start(self, mean: Array) -> Search:
        """A search that begins at these weights (D,)."""
        memory = {
            "centre": mean,
            "sigma": np.array([self.sigma]),
            "variance": np.ones_like(mean),
            "step_path": np.zeros_like(mean),
            "shape_path": np.zeros_like(mean),
        }
        return Search(mean=mean, memory=memory)

    def candidates(self, space: ParamSpace, search: Search, seed: int, epoch: int, indices: Sequence[int]) -> Array:
        """(len(indices), D) candidates of an epoch, their signs kept."""
        normal = np.array([direction(seed, epoch, index, space.size) for index in indices])
        spread = search.memory["sigma"] * np.sqrt(search.memory["variance"])
        return space.constrain(search.memory["centre"] + spread * normal)

    def update(self, space: ParamSpace, search: Search, seed: int, epoch: int, returns: Array) -> Search:
        """The search after an epoch, from the returns (population,) in the order of the candidates' indices."""
        returns = worst_if_nan(returns)
        if np.ptp(returns) <= 1e-12:
            return search  # nothing was learned
        size, weights = space.size, self.weights
        centre, sigma, variance, step_path, shape_path = (
            search.memory[name] for name in ("centre", "sigma", "variance", "step_path", "shape_path")
        )
        best = np.argsort(-returns, kind="stable")[: len(weights)]
        normal = np.array([direction(seed, epoch, int(index), size) for index in best])
        scale = np.sqrt(variance)
        mean_normal = weights @ normal
        centre = centre + sigma * scale * mean_normal

        effective = 1 / (weights**2).sum()  # μ_eff: how many candidates count
        rate = (effective + 2) / (size + effective + 3)  # c_σ
        damping = 1 + 2 * max(0.0, np.sqrt((effective - 1) / (size + 1)) - 1) + rate  # d_σ
        step_path = (1 - rate) * step_path + np.sqrt(rate * (2 - rate) * effective) * mean_normal  # p_σ
        length, expected = np.linalg.norm(step_path), np.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))
        sigma = sigma * np.exp(rate / damping * (length / expected - 1))
        settled = length / np.sqrt(1 - (1 - rate) ** (2 * (epoch + 2))) < (1.4 + 2 / (size + 1)) * expected  # h_σ

        rate = 4 / (size + 4)  # c_c
        shape_path = (1 - rate) * shape_path  # p_c
        if settled:
            shape_path = shape_path + np.sqrt(rate * (2 - rate) * effective) * scale * mean_normal
        one = 2 / ((size + 1.3) ** 2 + effective)  # c_1: weight of the path
        full = 2 / effective / (size + np.sqrt(2)) ** 2 + (1 - 1 / effective) * min(
            1.0, (2 * effective - 1) / ((size + 2) ** 2 + effective)
        )
        many = min(1 - one, (size + 2) / 3 * full)  # c_μ: weight of the better half, more than with a full matrix
        kept = 1 - one - many + (0 if settled else one * rate * (2 - rate))
        variance = kept * variance + one * shape_path**2 + many * (weights @ (scale * normal) ** 2)
        memory = {
            "centre": centre,
            "sigma": sigma,
            "variance": variance,
            "step_path": step_path,
            "shape_path": shape_path,
        }
        return Search(mean=space.constrain(centre), memory=memory)
