from dataclasses import replace

import numpy as np
import pytest

from ncap.errors import UserError
from ncap.policies.policy import RandomController, ZeroController
from ncap.rollout import Arena, rollout
from ncap.sim.simulation import Simulation
from ncap.sim.terrain import Bumpy
from ncap.sim.world import Variation
from ncap.tasks import TASKS, Task, find_task

SHORT = {name: replace(task, episode_seconds=1.5) for name, task in TASKS.items()}
EVERYTHING = ("observation", "action", "reward", "speed", "yaw", "fall", "foot_force", "position", "torque")


def same(one, other):
    return (
        np.array_equal(one.returns, other.returns)
        and np.array_equal(one.steps, other.steps)
        and all(np.array_equal(one.signals[name], other.signals[name], equal_nan=True) for name in one.signals)
    )


class Fixed:
    """Everybody does the same all the time."""

    def __init__(self, action):
        self.action = np.asarray(action, float)

    def reset(self, seeds):
        return len(seeds)

    def act(self, state, observation):
        return state, np.broadcast_to(self.action, (len(observation), 4, 3)).copy()

    def signals(self, state):
        return {}


@pytest.mark.parametrize("name", TASKS)
def test_standing_still_scores_one_half(name):
    episodes = rollout(TASKS[name], ZeroController(), [0, 1])
    assert episodes.returns == pytest.approx([0.5, 0.5], abs=0.01)
    assert not episodes.fell.any()
    assert np.all(episodes.steps == 500)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_finite_deterministic_and_has_no_constant_observation(name):
    first = rollout(SHORT[name], RandomController(), [1, 3], record=EVERYTHING)
    assert same(first, rollout(SHORT[name], RandomController(), [1, 3], record=EVERYTHING))
    lived = np.arange(SHORT[name].steps) < first.steps[:, None]
    for signal, values in first.signals.items():
        assert np.isfinite(values[lived]).all(), signal
    observation = first.signals["observation"][lived]
    assert observation.min() >= -1
    assert observation.max() <= 1
    assert np.all(observation.std(axis=0) > 1e-3)


@pytest.mark.parametrize("name", TASKS)
def test_starts_are_randomised_by_the_seed_and_only_by_it(name):
    arena = Arena(SHORT[name], 3)
    arena.start(np.arange(3), [7, 8, 7])
    observation = arena.observation()
    assert np.array_equal(observation[0], observation[2])
    assert np.abs(observation[0] - observation[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["flat-walk", "bumpy-run"])
def test_results_are_identical_for_one_and_three_threads(name):
    one = rollout(SHORT[name], RandomController(), range(7), threads=1, record=EVERYTHING)
    assert same(one, rollout(SHORT[name], RandomController(), range(7), threads=3, record=EVERYTHING))


@pytest.mark.parametrize("name", ["flat-walk", "bumpy-run"])
def test_an_individual_is_the_same_alone_and_in_a_crowd(name):
    crowd = rollout(SHORT[name], RandomController(), range(6), record=EVERYTHING)
    alone = rollout(SHORT[name], RandomController(), [4], record=EVERYTHING)
    assert alone.returns[0] == crowd.returns[4]
    for signal in EVERYTHING:
        assert np.array_equal(alone.signals[signal][0], crowd.signals[signal][4], equal_nan=True)


def test_no_memory_is_shared_with_the_caller():
    arena = Arena(SHORT["flat-walk"], 2)
    arena.start(np.arange(2), [0, 1])
    before = arena.observation()
    kept = before.copy()
    arena.step(np.arange(2), np.full((2, 4, 3), 0.3))
    assert np.array_equal(before, kept)
    before[:] = 7.0
    assert arena.observation().max() <= 1.0


def test_a_fall_costs_its_penalty_and_the_rest_of_the_episode():
    # legs of one side stretched, of the other folded: the robot rolls over
    tip = np.array([[1, -1, -1], [1, 1, 1], [1, -1, -1], [1, 1, 1]])
    task = replace(TASKS["flat-walk"], fall_deg=10.0)
    episodes = rollout(task, Fixed(tip), [0], record=["reward", "up"])
    assert episodes.fell[0]
    steps = episodes.steps[0]
    assert steps < 100
    assert episodes.terms["fall"][0] == pytest.approx(-10 / 500)
    rewards = episodes.signals["reward"][0]
    assert np.isnan(rewards[steps:]).all()
    assert episodes.returns[0] == pytest.approx(rewards[:steps].sum() / 500)
    tilt = np.rad2deg(np.abs(np.arctan2(episodes.signals["up"][0, :steps, :2], episodes.signals["up"][0, :steps, 2:])))
    assert tilt[-1].max() > 10
    assert tilt[:-1].max() <= 10


def test_the_trunk_on_the_ground_is_a_fall_although_it_is_level():
    # without strength in its joints the robot sinks down on its belly
    task = replace(TASKS["flat-walk"], variation=Variation(kp=1.0, kd=1.0))
    episodes = rollout(task, ZeroController(), [0], record=["trunk_touches", "up"])
    last = episodes.steps[0] - 1
    assert episodes.fell[0]
    assert episodes.signals["trunk_touches"][0, last] == 1
    assert not episodes.signals["trunk_touches"][0, :last].any()
    assert episodes.signals["up"][0, last, 2] > np.cos(np.deg2rad(45))


def test_the_fallen_are_no_longer_stepped(monkeypatch):
    stepped = []
    original = Simulation.step
    monkeypatch.setattr(
        Simulation, "step", lambda self, alive, t: stepped.append(len(alive)) or original(self, alive, t)
    )
    episodes = rollout(replace(TASKS["flat-walk"], episode_seconds=4.0), RandomController(), range(6))
    assert sum(stepped) == episodes.steps.sum()
    assert episodes.fell.any()


def test_a_simulation_that_diverges_is_a_fall_of_that_one_only(monkeypatch):
    original = Simulation.step
    calls = []

    def sabotage(self, alive, targets):
        calls.append(len(alive))
        if len(calls) == 10:
            self._qvel[1] = np.nan
        return original(self, alive, targets)

    healthy = rollout(SHORT["flat-walk"], ZeroController(), [0, 1, 2])
    monkeypatch.setattr(Simulation, "step", sabotage)
    episodes = rollout(SHORT["flat-walk"], ZeroController(), [0, 1, 2], record=["reward"])
    assert episodes.diverged.tolist() == [False, True, False]
    assert episodes.fell.tolist() == [False, True, False]
    assert episodes.steps.tolist() == [50, 10, 50]
    assert np.isfinite(episodes.returns).all()
    assert np.array_equal(episodes.returns[[0, 2]], healthy.returns[[0, 2]])


def test_equal_seeds_are_common_random_numbers():
    episodes = rollout(SHORT["bumpy-walk"], Fixed(np.zeros((4, 3))), [3, 5, 3])
    assert episodes.returns[0] == episodes.returns[2] != episodes.returns[1]


def test_unknown_signals_and_tasks_are_listed():
    with pytest.raises(UserError, match="unknown signal 'mood'; valid: joint_position"):
        rollout(SHORT["flat-walk"], ZeroController(), [0], record=["mood"])
    with pytest.raises(UserError, match="unknown task 'swim'; valid: flat-walk, flat-run, bumpy-walk, bumpy-run"):
        find_task("swim")


def test_impossible_tasks_are_refused():
    with pytest.raises(UserError, match="target_speed"):
        replace(TASKS["flat-walk"], target_speed=0.0)
    with pytest.raises(UserError, match="friction"):
        replace(TASKS["flat-walk"], friction=(0.0, 1.0))


def test_everything_about_a_task_can_be_adjusted():
    task = Task(name="mine", target_speed=0.3, terrain=Bumpy(bumpiness=0.2), episode_seconds=0.6, physics_dt=0.002)
    episodes = rollout(task, ZeroController(), [0])
    assert episodes.steps[0] == 20


def test_sensors_in_the_last_physics_step_only_change_nothing_but_the_cost(monkeypatch):
    fast = rollout(SHORT["flat-walk"], RandomController(), [1, 3], record=EVERYTHING)
    monkeypatch.setattr(Simulation, "_show_sensors", lambda self, shown: None)
    assert same(fast, rollout(SHORT["flat-walk"], RandomController(), [1, 3], record=EVERYTHING))
