"""The control loop: from a robot that lies on its belly to a walk and back, phase by phase, damping at every end.

One tick every 2 ms: wait, take the newest state, let the safety layer judge it, ask the phase for its target, send what
the safety layer makes of it. The policy acts every 30 ms; the motors' PD runs at the robot's own rate in between.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.calibration import TICKS, Calibration, calibrate
from ncap.deploy.contract import CONTROL_DT, TICK, check_contract, robot_of
from ncap.deploy.flight import FlightRecorder
from ncap.deploy.guard import Guard
from ncap.deploy.legs import foot_forces, legs_of
from ncap.deploy.limits import Limits, limits_of
from ncap.deploy.link import Link
from ncap.deploy.lock import CommanderLock
from ncap.deploy.messages import Command, State, damping_command
from ncap.deploy.safety import Fault, Safety
from ncap.plan import LEGS
from ncap.policies.controller import Command as BrainstemCommand
from ncap.rotations import rotation_of
from ncap.sim.robot import Robot
from ncap.trained import TrainedPolicy

Array = NDArray[np.float64]

LOW: Final = np.array(((0.0, 1.2, -2.5),) * len(LEGS))
"""(leg, 3) the crouch on the way up and on the way down, trunk 9 cm above the ground, rad."""
FEET_DOWN: Final = 0.25
"""Time in which legs go back to the standing pose in the phase halt, s: with a foot in the air for longer, a narrow
robot such as the Go1 tips over."""
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a polite kill, a closed terminal."""
UNFINISHED: Final = "its program ended in flight"
"""Fault of a flight of which nothing more is known than that it began."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Durations of a flight's phases, s."""

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
    """Results of a flight."""

    phases: list[tuple[str, float]] = field(default_factory=list)
    """Phases in order, each with its begin by the link's clock, s."""
    fault: Fault | None = None
    stopped: str = ""
    """Why it ended early, if a person or the end of another process caused it; otherwise empty."""
    sent: int = 0
    """Commands that were sent."""
    malformed: int = 0
    """Malformed states that were dropped."""
    warm: bool = False
    """Whether a motor was ever warm enough for a warning."""
    unrecorded: str = ""
    """Why the flight's log or recording is not complete; empty if it is."""


class Deployment:
    """One flight of one policy. Unarmed, it does everything but send commands."""

    def __init__(
        self,
        link: Link,
        policy: TrainedPolicy,
        *,
        armed: bool = False,
        schedule: Schedule | None = None,
        limits: Limits | None = None,
        robot: Robot | None = None,
        seed: int = 0,
        command: BrainstemCommand | None = None,
        recorder: FlightRecorder | None = None,
        guard: Guard | None = None,
        lock: CommanderLock | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """By default the robot is the one that the policy was trained for, with its limits and the policy's command."""
        self.link, self.policy, self.armed, self.seed, self.command = link, policy, armed, seed, command
        self.robot, self.controller = robot or robot_of(policy), policy.controller(1)
        self.schedule, self.limits = schedule or Schedule(), limits or limits_of(self.robot)
        self.outcome, self._legs = Outcome(), legs_of(self.robot)
        self._recorder, self._guard, self._lock, self._report = recorder, guard, lock, report
        self._stops, self._parent = 0, os.getppid()
        self._phase = ""
        self._next_tick = self._next_report = 0.0
        self.calibration: Calibration | None = None
        self.safety: Safety

    def stop(self) -> None:
        """Ask the robot to sit down and be damped; a second call damps it at once."""
        self._stops += 1

    def run(self) -> Outcome:
        """Fly, and return the results. Whatever happens after the first command, the last one is damping.

        A robot that was never commanded from here is left alone: somebody else may drive it.
        """
        self._enter("contract")
        for what, found in check_contract(self.policy, self.controller, self.robot, self.limits).items():
            self._say(f"  {what}: {found}")
        self._enter("calibration")
        self._calibrate()
        try:
            self._fly()
        finally:
            self._damp()
        return self.outcome

    def _calibrate(self) -> None:
        self.calibration = found = calibrate(self.link, self.limits, seconds=self.schedule.calibration)
        # a robot that gets no commands does not follow them
        limits = self.limits if self.armed else replace(self.limits, following=-np.inf)
        self.safety = Safety(self.robot, limits, tick_seconds=found.tick_seconds)
        self._say(f"  tick: {TICKS[found.tick_seconds]}, {found.state_rate:.0f} states a second")
        self._say(f"  torque zero: up to {np.abs(found.torque_zero).max():.2f} N m")
        if self.robot.foot_sensors is False:
            self._say("  contact: estimated from joint torques, because the feet have no sensors")
        else:
            self._say(f"  foot tare: {np.round(found.foot_tare).tolist()}")

    def _foot_force(self, state: State) -> Array:
        """(leg,) force on every foot, N: measured, or estimated where the feet have no sensors."""
        assert self.calibration is not None
        if self.robot.foot_sensors is False:
            return foot_forces(state.joint_position, state.torque - self.calibration.torque_zero, self._legs)
        return state.foot_force - self.calibration.foot_tare

    def _fly(self) -> None:
        """Rise, walk and sit down, up to a fault or a stop."""
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
        sitting = (
            ("halt", self._ramp(standing, schedule.halt, within=FEET_DOWN)),
            ("sit", self._ramp(LOW, schedule.sit)),
        )
        for phase, targets in sitting[self._phase not in ("hold", "policy") :]:
            if self.safety.fault is None and self._stops < 2 and not self._orphaned():
                self._follow(phase, targets)
        self.outcome.fault, self.outcome.warm = self.safety.fault, self.outcome.warm or self.safety.warm
        if self.outcome.fault is not None:
            self._say(f"FAULT {self.outcome.fault.kind}: {self.outcome.fault.detail}")

    def _follow(self, phase: str, targets: Iterator[Array]) -> bool:
        """Send a phase's targets (leg, 3) in rad, one per tick. Returns whether the flight goes on."""
        self._enter(phase)
        while True:
            self._wait()
            self.safety.watch(self.link.newest(), self.link.now())
            if self.link.rivals:
                self.safety.fail(
                    "rival", f"somebody else sends commands, too ({self.link.rivals} heard)", self.link.now()
                )
            target = None if self.safety.fault is not None else next(targets, None)
            hold = self.safety.reference if target is None else target  # the last tick of a phase sends, too
            self._send(self.safety.command(hold, self.link.now()))
            if self.safety.fault is not None:
                return False
            if ending := self._ending(sitting=phase in ("halt", "sit")):
                self.outcome.stopped = ending
                return False
            if target is None:
                return True

    def _ending(self, *, sitting: bool) -> str:
        """Why the phase must end now; empty if it need not. A robot that sits down already goes on sitting down."""
        if self._orphaned():
            return "its parent process died"
        if self._stops > sitting:
            return "stopped by the operator"
        if self._guard is not None and not sitting and not self._guard.alive:
            return "its guard process died"
        return ""

    def _ramp(self, goal: Array, seconds: float, within: float = np.inf) -> Iterator[Array]:
        """Targets that lead smoothly to a goal: from the measured pose at first, later from the last target.

        They take the seconds of the phase to get there, or less, and then hold it.

        Starting from the measured pose again would let go of what the motors carry, and the robot would sag.
        """
        started, begin = self.link.now(), self.safety.reference
        while (elapsed := self.link.now() - started) < seconds:
            share = min(1.0, elapsed / min(seconds, within))
            yield begin + (goal - begin) * (3 - 2 * share) * share**2

    def _act(self, seconds: float) -> Iterator[Array]:
        """Targets (leg, 3) of the policy, rad."""
        assert self.calibration is not None
        zero = self.calibration.torque_zero
        controller, command, target = self.controller, self.command, self.robot.mid
        memory = controller.reset([self.seed], command)
        started = due = self.link.now()
        while (now := self.link.now()) < started + seconds:
            state = self.safety.state
            if now >= due - TICK / 4 and state is not None:
                due = max(due, now - CONTROL_DT) + CONTROL_DT
                quaternion = state.quaternion / np.linalg.norm(state.quaternion)
                observation = self.robot.observation(
                    state.joint_position[None],
                    (state.torque - zero)[None],
                    state.joint_velocity[None],
                    self._foot_force(state)[None],
                    rotation_of(quaternion[None])[:, 2],
                    state.angular_velocity[None],
                )
                memory, action = controller.act(memory, observation, command)
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
        """Wait for the next tick; ticks that are already past are left out."""
        self._next_tick = max(self._next_tick, self.link.now() - TICK) + TICK
        self.link.wait_until(self._next_tick)

    def _command(self, command: Command) -> None:
        """Send a command if the flight is armed. Before the first one, lock and guard are told."""
        if not self.armed:
            return
        if self.outcome.sent == 0:
            if self._lock is not None:
                self._lock.latch(UNFINISHED)
            if self._guard is not None:
                self._guard.engage()
        self.outcome.sent += 1
        self.link.send(command)

    def _send(self, command: Command) -> None:
        self._command(command)
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
        received, recorder = self.link.newest(), self._recorder
        if recorder is None or received is None or self.calibration is None:
            return
        recorder.write(self.link.now(), self._phase, received.state, self._foot_force(received.state), command)
        if recorder.failure and not self.outcome.unrecorded:
            self.outcome.unrecorded = recorder.failure
            self._say(f"  NOT RECORDED from here on: {recorder.failure}")

    def _damp(self) -> None:
        """Send damping for a while in the robot's time, before anything else and even over a link that fails.

        A robot that an armed flight never commanded is sent nothing.
        """
        self.outcome.malformed = self.link.malformed
        if self.armed and self.outcome.sent == 0:
            return
        command, failure = damping_command(), None
        end = self.link.now() + self.schedule.damping
        for tick in range(max(1, round(self.schedule.damping / TICK))):
            try:
                self._command(command)
            except OSError as error:
                failure = error
            if tick == 0:
                self._enter("damping")
            self._record(command)
            try:
                self._wait()
            except OSError as error:
                failure = error
                time.sleep(TICK)
            if self.link.now() > end:
                break
        self.outcome.malformed = self.link.malformed
        if failure is not None:
            raise failure
        if self._guard is not None:
            self._guard.release()

    def _say(self, line: str) -> None:
        """Report a line to the operator. A terminal that is gone must not end the flight."""
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
