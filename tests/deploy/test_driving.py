"""Driven flights on a twin: by a constant wish, by keys and by the robot's remote, and how they end."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest

from ncap.deploy.contract import robot_of
from ncap.deploy.driving import ConstantDriver
from ncap.deploy.flight import FlightRecorder, facts_about, read_log
from ncap.deploy.keyboard import KeyboardDriver, Terminal
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.remote import NAMED, Remote, RemoteDriver
from ncap.deploy.serving import WIRES
from ncap.deploy.twin import Twin
from ncap.deploy.wishes import Wish
from ncap.errors import UserError
from ncap.sim.a1 import A1
from ncap.sim.go import GO2
from ncap.trained import find_policy, load

SHORT = Schedule(calibration=0.2, low=0.5, stand=0.6, hold=0.1, policy=3.0, halt=0.3, sit=0.5, damping=0.1)
POLICY_AT = 1.5
"""s after the start at which the policy surely drives."""
DOWN = ["policy", "stop", "halt", "sit", "damping"]


class WatchedLink(TwinLink):
    """Keeps where the twin is at every tick, and can call something at a moment."""

    def __init__(self, twin, calls=()):
        super().__init__(twin)
        self.calls, self.times, self.truths, self.yaws = list(calls), [], [], []
        self.said = []

    def wait_until(self, moment):
        super().wait_until(moment)
        self.times.append(self.now())
        self.truths.append(self.truth())
        self.yaws.append(yaw_of(self.twin))
        while self.calls and self.now() >= self.calls[0][0]:
            self.calls.pop(0)[1]()

    def at(self, moment):
        return self.truths[np.searchsorted(self.times, moment)]

    def velocity(self, begin, end):
        """Mean forward speed, m/s: the way from one moment to the other."""
        return np.linalg.norm(self.at(end).position[:2] - self.at(begin).position[:2]) / (end - begin)

    def turned(self, begin, end):
        """Angle between two moments, rad, positive to the left; less than half a turn."""
        first, last = (self.yaws[np.searchsorted(self.times, moment)] for moment in (begin, end))
        return (last - first + np.pi) % (2 * np.pi) - np.pi

    def fell(self, since):
        """Whether the trunk was ever turned over, or touched the ground before the robot sat down."""
        walking = [truth for at, truth in zip(self.times, self.truths, strict=True) if POLICY_AT < at < since]
        return any(truth.up[2] < 0.7 for truth in self.truths) or any(truth.trunk_touches for truth in walking)


def fly(driver, *, seed=0, remote=(), calls=(), schedule=SHORT, recorder=None):
    """(link, phases with their begin, outcome) of an armed flight of ncap-drive."""
    policy = load("ncap-drive")
    link = WatchedLink(Twin(seed=seed, robot=robot_of(policy), remote=remote), calls)
    settings = {"schedule": schedule, "seed": seed, "driver": driver, "recorder": recorder}
    outcome = Deployment(link, policy, armed=True, report=link.said.append, **settings).run()
    return link, dict(outcome.phases), outcome


def yaw_of(twin):
    """Heading of a twin, rad, positive to the left."""
    w, x, y, z = twin._data.qpos[3:7]
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_constant_wish_turns_left_and_halting_it_is_no_fall(seed, tmp_path):
    policy = load("ncap-drive")
    facts = facts_about(policy, robot_of(policy), link="twin", armed=True, seed=seed)
    with FlightRecorder(tmp_path / "flight", facts) as recorder:
        longer = replace(SHORT, policy=4.5)
        link, phases, outcome = fly(ConstantDriver(Wish(0.5, 0.3)), seed=seed, recorder=recorder, schedule=longer)
    assert (outcome.fault, outcome.stopped) == (None, "")
    assert list(phases)[-5:] == DOWN
    assert not link.fell(phases["sit"])
    begin, end = phases["policy"], phases["stop"]
    # it settles for 0.8 s, and is told 0.5 m/s and the whole turn after 1.7 s; in the last 2 s it should turn by 0.6
    assert link.velocity(begin + 2.5, end) == pytest.approx(0.5, abs=0.1)
    assert link.turned(begin + 2.5, end) == pytest.approx(0.6, abs=0.3)
    # what the status line says is what the robot does; legs slip, and the gyroscope sways with every stride
    status = [line for line in link.said if "wanted 0.50 m/s, +0.30 rad/s; measured" in line][-1]
    speed, yaw_rate = (float(number) for number in re.findall(r"[-+.\d]+(?= m/s| rad/s)", status)[2:])
    assert speed == pytest.approx(0.5, abs=0.12)
    assert yaw_rate == pytest.approx(0.3, abs=0.2)
    # it stands when it is halted, and was walking when it was told so
    assert link.velocity(phases["halt"] - 0.1, phases["halt"]) < 0.1
    assert np.abs(link.at(phases["halt"]).joint_velocity).max() < 0.3
    assert np.abs(link.at(end).joint_velocity).max() > 1.0
    # the log says what was wanted
    _, log = read_log(tmp_path / "flight")
    wanted = log["wanted"][log["phase"] == 5]
    np.testing.assert_allclose(wanted[-1], (0.5, 0.3), atol=1e-6)
    np.testing.assert_array_equal(log["wanted"][-1], 0.0)


def test_the_remote_walks_and_turns_the_robot_and_its_stop_key_ends_the_flight():
    script = [
        (0.0, Remote()),
        (POLICY_AT, Remote(ly=0.6)),
        (POLICY_AT + 2.5, Remote(ly=0.6, rx=0.8)),
        (POLICY_AT + 5.0, Remote(ly=0.6, keys=frozenset({"B"}))),
    ]
    link, phases, outcome = fly(RemoteDriver(), remote=script, schedule=replace(SHORT, policy=60.0))
    assert outcome.stopped == "stopped by the remote"
    assert 0 <= phases["stop"] - (POLICY_AT + 5.0) < 0.01
    assert list(phases)[-5:] == DOWN
    assert outcome.fault is None
    assert not link.fell(phases["sit"])
    # (0.6 - 0.1) / 0.9 of 1 m/s, reached after 1.1 s
    assert link.velocity(POLICY_AT + 1.5, POLICY_AT + 2.5) == pytest.approx(0.56, abs=0.12)
    assert abs(link.turned(POLICY_AT, POLICY_AT + 2.5)) < 0.25
    assert link.turned(POLICY_AT + 2.5, POLICY_AT + 5.0) < -0.2


def test_a_remote_that_falls_silent_in_flight_stands_the_robot_sits_it_down_and_damps_it():
    silent_at = POLICY_AT + 1.5
    script = [(0.0, Remote()), (POLICY_AT, NAMED["forward"]), (silent_at, None)]
    link, phases, outcome = fly(RemoteDriver(), remote=script, schedule=replace(SHORT, policy=60.0))
    assert outcome.stopped == "the remote is silent"
    assert phases["stop"] - silent_at == pytest.approx(0.5, abs=0.01)
    assert list(phases)[-5:] == DOWN
    assert outcome.fault is None
    assert not link.fell(phases["sit"])
    assert link.twin.command.is_damping


def test_keys_drive_the_robot_space_stands_and_the_loss_of_the_terminal_sits_it_down():
    hand, end = os.openpty()
    calls = [
        (POLICY_AT, lambda: os.write(hand, b"iiiii")),
        (POLICY_AT + 2.0, lambda: os.write(hand, b" ")),
        (POLICY_AT + 4.4, lambda: os.write(hand, b"iii")),
        (POLICY_AT + 5.2, lambda: os.close(hand)),
    ]
    with Terminal(end) as terminal:
        link, phases, outcome = fly(KeyboardDriver(terminal), calls=calls, schedule=replace(SHORT, policy=60.0))
    os.close(end)
    assert link.velocity(POLICY_AT + 1.0, POLICY_AT + 2.0) > 0.35
    assert link.velocity(POLICY_AT + 4.0, POLICY_AT + 4.4) < 0.05
    assert outcome.stopped == "its terminal is gone"
    assert 0 <= phases["stop"] - (POLICY_AT + 5.2) < 0.01
    assert list(phases)[-5:] == DOWN
    assert outcome.fault is None
    assert not link.fell(phases["sit"])


def test_a_shell_that_dies_with_its_terminal_sits_the_robot_down_and_two_hang_ups_are_one(monkeypatch):
    hand, end = os.openpty()
    calls = [
        (POLICY_AT, lambda: monkeypatch.setattr(os, "getppid", lambda: 1)),
        (POLICY_AT + 0.1, lambda: deployment.stop(once=True)),
        (POLICY_AT + 0.2, lambda: deployment.stop(once=True)),
    ]
    policy = load("ncap-drive")
    with Terminal(end) as terminal:
        link = WatchedLink(Twin(robot=robot_of(policy)), calls)
        deployment = Deployment(link, policy, armed=True, schedule=SHORT, driver=KeyboardDriver(terminal))
        outcome = deployment.run()
    os.close(hand)
    os.close(end)
    assert outcome.stopped == "its parent process died"
    assert [name for name, _ in outcome.phases][-5:] == DOWN


@pytest.mark.parametrize(("key", "robot", "dds"), [("B", A1, False), ("select", A1, False), ("B", GO2, True)])
def test_the_stop_key_ends_a_flight_that_nobody_drives_also_while_it_rises(key, robot, dds):
    link = WatchedLink(Twin(remote=[(0.9, Remote(keys=frozenset({key})))], robot=robot, wire=WIRES[dds]))
    outcome = Deployment(link, load("zero"), armed=True, schedule=SHORT, robot=robot).run()
    assert outcome.stopped == "stopped by the remote"
    assert [name for name, _ in outcome.phases][-3:] == ["stand", "sit", "damping"]


def test_without_a_living_remote_nothing_is_sent():
    for said in ([], [(0.0, NAMED["stop"])], [(0.0, NAMED["forward"])]):
        policy = load("ncap-drive")
        link = WatchedLink(Twin(robot=robot_of(policy), remote=said))
        with pytest.raises(UserError, match="remote"):
            Deployment(link, policy, armed=True, schedule=SHORT, driver=RemoteDriver()).run()
        assert link.twin.heard == 0


@pytest.mark.parametrize("name", ["ncap-flat-walk", "zero", "mlp-flat-walk"])
def test_a_policy_that_cannot_turn_is_not_driven(name):
    with pytest.raises(UserError, match=f"{name} cannot turn or stop.*ncap-drive"):
        Deployment(TwinLink(Twin()), load(name), driver=ConstantDriver(Wish(0.3, 0.0)))


def test_a_command_replaces_the_wish_until_the_robot_is_told_to_stand():
    policy = find_policy("ncap-drive", command=0.4)
    link = WatchedLink(Twin(robot=robot_of(policy)))
    deployment = Deployment(link, policy, armed=True, schedule=replace(SHORT, policy=1.5), command=0.4)
    heard = []
    act = deployment.controller.act

    class Listening:
        reset, signals = deployment.controller.reset, deployment.controller.signals

        def act(self, state, observation, command=None):
            heard.append(command)
            return act(state, observation, command)

    deployment.controller = Listening()
    outcome = deployment.run()
    assert heard[1:51] == [0.4] * 50  # the first is the contract's; 1.5 s are 50 steps
    assert heard[51]["c"] > 0.0
    assert heard[-1]["stop"] == 1.0
    assert not link.fell(dict(outcome.phases)["sit"])
    assert [name for name, _ in outcome.phases][-5:] == DOWN
