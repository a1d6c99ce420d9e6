"""Calibration of a robot that lies still with limp motors: offsets of its sensors, and the unit of its clock."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.limits import Limits, of_joints
from ncap.deploy.link import Link
from ncap.deploy.messages import State
from ncap.errors import UserError

Array = NDArray[np.float64]

FIRST_STATE: Final = 2.0
"""Time to wait for the first state, s."""
SLOWEST: Final = 100.0
"""Lowest rate of states that is accepted, 1/s."""
STILL_VELOCITY: Final = 0.5
"""Largest mean velocity of a joint of a robot that lies still, rad/s; sensors are noisy."""
STILL_POSITION: Final = 0.1
"""Largest standard deviation of a joint's position of a robot that lies still, rad."""
OFFSET: Final = 0.15
"""Angle by which a joint may read beyond its limits, rad."""
TICKS: Final = {1e-3: "ms", 1e-6: "µs"}
"""Units of a robot's clock: length of a tick in s, and its name."""
LISTEN_DT: Final = 0.002
"""Time between two looks for a new state, s."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Offsets to subtract from a robot's sensors, and the length of its tick."""

    torque_zero: Array
    """(leg, 3) torque that limp motors report, N m."""
    foot_tare: Array
    """(leg,) force that unloaded feet report, about N."""
    tick_seconds: float
    """Length of a tick of the robot's clock, s."""
    state_rate: float
    """Rate at which states come, 1/s."""


def calibrate(link: Link, limits: Limits, *, seconds: float) -> Calibration:
    """The calibration of a robot, from listening to it for that many seconds without sending anything.

    Raises a UserError for a robot that is silent, moves, reads beyond its limits, or is commanded by somebody else.
    """
    states, arrivals = _listen(link, seconds)
    span = arrivals[-1] - arrivals[0]
    rate = (len(states) - 1) / span if span > 0 else 0.0
    if rate < SLOWEST:
        raise UserError(f"the robot sends {rate:.0f} states a second; at least {SLOWEST:.0f} are needed")
    positions = np.array([state.joint_position for state in states])
    position, velocity = positions.mean(axis=0), np.mean([state.joint_velocity for state in states], axis=0)
    low, high = of_joints(limits.position_low) - OFFSET, of_joints(limits.position_high) + OFFSET
    if not ((position > low) & (position < high)).all():
        raise UserError(f"a joint reads beyond its limits, check its offset: {np.round(position, 2).tolist()} rad")
    if np.abs(velocity).max() > STILL_VELOCITY or positions.std(axis=0).max() > STILL_POSITION:
        raise UserError("the robot is moving: put it on its belly, feet without load, and start again")
    return Calibration(
        torque_zero=np.mean([state.torque for state in states], axis=0),
        foot_tare=np.median([state.foot_force for state in states], axis=0),
        tick_seconds=_tick_seconds((states[-1].tick - states[0].tick) % 2**32 / span),
        state_rate=rate,
    )


def _listen(link: Link, seconds: float) -> tuple[list[State], list[float]]:
    """(states with a new tick, their times of arrival in s)."""
    started = moment = link.now()
    states: list[State] = []
    arrivals: list[float] = []
    while moment < started + (seconds if states else FIRST_STATE):
        moment += LISTEN_DT
        link.wait_until(moment)
        received = link.newest()
        if received is not None and (not states or received.state.tick > states[-1].tick):
            if not states:
                started = received.at
            states.append(received.state)
            arrivals.append(received.at)
    if link.rivals:
        raise UserError(f"somebody else commands the robot on {link.name}: {link.rivals} commands were heard")
    if not states:
        dropped = f"; {link.malformed} datagrams were malformed" if link.malformed else ""
        raise UserError(f"no state came from the robot on {link.name} within {FIRST_STATE:g} s{dropped}")
    return states, arrivals


def _tick_seconds(rate: float) -> float:
    """Length of a tick in s, from ticks a second: the SDK documents µs, but robots count ms.

    The wide margins allow for the clock of a busy machine.
    """
    for unit in TICKS:
        if 0.5 < rate * unit < 2.0:
            return unit
    raise UserError(f"the robot's clock counts {rate:.0f} ticks a second, which is neither ms nor µs")
