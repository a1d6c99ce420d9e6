"""The control loop: from a robot that lies on its belly to a walk and back, phase by phase, damping at every end.

One tick every 2 ms: wait, take the newest state, let the safety layer judge it, ask the phase for its target, send what
the safety layer makes of it. The policy acts every 30 ms; the motors' PD runs at the robot's own rate in between.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.calibration import TICKS, Calibration, calibrate
from ncap.deploy.flight import FlightRecorder
from ncap.deploy.link import Link
from ncap.deploy.messages import Command, damping_command
from ncap.deploy.pilot import CONTROL_DT, Pilot, check_contract
from ncap.deploy.safety import Fault, Limits, Safety
from ncap.sim.a1 import A1
from ncap.sim.robot import Robot

Array = NDArray[np.float64]

TICK: Final = 0.002
"""s between two commands."""
LOW: Final = np.array(((0.0, 1.2, -2.5),) * 4)
"""rad. Crouched, trunk 9 cm above the ground: on the way up and on the way down."""
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long phases take, s."""

    calibration: float = 0.5
    low: float = 2.0
    stand: float = 2.0
    hold: float = 1.0
    policy: float = 15.0
    halt: float = 1.0
    """Back to the standing pose: a robot that sits down in mid-stride falls on its nose."""
    sit: float = 2.0
    damping: float = 3.0


@dataclass(kw_only=True)
class Outcome:
    """What a flight came to."""

    phases: list[tuple[str, float]] = field(default_factory=list)
    """Phases in order, with when they began by the link's clock."""
    fault: Fault | None = None
    stopped: str = ""
    """Why it ended early, if a person or a dying parent wanted it."""
    sent: int = 0
    malformed: int = 0
    warm: bool = False
    """Whether a motor was warm."""


class Deployment:
    """One flight of one policy. Unarmed, it does everything but send."""

    def __init__(
        self,
        link: Link,
        pilot: Pilot,
        *,
        armed: bool = False,
        schedule: Schedule | None = None,
        limits: Limits | None = None,
        robot: Robot = A1,
        seed: int = 0,
        recorder: FlightRecorder | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.link, self.pilot, self.armed, self.robot, self.seed = link, pilot, armed, robot, seed
        self.schedule, self.limits = schedule or Schedule(), limits or Limits()
        self.outcome = Outcome()
        self._recorder, self._report = recorder, report
        self._stops, self._parent = 0, os.getppid()
        self._phase = ""
        self._next_tick = self._next_report = 0.0
        self.calibration: Calibration | None = None
        self.safety: Safety

    def stop(self) -> None:
        """Sit down, then damp. Asked twice: damp at once."""
        self._stops += 1

    def run(self) -> Outcome:
        """Fly. Whatever happens, the last thing that the robot hears is damping."""
        try:
            self._enter("contract")
            for what, found in check_contract(self.pilot, self.robot, self.limits).items():
                self._say(f"  {what}: {found}")
            self._enter("calibration")
            self._calibrate()
            self._fly()
        finally:
            self._damp()
        return self.outcome

    def _calibrate(self) -> None:
        self.calibration = found = calibrate(self.link, self.limits, seconds=self.schedule.calibration)
        self.safety = Safety(self.robot, self.limits, tick_seconds=found.tick_seconds)
        self._say(f"  tick: {TICKS[found.tick_seconds]}, {found.state_rate:.0f} states a second")
        self._say(f"  torque zero: up to {np.abs(found.torque_zero).max():.2f} N m")
        self._say(f"  foot tare: {np.round(found.foot_tare).tolist()}")

    def _fly(self) -> None:
        """Rise, walk, sit: as far as it goes."""
        schedule, standing = self.schedule, self.robot.mid
        self._next_tick = self._next_report = self.link.now()
        rising = (
            ("low", self._ramp(LOW, schedule.low)),
            ("stand", self._ramp(standing, schedule.stand)),
            ("hold", self._ramp(standing, schedule.hold)),
            ("policy", self._act(schedule.policy)),
        )
        for phase, targets in rising:
            if not self._follow(phase, targets):
                break
        sitting = (("halt", self._ramp(standing, schedule.halt)), ("sit", self._ramp(LOW, schedule.sit)))
        for phase, targets in sitting[self._phase not in ("hold", "policy") :]:
            if self.safety.fault is None and self._stops < 2 and not self._orphaned():
                self._follow(phase, targets)
        self.outcome.fault, self.outcome.warm = self.safety.fault, self.outcome.warm or self.safety.warm
        if self.outcome.fault is not None:
            self._say(f"FAULT {self.outcome.fault.kind}: {self.outcome.fault.detail}")

    def _follow(self, phase: str, targets: Iterator[Array]) -> bool:
        """Send a phase's targets, tick by tick. Returns whether the flight goes on."""
        self._enter(phase)
        while True:
            self._wait()
            self.safety.watch(self.link.newest(), self.link.now())
            target = None if self.safety.fault is not None else next(targets, None)
            hold = self.safety.reference if target is None else target  # the last tick of a phase sends, too
            self._send(self.safety.command(hold, self.link.now()))
            if self.safety.fault is not None:
                return False
            if self._orphaned() or self._stops > (phase in ("halt", "sit")):
                self.outcome.stopped = "its parent process died" if self._orphaned() else "stopped by the operator"
                return False
            if target is None:
                return True

    def _ramp(self, goal: Array, seconds: float) -> Iterator[Array]:
        """To a goal, gently: from the measured pose at first, later from where the robot was last told to be.

        Starting from the measured pose again would let go of what the motors carry, and the robot would sag.
        """
        started, begin = self.link.now(), self.safety.reference
        while (share := (self.link.now() - started) / seconds) < 1.0:
            yield begin + (goal - begin) * (3 - 2 * share) * share**2

    def _act(self, seconds: float) -> Iterator[Array]:
        """The policy's targets."""
        assert self.calibration is not None
        zero, tare = self.calibration.torque_zero, self.calibration.foot_tare
        controller, memory, target = self.pilot.controller, self.pilot.controller.reset([self.seed]), self.robot.mid
        started = due = self.link.now()
        while (now := self.link.now()) < started + seconds:
            state = self.safety.state
            if now >= due - TICK / 4 and state is not None:
                due = max(due, now - CONTROL_DT) + CONTROL_DT
                observation = self.robot.observation(
                    state.joint_position, state.torque - zero, state.joint_velocity, state.foot_force - tare
                )
                memory, action = controller.act(memory, observation[None])
                target = self.robot.targets(action[0])
                if self._recorder is not None:
                    neurons = controller.signals(memory).get("neurons")
                    self._recorder.think(action[0], None if neurons is None else neurons[0])
            yield target

    def _enter(self, phase: str) -> None:
        self._phase = phase
        self.outcome.phases.append((phase, self.link.now()))
        self._say(f"phase {phase}")

    def _wait(self) -> None:
        """Until the next tick; ticks that are already past are not made up for."""
        self._next_tick = max(self._next_tick, self.link.now() - TICK) + TICK
        self.link.wait_until(self._next_tick)

    def _send(self, command: Command) -> None:
        if self.armed:
            self.link.send(command)
            self.outcome.sent += 1
        self._record(command)
        now, state = self.link.now(), self.safety.state
        if now >= self._next_report and state is not None:
            self._next_report = now + 1.0
            self.outcome.warm = self.outcome.warm or self.safety.warm
            self._say(
                f"  {'sent' if self.armed else 'would send'}: thigh {np.round(command.position[:, 1], 2).tolist()}"
                f" calf {np.round(command.position[:, 2], 2).tolist()} rad; hottest motor"
                f" {state.temperature.max():.0f} °C{' (WARM)' if self.safety.warm else ''}"
            )

    def _record(self, command: Command) -> None:
        received = self.link.newest()
        if self._recorder is not None and received is not None and self.calibration is not None:
            foot_force = received.state.foot_force - self.calibration.foot_tare
            self._recorder.write(self.link.now(), self._phase, received.state, foot_force, command)

    def _damp(self) -> None:
        """Send damping for a while, first of all and even over a link that fails now and then."""
        command, failure = damping_command(), None
        end = self.link.now() + self.schedule.damping
        for tick in range(max(1, round(self.schedule.damping / TICK))):
            try:
                if self.armed:
                    self.link.send(command)
                    self.outcome.sent += 1
                if tick == 0:
                    self._enter("damping")
                self._record(command)
                self._wait()
            except OSError as error:
                failure = error
            if self.link.now() > end:
                break
        self.outcome.malformed = self.link.malformed
        if failure is not None:
            raise failure

    def _say(self, line: str) -> None:
        """Tell the operator, whose terminal may be gone: that is no reason to leave the robot alone."""
        with suppress(OSError):
            self._report(line)

    def _orphaned(self) -> bool:
        return os.getppid() != self._parent


@contextmanager
def stopped_by_signals(deployment: Deployment) -> Iterator[None]:
    """Ctrl-C, a closed terminal and a polite kill ask the deployment to stop instead of ending the process."""

    def stop(_: int, __: FrameType | None) -> None:
        deployment.stop()

    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
