"""A twin in another process, over LCM, in simulated time: without a clock, a busy machine changes nothing.

Commands and states are the robot's own datagrams on its own channels. There are two more channels: on one the commander
says until when to simulate, on the other the twin answers with its simulated state.
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
from ncap.deploy.lcm_udp import LcmEnd
from ncap.deploy.link import LcmLink, lcm_url
from ncap.deploy.messages import COMMAND_CHANNEL, STATE_CHANNEL, TABLE, MalformedMessage
from ncap.deploy.twin import RATE, Truth, Twin
from ncap.sim.a1 import A1
from ncap.sim.robot import Robot

TIME_CHANNEL: Final = "ncap_twin_until"
TRUTH_CHANNEL: Final = "ncap_twin_truth"
AGAIN: Final = 0.2
"""Time without an answer after which the twin is asked again, s."""
GONE: Final = 30.0
"""Time without an answer after which the twin is given up, s; a busy machine takes some to start it."""
LONGEST_STEP: Final = 10.0
"""Longest time that a twin simulates at a time, s."""
_UNTIL: Final = struct.Struct("<d")
_TRUTH: Final = np.dtype(
    [
        ("time", "<f8"), ("position", "<f8", (3,)), ("up", "<f8", (3,)), ("joint_position", "<f8", TABLE),
        ("joint_velocity", "<f8", TABLE), ("torque", "<f8", TABLE), ("trunk_touches", "?"),
    ]
)  # fmt: skip


class SteppedLink(LcmLink):
    """The commander's end. Only `wait_until` moves its time, and the twin with it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._time = 0.0
        self._truth: tuple[float, Truth] | None = None
        self._gone = False
        self._end.also_hear(TRUTH_CHANNEL, self._hear_truth)

    def _hear_truth(self, data: bytes) -> None:
        self._truth = decode_truth(data)

    def now(self) -> float:
        """The twin's time, s."""
        return self._time

    def wait_until(self, moment: float) -> None:
        """Let the twin simulate until a moment in s, and receive what it sends on the way."""
        self._time = max(self._time, round(moment * RATE) / RATE)
        began = time.monotonic()
        again = began
        while self._truth is None or self._truth[0] < self._time:
            now = time.monotonic()
            self._gone = self._gone or now > began + GONE
            if self._gone:
                raise ConnectionError(f"the twin at {self.name} does not answer")
            if now >= again:
                self._end.publish(TIME_CHANNEL, _UNTIL.pack(self._time))
                again = now + AGAIN
            self._end.wait_for_one(again)

    def truth(self) -> Truth:
        """The simulated state of the twin now."""
        if self._truth is None:
            self.wait_until(self._time)
        assert self._truth is not None
        return self._truth[1]


def encode_truth(twin: Twin) -> bytes:
    """A twin's time and simulated state as a datagram."""
    return np.array((twin.time, *twin.truth()), _TRUTH).tobytes()


def decode_truth(data: bytes) -> tuple[float, Truth]:
    """(time in s, simulated state) from a datagram that `encode_truth` made."""
    if len(data) != _TRUTH.itemsize:
        raise MalformedMessage(f"{len(data)} bytes instead of {_TRUTH.itemsize}")
    message = np.frombuffer(data, _TRUTH)[0]
    truth = Truth(
        position=message["position"],
        up=message["up"],
        joint_position=message["joint_position"],
        joint_velocity=message["joint_velocity"],
        torque=message["torque"],
        trunk_touches=bool(message["trunk_touches"]),
    )
    return float(message["time"]), truth


def serve_stepped(gap: Gap, seed: int, robot: Robot, url: str) -> None:
    """Simulate a robot as far as the commander says, until the parent process ends."""
    twin, parent = Twin(gap, seed=seed, robot=robot), multiprocessing.parent_process()
    with LcmEnd(url, COMMAND_CHANNEL, twin.send) as end:

        def simulate(data: bytes) -> None:
            until = _UNTIL.unpack(data)[0] if len(data) == _UNTIL.size else np.nan
            if not 0 <= until <= twin.time + LONGEST_STEP:
                raise MalformedMessage("no time until which to simulate")
            for datagram in twin.advance(until):
                end.publish(STATE_CHANNEL, datagram)
            end.publish(TRUTH_CHANNEL, encode_truth(twin))

        end.also_hear(TIME_CHANNEL, simulate)
        while parent is None or parent.is_alive():
            end.wait_until(time.monotonic() + 1.0)


@contextmanager
def stepped_twin(gap: Gap, seed: int, robot: Robot = A1) -> Iterator[SteppedLink]:
    """The link to a new twin in a process of its own, over LCM multicast on this host."""
    url = lcm_url(f"lcm://239.255.76.67:{20_000 + os.getpid() % 20_000}")
    link = SteppedLink(url)
    spawned = multiprocessing.get_context("spawn")
    process = spawned.Process(target=serve_stepped, args=(gap, seed, robot, url), daemon=True)
    process.start()
    try:
        yield link
    finally:
        process.kill()
        process.join()
        link.close()
