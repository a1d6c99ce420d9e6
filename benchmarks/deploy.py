"""What a control step beside the robot costs, and whether memory grows: for an hour with `… benchmarks.deploy 3600`."""

import gc
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ncap.deploy.flight import FlightRecorder, facts_about
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import Deployment
from ncap.deploy.messages import decode_state
from ncap.deploy.phases import Schedule
from ncap.deploy.safety import Received
from ncap.deploy.twin import Twin
from ncap.sim.a1 import A1
from ncap.trained import load, shipped_policies

TARGET_MS = 0.5


class TimedLink(TwinLink):
    """Times everything but the twin: from the datagram to the sent command, (wall, CPU) in s."""

    def __init__(self, twin: Twin) -> None:
        super().__init__(twin)
        self.ticks: list[tuple[float, float]] = []
        self.memory: list[tuple[int, int]] = []
        self.flight: Deployment
        self.timed = True
        self._started = (0.0, 0.0)

    def wait_until(self, moment: float) -> None:
        """Stop the watch, let the twin live, start the watch, decode."""
        wall, cpu = self._started
        if self.timed:
            self.ticks.append((time.perf_counter() - wall, time.thread_time() - cpu))
        datagrams = self.twin.advance(moment)
        if round(1000 * self.now()) % 10_000 == 0 and self.flight.outcome.phases[-1][0] == "policy":
            gc.collect()
            self.memory.append((resident_bytes(), sys.getallocatedblocks()))
        self._started = time.perf_counter(), time.thread_time()
        for datagram in datagrams:
            self._newest = Received(decode_state(datagram), self.now())


def resident_bytes() -> int:
    """Memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def fly(policy: str, seconds: float, *, timed: bool) -> TimedLink:
    found, link = load(policy), TimedLink(Twin())
    link.timed = timed
    facts = facts_about(found, A1, link="twin", armed=True, seed=0)
    with tempfile.TemporaryDirectory() as folder, FlightRecorder(Path(folder) / "flight", facts) as recorder:
        link.flight = Deployment(link, found, armed=True, schedule=Schedule(policy=seconds), recorder=recorder)
        outcome = link.flight.run()
    if outcome.fault is not None:
        print(f"  {policy}: damped after {link.now():.0f} s by {outcome.fault.kind}: {outcome.fault.detail}")
    return link


def main(seconds: float = 60.0) -> None:
    print(f"one control step beside the robot: message in, safety, policy, message out (target: p99 {TARGET_MS} ms)")
    for policy in ("untrained", *(name for name in shipped_policies() if name.endswith("-walk"))):
        link = fly(policy, 20.0, timed=True)
        times = 1e3 * np.array(link.ticks[1:])
        wall, cpu = times.T
        acting = np.sort(cpu)[-int(20.0 / 0.030) :]  # the ticks with a policy in them are the dearest
        dearest = np.sort(wall)[-len(acting) :]
        print(
            f"  {policy:<18} CPU ms: p50 {np.median(acting):.3f}  p99 {np.percentile(acting, 99):.3f}"
            f"   wall: p50 {np.median(dearest):.3f}  p99 {np.percentile(dearest, 99):.3f}"
            f"   a tick without the policy: {np.median(cpu):.3f}"
        )
    link = fly("untrained", seconds, timed=False)
    (first, first_blocks), (last, last_blocks) = link.memory[0], link.memory[-1]
    print(
        f"memory over {link.now():.0f} s of flight, recorder on: {first / 2**20:.1f} → {last / 2**20:.1f} MB resident,"
    )
    print(f"  {first_blocks} → {last_blocks} blocks (target: no growth)")


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:2]))
