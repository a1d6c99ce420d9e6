"""Ways to reach a robot: LCM, the SDK's Python module, or a twin in this process. A link also brings the clock.

A link never queues: `newest` is the last state that came, and malformed datagrams are dropped and counted.
"""

import importlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from ncap.deploy.lcm_udp import Address, LcmEnd, find_address
from ncap.deploy.messages import (
    COMMAND_CHANNEL,
    STATE_CHANNEL,
    Command,
    MalformedMessage,
    command_for_sdk,
    decode_state,
    encode_command,
    remote_in,
    state_from_sdk,
)
from ncap.deploy.safety import Received
from ncap.errors import UserError

if TYPE_CHECKING:
    from ncap.deploy.twin import Truth, Twin

DEFAULT_URL: Final = Address().url
"""LCM's own group; a time-to-live of 0 stays on this host."""


class Link(Protocol):
    """A connection to a robot: states in, commands out, and a clock."""

    name: str

    @property
    def malformed(self) -> int:
        """How many malformed datagrams were dropped."""
        ...

    @property
    def rivals(self) -> int:
        """How many commands of other senders were heard. A link that cannot hear them says 0."""
        ...

    def now(self) -> float:
        """The time by which states are received and commands are due, s."""
        ...

    def wait_until(self, moment: float) -> None:
        """Receive states until a moment of the link's clock, s."""
        ...

    def newest(self) -> Received | None:
        """The state that came last; None before the first."""
        ...

    def send(self, command: Command) -> None:
        """Send one command."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class LcmLink:
    """A robot on the SDK's LCM channels, which carry the raw structs."""

    def __init__(self, url: str = DEFAULT_URL, *, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: says when a state was received, s."""
        self.name, self.rivals, self._clock = url, 0, clock
        self.heard = 0
        """States that came, malformed ones included."""
        self._newest: Received | None = None
        self.end = LcmEnd(url, STATE_CHANNEL, self._hear_state)
        self.end.also_hear(COMMAND_CHANNEL, self._hear_command)

    @property
    def malformed(self) -> int:
        """How many malformed datagrams were dropped."""
        return self.end.malformed

    def _hear_state(self, data: bytes) -> None:
        self.heard += 1
        self._newest = Received(decode_state(data), self.now(), remote_in(data))

    def _hear_command(self, _: bytes) -> None:
        """Count a command that did not come from here; whoever sends something on this channel means to command."""
        self.rivals += 1

    def now(self) -> float:
        """The link's clock, s."""
        return self._clock()

    def wait_until(self, moment: float) -> None:
        """Handle messages until a moment of the monotonic clock, s."""
        self.end.wait_until(moment)

    def newest(self) -> Received | None:
        """The state that came last."""
        return self._newest

    def send(self, command: Command) -> None:
        """Send one command."""
        self.end.publish(COMMAND_CHANNEL, encode_command(command))

    def close(self) -> None:
        """Leave the network."""
        self.end.close()


class SdkLink:
    """A robot behind `robot_interface`, the pybind module built from unitree_legged_sdk."""

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
        """The monotonic clock, s."""
        return time.monotonic()

    def wait_until(self, moment: float) -> None:
        """Sleep until a moment of the monotonic clock, s, and read the state that the module keeps.

        A state with the same tick as before is not a new one.
        """
        time.sleep(max(0.0, moment - time.monotonic()))
        observed = self._robot.receive_observation()
        state = state_from_sdk(observed)
        if state.tick and (self._newest is None or state.tick != self._newest.state.tick):
            self._newest = Received(state, time.monotonic(), bytes(getattr(observed, "wirelessRemote", b"")))

    def newest(self) -> Received | None:
        """The last state with a new tick."""
        return self._newest

    def send(self, command: Command) -> None:
        """Send one command."""
        self._robot.send_command(command_for_sdk(command))

    def close(self) -> None:
        """The module needs no closing."""


class TwinLink:
    """A twin in this process, in simulated time, which only `wait_until` moves. Its messages are the twin's kind."""

    def __init__(self, twin: "Twin", *, paced: bool = False) -> None:
        """`paced`: simulated time is no faster than the clock, for a person who drives."""
        self.name, self.malformed, self.rivals = "twin", 0, 0
        self.twin, self._paced = twin, paced
        self._ahead = time.monotonic() - twin.time
        self._newest: Received | None = None

    def now(self) -> float:
        """The twin's time, s."""
        return self.twin.time

    def wait_until(self, moment: float) -> None:
        """Simulate the twin until a moment of its time, s."""
        wire = self.twin.wire
        for datagram in self.twin.advance(moment):
            try:
                self._newest = Received(wire.decode_state(datagram), self.twin.time, wire.remote_in(datagram))
            except MalformedMessage:
                self.malformed += 1
        if self._paced:
            time.sleep(max(0.0, self._ahead + moment - time.monotonic()))

    def newest(self) -> Received | None:
        """The state that came last."""
        return self._newest

    def send(self, command: Command) -> None:
        """Send one command."""
        self.twin.send(self.twin.wire.encode_command(command))

    def truth(self) -> "Truth":
        """The simulated state of the twin, which sensors only approximate."""
        return self.twin.truth()

    def close(self) -> None:
        """A twin in this process needs no closing."""


def lcm_url(link: str) -> str:
    """LCM's own address for a link: lcm://, lcm://GROUP:PORT or lcm://GROUP:PORT?ttl=1."""
    return find_address(link).url
