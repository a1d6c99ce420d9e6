"""Legs as geometry: places of feet against MuJoCo, and contact from joint torques against the simulator's contacts."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from ncap.deploy.flight import PHASES, FlightRecorder, facts_about, read_log
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.twin import Twin
from ncap.rollouts import rollout
from ncap.sim.a1 import A1
from ncap.sim.go import GO1, GO2
from ncap.sim.legs import A1_LEGS, feet, foot_forces, legs_of
from ncap.sim.terrain import Flat
from ncap.sim.world import World
from ncap.tasks import TASKS, with_robot
from ncap.trained import load

BODIES = {"a1": A1, "go1": GO1, "go2": GO2}


@pytest.mark.parametrize("name", BODIES)
def test_feet_are_where_the_model_has_them(name):
    robot = BODIES[name]
    world, rng = World(robot, Flat()), np.random.default_rng(0)
    joints = robot.mid + 0.1 * rng.normal(size=(4, 3))
    data = mujoco.MjData(world.model)
    data.qpos[:3], data.qpos[3:7] = 0.0, (1.0, 0.0, 0.0, 0.0)
    data.qpos[world.position_columns] = joints.ravel()
    mujoco.mj_kinematics(world.model, data)
    place, _ = feet(joints[None], np.zeros((1, 4, 3)), legs_of(robot))
    # the Go2's feet sit 2 mm behind the end of the calf, which the geometry leaves out
    assert place[0] == pytest.approx(data.geom_xpos[world.foot_geoms], abs=0.0021)


def test_a_data_sheet_that_says_nothing_of_its_legs_has_the_a1s():
    assert legs_of(A1) == A1_LEGS
    assert legs_of(GO1).calf == 0.213


@pytest.mark.parametrize("name", BODIES)
def test_forces_are_those_that_do_the_work_of_the_torques(name):
    # virtual work: torque = -Jᵀ force, with J from differences of the feet's places; hips straight down
    legs, rng = legs_of(BODIES[name]), np.random.default_rng(1)
    joints = BODIES[name].mid + np.array([0.0, 1.0, 1.0]) * 0.2 * rng.normal(size=(5, 4, 3))
    force, torque = rng.uniform((-20, 0, 5), (20, 0, 80), size=(5, 4, 3)), np.zeros((5, 4, 3))
    for joint in (1, 2):
        step = 1e-6 * np.eye(3)[joint]
        motion = (feet(joints + step, 0 * joints, legs)[0] - feet(joints - step, 0 * joints, legs)[0]) / 2e-6
        torque[..., joint] = -(motion * force).sum(axis=-1)
    assert foot_forces(joints, torque, legs) == pytest.approx(force[..., 2], rel=1e-6)
    assert (foot_forces(joints, -torque, legs) == 0.0).all()  # no ground pulls


def test_a_straight_leg_has_a_finite_force():
    straight = np.zeros((4, 3))
    assert np.isfinite(foot_forces(straight, np.full((4, 3), 40.0))).all()


@pytest.mark.parametrize(
    ("name", "policy", "task"),
    [
        ("go1", "untrained", "flat-walk"),
        ("go2", "untrained", "flat-walk"),
        ("go2", "untrained", "bumpy-walk"),
        ("a1", "ncap-flat-walk", "flat-walk"),
        ("a1", "ncap-flat-run", "flat-run"),
    ],
)
def test_estimated_contact_agrees_with_the_simulators_in_19_of_20_moments(name, policy, task):
    robot = BODIES[name]
    wanted = ["joint_position", "torque", "foot_force"]
    episodes = rollout(with_robot(TASKS[task], robot), load(policy).controller(2), [0, 1], record=wanted)
    position, torque, force = (episodes.signals[signal] for signal in wanted)
    known = np.isfinite(force)
    estimated = foot_forces(position, torque, legs_of(robot))
    agree = (estimated > 5.0) == (force > 5.0)
    assert agree[known].mean() > 0.95
    in_air = force[known] < 5.0
    assert 0.2 < in_air.mean() < 0.6  # so that saying always the same would be right in 0.8 at most


def test_a_robot_without_foot_sensors_walks_by_its_torques_and_the_log_says_so(tmp_path):
    robot = replace(GO2, foot_sensors=False)
    twin, said, policy = Twin(robot=robot, seed=0), [], load("untrained")
    schedule = Schedule(calibration=0.3, low=0.8, stand=0.8, hold=0.3, policy=3.0, halt=0.8, sit=0.6, damping=0.2)
    facts = facts_about(policy, robot, link="twin", armed=True, seed=0)
    with FlightRecorder(tmp_path / "flight", facts) as recorder:
        outcome = Deployment(
            TwinLink(twin), policy, armed=True, schedule=schedule, robot=robot, recorder=recorder, report=said.append
        ).run()
    assert outcome.fault is None
    assert any("contact: estimated from joint torques" in line for line in said)
    assert not any("foot tare" in line for line in said)
    assert twin.truth().position[0] > 0.3  # it walked: 3 s at 0.3 m/s or so
    about, log = read_log(tmp_path / "flight")
    assert about.robot["foot_sensors"] is False
    walking = log["foot_force"][log["phase"] == PHASES.index("policy")]
    assert (((walking > 5.0).mean(axis=0) > 0.4) & ((walking > 5.0).mean(axis=0) < 0.9)).all()  # every foot lifts
