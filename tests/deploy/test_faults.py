"""Every fault is injected through the twin while the policy drives; damping must reach the robot within 50 ms of it."""

from dataclasses import replace

import pytest

from ncap.deploy import dds_messages, messages
from ncap.deploy.gap import Gap
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.twin import FAULTS, Twin
from ncap.policies.controller import ZeroController
from ncap.sim.a1 import A1
from ncap.sim.go import GO2
from ncap.trained import load

SHORT = Schedule(calibration=0.2, low=0.6, stand=0.8, hold=0.2, policy=1.0, damping=0.2)
FAULT_AT = 2.3
REACTIONS = {
    "silence": "old state",
    "frozen-tick": "frozen tick",
    "jumping-tick": "jumping tick",
    "restart": "jumping tick",
    "nan": "state is not a number",
    "short": "old state",
    "corrupt": "old state",
    "hot": "temperature",
    "overspeed": "velocity",
    "overtorque": "torque",
    "tilt": "tilt",
}


ROBOTS = {"a1": (A1, messages.WIRE), "go2": (GO2, dds_messages.WIRE)}
"""Robots, each with its own kind of messages."""


def deployment_to(
    name: str, gap: Gap | None = None, *, policy: str = "untrained", schedule: Schedule = SHORT, faults=()
):
    """(a twin of the robot of that name with its own kind of messages, a flight to it that can be run)."""
    robot, wire = ROBOTS[name]
    twin = Twin(gap, faults=faults, robot=robot, wire=wire)
    return twin, Deployment(TwinLink(twin), load(policy), armed=True, schedule=schedule, robot=robot)


def fly(fault: str, gap: Gap | None = None, policy: str = "untrained", name: str = "a1"):
    twin, deployment = deployment_to(name, gap, policy=policy, faults=[(FAULT_AT, fault)])
    return twin, deployment.run()


on_every_robot = pytest.mark.parametrize("name", ROBOTS)


@on_every_robot
@pytest.mark.parametrize("fault", REACTIONS)
def test_every_fault_damps_the_robot_within_50_ms(fault, name):
    twin, outcome = fly(fault, name=name)
    assert outcome.fault.kind == REACTIONS[fault]
    assert 0 <= twin.damped_at - FAULT_AT <= 0.050
    assert [name for name, _ in outcome.phases][-2:] == ["policy", "damping"]  # no sitting down after a fault


@on_every_robot
@pytest.mark.parametrize("fault", ["silence", "hot", "overspeed"])
def test_a_network_of_5_ms_with_jitter_and_loss_does_not_delay_damping_beyond_50_ms(fault, name):
    twin, outcome = fly(fault, Gap(latency=0.002, jitter=0.003, loss=0.05, duplication=0.05), name=name)
    assert outcome.fault.kind == REACTIONS[fault]
    assert 0 <= twin.damped_at - FAULT_AT <= 0.050


@pytest.mark.parametrize(
    ("policy", "name", "soon"),
    [
        ("untrained", "a1", 0.5),
        ("zero", "a1", 0.5),
        ("untrained", "go2", 0.5),
        ("zero", "go2", 0.7),  # its gains are softer: a robot that stands still is asked for little torque
    ],
)
def test_a_robot_that_hears_no_commands_damps_itself_and_ours_notice_soon(policy, name, soon):
    twin, outcome = fly("deaf", policy=policy, name=name)
    assert 0 <= twin.damped_at - FAULT_AT <= 0.050  # by itself
    # what is sent from now on is damping: when it hears again, it is not driven up at full torque
    assert outcome.fault.kind == "not following"
    assert 0 < outcome.fault.at - FAULT_AT < soon
    assert [name for name, _ in outcome.phases][-1] == "damping"


@on_every_robot
def test_a_robot_that_never_hears_a_command_is_noticed_before_it_should_stand(name):
    twin, deployment = deployment_to(name, policy="zero", faults=[(0.0, "deaf")])
    outcome = deployment.run()
    assert outcome.fault.kind == "not following"
    assert outcome.fault.at < 0.2 + SHORT.low + SHORT.stand
    assert twin.heard == 0


def test_every_fault_of_the_twin_has_a_test():
    assert {*REACTIONS, "deaf"} == set(FAULTS)


class Slow(ZeroController):
    """Thinks for a while, in the twin's time, at its 20th and every later step."""

    def __init__(self, twin: Twin, seconds: float):
        super().__init__(A1.mid.shape)
        self.twin, self.seconds, self.steps, self.first = twin, seconds, 0, 0.0

    def act(self, state, observation, command=None):
        self.steps += 1
        if self.steps >= 20:
            self.first = self.first or self.twin.time
            self.twin.advance(self.twin.time + self.seconds)
        return super().act(state, observation, command)


@on_every_robot
@pytest.mark.parametrize(("seconds", "steps"), [(0.060, 20), (0.021, 22)])
def test_missed_deadlines_are_a_fault_at_once_if_long_and_at_the_third_if_short(seconds, steps, name):
    twin, deployment = deployment_to(name, policy="zero")
    slow = Slow(twin, seconds)
    deployment.controller = slow
    outcome = deployment.run()
    assert outcome.fault.kind == "missed deadline"
    assert slow.steps == steps
    # the robot itself has braked since 22 ms after the last command; ours follows when the policy is back
    assert twin.damped_at - slow.first <= 0.050 or steps > 20


@pytest.mark.parametrize(
    ("loss", "policy", "name"),
    [(0.01, "paper-flat-walk", "a1"), (0.05, "paper-flat-walk", "a1"), (0.20, "paper-flat-walk", "a1"),
     (0.20, "ncap-go2-walk", "go2")],
)  # fmt: skip
def test_loss_alone_is_no_fault(loss, policy, name):
    twin, deployment = deployment_to(name, Gap(loss=loss), policy=policy, schedule=replace(SHORT, policy=3.0))
    outcome = deployment.run()
    assert outcome.fault is None
    assert twin.truth().position[0] > 1.0  # 3 s at 0.5 m/s and more, minus the start
