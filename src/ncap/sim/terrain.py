"""What the robot walks on. Frozen data; heights come from a seed."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Flat:
    """An endless plane."""


@dataclass(frozen=True, kw_only=True)
class Bumpy:
    """Smooth random bumps: a random height every `spacing` metres, interpolated smoothly."""

    bumpiness: float = 0.5
    """b in [0, 1]: heights are uniform in [1 - b, 1] times `height`."""
    height: float = 0.05
    """m."""
    spacing: float = 0.2
    """m between two independent heights."""
    behind: float = 4.0
    ahead: float = 34.0
    """m along x, from the start. 15 s at 2 m/s are 30 m."""
    aside: float = 8.0
    """m to either side."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.bumpiness <= 1.0:
            raise UserError(f"bumpiness {self.bumpiness:g} is outside [0, 1]")

    @property
    def grid(self) -> tuple[int, int]:
        """Rows (y) and columns (x) of the height field."""
        along, across = self.ahead + self.behind, 2 * self.aside
        return round(across / self.cell) + 1, round(along / self.cell) + 1

    @property
    def level(self) -> float:
        """Mean height, m: that of the ground around the bumps."""
        return self.height * (1.0 - self.bumpiness / 2)

    @property
    def cell(self) -> float:
        """M between two points of the height field."""
        return self.spacing / CELLS_PER_BUMP

    def heights(self, seed: int) -> Array:
        """Ground height (rows, columns) in m above 0; rows along y from -aside, columns along x from -behind."""
        rows, columns = self.grid
        knots = (-(-rows // CELLS_PER_BUMP) + 1, -(-columns // CELLS_PER_BUMP) + 1)
        values = seeding.generator(seed, "terrain").uniform(1.0 - self.bumpiness, 1.0, knots)
        return self.height * _smooth(_smooth(values, rows).T, columns).T


CELLS_PER_BUMP: Final = 4

Terrain = Flat | Bumpy


def _smooth(values: Array, samples: int) -> Array:
    """Interpolate along the first axis with an S-shaped blend, so that every knot is a smooth extremum or saddle."""
    place = np.arange(samples) / CELLS_PER_BUMP
    knot = place.astype(int)
    share = (place - knot)[:, None]
    blend = share * share * (3.0 - 2.0 * share)
    smooth: Array = values[knot] * (1.0 - blend) + values[knot + 1] * blend
    return smooth
