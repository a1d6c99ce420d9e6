"""A swimmer of 3 to 13 links in a dense fluid, after the `swimmer` of DeepMind's Control Suite, from its numbers.

Flat links in a row are joined by hinges about the vertical. The trunk is the head, whose x points forward. Nothing
weighs anything, so the swimmer stays in its plane. The fluid's drag is MuJoCo's for the box of equal inertia.
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.plan import BodyPlan, chain
from ncap.sim.body import Gains

if TYPE_CHECKING:
    from ncap.sim.simulation import Measurements

Array = NDArray[np.float64]

FEWEST, MOST = 3, 13
"""Links that a swimmer may have."""
DEPTH: Final = 0.05
"""Height above the ground at which it swims, m."""
FASTEST: Final = 0.3
"""Velocity of a link that maps to ±1, m/s."""
FASTEST_TURN: Final = 6.0
"""Turning of a link that maps to ±1, rad/s."""
FASTEST_BEND: Final = 10.0
"""Velocity of a joint that maps to ±1, rad/s."""
_FACE: Final = (
    '<geom class="skin" type="ellipsoid" size="0.04 0.02 0.017" pos="0.022 0 0"/>'
    '<geom class="skin" type="sphere" size="0.005" pos="0.048 0.011 0.01" rgba="0.1 0.1 0.12 1"/>'
    '<geom class="skin" type="sphere" size="0.005" pos="0.048 -0.011 0.01" rgba="0.1 0.1 0.12 1"/>'
)
"""Head and eyes."""


@dataclass(frozen=True, kw_only=True)
class Swimmer:
    """Links of equal size in a row."""

    links: int = 6
    half_size: tuple[float, float, float] = (0.05, 0.001, 0.01)
    """Half of a link's length, width and height, m."""
    mass: float = 0.01
    """Of a link, kg."""
    torque: float = 5e-4
    """Largest torque of a muscle pair, N m."""

    def __post_init__(self) -> None:
        if not FEWEST <= self.links <= MOST:
            raise UserError(f"a swimmer has {FEWEST} to {MOST} links, not {self.links}")

    @property
    def name(self) -> str:
        """swimmer-6 with six links."""
        return f"swimmer-{self.links}"

    @cached_property
    def plan(self) -> BodyPlan:
        """A site for every joint, s1 behind the head."""
        return chain(self.links - 1)

    @property
    def trunk(self) -> str:
        """The head."""
        return "link1"

    @cached_property
    def joints(self) -> tuple[tuple[str, ...], ...]:
        """One at every site."""
        return tuple((f"joint{i + 1}",) for i in range(self.links - 1))

    @property
    def feet(self) -> tuple[str, ...]:
        """It has none."""
        return ()

    @property
    def ground_geoms(self) -> tuple[str, ...]:
        """Nothing of it touches anything."""
        return ()

    @cached_property
    def mid(self) -> Array:
        """(site, 1) straight."""
        return np.zeros((self.links - 1, 1))

    @property
    def nose(self) -> float:
        """A centimetre in front of the head."""
        return self.half_size[0] + 0.01

    @property
    def reach(self) -> float:
        """Largest bend of a joint, rad: all of them together make a full circle."""
        return 2 * math.pi / self.links

    @cached_property
    def torque_limits(self) -> Array:
        """(site, 1) largest torque, N m."""
        return np.full((self.links - 1, 1), self.torque)

    @property
    def model(self) -> Path:
        """There is no file: the model is made from the numbers."""
        return Path(f"{self.name}.xml")

    @cached_property
    def model_xml(self) -> str:
        """A chain of links, each the child of the one before it. What has mass is not drawn, what is drawn has none."""
        length, width, height = self.half_size
        inner = ""
        for i in reversed(range(self.links)):
            thick = height * (1.0 - 0.5 * i / self.links)  # thinner towards the tail
            place = f"0 0 {DEPTH}" if i == 0 else f"{-2 * length} 0 0"
            joint = f'<joint name="joint{i}" class="bend"/>' if i else "<freejoint/>"
            inner = (
                f'<body name="link{i + 1}" pos="{place}">{joint}<geom class="mass"/>'
                f'<geom class="skin" type="capsule" size="{thick:g}" fromto="{-length} 0 0 {length} 0 0"/>'
                f"{_FACE if i == 0 else ''}{inner}</body>"
            )
        return (
            f'<mujoco model="{self.name}"><compiler angle="radian"/><default><default class="bend">'
            f'<joint type="hinge" axis="0 0 1" pos="{length} 0 0" limited="true" range="{-self.reach} {self.reach}" '
            'solreflimit="0.05 1" solimplimit="0 0.8 0.1" armature="1e-6"/></default><default class="mass">'
            f'<geom type="box" size="{length} {width} {height}" mass="{self.mass}" group="3"/></default>'
            '<default class="skin"><geom mass="0" rgba="0.83 0.56 0.42 1"/></default></default>'
            f"<worldbody>{inner}</worldbody></mujoco>"
        )

    def gains(self, kp: float | None, kd: float | None) -> Gains:
        """Muscles give a torque whatever the position is."""
        return Gains(self.torque, 0.0, 0.0)

    def start(self, draws: np.random.Generator, noise: float) -> tuple[Array, float]:
        """Bent in any way, with any heading."""
        offsets = draws.uniform(-1, 1, self.mid.shape) * self.reach
        return offsets, float(draws.uniform(-math.pi, math.pi))

    def at_rest(self, positions: Array) -> Array:
        """No torque."""
        return np.zeros_like(positions)

    def targets(self, action: Array) -> Array:
        """Shares of the largest torque."""
        return np.clip(action, -1.0, 1.0)

    def seen(self, now: "Measurements") -> Array:
        """(P, site, 5) of every joint its bend and how fast it bends; of the link in front of it its velocity.

        That is forward, to the left and turning, in its own frame.
        """
        bend, rate = now.joint_position[..., 0], now.joint_velocity[..., 0]
        half = self.half_size[0]
        ahead, aside, turning = now.velocity[:, 0], now.velocity[:, 1], now.angular_velocity[:, 2]
        seen = np.empty((*bend.shape, len(self.plan.senses)))
        seen[..., 0], seen[..., 1] = bend / self.reach, rate / FASTEST_BEND
        for i in range(bend.shape[1]):
            seen[:, i, 2], seen[:, i, 3], seen[:, i, 4] = ahead / FASTEST, aside / FASTEST, turning / FASTEST_TURN
            aside = aside - half * turning  # at the joint, which the next link turns about
            cosine, sine = np.cos(bend[:, i]), np.sin(bend[:, i])
            ahead, aside = cosine * ahead + sine * aside, cosine * aside - sine * ahead
            turning = turning + rate[:, i]
            aside = aside - half * turning
        return np.clip(seen, -1.0, 1.0, out=seen)


def swimmer_named(name: str) -> Swimmer | None:
    """The swimmer of a name such as swimmer-6; None for other names."""
    match = re.fullmatch(r"swimmer-(\d{1,3})", name)
    return None if match is None else Swimmer(links=int(match[1]))
