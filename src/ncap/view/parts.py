"""Neurons, inputs and synapses of a drawn circuit: where each is, what is written into it, and how large it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ncap.circuits.layout import SHORT_NAMES

Point = tuple[float, float]

RADIUS: Final = 0.66
BOX: Final = (0.78, 0.46)
"""Half width and half height of an input or a sum of afferents."""
LETTER: Final = 0.56
"""Mean width of a letter for its height."""
SMALLEST: Final = 0.3
"""Smallest height of letters."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A neuron or an input."""

    name: str
    """Name and place: flexor.FL, freq.L."""
    cut: str
    """Name of the knock-out that silences it."""
    label: str
    centre: Point
    """Middle of its shape; y is downwards."""
    kind: str
    """neuron, oscillator, motor, sum or input."""
    told: str
    """What it is, in lines for people."""

    @property
    def boxed(self) -> bool:
        """Whether it is drawn as a box rather than as a neuron."""
        return self.kind in ("sum", "input")

    @property
    def lines(self) -> tuple[str, ...]:
        """Its label in the lines in which it is written: in a circle, every word of a short name has its own."""
        short = not self.boxed and self.label in SHORT_NAMES.values()
        return tuple(self.label.split()) if short else (self.label,)

    @property
    def letter_size(self) -> float:
        """Height of its letters, so that the longest line has room."""
        if len(self.label) == 1:
            return 0.72
        room = 1.5 if self.boxed else 1.3
        return min(0.5, max(SMALLEST, room / (LETTER * max(1, *map(len, self.lines)))))


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A single connection of a synapse row."""

    source: int
    """Number of the signal that it carries."""
    ends: tuple[str, str]
    """Names of the nodes that it joins."""
    key: str
    """The synapse row to which it belongs, which is also the knock-out that silences it."""
    route: str
    curve: tuple[Point, Point, Point]
    """A quadratic Bézier curve from rim to rim."""
    weight: float

    @property
    def excites(self) -> bool:
        """Whether it excites its target; otherwise it inhibits it."""
        return self.weight > 0

    @property
    def told(self) -> str:
        """What it is, in lines for people."""
        return f"{' → '.join(self.ends)}\nroute {self.route}, weight {self.weight:+.3f}, {sign_of([self.weight])}"

    @property
    def width(self) -> float:
        """Width of the line, which grows with the weight."""
        return 0.05 + 0.075 * min(1.5, abs(self.weight))

    @property
    def head(self) -> tuple[Point, ...]:
        """Corners of its end: a triangle where it excites, a bar where it inhibits."""
        _, control, end = (np.array(point) for point in self.curve)
        along = (end - control) / max(float(np.linalg.norm(end - control)), 1e-9)
        across = np.array([-along[1], along[0]])
        corners = [end, end - 0.34 * along + 0.15 * across, end - 0.34 * along - 0.15 * across]
        if not self.excites:
            corners = [end + 0.24 * across, end - 0.24 * across]
        return tuple((float(x), float(y)) for x, y in corners)


def sign_of(weights: Sequence[float]) -> str:
    """What a sender with these outgoing weights does to others."""
    signs = {weight > 0 for weight in weights}
    if not signs:
        return ""
    return "excites some, inhibits others" if len(signs) > 1 else "excitatory" if signs.pop() else "inhibitory"


def hexagon(centre: Point) -> list[Point]:
    """Corners of a motor neuron's shape."""
    angles = np.arange(6) * np.pi / 3
    return [
        (float(centre[0] + 1.1 * RADIUS * np.cos(angle)), float(centre[1] + 1.1 * RADIUS * np.sin(angle)))
        for angle in angles
    ]
