"""Robots of every kind behind the safety layer: limits from their data sheets, and whole flights on their twins."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ncap.deploy.contract import check_contract, robot_of
from ncap.deploy.limits import Limits, limits_of, of_joints
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import LOW, Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.safety import Received, Safety
from ncap.deploy.twin import LYING, Twin
from ncap.errors import UserError
from ncap.sim.a1 import A1
from ncap.sim.go import GO1, GO2
from ncap.sim.robot import describe_robot
from ncap.trained import load

BODIES = {"a1": A1, "go1": GO1, "go2": GO2}


def test_the_a1_keeps_its_limits():
    found, usual = limits_of(A1), Limits()
    assert (of_joints(found.torque) == 33.5).all()
    assert replace(found, torque=usual.torque) == usual


def test_limits_follow_from_the_data_sheet_per_joint_and_girdle():
    limits = limits_of(GO2)
    # a milliradian inside the published ranges; front thighs go further forward, hind thighs further back
    assert of_joints(limits.position_low)[[0, 2]] == pytest.approx(
        np.array([[-1.0462, -1.5698, -2.7217], [-1.0462, -0.5226, -2.7217]])
    )
    assert of_joints(limits.position_high)[[1, 3]] == pytest.approx(
        np.array([[1.0462, 3.4897, -0.83876], [1.0462, 4.5369, -0.83876]])
    )
    assert of_joints(limits.torque)[0] == pytest.approx([23.7, 23.7, 45.43])
    assert of_joints(limits.measured_torque)[0] == pytest.approx([28.44, 28.44, 54.516])  # 1.2 times as much
    assert of_joints(limits.slew)[0] == pytest.approx([30.1, 30.1, 15.7])
    assert of_joints(limits.velocity)[0] == pytest.approx([34.1, 34.1, 19.7])  # 4 rad/s more


def test_a_data_sheet_that_does_not_know_its_motors_gets_no_more_torque_than_an_a1():
    policy = load("untrained")
    weak, strong = replace(A1, torque_limit=20.0), replace(A1, torque_limit=(20.0, 33.5, 45.0))
    assert (of_joints(limits_of(weak).torque) == 20.0).all()
    check_contract(policy, policy.controller(1), weak, limits_of(weak))
    assert of_joints(limits_of(strong).torque)[0].tolist() == [20.0, 33.5, 33.5]
    with pytest.raises(UserError, match="its torque limit of 45 N m is beyond the allowed one"):
        check_contract(policy, policy.controller(1), strong, limits_of(strong))


@pytest.mark.parametrize(
    ("leg", "joint", "target", "allowed"),
    [
        (0, 1, -1.5, -1.5),  # a front thigh may
        (2, 1, -1.5, -0.5226),  # a hind thigh may not
        (0, 1, 4.0, 3.4897),
        (2, 1, 4.0, 4.0),
        (3, 2, 0.0, -0.83876),
    ],
)
def test_targets_are_cut_where_this_joint_of_this_girdle_ends(a_state, leg, joint, target, allowed):
    safety, wanted = Safety(GO2, limits_of(GO2), tick_seconds=1e-3), GO2.mid.copy()
    wanted[leg, joint], now = target, 0.0
    for step in range(400):  # enough for 3.2 rad at any motor's speed
        now += 0.002
        safety.watch(Received(a_state(tick=1000 + 2 * step, joint_position=GO2.mid), now), now)
        before, command = safety.reference, safety.command(wanted, now)
        assert (np.abs(command.position - before) <= np.array([30.1, 30.1, 15.7]) * 0.002 + 1e-9).all()
    assert command.position[leg, joint] == pytest.approx(allowed)
    # 50 N m / rad times the error is more than the motor has: it is asked for its own limit, and no other joint's
    error = np.abs(command.position - GO2.mid)
    assert (command.kp * error)[leg, joint] == pytest.approx(min(50.0 * error[leg, joint], (23.7, 23.7, 45.43)[joint]))


@pytest.mark.parametrize(("joint", "speed", "bad"), [(1, 25.0, False), (2, 25.0, True), (1, 35.0, True)])
def test_a_joint_is_judged_by_its_own_motor(a_state, joint, speed, bad):
    safety, now = Safety(GO2, limits_of(GO2), tick_seconds=1e-3), 0.0
    velocity = np.zeros((4, 3))
    velocity[3, joint] = speed
    for step in range(3):
        now += 0.002
        state = a_state(tick=1000 + 2 * step, joint_position=GO2.mid, joint_velocity=velocity)
        safety.watch(Received(state, now), now)
    assert (safety.fault is not None and safety.fault.kind == "velocity") == bad


@pytest.mark.parametrize("name", BODIES)
def test_crouch_and_belly_are_within_every_robots_joints(name):
    limits = limits_of(BODIES[name])
    for pose in (LOW, np.array(LYING)):
        assert (of_joints(limits.position_low) < pose).all()
        assert (of_joints(limits.position_high) > pose).all()


class LevelLink(TwinLink):
    """Keeps how far the robot leans while it is commanded, degrees, and how high its trunk is, m."""

    def __init__(self, twin):
        super().__init__(twin)
        self.lean, self.height = [], []

    def send(self, command):
        super().send(command)
        truth = self.twin.truth()
        self.lean.append(np.rad2deg(np.arccos(min(1.0, truth.up[2]))))
        self.height.append(truth.position[2])


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("seconds", [2.2, 2.5])
def test_every_robot_rises_walks_halts_in_mid_stride_and_sits(name, seconds):
    robot = BODIES[name]
    link = LevelLink(Twin(robot=robot, seed=3))
    schedule = Schedule(calibration=0.3, low=0.8, stand=0.8, hold=0.3, policy=seconds, halt=0.8, sit=0.6, damping=0.2)
    outcome = Deployment(link, load("untrained"), armed=True, schedule=schedule, robot=robot, seed=3).run()
    assert outcome.fault is None
    assert [phase for phase, _ in outcome.phases][-3:] == ["halt", "sit", "damping"]
    assert max(link.lean) < 20.0
    # standing, a leg is as high as its thigh and calf are steep, with the foot's radius under it
    length = 0.2 if name == "a1" else 0.213
    _, thigh, calf = robot.mid[0]
    assert max(link.height) == pytest.approx(length * (np.cos(thigh) + np.cos(thigh + calf)) + 0.02, abs=0.03)


def test_a_flight_takes_the_robot_that_is_asked_for_and_runs_no_python_file_that_only_a_policy_names(tmp_path):
    policy = load("untrained")
    assert robot_of(policy) is A1
    assert robot_of(policy, "go1") is GO1
    assert robot_of(replace(policy, about={"robot": "go2"})) is GO2
    sheet = describe_robot(GO2) | {"name": "mine", "model_xml": ""}
    (tmp_path / "mine.json").write_text(json.dumps(sheet))
    assert robot_of(policy, str(tmp_path / "mine.json")).torque_limit == (23.7, 23.7, 45.43)
    trap = tmp_path / "trap.py"
    trap.write_text(f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    with pytest.raises(UserError, match="say --robot"):
        robot_of(replace(policy, about={"robot": str(trap)}))
    assert not (tmp_path / "ran").exists()
    with pytest.raises(UserError, match="unknown robot 'spot'; valid: a1, a1-turning, go1, go1-turning, go2, go2-turn"):
        robot_of(policy, "spot")
