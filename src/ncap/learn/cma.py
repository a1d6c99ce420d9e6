"""Covariance matrix adaptation with a diagonal matrix (sep-CMA-ES), for spaces of about a hundred weights.

Candidates are centre + σ s ⊙ δ with a step size σ and a scale s for every coordinate. The centre moves to the weighted
mean of the better half. σ grows while steps agree with each other and shrinks while they cancel; s grows along
coordinates in which good candidates lie far out. Coordinates are the weights themselves, or those of modulators.py. The
centre knows no bounds; what is played and kept is the centre within its bounds, for a centre held back at one would
look like steps that agree.

After Ros and Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity" (2008), with the
constants of the cmaes library and the literature's names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ncap.errors import UserError
from ncap.learn.modulators import coordinates
from ncap.learn.search import Array, Search, direction, worst_if_nan
from ncap.params import ParamSpace


@dataclass(frozen=True, kw_only=True)
class CMA:
    """Settings of the search."""

    population: int
    sigma: float
    """Standard deviation of the first candidates."""
    modulated: bool = False
    """Whether neuromodulators are searched beside the weights."""
    cooling: float = 1.0
    """Factor on σ after every epoch, beside its own adaptation."""
    copies: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.cooling <= 1:
            raise UserError(f"CMA-ES needs a cooling in (0, 1], not {self.cooling:g}")
        if self.population < 4 or not 0 < self.sigma < np.inf:
            raise UserError(f"CMA-ES needs population >= 4 and sigma > 0, not {self.population} and {self.sigma:g}")

    @cached_property
    def weights(self) -> Array:
        """(population // 2,) weights of the better half, the best first; their sum is 1."""
        better = self.population // 2
        raw = np.log(better + 1) - np.log(np.arange(1, better + 1))
        weights: Array = raw / raw.sum()
        return weights

    def start(self, space: ParamSpace, mean: Array) -> Search:
        """A search that begins at these weights (D,) of a space."""
        _, sizes = self._coordinates(space, mean)
        nowhere = np.zeros_like(sizes)
        memory = {
            "origin": mean,
            "centre": nowhere,
            "sigma": np.array([self.sigma]),
            "variance": sizes**2,
            "p_sigma": nowhere,
            "p_c": nowhere,
        }
        return Search(mean=mean, memory=memory)

    def _coordinates(self, space: ParamSpace, origin: Array) -> tuple[Array, Array]:
        return coordinates(space, origin) if self.modulated else (np.eye(space.size), np.ones(space.size))

    def _weights_at(self, space: ParamSpace, origin: Array, places: Array) -> Array:
        """(..., D) weights within their bounds at places (..., n) in the search's coordinates."""
        moved = places[..., : space.size]
        if self.modulated:
            moved = moved + places[..., space.size :] @ self._coordinates(space, origin)[0][space.size :]
        return space.constrain(origin + moved)

    def candidates(self, space: ParamSpace, search: Search, seed: int, epoch: int, indices: Sequence[int]) -> Array:
        """(len(indices), D) candidates of an epoch, within their bounds."""
        memory = search.memory
        normal = np.array([direction(seed, epoch, index, len(memory["centre"])) for index in indices])
        spread = memory["sigma"] * np.sqrt(memory["variance"])
        return self._weights_at(space, memory["origin"], memory["centre"] + spread * normal)

    def update(self, space: ParamSpace, search: Search, seed: int, epoch: int, returns: Array) -> Search:
        """The search after an epoch, from the returns (population,) in the order of the candidates' indices."""
        returns = worst_if_nan(returns)
        if np.ptp(returns) <= 1e-12:
            return search  # nothing was learned
        weights, origin = self.weights, search.memory["origin"]
        centre, sigma, variance, p_sigma, p_c = (
            search.memory[name] for name in ("centre", "sigma", "variance", "p_sigma", "p_c")
        )
        n = len(centre)
        best = np.argsort(-returns, kind="stable")[: len(weights)]
        z = np.array([direction(seed, epoch, int(index), n) for index in best])
        scale = np.sqrt(variance)
        mean_z = weights @ z
        centre = centre + sigma * scale * mean_z

        mu_eff = 1 / (weights**2).sum()  # how many candidates count
        c_sigma = (mu_eff + 2) / (n + mu_eff + 3)
        d_sigma = 1 + 2 * max(0.0, np.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_sigma
        p_sigma = (1 - c_sigma) * p_sigma + np.sqrt(c_sigma * (2 - c_sigma) * mu_eff) * mean_z
        length, chi_n = np.linalg.norm(p_sigma), np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
        sigma = sigma * np.exp(c_sigma / d_sigma * (length / chi_n - 1)) * self.cooling
        h_sigma = length / np.sqrt(1 - (1 - c_sigma) ** (2 * (epoch + 2))) < (1.4 + 2 / (n + 1)) * chi_n

        c_c = 4 / (n + 4)
        p_c = (1 - c_c) * p_c
        if h_sigma:
            p_c = p_c + np.sqrt(c_c * (2 - c_c) * mu_eff) * scale * mean_z
        c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)  # weight of the path
        full = 2 / mu_eff / (n + np.sqrt(2)) ** 2 + (1 - 1 / mu_eff) * min(
            1.0, (2 * mu_eff - 1) / ((n + 2) ** 2 + mu_eff)
        )
        c_mu = min(1 - c_1, (n + 2) / 3 * full)  # weight of the better half, more than with a full matrix
        kept = 1 - c_1 - c_mu + (0 if h_sigma else c_1 * c_c * (2 - c_c))
        variance = kept * variance + c_1 * p_c**2 + c_mu * (weights @ (scale * z) ** 2)
        memory = {"centre": centre, "sigma": sigma, "variance": variance, "p_sigma": p_sigma, "p_c": p_c}
        return Search(mean=self._weights_at(space, origin, centre), memory={"origin": origin, **memory})
