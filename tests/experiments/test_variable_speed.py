"""Variable speed: the map from speed to command, and the brainstem that uses it."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.evaluation import GaitSummary
from ncap.experiments.library import SCALES, Library
from ncap.experiments.variable_speed import (
    PACES,
    TRAININGS,
    Brainstem,
    SpeedMap,
    Trial,
    blend,
    gradual,
    train_parts,
    try_commands,
)
from ncap.learn.executors import LocalExecutor
from ncap.learn.training import read_training
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.tasks import TASKS
from ncap.trained import TrainedPolicy, load, read_policy, untrained


def trial(command: float, *speeds: float, regular: float = 1.0) -> Trial:
    gait = GaitSummary(
        label="walk",
        share=1.0,
        frequency_hz=2.0,
        duty=0.5,
        left_right_phase=(0.5, 0.5),
        fore_hind_phase=(0.25, 0.25),
        concentration=regular,
        regular_share=1.0,
        touchdowns_per_stride=1.0,
    )
    return Trial(command=command, speeds=np.array(speeds), gait=gait)


MAP = SpeedMap(trials=[trial(0.0, 0.2, 0.2), trial(0.8, 0.5, 0.7)])


def test_the_map_takes_the_command_that_comes_nearest_and_out_of_reach_the_last():
    targets = np.array([0.0, 0.09, 0.1, 0.2, 0.39, 0.41, 2.0])
    assert MAP.command(targets) == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.0, 0.8, 0.8])
    assert MAP.moves(targets).tolist() == [False, False, True, True, True, True, True]


def test_for_a_regular_gait_the_map_takes_a_small_error():
    found = SpeedMap(trials=[trial(0.2, 0.5, regular=0.1), trial(0.3, 0.52, regular=0.9)])
    assert found.command(np.array([0.5, 0.48, 0.45])) == pytest.approx([0.3, 0.3, 0.3])
    assert SpeedMap(trials=[trial(0.2, 0.5, regular=0.1), trial(0.3, 0.58)]).command(np.array(0.5)) == 0.2


def test_the_map_keeps_away_from_commands_at_which_it_fell():
    fallen = trial(0.6, np.nan, 0.6)
    found = SpeedMap(trials=[trial(0.4, 0.4), trial(0.5, 0.5), fallen, trial(0.7, 0.7), trial(0.8, 0.8)])
    assert found.command(np.array([0.4, 0.5, 0.6, 0.7, 0.8])) == pytest.approx([0.4, 0.4, 0.4, 0.8, 0.8])


def test_a_goal_is_followed_gradually_from_zero():
    goals = np.array([[0.0] * 2 + [1.0] * 5 + [0.1] * 4, [0.3] * 11])
    first, second = gradual(goals, 0.25)
    assert first == pytest.approx([0, 0, 0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25, 0.1])
    assert second == pytest.approx([0.25] + [0.3] * 10)


def test_a_blend_has_the_weights_of_all_with_steps_of_their_sizes():
    policies = {name: NCAPPolicy(command=0.05, copies=8 if name == "walk" else 1) for name in TRAININGS}
    rng = np.random.default_rng(0)
    given = {
        name: TrainedPolicy(policy=p, theta=p.space.initial + rng.normal(size=p.space.size), about={"task": name})
        for name, p in policies.items()
    }
    mixed = blend(given)
    policy, theta = mixed.policy, mixed.theta
    assert (policy.copies, len(policy.paces), len(theta)) == (1, len(PACES), 92 * len(PACES))
    assert (mixed.task, mixed.about["parts"]["sprint"]) == ("flat-run", {"task": "sprint"})
    weights, walk = policy.space.unpack(theta), given["walk"].policy.space.unpack(given["walk"].theta)
    assert np.allclose(weights["AF.hind at 0"], walk["AF.hind"])
    assert np.allclose(weights["PF.fore at 0"], 0.3 * walk["PF.fore"])
    assert np.allclose(weights["PF.fore.bias at 0"], 0.3 * walk["PF.fore.bias"])
    assert np.allclose(weights["PF.fore.bias at 0.1"], walk["PF.fore.bias"])
    assert np.array_equal(theta[-92:], given["sprint"].theta)


def test_parts_are_trained_for_their_speeds_and_the_sprint_goes_on_from_the_run(tmp_path):
    library = Library(tmp_path, LocalExecutor(1), 1, lambda _: None)
    small = {"epochs": 1, "population": 4, "training_seconds": 0.3, "episode_seconds": 0.3}
    found = train_parts(library, replace(SCALES["smoke"], seeds=2, ncap=small))
    assert [list(places) for places in found] == [list(TRAININGS)] * 2
    assert [places["walk"].name for places in found] == ["flat-walk-ncap-0", "flat-walk-ncap-1"]
    trot, run, sprint = (read_training(found[0][name]) for name in ("trot", "run", "sprint"))
    assert [training.world.target_speed for training in (trot, run, sprint)] == [0.5, 1.0, 1.5]
    assert [training.command for training in (trot, run, sprint)] == [0.45, 0.9, 0.9]
    first = read_policy(found[0]["sprint"] / "finalists" / "epoch-000000.safetensors").theta
    assert np.array_equal(first, load(found[0]["run"]).theta)
    assert train_parts(library, replace(SCALES["smoke"], seeds=2, ncap=small)) == found


def test_trials_of_commands_measure_speed_and_gait():
    task = replace(TASKS["flat-walk"], episode_seconds=9.0)
    slow, fast = try_commands(untrained(NCAPPolicy(command=0.0)), task, (0.0, 0.3), (0, 1), 1)
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
    assert np.array_equal(state.flat(), expected.flat())


def test_the_brainstem_hands_its_command_to_the_circuit_and_fades_the_actions():
    policy = NCAPPolicy(command=0.9)
    circuit = policy.bind(policy.space.initial[None])
    moving = np.array([[True] * 4 + [False] * 4])
    brainstem = Brainstem(circuit, np.full((1, 8), 0.4), moving, 0.03)
    # 0.3 s from nothing to everything: a tenth with every control step of 0.03 s; 0.012 of command with every step
    shares, commands = [0.1, 0.2, 0.3, 0.4, 0.3, 0.2, 0.1, 0.0], [0.012 * (i + 1) for i in range(8)]
    observation = np.random.default_rng(0).uniform(-1, 1, (1, 4, 10))
    state, own = brainstem.reset([3]), circuit.reset([3], commands[0])
    for share, command in zip(shares, commands, strict=True):
        state, action = brainstem.act(state, observation)
        own, expected = circuit.act(own, observation, command)
        assert action == pytest.approx(share * expected, abs=1e-12)
        assert brainstem.signals(state)["command"] == pytest.approx(command)


def test_the_robot_stands_until_it_is_asked_to_walk():
    policy, task = NCAPPolicy(command=0.0), TASKS["flat-walk"]
    targets = np.where(np.arange(task.steps) < 150, 0.0, 0.4)
    speeds = SpeedMap(trials=[trial(0.0, 0.2), trial(0.4, 0.4)])
    commands, moving = speeds.command(targets)[None], speeds.moves(targets)[None]
    controller = Brainstem(policy.bind(policy.space.initial[None]), commands, moving, task.control_dt)
    played = rollout(task, controller, [0], record=("velocity", "command"))
    speed, command = played.signals["velocity"][0, :, 0], played.signals["command"][0]
    assert not played.fell[0]
    assert abs(speed[20:150].mean()) < 0.01
    assert speed[250:].mean() > 0.1
    assert command[149:152] == pytest.approx([0.0, 0.012, 0.024])  # 2.5 s from 0 to 1, in steps of 0.03 s
    assert command[-1] == pytest.approx(0.4)
