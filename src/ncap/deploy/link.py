"""Ways to reach a robot: LCM, the SDK's Python module, or a twin in this process. A link also brings the clock.

A link never queues: `newest` is the last state that came, and malformed datagrams are dropped and counted.
"""

import importlib
import re
import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from ncap.deploy.messages import (
    COMMAND_CHANNEL,
    STATE_CHANNEL,
    Command,
    MalformedMessage,
    command_for_sdk,
    decode_state,
    encode_command,
    state_from_sdk,
)
from ncap.deploy.safety import Received
from ncap.errors import UserError

if TYPE_CHECKING:
    from ncap.deploy.twin import Truth, Twin

DEFAULT_URL: Final = "udpm://239.255.76.67:7667?ttl=0"
"""LCM's own group; a time-to-live of 0 stays on this host."""
QUEUE: Final = 500
"""Messages that LCM keeps while we are busy. A full queue refuses the newest, and what is left in it is old."""
FLOOD: Final = 0.010
"""s after which a flood of messages no longer keeps a caller waiting."""
_ADDRESS: Final = re.compile(r"lcm://(?P<host>[\w.-]+)?(:(?P<port>\d+))?(\?ttl=(?P<ttl>\d+))?")


class Link(Protocol):
    """What the control loop needs of a robot."""

    name: str

    @property
    def malformed(self) -> int:
        """Datagrams that were dropped."""
        ...

    @property
    def rivals(self) -> int:
        """Commands heard from somebody else before we sent our first."""
        ...

    def now(self) -> float:
        """The clock by which states are received and commands are due, s."""
        ...

    def wait_until(self, moment: float) -> None:
        """Take in what comes until then."""
        ...

    def newest(self) -> Received | None:
        """The state that came last, None if none ever came."""
        ...

    def send(self, command: Command) -> None:
        """Send one command."""
        ...

    def close(self) -> None:
        """Give it back."""
        ...


class LcmEnd:
    """One end of an LCM network: hears one channel, and can wait for it by the clock."""

    def __init__(self, url: str, channel: str, hear: Callable[[bytes], None]) -> None:
        try:
            lcm: Any = importlib.import_module("lcm")
        except ImportError:
            raise UserError("LCM is not installed: pip install 'ncap[robot]'") from None
        try:
            self._lcm = lcm.LCM(url)
        except RuntimeError:
            raise UserError(f"cannot open LCM at {url}: is there a network with multicast?") from None
        self._subscriptions = [self._subscribe(channel, hear)]

    def _subscribe(self, channel: str, hear: Callable[[bytes], None]) -> Any:
        subscription = self._lcm.subscribe(channel, lambda _, data: hear(data))
        subscription.set_queue_capacity(QUEUE)
        return subscription

    def also_hear(self, channel: str, hear: Callable[[bytes], None]) -> None:
        """Hear another channel too."""
        self._subscriptions.append(self._subscribe(channel, hear))

    def wait_until(self, moment: float) -> None:
        """Handle what comes until a moment of time.monotonic, and what has come by then."""
        while True:
            left = moment - time.monotonic()
            ready = self.wait_for_one(moment)
            if left <= 0.0 and (not ready or left < -FLOOD):
                return

    def wait_for_one(self, moment: float) -> bool:
        """Handle the next message, if one comes before a moment of time.monotonic. Returns whether one came."""
        ready, _, _ = select.select([self._lcm.fileno()], [], [], max(moment - time.monotonic(), 0.0))
        if ready:
            self._lcm.handle()
        return bool(ready)

    def publish(self, channel: str, data: bytes) -> None:
        """Send a datagram."""
        self._lcm.publish(channel, data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hear nothing more."""
        for subscription in self._subscriptions:
            self._lcm.unsubscribe(subscription)
        self._subscriptions.clear()


class LcmLink:
    """The robot on the SDK's LCM channels, which carry the raw structs."""

    def __init__(self, url: str = DEFAULT_URL) -> None:
        self.name, self.malformed, self.rivals = url, 0, 0
        self._newest: Received | None = None
        self._sent = 0
        self._end = LcmEnd(url, STATE_CHANNEL, self._hear_state)
        self._end.also_hear(COMMAND_CHANNEL, self._hear_command)

    def _hear_state(self, data: bytes) -> None:
        try:
            self._newest = Received(decode_state(data), self.now())
        except MalformedMessage:
            self.malformed += 1

    def _hear_command(self, _: bytes) -> None:
        self.rivals += self._sent == 0

    def now(self) -> float:
        """The monotonic clock."""
        return time.monotonic()

    def wait_until(self, moment: float) -> None:
        """Handle what comes until then."""
        self._end.wait_until(moment)

    def newest(self) -> Received | None:
        """The state that came last."""
        return self._newest

    def send(self, command: Command) -> None:
        """Send one command."""
        self._sent += 1
        self._end.publish(COMMAND_CHANNEL, encode_command(command))

    def close(self) -> None:
        """Hear nothing more."""
        self._end.close()


class SdkLink:
    """The robot through `robot_interface`, the pybind module built from unitree_legged_sdk."""

    def __init__(self) -> None:
        try:
            module: Any = importlib.import_module("robot_interface")
        except ImportError:
            raise UserError(
                "the module robot_interface is not installed: build it from unitree_legged_sdk v3.3.1, or use lcm://"
            ) from None
        self.name, self.malformed, self.rivals = "sdk", 0, 0
        self._robot = module.RobotInterface()
        self._newest: Received | None = None

    def now(self) -> float:
        """The monotonic clock."""
        return time.monotonic()

    def wait_until(self, moment: float) -> None:
        """Sleep until then and look once: the module keeps the last state itself. A tick that stays is no new state."""
        time.sleep(max(0.0, moment - time.monotonic()))
        state = state_from_sdk(self._robot.receive_observation())
        if state.tick and (self._newest is None or state.tick != self._newest.state.tick):
            self._newest = Received(state, time.monotonic())

    def newest(self) -> Received | None:
        """The last state with a new tick."""
        return self._newest

    def send(self, command: Command) -> None:
        """Send one command."""
        self._robot.send_command(command_for_sdk(command))

    def close(self) -> None:
        """The module has nothing to close."""


class TwinLink:
    """A twin in this process, in the twin's own time: waiting is what moves it."""

    def __init__(self, twin: "Twin") -> None:
        self.name, self.malformed, self.rivals = "twin", 0, 0
        self.twin = twin
        self._newest: Received | None = None

    def now(self) -> float:
        """The twin's time."""
        return self.twin.time

    def wait_until(self, moment: float) -> None:
        """Let the twin live until then."""
        for datagram in self.twin.advance(moment):
            try:
                self._newest = Received(decode_state(datagram), self.twin.time)
            except MalformedMessage:
                self.malformed += 1

    def newest(self) -> Received | None:
        """The state that came last."""
        return self._newest

    def send(self, command: Command) -> None:
        """Send one command."""
        self.twin.send(encode_command(command))

    def truth(self) -> "Truth":
        """What really is."""
        return self.twin.truth()

    def close(self) -> None:
        """Nothing to close."""


def lcm_url(link: str) -> str:
    """LCM's address from ours: lcm://, lcm://GROUP:PORT or lcm://GROUP:PORT?ttl=1."""
    match = _ADDRESS.fullmatch(link)
    if match is None:
        raise UserError(f"unknown link {link!r}; valid: lcm://, lcm://GROUP:PORT?ttl=1, sdk, twin")
    return f"udpm://{match['host'] or '239.255.76.67'}:{match['port'] or 7667}?ttl={match['ttl'] or 0}"
