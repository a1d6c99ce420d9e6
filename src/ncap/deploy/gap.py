"""The domain gap between simulation and robot, as data, and the network in between as a delay line."""

import heapq
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from ncap.errors import UserError

if TYPE_CHECKING:
    from numpy.random import Generator  # the command line reads Gap, and answers --help without NumPy

POSITION_NOISE: Final = 0.01
"""Standard deviation of a joint's measured position at noise 1, rad."""
VELOCITY_NOISE: Final = 0.5
"""Standard deviation of a joint's measured velocity at noise 1, rad/s."""
TORQUE_NOISE: Final = 1.0
"""Standard deviation of a measured torque at noise 1, N m."""
FORCE_NOISE: Final = 3.0
"""Standard deviation of a measured foot force at noise 1, N."""
POSITION_BIAS: Final = 0.03
"""Standard deviation over joints of the constant error of a position at bias 1, rad."""
TORQUE_BIAS: Final = 1.0
"""Standard deviation over joints of the constant error of a torque at bias 1, N m."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Differences between the robot at the other end and the simulated one of training. The defaults: none."""

    latency: float = 0.0
    """Time that every message takes, in either direction, s."""
    jitter: float = 0.0
    """Longest additional time of a message, drawn uniformly, s; messages may overtake each other."""
    loss: float = 0.0
    """Share of messages that never arrive."""
    duplication: float = 0.0
    """Share of messages that arrive twice."""
    noise: float = 0.0
    """Noise of the sensors; 1 is 0.01 rad, 0.5 rad/s, 1 N m and 3 N."""
    bias: float = 0.0
    """Constant errors of the sensors, drawn once for a robot; 1 is 0.03 rad and 1 N m."""
    foot_force_offset: float = 0.0
    """Force that every foot reports without load, N."""
    mass: float = 1.0
    """Factor on the trunk's mass."""
    friction: float = 1.0
    """Sliding friction between feet and ground."""
    gains: float = 1.0
    """Factor on the gains that the motors are told."""
    strength: float = 1.0
    """Factor on the torque that the motors give."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, (low, high) = getattr(self, field.name), _RANGES[field.name]
            if not low <= value <= high:
                raise UserError(f"the gap's {field.name} is a number in [{low:g}, {high:g}], not {value:g}")


_RANGES: Final = {
    "latency": (0.0, 10.0), "jitter": (0.0, 10.0), "loss": (0.0, 1.0), "duplication": (0.0, 1.0),
    "noise": (0.0, 1000.0), "bias": (0.0, 1000.0), "foot_force_offset": (-10_000.0, 10_000.0),
    "mass": (0.01, 100.0), "friction": (0.01, 100.0), "gains": (0.01, 100.0), "strength": (0.01, 100.0),
}  # fmt: skip
"""Smallest and largest value of every difference: beyond them nothing is a robot any more, or no number."""


class Channel:
    """One direction of the network. Times are seconds of the caller's clock."""

    def __init__(self, gap: Gap, random: "Generator") -> None:
        self._gap, self._random = gap, random
        self._under_way: list[tuple[float, int, bytes]] = []
        self._sent = 0

    def send(self, data: bytes, now: float) -> None:
        """Put a message on its way at time now in s: it is lost, delayed or doubled as the gap says."""
        lost, twice, *delays = self._random.random(4)
        if lost < self._gap.loss:
            return
        for delay in delays if twice < self._gap.duplication else delays[:1]:
            self._sent += 1
            arrival = now + self._gap.latency + delay * self._gap.jitter
            heapq.heappush(self._under_way, (arrival, self._sent, data))

    def due(self, now: float) -> list[bytes]:
        """Messages that have arrived by time now in s, in the order of arrival; each is given once."""
        arrived = []
        while self._under_way and self._under_way[0][0] <= now + 1e-9:
            arrived.append(heapq.heappop(self._under_way)[2])
        return arrived
