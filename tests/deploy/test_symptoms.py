"""What a mistake looks like: the table of docs/how-to/deploy.md, on the twin of a Go2 with ncap-go2-walk.

With `pytest -s` every flight prints its numbers.
"""

from functools import cache

import numpy as np
import pytest

from ncap.deploy import dds_messages
from ncap.deploy.gap import Gap
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import Deployment
from ncap.deploy.messages import Command
from ncap.deploy.phases import Schedule
from ncap.deploy.twin import Twin
from ncap.sim.go import GO2
from ncap.trained import load

SCHEDULE = Schedule(calibration=0.2, low=0.5, stand=0.5, hold=0.2, policy=1.8, halt=0.1, sit=0.1, damping=0.02)
MIRRORED, TURNED = [1, 0, 3, 2], [2, 3, 0, 1]
"""Rows of another order of legs: left and right, front and hind exchanged."""


class MistakenLink(TwinLink):
    """Changes states and commands on their way, and keeps how the trunk goes while the policy drives."""

    def __init__(self, twin, state, command):
        super().__init__(twin)
        self._state, self._command, self.ups, self.places = state, command, [], []

    def newest(self):
        received = super().newest()
        return None if received is None else received._replace(state=self._state(received.state))

    def send(self, command):
        super().send(command if command.is_damping else self._command(command))

    def wait_until(self, moment):
        super().wait_until(moment)
        if self.flight.outcome.phases[-1][0] == "policy":
            truth = self.truth()
            self.ups.append(truth.up)
            self.places.append(truth.position)


def reordered(order):
    def state(state):
        tables = {name: getattr(state, name)[order] for name in ("joint_position", "joint_velocity", "torque")}
        return state._replace(**tables)

    return state, lambda command: Command(*(table[order] for table in command))


def same(whatever):
    return whatever


def turned_imu(state):
    x, y, z = state.angular_velocity
    return state._replace(angular_velocity=np.array([y, -x, z]))


MISTAKES = {
    "none": (same, same),
    "commands left for right": (same, reordered(MIRRORED)[1]),
    "front for hind": reordered(TURNED),
    "knee the wrong way": (same, lambda command: command._replace(position=command.position * [1.0, 1.0, -1.0])),
    "kp half": (same, lambda command: command._replace(kp=0.5 * command.kp)),
    "kd a quarter": (same, lambda command: command._replace(kd=0.25 * command.kd)),
    "kd threefold": (same, lambda command: command._replace(kd=3.0 * command.kd)),
    "gyroscope in degrees": (
        lambda state: state._replace(angular_velocity=np.rad2deg(state.angular_velocity)),
        same,
    ),
    "torques the wrong way": (lambda state: state._replace(torque=-state.torque), same),
    "no contact": (lambda state: state._replace(foot_force=np.zeros(4)), same),
}


@cache
def flown(mistake, gap=None):
    """(fault or "", where it happened, distance forward in m, shake in rad/s) of a flight with a mistake."""
    link = MistakenLink(Twin(gap, robot=GO2, wire=dds_messages.WIRE), *MISTAKES[mistake])
    link.flight = Deployment(link, load("ncap-go2-walk"), armed=True, schedule=SCHEDULE, robot=GO2)
    outcome = link.flight.run()
    places, ups = np.array(link.places or np.zeros((2, 3))), np.array(link.ups or np.zeros((2, 3)))
    rates = np.diff(ups[:, :2], axis=0) / 0.002
    phase = [name for name, _ in outcome.phases if name != "damping"][-1]
    shake = np.sqrt((rates**2).sum(axis=1).mean())
    fault, distance = outcome.fault and outcome.fault.kind, places[-1, 0] - places[0, 0]
    print(
        f"{mistake}, {gap}: {fault} in {phase}, {0.002 * len(link.places):.2f} s, {distance:.2f} m, {shake:.2f} rad/s"
    )
    return fault, phase, distance, shake


@pytest.mark.parametrize(
    ("mistake", "fault", "phase"),
    [
        ("knee the wrong way", "not following", "low"),
        ("commands left for right", "not following", "policy"),
        ("front for hind", "tilt", "policy"),
    ],
)
def test_a_wrong_order_or_sign_ends_a_flight_before_or_within_the_first_steps(mistake, fault, phase):
    assert flown(mistake)[:2] == (fault, phase)


def test_gains_show_in_speed_and_shaking():
    usual, soft, loose, stiff = (flown(name) for name in ("none", "kp half", "kd a quarter", "kd threefold"))
    assert usual[:2] == (None, "sit")
    assert soft[2] < 0.5 * usual[2]  # the trunk hangs through
    assert loose[3] > 3 * usual[3]
    assert loose[2] > usual[2]
    assert stiff[2] < 0.7 * usual[2]
    assert stiff[3] < usual[3]


def test_a_gyroscope_in_degrees_shakes_the_trunk():
    assert flown("gyroscope in degrees")[3] > 1.5 * flown("none")[3]


@pytest.mark.parametrize(
    ("mistake", "gap"), [("no contact", None), ("torques the wrong way", None), ("none", Gap(latency=0.05))]
)
def test_missing_contact_torques_of_the_wrong_sign_and_a_delay_are_not_seen_on_a_plane(mistake, gap):
    usual, found = flown("none"), flown(mistake, gap)
    assert found[0] is None
    assert found[2] == pytest.approx(usual[2], rel=0.15)
