"""Where the ghost of the live page is drawn, so that it stays in view beside the robot."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LANE: Final = 0.9
"""How far to the left of the robot the ghost walks on a plane, m: both begin at the same place."""
FURTHEST: Final = 1.0
"""Distance from the robot beyond which the ghost is held back, m."""
ABREAST: Final = 0.1
"""Lead below which the two are abreast, m."""


class Place(NamedTuple):
    """Where a ghost is drawn."""

    shift: Array
    """(3,) from where it is to where it is drawn, m."""
    held: bool
    """Whether it is in truth further away than it is drawn."""
    said: str
    """Where it is in truth, in words."""


def beside(robot: Array, heading: Array, ghost: Array, *, lane: float) -> Place:
    """The place of a ghost at (3,) m beside a robot at (3,) that looks along a unit vector (2,).

    lane: how far to the left it is drawn of where it is, m; 0 where the ground is not the same everywhere.
    """
    left = np.array([-heading[1], heading[0]])
    way = ghost[:2] - robot[:2]
    lead, aside = float(way @ heading), float(way @ left) + lane
    distance = float(np.hypot(lead, aside))
    held = distance > FURTHEST + lane
    share = (FURTHEST + lane) / distance if held else 1.0
    drawn = robot[:2] + share * (lead * heading + aside * left)
    shift = np.array([*(drawn - ghost[:2]), 0.0])
    return Place(shift, held, _in_words(lead, aside - lane))


def _in_words(lead: float, aside: float) -> str:
    words = []
    if abs(lead) >= ABREAST:
        words.append(f"{abs(lead):.1f} m {'ahead' if lead > 0 else 'behind'}")
    if abs(aside) >= 0.5:
        words.append(f"{abs(aside):.1f} m to the {'left' if aside > 0 else 'right'}")
    return ", ".join(words) or "abreast"
