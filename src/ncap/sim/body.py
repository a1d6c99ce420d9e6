"""What the engine needs to know of a body, whatever it looks like. A quadruped is one (robot.py), a swimmer another."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.plan import BodyPlan

if TYPE_CHECKING:
    from ncap.sim.simulation import Measurements

Array = NDArray[np.float64]


class Gains(NamedTuple):
    """What a motor makes of its control u at a joint with position q: the torque gain u - stiffness q - damping dq."""

    gain: float
    stiffness: float
    damping: float


class Body(Protocol):
    """A freely moving trunk with jointed parts, which repeat at the sites of a body plan. Frozen data."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    @property
    def plan(self) -> BodyPlan:
        """Its sites, and the joints and senses that every site has."""
        ...

    @property
    def trunk(self) -> str:
        """Name of the trunk's body in the model, which has the free joint."""
        ...

    @property
    def joints(self) -> tuple[tuple[str, ...], ...]:
        """Joint names in the model, a row per site."""
        ...

    @property
    def feet(self) -> tuple[str, ...]:
        """Geom names of what stands on the ground, one per site; none for a body without feet."""
        ...

    @property
    def ground_geoms(self) -> tuple[str, ...]:
        """Geoms that the default contact preset lets touch the ground, beside the feet. Empty: all of them."""
        ...

    @property
    def mid(self) -> Array:
        """(site, joint) the pose in which it begins, rad."""
        ...

    @property
    def nose(self) -> float:
        """Distance in front of the trunk's middle from which the way to a target is measured, m."""
        ...

    @property
    def torque_limits(self) -> Array:
        """(site, joint) largest torque of the motors, N m."""
        ...

    @property
    def model(self) -> Path:
        """MJCF file with the bodies, joints and geoms, and nothing else: no actuators, sensors, ground or options."""
        ...

    @property
    def model_xml(self) -> str:
        """The model's text, which counts if there is any."""
        ...

    def gains(self, kp: float | None, kd: float | None) -> Gains:
        """Gains of its motors; kp, kd: others in place of its own, where its motors hold positions."""
        ...

    def start(self, draws: np.random.Generator, noise: float) -> tuple[Array, float]:
        """(joint offsets (site, joint) from mid, heading), rad, at the start of an episode.

        noise: of a body that begins in a pose, how far from it, rad.
        """
        ...

    def at_rest(self, positions: Array) -> Array:
        """Controls (…, joint) of motors that do nothing at these joint positions."""
        ...

    def targets(self, action: Array) -> Array:
        """Controls of the motors from actions (…, site, joint), which are clipped to [-1, 1]."""
        ...

    def seen(self, now: "Measurements") -> Array:
        """Observations (P, site, sense) in [-1, 1], those of the posture at the end."""
        ...
