"""What the robot walks on. Frozen data; heights come from a seed.

A terrain is anything with a `grid`, which says where a height field lies, and `heights`, which fills it; a plane has
neither. World and view know nothing else of it.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError
from ncap.registry import Registry

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Where a height field lies. The robot starts at x = y = 0 and walks along x."""

    rows: int
    """Points along y."""
    columns: int
    """Points along x."""
    cell: float
    """Distance between two neighbouring points, m."""
    behind: float
    """Extent along x behind the start, m."""
    ahead: float
    """Extent along x ahead of the start, m."""
    aside: float
    """Extent to either side of the start, m."""
    top: float
    """Height that no point exceeds, m."""
    level: float
    """Height of the level ground around the field, m."""


class Terrain(Protocol):
    """What a robot can walk on. Frozen, so that it can be compared and stored."""

    @property
    def grid(self) -> Grid | None:
        """Where its height field lies; None for a plane at height 0."""
        ...

    def heights(self, seed: int) -> Array:
        """Ground height (rows, columns) in m; rows along y from -aside, columns along x from -behind."""
        ...


@dataclass(frozen=True, kw_only=True)
class Flat:
    """An endless plane."""

    @property
    def grid(self) -> Grid | None:
        """No height field."""
        return None

    def heights(self, seed: int) -> Array:
        """No points."""
        return np.zeros((0, 0))


@dataclass(frozen=True, kw_only=True)
class Water(Flat):
    """A fluid in which nothing weighs anything and nothing touches the plane far below."""

    density: float = 3000.0
    """kg/m³; three times that of water, as in the swimmer of the Control Suite."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.density < np.inf:
            raise UserError(f"a density is a number from 0 on, not {self.density:g}")


@dataclass(frozen=True, kw_only=True)
class Bumpy:
    """Smooth random bumps: a random height every `spacing` metres, interpolated smoothly."""

    bumpiness: float = 0.5
    """b in [0, 1]: heights are uniform in [1 - b, 1] times `height`."""
    height: float = 0.05
    """Height of the highest bumps, m."""
    spacing: float = 0.2
    """Distance between two independent heights, m."""
    behind: float = 4.0
    """Extent along x behind the start, m."""
    ahead: float = 34.0
    """Extent along x ahead of the start, m: 15 s at 2 m/s are 30 m."""
    aside: float = 8.0
    """Extent to either side, m."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.bumpiness <= 1.0:
            raise UserError(f"bumpiness {self.bumpiness:g} is outside [0, 1]")

    @property
    def grid(self) -> Grid | None:
        """The bumps end; the ground around them has their mean height."""
        cell = self.spacing / CELLS_PER_BUMP
        return Grid(
            rows=round(2 * self.aside / cell) + 1,
            columns=round((self.ahead + self.behind) / cell) + 1,
            cell=cell,
            behind=self.behind,
            ahead=self.ahead,
            aside=self.aside,
            top=self.height,
            level=self.height * (1.0 - self.bumpiness / 2),
        )

    def heights(self, seed: int) -> Array:
        """Ground height (rows, columns) in m above 0; rows along y from -aside, columns along x from -behind."""
        assert self.grid is not None
        rows, columns = self.grid.rows, self.grid.columns
        knots = (-(-rows // CELLS_PER_BUMP) + 1, -(-columns // CELLS_PER_BUMP) + 1)
        values = seeding.generator(seed, "terrain").uniform(1.0 - self.bumpiness, 1.0, knots)
        return self.height * _smooth(_smooth(values, rows).T, columns).T


CELLS_PER_BUMP: Final = 4
"""Cells of the height field between two independent heights."""

TERRAINS: Final[Registry[Terrain]] = Registry("terrain")
TERRAINS["flat"] = Flat()
TERRAINS["bumpy"] = Bumpy()
TERRAINS["water"] = Water()


def _smooth(values: Array, samples: int) -> Array:
    """Interpolate along the first axis with an S-shaped blend, so that every knot is a smooth extremum or saddle."""
    place = np.arange(samples) / CELLS_PER_BUMP
    knot = place.astype(int)
    share = (place - knot)[:, None]
    blend = share * share * (3.0 - 2.0 * share)
    smooth: Array = values[knot] * (1.0 - blend) + values[knot + 1] * blend
    return smooth
