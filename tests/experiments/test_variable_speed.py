"""Variable speed: the map from speed to command, and the brainstem that uses it."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.experiments.variable_speed import Brainstem, SpeedMap, fades, fit_map
from ncap.policies.ncap import NCAPPolicy
from ncap.rollout import rollout
from ncap.tasks import TASKS

MAP = SpeedMap(speeds=(0.2, 0.6), commands=(0.0, 0.8))


def test_the_map_takes_the_first_command_of_each_new_highest_speed():
    speeds = np.array([[0.2, 0.2], [0.1, 0.3], [0.5, 0.5], [np.nan, 0.9], [0.4, 0.4], [0.7, 0.9]])
    found = fit_map((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), speeds)  # it fell at 0.6, was no faster at 0.2, slower at 0.8
    assert found.commands == (0.0, 0.4, 1.0)
    assert found.speeds == pytest.approx((0.2, 0.5, 0.8))
    nowhere = fit_map((0.0, 1.0), np.array([[np.nan], [np.nan]]))
    assert (nowhere.speeds, nowhere.commands) == ((0.0,), (0.0,))


def test_commands_between_beyond_and_below_the_measured_speeds():
    targets = np.array([0.0, 0.09, 0.1, 0.2, 0.4, 2.0])
    assert MAP.command(targets) == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.4, 0.8])
    assert MAP.moves(targets).tolist() == [False, False, True, True, True, True]


def test_the_circuit_comes_and_goes_within_some_steps():
    moving = np.array([[False] * 3 + [True] * 5 + [False] * 5])
    assert fades(moving, 4)[0] == pytest.approx([0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25, 0, 0])


def test_the_rhythm_starts_at_the_first_command():
    policy = NCAPPolicy(command=0.9)
    brainstem = Brainstem(policy.bind(policy.space.initial[None]), MAP, np.full((1, 5), 0.4), 0.03)
    expected = replace(policy, command=0.4).bind(policy.space.initial[None]).reset([3])
    step, state = brainstem.reset([3])
    assert step == 0
    assert np.array_equal(state.adaptation, expected.adaptation)


def test_the_robot_stands_until_it_is_asked_to_walk():
    policy, task = NCAPPolicy(command=0.0), TASKS["flat-walk"]
    targets = np.where(np.arange(task.steps) < 150, 0.0, 0.4)
    controller = Brainstem(policy.bind(policy.space.initial[None]), MAP, targets[None], task.control_dt)
    played = rollout(task, controller, [0], record=("velocity", "command"))
    speed, command = played.signals["velocity"][0, :, 0], played.signals["command"][0]
    assert not played.fell[0]
    assert abs(speed[20:150].mean()) < 0.01
    assert speed[250:].mean() > 0.1
    assert command[149:152] == pytest.approx([0.0, 0.4, 0.4])
