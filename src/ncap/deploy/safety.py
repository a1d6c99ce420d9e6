"""Nothing reaches the motors but through here: a state machine between policy and link, without clock, link or policy.

Every tick the loop first shows it what the robot said (`watch`), then asks it for the command that a wanted target
becomes (`command`). It changes targets that ask too much (position, slew, torque), and damps when something is wrong. A
fault is latched: whatever is asked afterwards, the answer is damping. Only a person re-arms: see `ncap.deploy.lock`.
"""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.messages import Command, State, damping_command
from ncap.sim.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is allowed. The defaults are the A1's."""

    position_low: tuple[float, float, float] = (-0.801, -1.049, -2.699)
    """rad: hip, thigh, calf. A milliradian inside the SDK's limits, because messages round."""
    position_high: tuple[float, float, float] = (0.801, 4.189, -0.917)
    slew: float = 21.0
    """rad/s of a target: the fastest that the motors turn."""
    torque: float = 33.5
    """N m that a command may ask for in the measured state."""
    measured_torque: float = 40.0
    """N m that a motor may report; more is a collision, or a broken sensor."""
    velocity: float = 25.0
    """rad/s that a joint may report."""
    patience: int = 3
    """Successive states beyond a limit of velocity or torque that make a fault: single ones are noise."""
    tilt_deg: float = 45.0
    """Roll or pitch."""
    state_age: float = 0.040
    """s. So that damping has reached the robot when the state is 50 ms old."""
    tick_jump: float = 0.1
    """s by which the robot's clock may run ahead of ours between two states."""
    warm: float = 50.0
    """°C of a motor that is worth a warning."""
    hot: float = 60.0
    """°C of a motor that ends the run."""
    deadline: float = 0.020
    """s between two commands: the SDK's server gives up after 22 ms."""
    missed_deadlines: int = 3
    """Missed deadlines within a second that make a fault."""
    longest_gap: float = 0.050
    """s between two commands that is a fault at once."""


class Received(NamedTuple):
    """A state, and when it came."""

    state: State
    at: float


class Fault(NamedTuple):
    """Why the robot is damped."""

    kind: str
    detail: str
    at: float


CLOCK_DRIFT: Final = 2e-4
"""By how much, in s/s, the robot's clock and ours may run apart without its states seeming to age."""
STALE_JUMP: Final = 1.0
"""s back in the robot's time: less is a message that was overtaken, more is a robot that was restarted."""


class Safety:
    """The safety layer of one robot. All times are seconds of one clock, whichever the caller has."""

    def __init__(self, robot: Robot, limits: Limits, *, tick_seconds: float) -> None:
        self.robot, self.limits, self.tick_seconds = robot, limits, tick_seconds
        self.fault: Fault | None = None
        self._low, self._high = np.array(limits.position_low), np.array(limits.position_high)
        self.state: State | None = None
        """The newest state that was accepted."""
        self._previous: Array | None = None
        self._commanded_at: float | None = None
        self._missed: list[float] = []
        self._too_fast = self._too_strong = 0
        self._heard_at = self._accepted_at = -np.inf
        self._robot_time = 0.0
        self._delay = np.inf

    @property
    def warm(self) -> bool:
        """Whether a motor is warm enough for a warning."""
        return self.state is not None and bool((self.state.temperature >= self.limits.warm).any())

    @property
    def reference(self) -> Array:
        """(leg, 3) rad, from where the next target may go: the last one, or the measured pose before the first."""
        if self._previous is not None:
            return self._previous
        return np.zeros((4, 3)) if self.state is None else np.clip(self.state.joint_position, self._low, self._high)

    def watch(self, received: Received | None, now: float) -> None:
        """Take what the link last brought: the same thing again if nothing came."""
        if self.fault is None and received is not None and received.at > self._heard_at:
            self._heard_at = received.at
            if self._is_new(received):
                self._judge(received.state, now)
                self.state = received.state
        if self.fault is None and self.state is not None:
            age = now - (self._robot_time + self._delay)
            if age > self.limits.state_age:
                kind = "frozen tick" if self._heard_at > self._accepted_at else "old state"
                self._fail(kind, f"the newest state is {1e3 * age:.0f} ms old", now)

    def _is_new(self, received: Received) -> bool:
        """Whether the robot's clock has moved on. Follows that clock, and how long its messages take at best."""
        state, at = received
        if self.state is None:
            elapsed = 0.0
        else:
            ticks = (state.tick - self.state.tick + 2**31) % 2**32 - 2**31  # the counter wraps around
            elapsed = ticks * self.tick_seconds
            if elapsed - (at - self._accepted_at) > self.limits.tick_jump or elapsed < -STALE_JUMP:
                self._fail("jumping tick", f"the robot's clock moved by {elapsed:.3f} s", at)
            if elapsed <= 0.0:
                return False
            self._delay += CLOCK_DRIFT * (at - self._accepted_at)
        self._robot_time += elapsed
        self._accepted_at = at
        self._delay = min(self._delay, at - self._robot_time)
        return True

    def _judge(self, state: State, now: float) -> None:
        limits = self.limits
        if not math.isfinite(sum(float(part.sum()) for part in state[1:])):
            self._fail("state is not a number", "some sensor reads NaN or infinity", now)
            return
        if abs(math.hypot(*state.quaternion) - 1.0) > 0.1:
            self._fail("no orientation", "the quaternion has not length 1", now)
            return
        tilt = tilt_deg(state.quaternion)
        speed, torque = float(np.abs(state.joint_velocity).max()), float(np.abs(state.torque).max())
        self._too_fast = self._too_fast + 1 if speed > limits.velocity else 0
        self._too_strong = self._too_strong + 1 if torque > limits.measured_torque else 0
        hottest = float(state.temperature.max())
        if tilt > limits.tilt_deg:
            self._fail("tilt", f"roll or pitch is {tilt:.0f}°", now)
        elif self._too_fast >= limits.patience:
            self._fail("velocity", f"a joint turns at {speed:.1f} rad/s", now)
        elif self._too_strong >= limits.patience:
            self._fail("torque", f"a motor reports {torque:.1f} N m", now)
        elif hottest >= limits.hot:
            self._fail("temperature", f"a motor has {hottest:.0f} °C", now)

    def command(self, target: Array | None, now: float) -> Command:
        """The command for wanted joint positions (leg, 3) in rad. None wants damping, and so does every fault."""
        elapsed = 0.0 if self._commanded_at is None else now - self._commanded_at
        self._commanded_at = now
        if target is None:
            self._previous = None
            return damping_command()
        self._check_deadline(elapsed, now)
        if self.fault is None and self.state is None:
            self._fail("no state", "a command was asked for before the robot was heard", now)
        if self.fault is None and not np.isfinite(target).all():
            self._fail("target is not a number", "the policy asked for NaN or infinity", now)
        if self.fault is not None or self.state is None:
            return damping_command()
        previous, reach = self.reference, self.limits.slew * min(elapsed, self.limits.deadline)
        self._previous = np.clip(np.clip(target, self._low, self._high), previous - reach, previous + reach)
        return self._gentle(self._previous, self.state)

    def _gentle(self, position: Array, state: State) -> Command:
        """Hold positions with gains that ask no motor for more than the limit in the measured state.

        A motor at its limit gives the same torque as with the full gains, so this costs the policy nothing.
        """
        asked = self.robot.kp * (position - state.joint_position) - self.robot.kd * state.joint_velocity
        scale = np.minimum(1.0, self.limits.torque / np.maximum(np.abs(asked), 1e-9))
        return Command(position, self.robot.kp * scale, self.robot.kd * scale)

    def _check_deadline(self, elapsed: float, now: float) -> None:
        if elapsed > self.limits.deadline:
            self._missed = [moment for moment in self._missed if now - moment < 1.0] + [now]
        if elapsed > self.limits.longest_gap or len(self._missed) >= self.limits.missed_deadlines:
            self._fail("missed deadline", f"{1e3 * elapsed:.0f} ms between two commands", now)

    def _fail(self, kind: str, detail: str, now: float) -> None:
        if self.fault is None:
            self.fault = Fault(kind, detail, now)


def tilt_deg(quaternion: Array) -> float:
    """Roll or pitch in degrees, whichever is larger, of an orientation (4,) w x y z, whatever its heading."""
    w, x, y, z = quaternion.tolist()
    up = w * w - x * x - y * y + z * z
    across = max(abs(2 * (x * z - w * y)), abs(2 * (y * z + w * x)))
    return math.degrees(math.atan2(across, up))
