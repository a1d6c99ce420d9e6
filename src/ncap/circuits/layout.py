"""Where the neurons and inputs of a circuit stand in a drawing: the animal from above, its head at the top.

Legs stand at the corners of a quadruped, and the segments of a chain below each other, dorsal on the left. The papers'
rows have their places here; those of another circuit stand in columns beside them. Units of the drawing are arbitrary;
y is upwards.
"""

from collections.abc import Iterable
from typing import Final

from ncap.circuits.spec import CircuitSpec
from ncap.plan import BODY, SITE, BodyPlan

Place = tuple[float, float]

PLACES: Final[dict[str, Place]] = {
    "flexor": (5.0, 0.9),
    "extensor": (5.0, -0.9),
    "cross_V0d": (1.6, 2.5),
    "cross_V3f": (1.6, 0.9),
    "cross_V3e": (1.6, -0.9),
    "diag_V0d": (3.4, -2.9),
    "diag_V0v": (1.6, -2.9),
    "diag_In2": (3.4, -4.4),
    "diag_V3a": (3.4, 3.4),
    "afferent_flexor": (7.7, 0.9),
    "afferent_extensor": (7.7, -0.9),
    "fast_flexor": (4.9, 2.6),
    "fast_extensor": (4.9, -2.6),
    "late_flexor": (4.9, 4.1),
    "late_extensor": (4.9, -4.1),
    "fast_late_flexor": (6.5, 4.1),
    "fast_late_extensor": (6.5, -4.1),
    "thigh": (6.5, 2.6),
    "calf": (6.5, -2.6),
    "hip": (8.3, -2.4),
    "freq": (8.5, -4.1),
    "sync": (8.5, -5.4),
    "pacemaker": (0.0, 4.9),
    "head_dorsal": (-2.5, 3.6),
    "head_ventral": (2.5, 3.6),
    "B_dorsal": (-2.5, 1.2),
    "B_ventral": (2.5, 1.2),
    "muscle_dorsal": (-2.5, -1.2),
    "muscle_ventral": (2.5, -1.2),
    "bend": (0.0, -1.2),
    "bend+": (-5.2, -1.2),
    "bend-": (5.2, -1.2),
    "slow": (0.0, 1.2),
    "turn_right": (-4.9, 2.7),
    "turn_left": (4.9, 2.7),
    "right": (-7.2, 2.7),
    "left": (7.2, 2.7),
    "speed": (-7.2, 1.2),
}
"""Where a row stands at a site: (distance from the midline, height above the site). A site on the left mirrors it."""
CHAIN_NAME: Final[Place] = (-7.2, -1.2)
"""Where the name of a segment is written."""
SHORT_NAMES: Final = {
    "flexor": "F",
    "extensor": "E",
    "afferent_flexor": "aff F",
    "afferent_extensor": "aff E",
    "fast_flexor": "fast F",
    "fast_extensor": "fast E",
    "late_flexor": "F′",
    "late_extensor": "E′",
    "fast_late_flexor": "fast F′",
    "fast_late_extensor": "fast E′",
    "pacemaker": "clock",
    "head_dorsal": "osc d",
    "head_ventral": "osc v",
    "B_dorsal": "Bd",
    "B_ventral": "Bv",
    "muscle_dorsal": "Md",
    "muscle_ventral": "Mv",
    "bend+": "bent d",
    "bend-": "bent v",
    "turn_right": "right",
    "turn_left": "left",
    "roll rate": "roll/s",
    "pitch rate": "pitch/s",
}
"""What is written into a neuron where there is no room for its name."""
LEG_NAME: Final[Place] = (8.2, 2.5)
"""Where the name of a site is written, likewise."""
LEG_SPACING: Final = 11.0
"""Height between the fore and the hind legs of a quadruped."""
SEGMENT_SPACING: Final = 6.8
"""Height between two segments of a chain."""
FIRST_COLUMN, OUTER_COLUMN, ROWS_IN_A_COLUMN = 1.6, 10.4, 4
"""Where columns of rows without a place begin: nearest to the midline if nothing else is there."""


def layout(spec: CircuitSpec) -> dict[tuple[str, str], Place]:
    """Where everything that is drawn stands: {(name, site or part of the body): (x, y)}.

    Senses that only sums of afferents hear are left out: a leg has twenty of them.
    """
    hidden = hidden_senses(spec)
    rows = {row.name: spec.sites_of(row) for row in spec.neurons}
    rows |= {row.name: spec.places_of(row) for row in spec.inputs if row.name not in hidden}
    places = _places(rows)
    result: dict[tuple[str, str], Place] = {}
    for name, parts in rows.items():
        for part in parts:
            side, height = anchor(spec.plan, part)
            across, above = places[name]
            if side == 0:  # what belongs to both sides stands on the midline, one below the other
                above = 3.2 - 1.3 * sum(other == part for _, other in result)
            result[name, part] = (side * across, height + above)
    return result


def _places(rows: Iterable[str]) -> dict[str, Place]:
    """Places of rows at a site. Those that have none in PLACES stand in columns of their own, outside the others."""
    names = list(rows)
    first = FIRST_COLUMN if not any(name in PLACES for name in names) else OUTER_COLUMN
    others = [name for name in names if name not in PLACES]
    return PLACES | {
        name: (first + 1.8 * (i // ROWS_IN_A_COLUMN), 2.4 - 1.6 * (i % ROWS_IN_A_COLUMN))
        for i, name in enumerate(others)
    }


def name_place(plan: BodyPlan, site: str) -> Place:
    """Where the name of a site is written; y is upwards."""
    side, height = anchor(plan, site)
    across, above = LEG_NAME if plan.groups else CHAIN_NAME
    return side * across, height + above


def hidden_senses(spec: CircuitSpec) -> frozenset[str]:
    """Names of the senses that no neuron hears but those without memory that add them up for the core."""
    summing = {name for level in spec.before for name in level}
    heard = {row.source for row in spec.synapses if row.target not in summing}
    return frozenset(row.name for row in spec.inputs if row.kind == "sense" and row.name not in heard)


def anchor(plan: BodyPlan, part: str) -> tuple[float, float]:
    """(side, height) of a site, or of the foremost site of a part of the body: side -1 left, 1 right, 0 neither."""
    sites = next(
        (members[part] for members in plan.groups.values() if part in members),
        plan.sites if part == BODY else (part,),
    )
    places = [_site_anchor(plan, site) for site in sites]
    sides = {side for side, _ in places}
    return (sides.pop() if len(sides) == 1 else 0.0), max(height for _, height in places)


def _site_anchor(plan: BodyPlan, site: str) -> tuple[float, float]:
    if "side" in plan.groups and "girdle" in plan.groups:
        side = -1.0 if plan.part_of(site, "side") == plan.parts("side")[0] else 1.0
        row = plan.parts("girdle").index(plan.part_of(site, "girdle"))
        return side, -row * LEG_SPACING
    row = plan.parts(SITE).index(site)
    return 1.0, -row * SEGMENT_SPACING
