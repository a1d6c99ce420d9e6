"""The control loop: from a robot that lies on the ground to a walk and back, phase by phase, damping at every end.

One tick every 2 ms: wait, take the newest state, let the safety layer judge it, ask the phase for its target, send what
the safety layer makes of it. The policy acts every 30 ms; the motors' PD runs at the robot's own rate in between.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.calibration import TICKS, Calibration, calibrate
from ncap.deploy.contract import CONTROL_DT, TICK, check_contract, robot_of
from ncap.deploy.driving import ConstantDriver, Driver, Steering, check_drivable, drivable
from ncap.deploy.flight import FlightRecorder
from ncap.deploy.guard import Guard
from ncap.deploy.limits import Limits, limits_of
from ncap.deploy.link import Link
from ncap.deploy.lock import CommanderLock
from ncap.deploy.messages import Command, State, damping_command
from ncap.deploy.phases import Outcome, Schedule
from ncap.deploy.remote import stop_pressed
from ncap.deploy.safety import Safety
from ncap.deploy.wishes import STAND
from ncap.errors import UserError
from ncap.policies.controller import Command as BrainstemCommand
from ncap.righting import ATTEMPTS, CROUCH, GettingUp, Lying, lying_on
from ncap.sim.legs import foot_forces, legs_of
from ncap.sim.robot import Robot
from ncap.trained import TrainedPolicy

Array = NDArray[np.float64]

LOW: Final = CROUCH
"""(leg, 3) the crouch on the way up and on the way down, rad."""
LIES_ON: Final[dict[Lying, str]] = {
    "belly": "its belly",
    "back": "its back",
    "left": "its left side",
    "right": "its right side",
}
FEET_DOWN: Final = 0.25
"""Time in which legs go back to the standing pose in the phase halt, s: with a foot in the air for longer, a narrow
robot such as the Go1 tips over."""
SITTING: Final = ("stop", "halt", "sit")
"""Phases on the way down, which nothing but a fault or a second stop ends."""
UNFINISHED: Final = "its program ended in flight"
"""Fault of a flight of which nothing more is known than that it began."""


class Deployment:
    """One flight of one policy. Unarmed, it does everything but send commands."""

    def __init__(
        self,
        link: Link,
        policy: TrainedPolicy,
        *,
        armed: bool = False,
        right: bool = False,
        schedule: Schedule | None = None,
        limits: Limits | None = None,
        robot: Robot | None = None,
        seed: int = 0,
        command: BrainstemCommand | None = None,
        driver: Driver | None = None,
        recorder: FlightRecorder | None = None,
        guard: Guard | None = None,
        lock: CommanderLock | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """By default the robot is the one that the policy was trained for, with its limits and the policy's command.

        A policy that can be driven follows its driver instead, by default at a slow walk, unless a command is given.
        right: turn a robot that lies on its back or side onto its belly first; otherwise it is refused.
        """
        if driver is not None:
            check_drivable(policy)
        self.right = right
        self.link, self.policy, self.armed, self.seed, self.command = link, policy, armed, seed, command
        self.robot, self.controller = robot or robot_of(policy), policy.controller(1)
        self.schedule, self.limits = schedule or Schedule(), limits or limits_of(self.robot)
        self.outcome, self._legs = Outcome(), legs_of(self.robot)
        self._recorder, self._guard, self._lock, self._report = recorder, guard, lock, report
        self._stops, self._parent = 0, os.getppid()
        self._driver: Driver = driver or ConstantDriver()
        self._steering = Steering(self._legs, fixed=command) if drivable(policy) else None
        self._wish, self._memory = STAND, None
        self._phase = ""
        self._next_tick = self._next_report = 0.0
        self.calibration: Calibration | None = None
        self.safety: Safety

    def stop(self, *, once: bool = False) -> None:
        """Ask the robot to sit down and be damped; a second call damps it at once.

        once: not a second call if the driver was at our terminal, which says more than once that it is gone.
        """
        if not (once and self._stops and self._driver.at_terminal):
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
        received = self.link.newest()
        if received is not None and (refusal := self._driver.refusal(received)):
            raise UserError(refusal)
        lying = self._lying()
        if lying != "belly" and not self.right:
            raise UserError(
                f"the robot lies on {LIES_ON[lying]}: put it on its belly, or let it roll over with --right"
            )
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
        on_belly = self._roll_over()
        for phase, targets in rising if on_belly else ():
            if not self._follow(phase, targets):
                break
        sitting: Sequence[tuple[str, Iterator[Array]]] = (
            ("stop", self._act(schedule.stop, standing=True)),
            ("halt", self._ramp(standing, schedule.halt, within=FEET_DOWN)),
            ("sit", self._ramp(LOW, schedule.sit)),
        )
        skipped = {"policy": 0 if self._steering else 1, "hold": 1}.get(self._phase, 2)
        for phase, targets in sitting[skipped:] if on_belly else ():
            if self.safety.fault is None and self._stops < 2 and not self._dropped():
                self._follow(phase, targets)
        self.outcome.fault, self.outcome.warm = self.safety.fault, self.outcome.warm or self.safety.warm
        if self.outcome.fault is not None:
            self._say(f"FAULT {self.outcome.fault.kind}: {self.outcome.fault.detail}")

    def _lying(self) -> Lying:
        """The part on which the robot lies, by the newest state."""
        received = self.link.newest()
        if received is None or not abs(np.linalg.norm(received.state.quaternion) - 1.0) < 0.1:
            return "belly"  # what is no orientation is left to the safety layer
        return lying_on(received.state.up)

    def _roll_over(self) -> bool:
        """Turn a robot that lies on its back or side onto its belly. Returns whether the flight goes on.

        Only here no tilt is a fault. A dry run, in which the robot stays as it lies, ends behind this phase.
        """
        if self._lying() == "belly":
            return True
        with self.safety.any_tilt():
            goes_on = self._follow("right", self._roll())
        if goes_on and not self.armed:
            self._say(f"  the robot still lies on {LIES_ON[self._lying()]}: the dry run ends here")
            return False
        return goes_on

    def _roll(self) -> Iterator[Array]:
        """Targets (leg, 3) of the way to the belly, rad; a fault if the robot does not get there."""
        way, move = GettingUp(self.safety.reference, None, attempts=ATTEMPTS if self.armed else 1), ""
        before = self.link.now()
        while way.state == "moving" and self.safety.state is not None:
            now = self.link.now()
            target = way.step(self.safety.state.up, self.safety.state.joint_position, now - before)
            before = now
            if way.state == "moving":
                if way.move != move:
                    move = way.move
                    self._say(f"  attempt {way.attempt}: {move}")
                yield target
        if way.state == "given up" and self.armed:
            lies = f"it lies on {LIES_ON[self._lying()]} after {way.attempt} attempts"
            self.safety.fail("not righted", lies, self.link.now())

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
            sitting = phase in SITTING
            if not sitting:
                self._ask_the_driver()
            if ending := self._ending(sitting=sitting):
                self.outcome.stopped = ending
                return False
            if target is None or (self._driver.finished and not sitting):
                return target is None

    def _ending(self, *, sitting: bool) -> str:
        """Why the phase must end now; empty if it need not. A robot that sits down already goes on sitting down."""
        if self._dropped() or (self._orphaned() and not sitting):
            return "its parent process died"
        if self._stops > sitting:
            return "stopped by the operator"
        if not sitting and (self._driver.ending or stop_pressed(self.link.newest())):
            return self._driver.ending or "stopped by the remote"
        if self._guard is not None and not sitting and not self._guard.alive:
            return "its guard process died"
        return ""

    def _ask_the_driver(self) -> None:
        """Take over what is wanted now."""
        received = self.link.newest()
        if received is not None:
            self._wish = self._driver.wish(received, self.link.now())

    def _ramp(self, goal: Array, seconds: float, within: float = np.inf) -> Iterator[Array]:
        """Targets that lead smoothly to a goal: from the measured pose at first, later from the last target.

        They take the seconds of the phase to get there, or less, and then hold it.

        Starting from the measured pose again would let go of what the motors carry, and the robot would sag.
        """
        started, begin = self.link.now(), self.safety.reference
        while (elapsed := self.link.now() - started) < seconds:
            share = min(1.0, elapsed / min(seconds, within))
            yield begin + (goal - begin) * (3 - 2 * share) * share**2

    def _act(self, seconds: float, *, standing: bool = False) -> Iterator[Array]:
        """Targets (leg, 3) of the policy, rad; standing: of one that goes on, is told to stand, and then stands."""
        assert self.calibration is not None
        zero = self.calibration.torque_zero
        controller, command, target = self.controller, self.command, self.safety.reference
        memory = self._memory if standing else controller.reset([self.seed], command)
        steering, started = self._steering, self.link.now()
        due = started
        while (now := self.link.now()) < started + seconds:
            if standing and steering is not None and steering.stands:
                return
            state = self.safety.state
            if now >= due - TICK / 4 and state is not None:
                due = max(due, now - CONTROL_DT) + CONTROL_DT
                observation = self.robot.observation(
                    state.joint_position[None],
                    (state.torque - zero)[None],
                    state.joint_velocity[None],
                    self._foot_force(state)[None],
                    state.up[None],
                    state.angular_velocity[None],
                )
                wish = STAND if standing else self._wish
                if steering is not None:
                    command = steering.step(wish, state, self._foot_force(state))
                    if news := steering.news(self._driver.note, now):
                        self._say(news)
                memory, action = controller.act(memory, observation, command)
                self._memory, target = memory, self.robot.targets(action[0])
                if self._recorder is not None:
                    neurons = controller.signals(memory).get("neurons")
                    self._recorder.think(action[0], None if neurons is None else neurons[0], wish)
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
            if not self.armed:  # a dry run is for comparing these with the robot
                names = ("hip", "thigh", "calf")
                angles = " ".join(
                    f"{n} {np.round(q, 2).tolist()}" for n, q in zip(names, state.joint_position.T, strict=True)
                )
                self._say(f"  measured: {angles} rad; feet {np.round(self._foot_force(state)).tolist()} N")

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

    def _dropped(self) -> bool:
        """Whether to damp at once because the parent process died. A shell that dies with its terminal is no reason."""
        return self._orphaned() and not self._driver.at_terminal
