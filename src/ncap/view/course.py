"""A course of gates on the ground that a person drives through against the clock, and its score.

A gate that is passed through its middle gives 100 points, at a post half of that, and in between in proportion. So the
score says how far the robot came within the time, and how precisely.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SECONDS: Final = 60.0
"""Time for the whole course, s."""
SPACING: Final = 1.6
"""Distance between two gates, m."""
HALF_WIDTH: Final = 0.45
"""Distance from the middle of a gate to its posts, m."""
BENDS: Final = (0.0, 0.0, 0.35, 0.45, 0.2, -0.35, -0.6, -0.6, -0.2, 0.4, 0.6, 0.3)
"""Change of direction before every gate, to the left, rad."""
MOST: Final = 100
"""Points for a gate that is passed through its middle."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """How a drive along a course goes."""

    points: tuple[int | None, ...]
    """Of every gate: None before it is passed, 0 if another one was passed first."""
    left: float
    """Time left, s."""

    @property
    def total(self) -> int:
        """Sum of all points."""
        return sum(points or 0 for points in self.points)

    @property
    def passed(self) -> int:
        """Gates that were passed between their posts."""
        return sum(bool(points) for points in self.points)

    @property
    def next(self) -> int | None:
        """Number of the gate to drive through now; None when the course is over."""
        return None if self.over else self.points.index(None)

    @property
    def over(self) -> bool:
        """Whether the last gate was passed or the time is up."""
        return None not in self.points or self.left <= 0.0


class Course:
    """Gates on the ground, and how far a robot has come."""

    def __init__(self, position: Array, heading: float) -> None:
        """It begins at a place (2,), m, and leads away in the direction of a heading, rad."""
        self.start: Array = position.copy()
        """(2,) m."""
        headings = heading + np.cumsum(BENDS)
        along = np.stack((np.cos(headings), np.sin(headings)), axis=1)
        self.middles: Array = position + SPACING * np.cumsum(along, axis=0)
        """(gate, 2) m."""
        half = np.array(BENDS) / 2  # a gate stands across the bisector of the ways to it and from it
        self.directions: Array = np.stack((np.cos(headings - half), np.sin(headings - half)), axis=1)
        """(gate, 2) unit vectors, the way through."""
        self._points: list[int | None] = [None] * len(BENDS)
        self._left, self._here = SECONDS, position.copy()

    @property
    def score(self) -> Score:
        """How it goes."""
        return Score(points=tuple(self._points), left=self._left)

    @property
    def posts(self) -> Array:
        """(gate, 2, 2) where the left and the right post of every gate stand, m."""
        across = HALF_WIDTH * np.stack((-self.directions[:, 1], self.directions[:, 0]), axis=1)
        return np.stack((self.middles + across, self.middles - across), axis=1)

    def step(self, position: Array, dt: float) -> None:
        """A control step of dt s leads the robot to a place (2,), m. Gates that it leaves out are lost."""
        before, self._here = self._here, position.copy()
        if self.score.over:
            return
        self._left = max(0.0, self._left - dt)
        for gate in range(self._points.index(None), len(self._points)):
            aside = self._crossed(gate, before)
            if aside is not None and aside <= HALF_WIDTH:
                first = self._points.index(None)
                self._points[first:gate] = [0] * (gate - first)
                self._points[gate] = round(MOST * (1.0 - 0.5 * aside / HALF_WIDTH))
                break

    def _crossed(self, gate: int, before: Array) -> float | None:
        """How far from the middle of a gate the robot crossed its line, m; None if it did not, or backwards."""
        direction, middle = self.directions[gate], self.middles[gate]
        ahead, behind = direction @ (self._here - middle), direction @ (before - middle)
        if not behind < 0.0 <= ahead:
            return None
        place = before + behind / (behind - ahead) * (self._here - before)
        return float(np.linalg.norm(place - middle))
