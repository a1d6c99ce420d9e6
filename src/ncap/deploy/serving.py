"""A twin on a network in real time: over LCM like an A1, or over DDS like a Go2 with its motion service."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from ncap.deploy import dds_messages, messages
from ncap.deploy.contract import TICK
from ncap.deploy.dds_end import DdsEnd
from ncap.deploy.dds_link import is_dds
from ncap.deploy.dds_messages import COMMAND_TOPIC, STATE_BYTES, STATE_TOPIC
from ncap.deploy.flight_plan import check_seconds
from ncap.deploy.lcm_udp import LcmEnd
from ncap.deploy.messages import COMMAND_CHANNEL, STATE_CHANNEL
from ncap.deploy.motion_service import TwinMotionService
from ncap.deploy.twin import Twin

LONGEST_STALL: Final = 0.25
"""Delay of a served twin behind the clock, s; after a longer one its time slips instead of catching up."""


WIRES: Final = {False: messages.WIRE, True: dds_messages.WIRE}
"""Kind of messages of a twin, by whether its network is DDS."""


class RobotEnd(NamedTuple):
    """A robot's end of a network."""

    end: LcmEnd | DdsEnd
    publish: Callable[[bytes], bool]
    """Sends a state. Returns whether the network takes it."""


@contextmanager
def open_robot_end(url: str, hear: Callable[[bytes], None], *, mode: str = "", private: str = "") -> Iterator[RobotEnd]:
    """The robot's end of an LCM or DDS network, which gives commands to a function.

    mode: the active one of the robot's own controllers, over DDS only; while one is active, commands are not heard.
    private: as of DdsEnd, over DDS only.
    """
    if is_dds(url):
        with DdsEnd(url, private) as dds:
            commands = TwinMotionService(dds, mode).guarded(hear)
            dds.hear(COMMAND_TOPIC, lambda sample: commands(sample.data))
            dds.announce(STATE_TOPIC)

            def publish(data: bytes) -> bool:
                whole = len(data) == STATE_BYTES  # Cyclone DDS itself refuses what is too short for its type
                if whole:
                    dds.publish(STATE_TOPIC, data)
                return whole

            yield RobotEnd(dds, publish)
    else:
        with LcmEnd(url, COMMAND_CHANNEL, hear) as lcm:

            def publish(data: bytes) -> bool:
                lcm.publish(STATE_CHANNEL, data)
                return True

            yield RobotEnd(lcm, publish)


def serve(twin: Twin, url: str, seconds: float | None = None, *, mode: str = "") -> None:
    """Answer on a network in real time like a robot, until the process ends or the twin's time is some seconds."""
    if seconds is not None:
        check_seconds(seconds, "a twin runs")
    with open_robot_end(url, twin.send, mode=mode) as (end, publish):
        started = time.monotonic() - twin.time
        while seconds is None or twin.time < seconds:
            end.wait_until(started + twin.time + TICK)
            behind = time.monotonic() - started
            if behind - twin.time > LONGEST_STALL:
                started += behind - twin.time - TICK
            for datagram in twin.advance(time.monotonic() - started):
                publish(datagram)
            twin.noise = end.malformed
