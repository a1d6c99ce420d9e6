"""Variable speed: the map from speed to command, and the brainstem that uses it."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.experiments.variable_speed import Brainstem, SpeedMap, blend, fit_map, gradual, try_commands
from ncap.policies.ncap import NCAPPolicy
from ncap.rollout import rollout
from ncap.tasks import TASKS

MAP = SpeedMap(speeds=(0.2, 0.6), commands=(0.0, 0.8))


def test_the_map_takes_the_first_command_of_each_new_highest_speed_and_leaps_over_others():
    speeds = np.array([[0.2, 0.2], [0.1, 0.3], [0.5, 0.5], [np.nan, 0.9], [0.4, 0.4], [0.7, 0.9]])
    found = fit_map((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), speeds)  # it fell at 0.6, was no faster at 0.2, slower at 0.8
    assert found.command(np.array([0.2, 0.34, 0.36, 0.5, 0.64, 0.66, 0.9])) == pytest.approx(
        [0, 0, 0.4, 0.4, 0.4, 1, 1]
    )
    every = fit_map((0.0, 0.5, 1.0), np.array([[0.2], [0.4], [0.8]]))
    assert every.command(np.array([0.3, 0.6])) == pytest.approx([0.25, 0.75])
    nowhere = fit_map((0.0, 1.0), np.array([[np.nan], [np.nan]]))
    assert (nowhere.speeds, nowhere.commands) == ((0.0,), (0.0,))


def test_commands_between_beyond_and_below_the_measured_speeds():
    targets = np.array([0.0, 0.09, 0.1, 0.2, 0.4, 2.0])
    assert MAP.command(targets) == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.4, 0.8])
    assert MAP.moves(targets).tolist() == [False, False, True, True, True, True]


def test_a_goal_is_followed_gradually_from_zero():
    goals = np.array([[0.0] * 2 + [1.0] * 5 + [0.1] * 4, [0.3] * 11])
    first, second = gradual(goals, 0.25)
    assert first == pytest.approx([0, 0, 0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25, 0.1])
    assert second == pytest.approx([0.25] + [0.3] * 10)


def test_a_blend_has_the_weights_of_both():
    walk, run = NCAPPolicy(command=0.05, copies=8), NCAPPolicy(command=0.9)
    rng = np.random.default_rng(0)
    slow, fast = (policy.space.initial + rng.normal(size=policy.space.size) for policy in (walk, run))
    policy, theta = blend((walk, slow), (run, fast))
    assert (policy.command, policy.copies, policy.recruits) == (0.9, 1, True)
    weights, given = policy.space.unpack(theta), walk.space.unpack(slow)
    assert np.allclose(weights["slow.AF.hind"], given["AF.hind"])
    assert np.allclose(weights["slow.PF.fore.bias"], given["PF.fore.bias"])
    assert np.array_equal(theta[92:], fast)


def test_trials_of_commands_measure_speed_and_gait():
    policy = NCAPPolicy(command=0.0)
    task = replace(TASKS["flat-walk"], episode_seconds=9.0)
    slow, fast = try_commands(policy, policy.space.initial, task, (0.0, 0.3), (0, 1), 1)
    assert (slow.command, fast.command) == (0.0, 0.3)
    assert (slow.falls, fast.falls, slow.gait.label, fast.gait.label) == (0, 0, "walk", "walk")
    assert fast.gait.frequency_hz > slow.gait.frequency_hz > 1
    assert 0.1 < slow.speed < 0.4
    fallen = replace(slow, speeds=np.array([np.nan, 0.4]))
    assert (fallen.falls, fallen.speed) == (1, 0.4)
    assert replace(slow, speeds=np.array([np.nan])).speed == 0.0


def test_the_rhythm_starts_at_the_first_command():
    policy = NCAPPolicy(command=0.9)
    goals = np.full((1, 5), 0.4)
    brainstem = Brainstem(policy.bind(policy.space.initial[None]), goals, np.ones_like(goals), 0.03)
    expected = replace(policy, command=0.012).bind(policy.space.initial[None]).reset([3])
    step, state = brainstem.reset([3])
    assert step == 0
    assert np.allclose(state.adaptation, expected.adaptation)


def test_the_robot_stands_until_it_is_asked_to_walk():
    policy, task = NCAPPolicy(command=0.0), TASKS["flat-walk"]
    targets = np.where(np.arange(task.steps) < 150, 0.0, 0.4)
    commands, moving = MAP.command(targets)[None], MAP.moves(targets)[None]
    controller = Brainstem(policy.bind(policy.space.initial[None]), commands, moving, task.control_dt)
    played = rollout(task, controller, [0], record=("velocity", "command"))
    speed, command = played.signals["velocity"][0, :, 0], played.signals["command"][0]
    assert not played.fell[0]
    assert abs(speed[20:150].mean()) < 0.01
    assert speed[250:].mean() > 0.1
    assert command[149:152] == pytest.approx([0.0, 0.012, 0.024])  # 2.5 s from 0 to 1, in steps of 0.03 s
    assert command[-1] == pytest.approx(0.4)
