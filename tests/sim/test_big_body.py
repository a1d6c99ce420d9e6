"""A fourth body from a user's file: one of Spot's size and weight, four times as heavy as an A1, under other names.

Masses, lengths and ranges are those that Boston Dynamics' description has in MuJoCo Menagerie; links are rods.
"""

import json

import numpy as np
import pytest

from ncap.policies.controller import ZeroPolicy
from ncap.rollouts import rollout
from ncap.sim.robot import find_robot
from ncap.tasks import TASKS, build, with_robot
from ncap.trained import load

LEGS = {"fl": (1, 1), "fr": (1, -1), "hl": (-1, 1), "hr": (-1, -1)}
TRUNK, HIP, UPPER, LOWER = 32.86, 1.68, 2.34, 0.35
"""Masses, kg; with four legs 50.34."""
THIGH, KNEE, CALF, FOOT = 0.32, 0.025, 0.3365, 0.036
"""Lengths, the knee's distance in front of the thigh, the foot's radius, m."""
LOW, MIDDLE, HIGH = (-0.15, -0.2, -2.2), (0.0, 0.8, -1.5), (0.15, 1.6, -1.1)
GRAVITY = 9.81


def leg_xml(name, along, aside):
    """A leg as MJCF. A rod of mass m and length l has m l² / 12 across it; the hip is a ball of 5 cm."""
    across_upper, across_lower = UPPER * THIGH**2 / 12, LOWER * CALF**2 / 12
    return f"""
    <body name="{name}_hip" pos="{0.29785 * along} {0.055 * aside} 0">
      <inertial pos="0 {0.05 * aside} 0" mass="{HIP}" diaginertia="0.002 0.002 0.002"/>
      <joint name="{name}_hx" axis="1 0 0" range="-0.785 0.785"/>
      <body name="{name}_uleg" pos="0 {0.1108 * aside} 0">
        <inertial pos="0 0 {-THIGH / 2}" mass="{UPPER}" diaginertia="{across_upper} {across_upper} 0.002"/>
        <joint name="{name}_hy" axis="0 1 0" range="-0.899 2.295"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 {KNEE} 0 {-THIGH}" mass="0"/>
        <body name="{name}_lleg" pos="{KNEE} 0 {-THIGH}">
          <inertial pos="0 0 {-CALF / 2}" mass="{LOWER}" diaginertia="{across_lower} {across_lower} 0.0001"/>
          <joint name="{name}_kn" axis="0 1 0" range="-2.793 -0.254"/>
          <geom name="{name}_foot" type="sphere" size="{FOOT}" pos="0 0 {-CALF}" mass="0"/>
        </body>
      </body>
    </body>"""


@pytest.fixture
def spot(tmp_path):
    """The path of the data sheet, with its model beside it."""
    legs = "".join(leg_xml(name, *signs) for name, signs in LEGS.items())
    (tmp_path / "spot.xml").write_text(
        f"""<mujoco><compiler angle="radian" autolimits="true"/>
        <default><joint damping="0.1" armature="0.1" frictionloss="0.2"/></default>
        <worldbody><body name="base"><freejoint/>
        <inertial pos="0 0 0" mass="{TRUNK}" diaginertia="0.131 0.131 0.131"/>
        <geom name="base_box" type="box" size="0.42 0.11 0.09" mass="0"/>{legs}</body></worldbody></mujoco>"""
    )
    sheet = {
        "name": "spot",
        "model": "spot.xml",
        "trunk": "base",
        "joints": [[f"{leg}_{joint}" for joint in ("hx", "hy", "kn")] for leg in LEGS],
        "feet": [f"{leg}_foot" for leg in LEGS],
        "ground_geoms": ["base_box"],
        "position_min": [LOW] * 4,
        "position_mid": [MIDDLE] * 4,
        "position_max": [HIGH] * 4,
        "kp": 500,
        "kd": 40,
        "torque_limit": [120, 120, 200],
        "velocity_limit": 15,
        "foot_force_max": 200,
        "leg_length": 0.55,
        "joint_min": [[-0.785, -0.899, -2.793]] * 4,
        "joint_max": [[0.785, 2.295, -0.254]] * 4,
    }
    (tmp_path / "spot.json").write_text(json.dumps(sheet))
    return tmp_path / "spot.json"


def test_a_robot_four_times_as_heavy_loads_and_stands(spot):
    task = with_robot(TASKS["flat-walk"], str(spot))
    world = build(task)
    assert world.total_mass == pytest.approx(50.34)
    assert world.model.actuator_forcerange[:3, 1].tolist() == [120.0, 120.0, 200.0]
    episodes = rollout(task, ZeroPolicy().bind(np.zeros((1, 0))), [0, 1], record=["position", "foot_force"])
    assert not episodes.fell.any()
    assert episodes.returns == pytest.approx([0.5, 0.5], abs=0.01)  # standing is worth half
    # height of the hips above the ground: thigh and its knee turned by 0.8, calf by 0.8 - 1.5, and the foot's radius
    thigh, calf = MIDDLE[1], MIDDLE[1] + MIDDLE[2]
    height = THIGH * np.cos(thigh) + KNEE * np.sin(thigh) + CALF * np.cos(calf) + FOOT
    assert episodes.signals["position"][:, -1, 2] == pytest.approx(height, abs=0.03)
    assert episodes.signals["foot_force"][:, -1].sum(axis=1) == pytest.approx(50.34 * GRAVITY, rel=0.1)


def test_the_untrained_circuit_plays_a_whole_episode_on_it(spot):
    task = with_robot(TASKS["flat-walk"], find_robot(str(spot)))
    policy = load("untrained")
    episodes = rollout(task, policy.controller(2), [0, 1], record=["position", "foot_force"])
    assert not episodes.diverged.any()
    assert np.isfinite(episodes.returns).all()
    assert not episodes.fell.any()
    assert (episodes.distance > 1.0).all()  # it walks: more than the 15 s of standing would bring
    lifted = (episodes.signals["foot_force"] == 0.0).mean(axis=1)
    assert (lifted > 0.1).all()  # every foot leaves the ground
