"""The body plan of an animal: the places where its circuit repeats, the routes between them, and groups of them.

A circuit's rows stand for one neuron at every site: every leg of a quadruped, every segment of a swimmer. Inside the
project a site is an axis, in the order of `sites`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ncap.errors import UserError, unknown_name

BODY: Final = "body"
"""The place that is the whole animal."""
SITE: Final = "site"


@dataclass(frozen=True)
class BodyPlan:
    """Sites, routes and groups. Compared by value, so plans can be keys."""

    name: str
    sites: tuple[str, ...]
    routes: Mapping[str, Mapping[str, str]]
    """For every route, where a projection that starts at a site arrives. Sites from which none starts are absent."""
    groups: Mapping[str, Mapping[str, tuple[str, ...]]]
    """For every way to divide the body ("side", "girdle"), the sites of each part ("L", "R"; "fore", "hind")."""
    joints: tuple[str, ...] = ()
    """Joints of a site. A motor neuron moves the joint whose name it has."""
    senses: tuple[str, ...] = ()
    """What a site feels itself, each in [-1, 1]. A circuit hears it split into its negative and positive part."""
    posture: tuple[str, ...] = ()
    """What a site knows of the whole body, each in [-1, 1], with its sign."""

    def __hash__(self) -> int:
        return hash((self.name, self.sites))

    @property
    def kind(self) -> str:
        """What plans of the same make have in common: quadruped, chain."""
        return self.name.partition("-")[0]

    @property
    def divisions(self) -> tuple[str, ...]:
        """Ways to divide the body: into nothing ("body"), into its groups, or into single sites ("site")."""
        return (BODY, *self.groups, SITE)

    def parts(self, division: str) -> tuple[str, ...]:
        """Names of the parts into which a division cuts the body."""
        if division == SITE:
            return self.sites
        if division == BODY:
            return (BODY,)
        if division not in self.groups:
            raise unknown_name("division of the body", division, self.divisions)
        return tuple(self.groups[division])

    def part_of(self, site: str, division: str) -> str:
        """The part in which a site lies."""
        if division == SITE:
            return site
        if division == BODY:
            return BODY
        return next(part for part, sites in self.groups[division].items() if site in sites)


QUADRUPED: Final = BodyPlan(
    name="quadruped",
    sites=("FL", "FR", "HL", "HR"),
    routes={
        "same": {leg: leg for leg in ("FL", "FR", "HL", "HR")},
        "cross": {"FL": "FR", "FR": "FL", "HL": "HR", "HR": "HL"},
        "side-down": {"FL": "HL", "FR": "HR"},
        "side-up": {"HL": "FL", "HR": "FR"},
        "diag-down": {"FL": "HR", "FR": "HL"},
        "diag-up": {"HL": "FR", "HR": "FL"},
    },
    groups={
        "side": {"L": ("FL", "HL"), "R": ("FR", "HR")},
        "girdle": {"fore": ("FL", "FR"), "hind": ("HL", "HR")},
    },
    joints=("hip", "thigh", "calf"),
    senses=(
        *(f"{joint} {kind}" for kind in ("position", "torque", "velocity") for joint in ("hip", "thigh", "calf")),
        "foot",
    ),
    posture=("roll", "roll rate", "pitch", "pitch rate"),
)
"""Four legs: front and hind, left and right."""
LEGS: Final = QUADRUPED.sites


def chain(segments: int) -> BodyPlan:
    """A row of segments from head to tail, s1 to sN, as of a worm or a swimmer, each with a joint in front of it."""
    if segments < 1:
        raise UserError(f"a chain needs at least one segment, not {segments}")
    sites = tuple(f"s{i + 1}" for i in range(segments))
    return BodyPlan(
        name=f"chain-{segments}",
        sites=sites,
        routes={
            "same": {site: site for site in sites},
            "tailward": dict(pairwise(sites)),
            "headward": dict(pairwise(sites[::-1])),
        },
        groups={},
        joints=("bend",),
        senses=("bend", "bend rate", "forward", "sideways", "turning"),
    )


def find_plan(name: str) -> BodyPlan:
    """The plan of that name: quadruped, or chain-N with N segments."""
    if name == QUADRUPED.name:
        return QUADRUPED
    if match := re.fullmatch(r"chain-([1-9]\d{0,2})", name):
        return chain(int(match[1]))
    raise unknown_name("body plan", name, (QUADRUPED.name, "chain-N"))
