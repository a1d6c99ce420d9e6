"""One-way latency of a state between two processes on this host, by LCM and by DDS."""

import multiprocessing
import os
import struct
import time

import numpy as np

from ncap.deploy.dds_link import DdsLink, is_dds
from ncap.deploy.link import LcmLink
from ncap.deploy.messages import State
from ncap.deploy.serving import WIRES, open_robot_end

SECONDS = 10.0
WARM_UP = 2.0
RATE = 500.0


def send_states(url: str) -> None:
    """Send states 500 times a second for ever; each has the time of its sending in the bytes of the remote."""
    zero, table = np.zeros(3), np.zeros((4, 3))
    wire, start = WIRES[is_dds(url)], time.monotonic()
    with open_robot_end(url, lambda _: None) as (end, publish):
        for number in range(1, 2**31):
            end.wait_until(start + number / RATE)
            state = State(number, np.array([1.0, 0, 0, 0]), zero, zero, table, table, table, table, np.zeros(4))
            encoded = wire.encode_state(state, struct.pack("<d32x", time.monotonic()))
            publish(encoded)


def measure(url: str) -> None:
    """Print percentiles of the time from before a state is encoded to when it is decoded at the other end."""
    sender = multiprocessing.get_context("spawn").Process(target=send_states, args=(url,), daemon=True)
    sender.start()
    link, delays, last = DdsLink(url) if is_dds(url) else LcmLink(url), [], 0
    while link.newest() is None:
        link.wait_until(link.now() + 0.01)
    link.wait_until(link.now() + WARM_UP)
    end = link.now() + SECONDS
    while link.now() < end:
        link.wait_until(link.now() + 0.0005)
        received = link.newest()
        if received is not None and received.state.tick != last:
            last = received.state.tick
            delays.append(1e3 * (received.at - struct.unpack_from("<d", received.remote)[0]))
    sender.kill()
    sender.join()
    link.close()
    p50, p99 = np.percentile(delays, [50, 99])
    kind, seen = "DDS" if is_dds(url) else "LCM", len(delays) / SECONDS
    print(f"  {kind} ms: p50 {p50:.2f}  p99 {p99:.2f}   {seen:.0f} states a second seen")


def main() -> None:
    print("one way of a state between two processes on this host, encoding and decoding included, 500 a second")
    measure(f"udpm://239.255.76.67:{10_000 + os.getpid() % 10_000}?ttl=0")
    measure(f"dds://lo?domain={1 + os.getpid() % 100}")


if __name__ == "__main__":
    main()
