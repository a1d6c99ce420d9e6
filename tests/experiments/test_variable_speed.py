"""Variable speed: the map from speed to command, and the brainstem that uses it."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.evaluation import GaitSummary
from ncap.experiments import variable_speed
from ncap.experiments.library import SCALES, Library
from ncap.experiments.variable_speed import Brainstem, SpeedMap, Trial, gradual, try_commands
from ncap.learn.executors import LocalExecutor
from ncap.policies.ncap import NCAPPolicy
from ncap.report.tables import read_table
from ncap.rollouts import rollout
from ncap.tasks import TASKS
from ncap.trained import untrained


def trial(command: float, *speeds: float, commanded: float | None = 1.0) -> Trial:
    gait = GaitSummary(
        label="walk",
        share=1.0,
        frequency_hz=2.0,
        duty=0.5,
        left_right_phase=(0.5, 0.5),
        fore_hind_phase=(0.25, 0.25),
        concentration=1.0,
        regular_share=1.0,
        touchdowns_per_stride=1.0,
        commanded="walk",
        commanded_share=commanded,
    )
    return Trial(command=command, speeds=np.array(speeds), gait=gait)


MAP = SpeedMap(trials=[trial(0.0, 0.2, 0.2), trial(0.8, 0.5, 0.7)])


def test_the_map_takes_the_command_that_comes_nearest_and_out_of_reach_the_last():
    targets = np.array([0.0, 0.09, 0.1, 0.2, 0.39, 0.41, 2.0])
    assert MAP.command(targets) == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.0, 0.8, 0.8])
    assert MAP.moves(targets).tolist() == [False, False, True, True, True, True, True]


def test_for_the_commanded_gait_the_map_takes_a_small_error():
    # a share of 0.1 costs 0.1 (1 - 0.1) = 0.09 m/s, one of 0.9 costs 0.01: an error of up to 0.08 is worth it
    found = SpeedMap(trials=[trial(0.2, 0.5, commanded=0.1), trial(0.3, 0.52, commanded=0.9)])
    assert found.command(np.array([0.5, 0.48, 0.45])) == pytest.approx([0.3, 0.3, 0.3])
    assert SpeedMap(trials=[trial(0.2, 0.5, commanded=0.1), trial(0.3, 0.58)]).command(np.array(0.5)) == 0.3
    assert SpeedMap(trials=[trial(0.2, 0.5, commanded=0.1), trial(0.3, 0.6)]).command(np.array(0.5)) == 0.2
    assert found.costs(np.array([0.5]))[0] == pytest.approx([0.0 + 0.09, 0.02 + 0.01])
    unknown = SpeedMap(trials=[trial(0.2, 0.5, commanded=None)])  # counts as never
    assert unknown.costs(np.array([0.5]))[0] == pytest.approx([0.1])


def test_the_map_keeps_away_from_commands_at_which_it_fell():
    fallen = trial(0.6, np.nan, 0.6)
    found = SpeedMap(trials=[trial(0.4, 0.4), trial(0.5, 0.5), fallen, trial(0.7, 0.7), trial(0.8, 0.8)])
    assert found.command(np.array([0.4, 0.5, 0.6, 0.7, 0.8])) == pytest.approx([0.4, 0.4, 0.4, 0.8, 0.8])


def test_a_goal_is_followed_gradually_from_zero():
    goals = np.array([[0.0] * 2 + [1.0] * 5 + [0.1] * 4, [0.3] * 11])
    first, second = gradual(goals, 0.25)
    assert first == pytest.approx([0, 0, 0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25, 0.1])
    assert second == pytest.approx([0.25] + [0.3] * 10)


def test_trials_of_commands_measure_speed_and_gait():
    task = replace(TASKS["flat-walk"], episode_seconds=9.0)
    slow, fast = try_commands(untrained(NCAPPolicy(command=0.0)), task, (0.0, 0.5), (0, 1), 1)
    assert (slow.command, fast.command) == (0.0, 0.5)
    assert (slow.falls, fast.falls, slow.gait.label, fast.gait.label) == (0, 0, "walk", "trot")
    assert (slow.gait.commanded, fast.gait.commanded) == ("walk", "trot")
    assert fast.gait.frequency_hz > 1.5 * slow.gait.frequency_hz
    # the rhythm leads: afferents drive a flexor by at most 0.03, as much as 0.03 of the command does; with the paper's
    # table feet step up to twice as fast as the rhythm alone
    for found in (slow, fast):
        assert found.gait.rhythm_ratio == pytest.approx(1.0, abs=0.15)
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


def test_the_circuit_of_all_speeds_is_measured_and_its_map_tested(tmp_path, monkeypatch):
    monkeypatch.setattr(variable_speed, "COMMANDS", (0.0, 0.5, 1.0))
    monkeypatch.setattr(variable_speed, "SPEEDS", (0.3, 0.9))
    library = Library(tmp_path, LocalExecutor(1), 1, lambda _: None)
    variable_speed.run(library, SCALES["smoke"], tmp_path)
    measured = read_table(tmp_path / "variable-speed-commands.csv")
    assert [float(row["command"]) for row in measured] == [0.0, 0.5, 1.0]
    rows = read_table(tmp_path / "variable-speed.csv")
    assert [float(row["target"]) for row in rows] == [0.3, 0.9]
    for row in rows:
        assert float(row["command"]) in (0.0, 0.5, 1.0)
        assert float(row["error"]) == pytest.approx(abs(float(row["speed"]) - float(row["target"])), abs=2e-4)
    assert (tmp_path / "variable-speed.png").read_bytes().startswith(b"\x89PNG")
