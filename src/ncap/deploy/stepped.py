"""A twin in another process, over LCM, whose time is told to it: there is no clock, so a busy machine changes nothing.

Commands and states are the robot's own datagrams on its own channels. Two more go beside them: the commander says until
when the twin shall live, and the twin answers with what really is.
"""

import multiprocessing
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from ncap.deploy.gap import Gap
from ncap.deploy.link import LcmEnd, LcmLink, lcm_url
from ncap.deploy.messages import COMMAND_CHANNEL, STATE_CHANNEL
from ncap.deploy.twin import Truth, Twin

TIME_CHANNEL: Final = "ncap_twin_lives_until"
TRUTH_CHANNEL: Final = "ncap_twin_truth"
AGAIN: Final = 0.2
"""s without an answer after which the time is told again."""
GONE: Final = 30.0
"""s without an answer after which the twin is given up; a busy machine takes some to start it."""


class SteppedLink(LcmLink):
    """The commander's end. Its time stands still until `wait_until` moves it, and the twin with it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._time = 0.0
        self._truth: tuple[float, Truth] | None = None
        self._end.also_hear(TRUTH_CHANNEL, self._hear_truth)

    def _hear_truth(self, data: bytes) -> None:
        self._truth = decode_truth(data)

    def now(self) -> float:
        """The twin's time."""
        return self._time

    def wait_until(self, moment: float) -> None:
        """Let the twin live until then, and take in what it sends on the way."""
        self._time = max(self._time, round(moment * 1000) / 1000)
        began = time.monotonic()
        again = began
        while self._truth is None or self._truth[0] < self._time:
            now = time.monotonic()
            if now > began + GONE:
                raise ConnectionError(f"the twin at {self.name} does not answer")
            if now >= again:
                self._end.publish(TIME_CHANNEL, struct.pack("<d", self._time))
                again = now + AGAIN
            self._end.wait_for_one(again)

    def truth(self) -> Truth:
        """What really is, as of now."""
        if self._truth is None:
            self.wait_until(self._time)
        assert self._truth is not None
        return self._truth[1]


def encode_truth(twin: Twin) -> bytes:
    """A twin's time and truth as 44 numbers."""
    return np.concatenate([np.ravel(part) for part in (twin.time, *twin.truth())]).tobytes()


def decode_truth(data: bytes) -> tuple[float, Truth]:
    """The opposite."""
    numbers = np.frombuffer(data)
    position, velocity, torque = numbers[7:43].reshape(3, 4, 3)
    truth = Truth(
        position=numbers[1:4],
        up=numbers[4:7],
        joint_position=position,
        joint_velocity=velocity,
        torque=torque,
        trunk_touches=bool(numbers[43]),
    )
    return float(numbers[0]), truth


def serve_stepped(gap: Gap, seed: int, url: str) -> None:
    """Be a robot whose time is told to it, as long as the parent process lives."""
    twin, parent = Twin(gap, seed=seed), multiprocessing.parent_process()
    with LcmEnd(url, COMMAND_CHANNEL, twin.send) as end:

        def live(data: bytes) -> None:
            for datagram in twin.advance(struct.unpack("<d", data)[0]):
                end.publish(STATE_CHANNEL, datagram)
            end.publish(TRUTH_CHANNEL, encode_truth(twin))

        end.also_hear(TIME_CHANNEL, live)
        while parent is None or parent.is_alive():
            end.wait_until(time.monotonic() + 1.0)


@contextmanager
def stepped_twin(gap: Gap, seed: int) -> Iterator[SteppedLink]:
    """A twin in a process of its own, and the link to it over LCM multicast on this host."""
    url = lcm_url(f"lcm://239.255.76.67:{20_000 + os.getpid() % 20_000}")
    link = SteppedLink(url)
    process = multiprocessing.get_context("spawn").Process(target=serve_stepped, args=(gap, seed, url), daemon=True)
    process.start()
    try:
        yield link
    finally:
        process.kill()
        process.join()
        link.close()
