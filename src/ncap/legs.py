"""The four legs: their order, their body sides, and the routes along which neurons of one leg reach another.

Inside the project a leg is an axis of length 4 in the order FL, FR, HL, HR (front/hind, left/right).
"""

from typing import Final

LEGS: Final = ("FL", "FR", "HL", "HR")
FORE: Final = ("FL", "FR")
HIND: Final = ("HL", "HR")
SIDES: Final = ("L", "R")

#: For every route, where a projection that starts at a leg arrives. Legs from which none starts are absent.
ROUTES: Final[dict[str, dict[str, str]]] = {
    "same": {leg: leg for leg in LEGS},
    "cross": {"FL": "FR", "FR": "FL", "HL": "HR", "HR": "HL"},
    "side-down": {"FL": "HL", "FR": "HR"},
    "side-up": {"HL": "FL", "HR": "FR"},
    "diag-down": {"FL": "HR", "FR": "HL"},
    "diag-up": {"HL": "FR", "HR": "FL"},
}


def side_of(leg: str) -> str:
    """The body side, "L" or "R", of a leg."""
    return leg[1]
