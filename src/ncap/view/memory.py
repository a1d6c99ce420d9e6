"""What the live page remembers of the last control steps, and what its instruments show of that."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.analysis.gaits import Gait, measure_gait
from ncap.analysis.undulation import Undulation, measure_undulation
from ncap.circuits.rhythm import EXTENSOR_STANCE
from ncap.evaluation import cost_of_transport, foot_gait, motor_power
from ncap.sim.simulation import Measurements
from ncap.view.falling import Falling
from ncap.view.reading import GAIT_WINDOWS, Reading

Array = NDArray[np.float64]

KEPT: Final = 20.0
"""Time that is remembered, s: as much as a replay from the page can show."""
SHOWN: Final = 6.0
"""Part of it that instruments look at, s."""


class Moment(NamedTuple):
    """Measurements of one control step that are remembered."""

    position: Array
    """(3,) of the trunk, m."""
    quaternion: Array
    """(4,) of the trunk."""
    joint_position: Array
    """(leg, joint) rad."""
    foot_force: Array
    """(foot,) N."""
    velocity: Array
    """(3,) of the trunk in its own frame, m/s."""
    action: Array
    """(leg, joint) in [-1, 1]; 0 while the robot gets up."""
    signals: Array
    """(S,) signals of the circuit, as Brain.names lists them."""
    power: float
    """Of all motors, W."""
    reward: float
    """Sum of the reward terms, without that for a fall."""
    yaw_rate: float
    """To the left, rad/s."""

    @property
    def speed(self) -> float:
        """Forward, m/s."""
        return float(self.velocity[0])


class Memory:
    """The last control steps of one robot, the newest at the end."""

    def __init__(self, control_dt: float, feet: int) -> None:
        self._dt, self._feet = control_dt, feet
        self.moments: deque[Moment] = deque(maxlen=round(KEPT / control_dt))

    def add(self, now: Measurements, robot: int, action: Array, signals: Array, reward: float) -> None:
        """Remember a control step of an individual, with its action (leg, joint), signals (S,) and reward."""
        self.moments.append(
            Moment(
                position=now.position[robot].copy(),
                quaternion=now.quaternion[robot].copy(),
                joint_position=now.joint_position[robot].copy(),
                foot_force=now.foot_force[robot].copy(),
                velocity=now.velocity[robot].copy(),
                action=np.clip(action, -1.0, 1.0),
                signals=signals,
                power=float(motor_power(now.torque[robot], now.joint_velocity[robot])),
                reward=reward,
                yaw_rate=float(now.angular_velocity[robot, 2]),
            )
        )

    def recent(self, seconds: float = SHOWN) -> list[Moment]:
        """The moments of the last seconds, as far as they are remembered."""
        return list(self.moments)[-round(seconds / self._dt) :]

    def foot_force(self) -> Array:
        """(T, leg) N, of the steps that instruments look at."""
        recent = self.recent()
        return np.array([moment.foot_force for moment in recent]).reshape(len(recent), self._feet)

    def signals(self) -> Array:
        """(T, S) signals of the circuit in the same steps."""
        return np.array([moment.signals for moment in self.recent()])

    def mean(self, name: str) -> float:
        """Mean of a number of the moments over the shorter of GAIT_WINDOWS; 0 without any."""
        values = [getattr(moment, name) for moment in self.recent(GAIT_WINDOWS[0])]
        return float(np.mean(values)) if values else 0.0

    def gait(self) -> Gait | None:
        """The gait of the feet; None of a body without any."""
        return None if not self._feet else self._measured(self.foot_force(), foot_gait)

    def undulation(self) -> Undulation | None:
        """The wave along a body without feet, if it moves."""
        recent = self.recent()
        if self._feet or len(recent) < 3:
            return None
        return measure_undulation(np.array([moment.joint_position[:, 0] for moment in recent]), self._dt)

    def circuit_gait(self, extensors: list[int] | None) -> Gait | None:
        """The gait of the extensors in these columns of the signals, one for each leg; None without them."""
        if extensors is None or not self.moments:
            return None
        return self._measured(self.signals()[:, extensors], partial(measure_gait, threshold=EXTENSOR_STANCE))

    def reading(
        self, extensors: list[int] | None, mass: float, falling: Falling, *, falls: int, time: float
    ) -> Reading:
        """Values of the instruments for a robot with a mass in kg, whose circuit's extensors have these columns."""
        speed = self.mean("speed")
        return Reading(
            time=time,
            gait=self.gait(),
            undulation=self.undulation(),
            circuit_gait=self.circuit_gait(extensors),
            speed=speed,
            cost_of_transport=cost_of_transport(self.mean("power"), mass, speed),
            reward=self.mean("reward"),
            fallen=falling.fallen,
            getting_up=falling.getting_up,
            falls=falls,
            yaw_rate=self.mean("yaw_rate"),
        )

    def _measured(self, legs: Array, measure: Callable[[Array, float], Gait]) -> Gait:
        for window in GAIT_WINDOWS:
            gait = measure(legs[-round(window / self._dt) :], self._dt)
            if gait.frequency_hz > 0:
                break
        return gait
