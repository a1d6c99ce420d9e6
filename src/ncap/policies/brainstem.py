"""The brainstem: from a wanted speed and yaw rate to the commands of a circuit, for P individuals.

It is what stands between a person, or a task, and the circuit. A map from measurement says which brainstem command
belongs to a speed, in a walk or in a trot; what the trunk really does corrects it slowly. Everything changes at limited
rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.spec import CircuitSpec

Array = NDArray[np.float64]

STANDING: Final = 0.05
"""Speed (m/s) and yaw rate (rad/s) below which the animal stands."""


class BrainstemState(NamedTuple):
    """What a brainstem remembers, (P,) each."""

    speed: Array
    """Wanted speed as it is now said, m/s."""
    yaw_rate: Array
    """Wanted yaw rate as it is now said, rad/s."""
    felt_speed: Array
    """Measured speed, smoothed, m/s."""
    felt_yaw_rate: Array
    """Measured yaw rate, smoothed, rad/s."""
    more_speed: Array
    """Correction of the speed, m/s."""
    more_turn: Array
    """Correction of the turn command."""
    moving: Array
    """Time since it last stood, s."""


@dataclass(frozen=True, kw_only=True)
class Brainstem:
    """How wishes become commands."""

    walk: tuple[tuple[float, float], ...] = ((0.2, 0.0), (0.4, 0.17))
    """(speed m/s, brainstem command) of a walk: between them lines, and nothing beyond its ends."""
    trot: tuple[tuple[float, float], ...] = ((0.42, 0.35), (1.0, 0.7))
    """The same of a trot."""
    border: float = 0.42
    """Wanted speed from which on it trots, m/s. The wish alone decides on the gait: if what is felt did, the correction
    of the speed would wander over the commands between the two, where the gait has no name."""
    full_turn: float = 0.6
    """Yaw rate that the largest turn command is taken to give, rad/s."""
    speeding: float = 0.5
    """Largest change of the speed that is said, m/s²."""
    turning: float = 1.0
    """Largest change of the yaw rate that is said, rad/s²."""
    smoothing: float = 0.4
    """Time constant of what is felt, s: about a stride."""
    speed_gain: float = 0.3
    """Growth of the speed's correction with its error, 1/s."""
    yaw_gain: float = 0.8
    """Turn command for an error of the yaw rate, s/rad."""
    yaw_growth: float = 4.0
    """Growth of the turn's correction with that error, 1/rad: a heading that is off by 10° adds 0.7. Small turn
    commands do nothing, since a steering neuron needs one and a half-centre together."""
    most_correction: float = 0.2
    """Largest correction of the speed, m/s."""
    settling: float = 0.8
    """Time after standing in which it goes slowly straight ahead, and then as long in which it turns more and more, s.
    A rhythm that begins anew lifts several legs at once; a robot that turns or trots before its gait is there falls."""
    first_speed: float = 0.2
    """Largest speed that is said while it settles, m/s: a walk."""

    def start(self, individuals: int) -> BrainstemState:
        """Everybody stands."""
        return BrainstemState(*np.zeros((len(BrainstemState._fields), individuals)))

    def step(
        self, state: BrainstemState, wanted: Sequence[Array], felt: tuple[Array, Array], dt: float
    ) -> tuple[BrainstemState, dict[str, Array]]:
        """(next state, commands of the circuit) after dt s.

        wanted, felt: (speed m/s, yaw rate rad/s), (P,) each. What else is wanted is not heard.
        """
        share = dt / self.smoothing
        speed = state.speed + np.clip(wanted[0] - state.speed, -self.speeding * dt, self.speeding * dt)
        yaw_rate = state.yaw_rate + np.clip(wanted[1] - state.yaw_rate, -self.turning * dt, self.turning * dt)
        felt_speed = state.felt_speed + share * (felt[0] - state.felt_speed)
        felt_yaw_rate = state.felt_yaw_rate + share * (felt[1] - state.felt_yaw_rate)
        speed = np.where(state.moving < self.settling, np.minimum(speed, self.first_speed), speed)
        stands = (speed < STANDING) & (np.abs(yaw_rate) < STANDING)
        moving = np.where(stands, 0.0, state.moving + dt)
        turning = yaw_rate * np.clip(moving / self.settling - 1.0, 0.0, 1.0)
        error = turning - felt_yaw_rate
        more_speed = state.more_speed + dt * self.speed_gain * (speed - felt_speed)
        more_turn = state.more_turn + dt * self.yaw_growth * error
        more_speed = np.where(stands, 0.0, np.clip(more_speed, -self.most_correction, self.most_correction))
        more_turn = np.where(stands, 0.0, np.clip(more_turn, -1.0, 1.0))
        asked = speed + more_speed
        turn = np.where(stands, 0.0, turning / self.full_turn + self.yaw_gain * error + more_turn)
        said = {
            "c": np.where(speed < self.border, _along(self.walk, asked), _along(self.trot, asked)),
            "turn.L": np.clip(turn, 0.0, 1.0),
            "turn.R": np.clip(-turn, 0.0, 1.0),
            "stop": stands.astype(np.float64),
        }
        return BrainstemState(speed, yaw_rate, felt_speed, felt_yaw_rate, more_speed, more_turn, moving), said


def _along(paces: tuple[tuple[float, float], ...], speed: Array) -> Array:
    """(P,) the command of a gait for a speed (P,)."""
    speeds, commands = np.array(paces).T
    found: Array = np.interp(speed, speeds, commands)
    return found


def can_be_driven(circuit: CircuitSpec) -> bool:
    """Whether a table has the inputs of a brainstem: speed and gait, turn and stop."""
    return {"freq", "sync", "turn", "stop"} <= {row.name for row in circuit.inputs if row.kind == "command"}
