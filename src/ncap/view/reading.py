"""What the instruments of the live page show now."""

from dataclasses import dataclass
from typing import Final

from ncap.analysis.gaits import Gait
from ncap.analysis.undulation import Undulation

GAIT_WINDOWS: Final = (2.0, 4.0)
"""Times over which a gait is looked for, s: the short one answers sooner, the long one sees slow gaits."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Values of the instruments. Means are over the shorter of GAIT_WINDOWS."""

    time: float
    """Time since the start of the episode, s."""
    gait: Gait | None
    """Gait of the feet; None of a body without any."""
    undulation: Undulation | None = None
    """The wave along a body without feet, if it moves."""
    circuit_gait: Gait | None
    """Gait of the circuit's extensors; None without a circuit that has one in every leg."""
    speed: float
    """Mean forward speed, m/s."""
    cost_of_transport: float | None
    """Motor power over weight times speed; None when the robot does not move forward."""
    reward: float
    """Mean per step; 1 is the best."""
    fallen: bool
    """Whether the robot has fallen, and neither stands again nor has started anew."""
    getting_up: bool
    """Whether a fallen robot is getting up."""
    falls: int
    """Falls since the session began."""
    yaw_rate: float
    """Mean turning, rad/s, positive to the left."""
