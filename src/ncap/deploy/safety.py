"""Nothing reaches the motors but through here: a state machine between policy and link, without clock, link or policy.

Every tick the loop first shows it what the robot said (`watch`), then asks it for the command that a wanted target
becomes (`command`). It changes targets that ask too much (position, slew, torque), and damps when something is wrong. A
fault is latched: whatever is asked afterwards, the answer is damping. Only a person re-arms: see `ncap.deploy.lock`.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.following import Following
from ncap.deploy.limits import Limits as Limits
from ncap.deploy.limits import of_joints
from ncap.deploy.messages import DAMPING_KD, TABLE, Command, State, damping_command
from ncap.rotations import tilt_deg
from ncap.sim.robot import Robot

Array = NDArray[np.float64]


class Received(NamedTuple):
    """A state with its time of arrival."""

    state: State
    at: float
    """Time of arrival by the link's clock, s."""
    remote: bytes = b""
    """What the robot's remote said, as `ncap.deploy.remote` reads it."""


class Fault(NamedTuple):
    """Why the robot is damped."""

    kind: str
    """One of a few names, such as tilt or old state."""
    detail: str
    """What was measured, for a person."""
    at: float
    """Time by the link's clock, s."""


CLOCK_DRIFT: Final = 2e-4
"""Rate at which the robot's clock and ours may run apart without its states seeming to age, s/s."""
STALE_JUMP: Final = 1.0
"""Step back of the robot's clock, s: less is a message that was overtaken, more is a robot that was restarted."""


class Safety:
    """The safety layer of one robot. All times are seconds of one clock, whichever the caller has."""

    def __init__(self, robot: Robot, limits: Limits, *, tick_seconds: float) -> None:
        self.robot, self.limits, self.tick_seconds = robot, limits, tick_seconds
        self.fault: Fault | None = None
        self._largest_tilt = limits.tilt_deg
        self._low, self._high = of_joints(limits.position_low), of_joints(limits.position_high)
        self._middle, self._half = (self._low + self._high) / 2, (self._high - self._low) / 2
        self.state: State | None = None
        """The newest state that was accepted."""
        self._previous: Array | None = None
        self._slew, self._torque = of_joints(limits.slew), of_joints(limits.torque)
        self._velocity, self._measured_torque = of_joints(limits.velocity), of_joints(limits.measured_torque)
        self._following = Following(robot, self._torque)
        self._commanded_at: float | None = None
        self._missed: list[float] = []
        self._now = -np.inf
        self._beyond = {"position": 0, "velocity": 0, "torque": 0}
        self._heard_at = self._accepted_at = -np.inf
        self._robot_time = 0.0
        self._delay = np.inf

    @property
    def warm(self) -> bool:
        """Whether a motor is warm enough for a warning."""
        return self.state is not None and bool((self.state.temperature >= self.limits.warm).any())

    @property
    def reference(self) -> Array:
        """(leg, 3) where the next target starts from, rad: the last target, or the measured pose before the first."""
        if self._previous is not None:
            return self._previous
        return np.zeros(TABLE) if self.state is None else np.clip(self.state.joint_position, self._low, self._high)

    @contextmanager
    def any_tilt(self) -> Iterator[None]:
        """Within it, no tilt is a fault: for a robot that is turned onto its belly. All other limits stay in force."""
        self._largest_tilt = np.inf
        try:
            yield
        finally:
            self._largest_tilt = self.limits.tilt_deg

    def watch(self, received: Received | None, now: float) -> None:
        """Judge what the link last brought at time now in s: the same state again if nothing new came."""
        self._check_clock(now, now if received is None else received.at)
        if self.fault is None and received is not None and received.at > self._heard_at:
            self._heard_at = received.at
            if self._is_new(received):
                self._judge(received.state, now)
                self.state = received.state
                self._check_following(received.state, now)
        if self.fault is None and self.state is not None:
            age = now - (self._robot_time + self._delay)
            if age > self.limits.state_age:
                kind = "frozen tick" if self._heard_at > self._accepted_at else "old state"
                self.fail(kind, f"the newest state is {1e3 * age:.0f} ms old", now)

    def _check_clock(self, now: float, at: float) -> None:
        """Only a clock that goes on tells how old a state is and how far a target may move."""
        if self._now <= now < np.inf and at <= now:
            self._now = now
        else:
            self.fail("clock", f"our clock shows {now:.3f} s after {max(self._now, at):.3f} s", now)

    def _is_new(self, received: Received) -> bool:
        """Whether the robot's clock has moved on. Follows that clock, and how long its messages take at best."""
        state, at = received.state, received.at
        if self.state is None:
            elapsed = 0.0
        else:
            ticks = (state.tick - self.state.tick + 2**31) % 2**32 - 2**31  # the counter wraps around
            elapsed = ticks * self.tick_seconds
            if elapsed - (at - self._accepted_at) > self.limits.tick_jump or elapsed < -STALE_JUMP:
                self.fail("jumping tick", f"the robot's clock moved by {elapsed:.3f} s", at)
            if elapsed <= 0.0:
                return False
            self._delay += CLOCK_DRIFT * (at - self._accepted_at)
        self._robot_time += elapsed
        self._accepted_at = at
        self._delay = min(self._delay, at - self._robot_time)
        return True

    def _judge(self, state: State, now: float) -> None:
        limits = self.limits
        # one test for all sensors: squares cannot cancel, so NaN and infinity survive their sum
        if not math.isfinite(sum(float(np.vdot(part, part)) for part in state[1:])):
            self.fail("state is not a number", "some sensor reads NaN or infinity", now)
            return
        if abs(math.hypot(*state.quaternion) - 1.0) > 0.1:
            self.fail("no orientation", "the quaternion has not length 1", now)
            return
        tilt, hottest = tilt_deg(state.quaternion), float(state.temperature.max())
        if tilt > self._largest_tilt:
            self.fail("tilt", f"roll or pitch is {tilt:.0f}°", now)
        elif hottest >= limits.hot:
            self.fail("temperature", f"a motor has {hottest:.0f} °C", now)
        outside = np.abs(state.joint_position - self._middle) - self._half
        speed, torque = np.abs(state.joint_velocity), np.abs(state.torque)
        self._count("position", outside, limits.position_margin, "a joint reports {:.2f} rad beyond its limits", now)
        self._count("velocity", speed, self._velocity, "a joint turns at {:.1f} rad/s", now)
        self._count("torque", torque, self._measured_torque, "a motor reports {:.1f} N m", now)

    def _count(self, kind: str, values: Array, limit: Array | float, detail: str, now: float) -> None:
        """Count successive states in which some joint of (leg, 3) is beyond its limit; too many are a fault."""
        beyond = values > limit
        self._beyond[kind] = self._beyond[kind] + 1 if beyond.any() else 0
        if self._beyond[kind] >= self.limits.patience:
            self.fail(kind, detail.format(values[beyond].max()), now)

    def _check_following(self, state: State, now: float) -> None:
        if self.fault is None:
            share = self._following.share(state, now)
            if share < self.limits.following:
                self.fail("not following", f"the motors give {share:.0%} of the torque that they are asked for", now)

    def command(self, target: Array | None, now: float) -> Command:
        """The command for wanted joint positions (leg, 3) in rad at time now in s. None, or a fault, gives damping."""
        self._check_clock(now, now)
        elapsed = 0.0 if self._commanded_at is None else now - self._commanded_at
        self._commanded_at = now
        if target is None:
            self._previous = None
            self._following.restart()
            return damping_command()
        self._check_deadline(elapsed, now)
        if self.fault is None and self.state is None:
            self.fail("no state", "a command was asked for before the robot was heard", now)
        if self.fault is None and not np.isfinite(target).all():
            self.fail("target is not a number", "the policy asked for NaN or infinity", now)
        if self.fault is not None or self.state is None:
            return damping_command()
        previous, reach = self.reference, self._slew * min(elapsed, self.limits.deadline)
        slow = np.minimum(np.maximum(target, previous - reach), previous + reach)
        self._previous = np.minimum(np.maximum(slow, self._low), self._high)  # quicker than np.clip
        self._following.target = self._previous
        return self._gentle(self._previous, self.state)

    def _gentle(self, position: Array, state: State) -> Command:
        """Hold positions with gains that ask no motor for more than the limit in the measured state.

        A motor at its limit gives the same torque as with the full gains, so this costs the policy nothing. A joint
        that is far off or fast is still braked as in damping, and held only with what the brake leaves of the limit.
        """
        robot, limit = self.robot, self._torque
        error, velocity = position - state.joint_position, state.joint_velocity
        asked = robot.kp * error - robot.kd * velocity
        scale = np.minimum(1.0, limit / np.maximum(np.abs(asked), 1e-9))
        kp, kd = robot.kp * scale, robot.kd * scale
        brake = min(robot.kd, DAMPING_KD)
        weak = kd < brake
        if weak.any():
            left = (np.copysign(limit, asked) + brake * velocity) / np.where(np.abs(error) < 1e-6, np.inf, error)
            kp, kd = np.where(weak, np.clip(left, 0.0, robot.kp), kp), np.maximum(kd, brake)
        return Command(position, kp, kd)

    def _check_deadline(self, elapsed: float, now: float) -> None:
        if elapsed > self.limits.deadline:
            self._missed = [moment for moment in self._missed if now - moment < 1.0] + [now]
        if elapsed > self.limits.longest_gap or len(self._missed) >= self.limits.missed_deadlines:
            self.fail("missed deadline", f"{1e3 * elapsed:.0f} ms between two commands", now)

    def fail(self, kind: str, detail: str, now: float) -> None:
        """Latch a fault at time now in s, unless there is one already."""
        if self.fault is None:
            self.fault = Fault(kind, detail, now)
