"""The domain gap between simulation and robot, as data, and the network in between as a delay line."""

import heapq
from dataclasses import dataclass, fields

import numpy as np

from ncap.errors import UserError

POSITION_NOISE = 0.01
"""rad, standard deviation of a sample at noise 1."""
VELOCITY_NOISE = 0.5
"""rad/s."""
TORQUE_NOISE = 1.0
"""N m."""
FORCE_NOISE = 3.0
"""N."""
POSITION_BIAS = 0.03
"""rad, standard deviation of a joint's constant error at bias 1."""
TORQUE_BIAS = 1.0
"""N m."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How the robot at the other end differs from the one that was trained on. The defaults: not at all."""

    latency: float = 0.0
    """s that every message takes, in either direction."""
    jitter: float = 0.0
    """s: messages take longer by a uniform draw up to this, and may overtake each other."""
    loss: float = 0.0
    """Share of messages that never arrive."""
    duplication: float = 0.0
    """Share of messages that arrive twice."""
    noise: float = 0.0
    """Of the sensors; 1 is 0.01 rad, 0.5 rad/s, 1 N m and 3 N."""
    bias: float = 0.0
    """Of the sensors, constant for a robot; 1 is 0.03 rad and 1 N m."""
    foot_force_offset: float = 0.0
    """N that every foot reports without load."""
    mass: float = 1.0
    """Factor on the trunk's mass."""
    friction: float = 1.0
    """Of the feet on the ground."""
    gains: float = 1.0
    """Factor on the gains that the motors really have."""
    strength: float = 1.0
    """Factor on the torque that the motors really give."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (np.isfinite(value) and (value >= 0 or field.name == "foot_force_offset")):
                raise UserError(f"the gap's {field.name} must not be negative, not {value:g}")
        for name in ("loss", "duplication"):
            if getattr(self, name) > 1:
                raise UserError(f"the gap's {name} is a share in [0, 1], not {getattr(self, name):g}")


class Channel:
    """One direction of the network. Times are those of whoever asks."""

    def __init__(self, gap: Gap, random: np.random.Generator) -> None:
        self._gap, self._random = gap, random
        self._under_way: list[tuple[float, int, bytes]] = []
        self._sent = 0

    def send(self, data: bytes, now: float) -> None:
        """Put a message on its way."""
        lost, twice, *delays = self._random.random(4)
        if lost < self._gap.loss:
            return
        for delay in delays if twice < self._gap.duplication else delays[:1]:
            self._sent += 1
            arrival = now + self._gap.latency + delay * self._gap.jitter
            heapq.heappush(self._under_way, (arrival, self._sent, data))

    def due(self, now: float) -> list[bytes]:
        """Messages that have arrived by now, in the order of arrival."""
        arrived = []
        while self._under_way and self._under_way[0][0] <= now + 1e-9:
            arrived.append(heapq.heappop(self._under_way)[2])
        return arrived
