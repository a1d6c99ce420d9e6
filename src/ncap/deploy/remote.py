"""The robot's own remote: 40 bytes that travel in every state of the robot, to and from our own type, and as a driver.

The bytes are Unitree's xRockerBtnDataStruct: two bytes of a head, 16 keys as bits, and five numbers, of which four are
the sticks' in [-1, 1]. Nothing in them says how old they are.
"""

import struct
from typing import Final, NamedTuple

from ncap.deploy.safety import Received
from ncap.deploy.wishes import SPEEDS, STAND, YAW_RATES, Wish, clipped

REMOTE_BYTES: Final = 40
KEYS: Final = (
    "R1", "L1", "start", "select", "R2", "L2", "F1", "F2", "A", "B", "X", "Y", "up", "right", "down", "left",
)  # fmt: skip
"""Names of the keys, from the lowest bit up."""
STOP_KEYS: Final = frozenset({"B", "select"})
"""Keys of which each ends a flight. L2 + B, which damps the robot in Unitree's own modes, is one of them pressed."""
DEAD_ZONE: Final = 0.1
"""Part of a stick's way around its centre that means nothing."""
SILENCE: Final = 0.5
"""Time without a living remote after which a flight that it drives ends, s."""
STUCK: Final = 5.0
"""Time for which the same bytes may ask for a motion, s. A receiver may repeat the last message of a remote that is
gone, and a hand does not hold a stick so still unless it is at its end."""
_LAYOUT: Final = struct.Struct("<2sH5f16x")
_HEAD: Final = b"\x55\x51"
_SILENT: Final = bytes(REMOTE_BYTES)


class Remote(NamedTuple):
    """Sticks and keys of a remote that lives. Sticks are in [-1, 1], to the right and forward."""

    lx: float = 0.0
    """Left stick, to the right."""
    ly: float = 0.0
    """Left stick, forward."""
    rx: float = 0.0
    """Right stick, to the right."""
    ry: float = 0.0
    """Right stick, forward."""
    keys: frozenset[str] = frozenset()
    """Names of the keys that are pressed."""

    @property
    def stops(self) -> bool:
        """Whether a stop key is pressed."""
        return not STOP_KEYS.isdisjoint(self.keys)

    @property
    def wish(self) -> tuple[Wish, str]:
        """(what the sticks want, what of it is impossible). Left stick forward: speed; right one sideways: yaw rate."""
        return clipped(Wish(_beyond_centre(self.ly) * SPEEDS[1], _beyond_centre(-self.rx) * YAW_RATES[1]))


NAMED: Final[dict[str, Remote | None]] = {
    "centre": Remote(),
    "forward": Remote(ly=0.6),
    "left": Remote(ly=0.6, rx=-0.6),
    "right": Remote(ly=0.6, rx=0.6),
    "stop": Remote(keys=frozenset({"B"})),
    "silent": None,
}
"""What the remote of a twin can say, by name."""


def read_remote(data: bytes) -> Remote | None:
    """The remote in its 40 bytes; None for one that is silent: all zero, of another length, or with impossible sticks.

    A stick that is not a number or beyond [-1, 1] makes all of it unbelievable, its keys included.
    """
    if len(data) != REMOTE_BYTES or data == _SILENT:
        return None
    _, pressed, lx, rx, ry, _, ly = _LAYOUT.unpack(data)
    if not all(-1.0 <= stick <= 1.0 for stick in (lx, ly, rx, ry)):
        return None
    return Remote(lx, ly, rx, ry, frozenset(name for bit, name in enumerate(KEYS) if pressed >> bit & 1))


def encode_remote(remote: Remote | None) -> bytes:
    """The 40 bytes of a remote; of one that is silent (None) they are all zero."""
    if remote is None:
        return _SILENT
    pressed = sum(1 << KEYS.index(name) for name in remote.keys)
    return _LAYOUT.pack(_HEAD, pressed, remote.lx, remote.rx, remote.ry, 0.0, remote.ly)


def stop_pressed(received: Received | None) -> bool:
    """Whether a stop key is pressed on a remote that lives, whoever drives."""
    remote = None if received is None else read_remote(received.remote)
    return remote is not None and remote.stops


class RemoteDriver:
    """Drives by the sticks. A silent remote stands the robot at once, and ends the flight after SILENCE."""

    at_terminal = False
    finished = False

    def __init__(self) -> None:
        self.ending, self.note = "", ""
        self._lived: float | None = None
        self._bytes, self._since = b"", 0.0

    def refusal(self, received: Received) -> str:
        """Why a flight cannot begin; nothing if it can."""
        remote = read_remote(received.remote)
        if remote is None:
            return "no remote is heard in the robot's states: switch it on"
        if remote.stops:
            return f"a stop key of the remote is pressed ({' or '.join(sorted(STOP_KEYS))})"
        if remote.wish[0] != STAND:
            return "a stick of the remote is not in its centre: let it go"
        return ""

    def wish(self, received: Received, now: float) -> Wish:
        """What the sticks want at time now in s."""
        remote = read_remote(received.remote)
        if remote is None:
            self._lived = now if self._lived is None else self._lived
            self.note = "the remote is silent"
            if now - self._lived > SILENCE:
                self.ending = "the remote is silent"
            return STAND
        self._lived = now
        if received.remote != self._bytes:
            self._bytes, self._since = received.remote, now
        wanted, self.note = remote.wish
        if wanted != STAND and now - self._since > STUCK:
            self.note = f"the remote says the same for {STUCK:g} s: move a stick to go on"
            return STAND
        return wanted


def _beyond_centre(stick: float) -> float:
    """A stick in [-1, 1] without its dead zone, in [-1, 1]."""
    way = max(0.0, abs(stick) - DEAD_ZONE) / (1.0 - DEAD_ZONE)
    return way if stick >= 0 else -way
