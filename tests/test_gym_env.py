from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ncap.errors import UserError
from ncap.learn.gym_env import IDS, WalkingVectorEnv, _flat, _legs
from ncap.rollout import Arena
from ncap.tasks import TASKS

MAKE = {"disable_env_checker": True}


def test_importing_the_module_makes_the_ids_known_to_gymnasium():
    assert list(IDS.values()) == ["ncap/FlatWalk-v0", "ncap/FlatRun-v0", "ncap/BumpyWalk-v0", "ncap/BumpyRun-v0"]
    assert set(IDS.values()) <= set(gymnasium.registry)


@pytest.mark.parametrize("identifier", IDS.values())
def test_gymnasiums_own_checker_is_content(identifier):
    check_env(gymnasium.make(identifier, **MAKE).unwrapped, skip_render_check=True)


def test_zero_actions_stand_for_a_whole_episode_and_score_one_half():
    env = gymnasium.make("ncap/FlatWalk-v0", **MAKE)
    env.reset(seed=0)
    rewards, truncated = [], False
    while not truncated:
        _, reward, terminated, truncated, info = env.step(np.zeros(12, np.float32))
        assert not terminated
        assert reward == pytest.approx(sum(info.values()))
        rewards.append(reward)
    assert len(rewards) == 500
    assert np.mean(rewards) == pytest.approx(0.5, abs=0.01)


def test_make_vec_runs_on_our_engine_and_equals_single_environments():
    vector = gymnasium.make_vec("ncap/FlatWalk-v0", num_envs=3, vectorization_mode="vector_entry_point")
    assert isinstance(vector.unwrapped, WalkingVectorEnv)
    first, _ = vector.reset(seed=4)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (20, 3, 12)).astype(np.float32)
    together = [vector.step(action) for action in actions]
    # the vector environment draws its episodes' seeds in order from the generator of its seed; a single environment
    # started on the same episode must do exactly the same
    seeds = gymnasium.utils.seeding.np_random(4)[0].integers(2**31, size=3)
    for i, seed in enumerate(seeds):
        arena = Arena(TASKS["flat-walk"], 1)
        arena.start(np.zeros(1, int), [int(seed)])
        assert np.array_equal(_flat(arena)[0], first[i])
        for t, action in enumerate(actions[:, i]):
            outcome = arena.step(np.zeros(1, int), _legs(action[None]))
            assert np.array_equal(_flat(arena)[0], together[t][0][i])
            assert outcome.reward[0] == together[t][1][i]
            if outcome.fallen[0]:
                break


def test_a_robot_that_fell_begins_anew_with_its_next_step_and_the_others_go_on():
    vector = WalkingVectorEnv(replace(TASKS["flat-walk"], fall_deg=8.0), num_envs=2)
    vector.reset(seed=0)
    tip = np.array([1, -1, -1, 1, 1, 1, 1, -1, -1, 1, 1, 1], np.float32)
    actions = np.stack((tip, np.zeros(12, np.float32)))
    for _ in range(100):
        observation, reward, terminated, *_ = vector.step(actions)
        if terminated[0]:
            break
    assert terminated.tolist() == [True, False]
    assert reward[0] < -9
    steps = vector._steps.copy()
    observation, reward, terminated, *_ = vector.step(actions)
    assert reward[0] == 0
    assert not terminated.any()
    assert vector._steps.tolist() == [0, steps[1] + 1]
    assert np.abs(observation[0, [0, 1, 2]]).max() < 0.2  # back in the standing pose


def test_without_a_back_end_rendering_says_what_to_install(monkeypatch):
    def fail(*_):
        raise RuntimeError("no display")

    monkeypatch.setattr("mujoco.Renderer", fail)
    env = gymnasium.make("ncap/FlatWalk-v0", render_mode="rgb_array", **MAKE)
    env.reset(seed=0)
    with pytest.raises(UserError, match="install libegl1 libgl1-mesa-dri libopengl0, or libosmesa6"):
        env.render()


def test_rendering_gives_a_picture():
    env = gymnasium.make("ncap/BumpyWalk-v0", render_mode="rgb_array", **MAKE)
    env.reset(seed=0)
    try:
        picture = env.render()
    except UserError as error:
        pytest.skip(f"no rendering back end here: {error}")
    assert picture.shape == (480, 640, 3)
    assert picture.std() > 10
    assert (picture[180:320, 220:420].min(axis=-1) < 60).mean() > 0.05  # the robot's dark parts, in the middle
    env.close()
