"""A twin in another process, over LCM or DDS, in simulated time: without a clock, a busy machine changes nothing.

Commands and states are the robot's own messages on its own channels, over the link of a real flight. There are two more
channels: on one the commander says until when to simulate, on the other the twin answers with its simulated state. Both
say how many commands or states precede them, and nobody goes on before those have come.
"""

import multiprocessing
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from ncap.deploy.dds_end import DdsEnd
from ncap.deploy.dds_link import DdsLink, is_dds
from ncap.deploy.dds_messages import COMMAND_TOPIC, HEADER, STATE_TOPIC
from ncap.deploy.gap import Gap
from ncap.deploy.lcm_udp import LcmEnd
from ncap.deploy.link import LcmLink, lcm_url
from ncap.deploy.messages import Command, MalformedMessage
from ncap.deploy.safety import Received
from ncap.deploy.serving import WIRES, open_robot_end
from ncap.deploy.steps import TRUTH, TRUTH_CHANNEL, UNTIL, UNTIL_CHANNEL, read_message
from ncap.deploy.twin import RATE, Truth, Twin
from ncap.sim.a1 import A1
from ncap.sim.robot import Robot

AGAIN: Final = 0.2
"""Time without an answer after which the twin is asked again, s."""
GONE: Final = 30.0
"""Time without an answer after which the twin is given up, s; a busy machine takes some to start it."""
LONGEST_STEP: Final = 10.0
"""Longest time that a twin simulates at a time, s."""
MOST_MESSAGES: Final = 1e9
"""More commands or states than any flight has."""


class Steps(NamedTuple):
    """One side of the two channels about time, over either kind of network."""

    publish: Callable[[bytes], None]
    wait: Callable[[float], object]
    """Handles messages of all channels until some have come, or a moment of time.monotonic, s."""
    met: Callable[[], bool]
    """Whether the other process is found, so that nothing that is sent is lost. Nobody asks again after a yes."""


def steps_over(end: LcmEnd | DdsEnd, says: str, hears: str, hear: Callable[[bytes], None]) -> Steps:
    """The side of one end of a network that writes to a channel, and gives messages of the other to a function."""
    if isinstance(end, DdsEnd):
        end.announce(says)
        end.hear(hears, lambda sample: hear(sample.data.removeprefix(HEADER)))
        topics = (COMMAND_TOPIC, STATE_TOPIC, says, hears)
        return Steps(lambda data: end.publish(says, HEADER + data), end.wait_for_some, lambda: end.met(topics))
    end.also_hear(hears, hear)
    return Steps(lambda data: end.publish(says, data), end.wait_for_one, lambda: True)


class SteppedLink:
    """The commander's end: the link of a real flight. Only `wait_until` moves its time, and the twin with it."""

    def __init__(self, url: str, private: str = "") -> None:
        """private: a name that only the twin has, too; a DDS network needs one."""
        self._time, self._sent, self._met, self._gone = 0.0, 0, False, False
        self._answer: tuple[float, int, Truth] | None = None
        self._link: LcmLink | DdsLink
        if is_dds(url):
            self._link = DdsLink(url, private=private, clock=self.now)
        else:
            self._link = LcmLink(url, clock=self.now)
        self._steps = steps_over(self._link.end, UNTIL_CHANNEL, TRUTH_CHANNEL, self._hear_answer)
        self.name = self._link.name

    @property
    def malformed(self) -> int:
        """How many malformed datagrams were dropped."""
        return self._link.malformed

    @property
    def rivals(self) -> int:
        """How many commands of other senders were heard."""
        return self._link.rivals

    def _hear_answer(self, data: bytes) -> None:
        self._answer = decode_answer(data)

    def _answered(self) -> bool:
        """Whether the twin has come to this end's time, and all states that it sent on the way are here."""
        return self._answer is not None and self._answer[0] >= self._time and self._link.heard >= self._answer[1]

    def now(self) -> float:
        """The twin's time, s."""
        return self._time

    def wait_until(self, moment: float) -> None:
        """Let the twin simulate until a moment in s, and receive what it sends on the way."""
        self._time = max(self._time, round(moment * RATE) / RATE)
        began = time.monotonic()
        again = began
        while not self._answered():
            now = time.monotonic()
            self._gone = self._gone or now > began + GONE
            if self._gone:
                raise ConnectionError(f"the twin at {self.name} does not answer")
            if now >= again:
                again = now + AGAIN
                self._met = self._met or self._steps.met()
                if self._met:
                    self._steps.publish(np.array((self._time, self._sent), UNTIL).tobytes())
            self._steps.wait(again)

    def newest(self) -> Received | None:
        """The state that came last."""
        return self._link.newest()

    def send(self, command: Command) -> None:
        """Send one command."""
        self._link.send(command)
        self._sent += 1

    def truth(self) -> Truth:
        """The simulated state of the twin now."""
        if self._answer is None:
            self.wait_until(self._time)
        assert self._answer is not None
        return self._answer[2]

    def close(self) -> None:
        """Leave the network."""
        self._link.close()


def encode_answer(twin: Twin, states: int) -> bytes:
    """A twin's time and simulated state as a datagram, with the number of states that it sent before."""
    return np.array((twin.time, states, *twin.truth()), TRUTH).tobytes()


def decode_answer(data: bytes) -> tuple[float, int, Truth]:
    """(time in s, number of states, simulated state) from a datagram that `encode_answer` made."""
    message = read_message(data, TRUTH)
    if not 0 <= message["states"] <= MOST_MESSAGES:
        raise MalformedMessage("no number of states")
    truth = Truth(
        position=message["position"],
        up=message["up"],
        joint_position=message["joint_position"],
        joint_velocity=message["joint_velocity"],
        torque=message["torque"],
        trunk_touches=bool(message["trunk_touches"]),
    )
    return float(message["time"]), int(message["states"]), truth


class SteppedTwin:
    """The twin's end: simulates as far as the commander says, once all commands from before have come."""

    def __init__(self, twin: Twin, url: str, private: str = "") -> None:
        self.twin, self._url, self._private = twin, url, private
        self._heard, self._sent = 0, 0
        self._asked: tuple[float, int] | None = None

    def _hear_command(self, data: bytes) -> None:
        self._heard += 1
        self.twin.send(data)

    def _hear_question(self, data: bytes) -> None:
        message = read_message(data, UNTIL)
        if not (0 <= message["time"] <= self.twin.time + LONGEST_STEP and 0 <= message["commands"] <= MOST_MESSAGES):
            raise MalformedMessage("no time until which to simulate")
        self._asked = float(message["time"]), int(message["commands"])

    def serve(self, wanted: Callable[[], bool]) -> None:
        """Answer as long as somebody wants it, who is asked every second at least."""
        with open_robot_end(self._url, self._hear_command, private=self._private) as (end, publish):
            steps = steps_over(end, TRUTH_CHANNEL, UNTIL_CHANNEL, self._hear_question)
            met = False
            while wanted():
                steps.wait(time.monotonic() + 1.0)
                met = met or steps.met()
                if self._asked is None or self._heard < self._asked[1] or not met:
                    continue
                (until, _), self._asked = self._asked, None
                for datagram in self.twin.advance(until):
                    self._sent += publish(datagram)
                steps.publish(encode_answer(self.twin, self._sent))


def serve_stepped(gap: Gap, seed: int, robot: Robot, url: str, private: str) -> None:
    """Simulate a robot as far as the commander says, until the parent process ends."""
    twin, parent = Twin(gap, seed=seed, robot=robot, wire=WIRES[is_dds(url)]), multiprocessing.parent_process()
    SteppedTwin(twin, url, private).serve(lambda: parent is None or parent.is_alive())


def own_network(*, dds: bool) -> str:
    """The address of a network of this process on this host: LCM multicast, or DDS on the loopback interface."""
    if not dds:
        return lcm_url(f"lcm://239.255.76.67:{20_000 + os.getpid() % 20_000}")
    loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    return f"dds://{loopback}?domain={2 + os.getpid() % 99}"  # ports of higher domains are those of any other program


def _new_processes() -> Any:
    """What starts processes that share nothing with this one; where it can, from one that has loaded this module."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload([__name__])
    return server


@contextmanager
def stepped_twin(gap: Gap, seed: int, robot: Robot = A1, *, dds: bool = False) -> Iterator[SteppedLink]:
    """The link to a new twin in a process of its own: over LCM with an A1's messages, or over DDS with a Go2's."""
    url, private = own_network(dds=dds), secrets.token_hex(8)
    link = SteppedLink(url, private)
    arguments = (gap, seed, robot, url, private)
    process = _new_processes().Process(target=serve_stepped, args=arguments, daemon=True)
    try:
        process.start()
        yield link
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        link.close()
