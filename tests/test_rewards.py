import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncap.rewards import speed_reward, tracking_reward, yaw_penalty
from ncap.rotations import pitch_of, roll_of


def test_speed_reward_by_hand():
    # target 0.5: 0 at -0.5, rising by 1 per m/s to 1 at 0.5, 1 until 1.0, then falling by 1 per m/s to 0 at 2.0
    velocity = np.array([-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0])
    assert speed_reward(velocity, 0.5) == pytest.approx([0, 0, 0.5, 0.75, 1, 1, 1, 0.5, 0, 0])


def test_tracking_reward_by_hand():
    # target 0.5: 1 there, and a sixth less for every 0.1 m/s, slower or faster, so 0 at -0.1 and 1.1
    velocity = np.array([-1.0, -0.1, 0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.1, 3.0])
    assert tracking_reward(velocity, 0.5) == pytest.approx([0, 0, 1 / 6, 1 / 2, 5 / 6, 1, 5 / 6, 1 / 2, 0, 0])
    assert tracking_reward(np.array([1.2, 0.9]), 1.2) == pytest.approx([1, 0.5])


@given(st.floats(-10, 10), st.floats(0.1, 3))
def test_tracking_reward_is_continuous_between_0_and_1_and_the_same_for_too_slow_and_too_fast(velocity, target):
    here, there, mirrored = tracking_reward(np.array([velocity, velocity + 1e-6, 2 * target - velocity]), target)
    assert 0 <= here <= 1
    assert abs(here - there) < 2e-6
    assert mirrored == pytest.approx(here, abs=1e-9)


@given(st.floats(-10, 10), st.floats(0.1, 3))
def test_speed_reward_is_continuous_and_between_0_and_1(velocity, target):
    here, there = speed_reward(np.array([velocity, velocity + 1e-6]), target)
    assert 0 <= here <= 1
    assert abs(here - there) < 1e-5 / target


def test_yaw_penalty_is_quadratic():
    assert yaw_penalty(np.array([0.0, -2.0]), 0.1) == pytest.approx([0.0, -0.4])


@given(st.floats(-1.4, 1.4), st.floats(-3, 3))
def test_roll_and_pitch_do_not_depend_on_the_heading(angle, yaw):
    # the vertical in the trunk's frame is R^T z; turning the robot about the vertical leaves it as it is
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    nose_down = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    left_up = np.array([[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]])
    assert pitch_of(((turn @ nose_down).T @ [0, 0, 1])[None])[0] == pytest.approx(angle)
    assert roll_of(((turn @ left_up).T @ [0, 0, 1])[None])[0] == pytest.approx(angle)
