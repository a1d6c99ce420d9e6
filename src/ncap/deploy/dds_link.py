"""The link to a Go2 over DDS."""

import time
from collections.abc import Callable

from ncap.deploy.dds_end import DdsEnd, Sample
from ncap.deploy.dds_messages import COMMAND_TOPIC, STATE_TOPIC, decode_state, encode_command, remote_in
from ncap.deploy.messages import Command
from ncap.deploy.safety import Received


class DdsLink:
    """A robot on Unitree's DDS topics."""

    def __init__(
        self,
        url: str,
        *,
        simulator: bool = False,
        private: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """simulator: take states without tick and checksum, and the time at which they were written as the clock.

        private: as of DdsEnd. clock: says when a state was received, s.
        """
        self.end = DdsEnd(url, private)
        self.name, self.rivals, self._simulator, self._clock = self.end.address.url, 0, simulator, clock
        self.heard = 0
        """States that came, malformed ones included."""
        self._newest: Received | None = None
        self.end.announce(COMMAND_TOPIC)
        self.end.hear(STATE_TOPIC, self._hear_state)
        self.end.hear(COMMAND_TOPIC, self._hear_command)

    @property
    def malformed(self) -> int:
        """How many malformed samples were dropped."""
        return self.end.malformed

    def _hear_state(self, sample: Sample) -> None:
        self.heard += 1
        state = decode_state(sample.data, unsigned=self._simulator)
        if self._simulator:
            state = state._replace(tick=sample.written // 1_000_000 % 2**32)
        self._newest = Received(state, self.now(), remote_in(sample.data))

    def _hear_command(self, _: Sample) -> None:
        """Count a command that did not come from here; whoever writes something to this topic means to command."""
        self.rivals += 1

    def now(self) -> float:
        """The link's clock, s."""
        return self._clock()

    def wait_until(self, moment: float) -> None:
        """Handle samples until a moment of the monotonic clock, s."""
        self.end.wait_until(moment)

    def newest(self) -> Received | None:
        """The state that came last."""
        return self._newest

    def send(self, command: Command) -> None:
        """Send one command."""
        self.end.publish(COMMAND_TOPIC, encode_command(command))

    def close(self) -> None:
        """Leave the network."""
        self.end.close()


def is_dds(link: str) -> bool:
    """Whether a link's name is that of a DDS network."""
    return link.startswith("dds:")
