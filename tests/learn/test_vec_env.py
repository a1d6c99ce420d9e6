from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from ncap import seeding
from ncap.learn.interfaces import Joints
from ncap.learn.vec_env import BatchedVecEnv, vec_env
from ncap.rollouts import Arena
from ncap.tasks import TASKS

SHORT = replace(TASKS["flat-walk"], episode_seconds=0.3)


def make(task=SHORT, environments=3, **changes):
    settings = {"seed": 5, "reward_scale": 1.0, "threads": 1} | changes
    return BatchedVecEnv(task, environments, Joints(task), **settings)


def test_every_environment_plays_the_episode_of_its_address_as_a_single_robot_would():
    env, actions = make(), np.random.default_rng(0).uniform(-1, 1, (10, 3, 12)).astype(np.float32)
    env.begin(7)
    first = env.reset()
    together = [env.step(action) for action in actions]
    for i in range(3):
        arena = Arena(SHORT, 1)
        arena.start(np.zeros(1, int), [int(seeding.generator(5, "training episode", 7, i, 0).integers(2**31))])
        assert np.array_equal(arena.observation()[..., :10].reshape(40).astype(np.float32), first[i])
        for t in range(10):
            outcome = arena.step(np.zeros(1, int), actions[t, i].reshape(1, 4, 3).astype(float))
            observation, reward, done, infos = together[t]
            assert reward[i] == np.float32(outcome.reward[0])
            assert done[i] == (t == 9)
            seen = infos[i]["terminal_observation"] if done[i] else observation[i]
            assert np.array_equal(arena.observation()[..., :10].reshape(40).astype(np.float32), seen)


def test_the_end_of_time_is_a_truncation_and_a_fall_is_not():
    tip = np.array([1, -1, -1, 1, 1, 1, 1, -1, -1, 1, 1, 1], np.float32)
    env = make(replace(TASKS["flat-walk"], fall_deg=8.0, episode_seconds=2.4), environments=2)
    env.begin(0)
    env.reset()
    ends = {}
    for t in range(80):
        observation, reward, done, infos = env.step(np.stack((tip, np.zeros(12, np.float32))))
        for i in np.flatnonzero(done):
            ends.setdefault(int(i), (t, infos[i]["TimeLimit.truncated"], float(reward[i])))
            assert np.abs(observation[i, :3]).max() < 0.2  # the next episode has begun, in the standing pose
    assert ends[0][0] < 79
    assert ends[0][1] is False
    assert ends[0][2] < -9
    assert ends[1][:2] == (79, True)
    practice = env.practice()
    assert practice.steps == 160
    assert practice.falls == len(practice.returns) - 1
    assert practice.returns[-1] == pytest.approx(0.5, abs=0.05)  # standing still


def test_rewards_are_scaled_and_returns_are_not():
    plain, scaled = make(), make(reward_scale=0.01)
    for env in (plain, scaled):
        env.begin(0)
        env.reset()
    for _ in range(10):
        (_, reward, *_), (_, small, *_) = (env.step(np.zeros((3, 12), np.float32)) for env in (plain, scaled))
        assert small == pytest.approx(reward / 100)
    assert plain.practice() == scaled.practice()


def test_an_epoch_can_be_begun_again_and_other_epochs_differ():
    env = make()
    env.begin(3)
    first = env.reset()
    env.step(np.ones((3, 12), np.float32))
    assert np.array_equal(env.reset(), first)
    env.begin(4)
    assert not np.array_equal(env.reset(), first)


def test_stable_baselines3_trains_on_it_in_one_line(one_thread):
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecEnv

    env = vec_env("flat-walk", 4)
    assert isinstance(env, VecEnv)
    assert (env.num_envs, env.observation_space.shape, env.action_space.shape) == (4, (40,), (12,))
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=16, n_epochs=1, device="cpu")
    before = [weights.clone() for weights in model.policy.parameters()]
    model.learn(32)
    assert model.num_timesteps == 32
    assert any(not one.equal(other) for one, other in zip(before, model.policy.parameters(), strict=True))
    # a task of one's own, in episodes of its own seed; rewards are the task's
    own = vec_env(SHORT, 2, seed=3)
    own.reset()
    for _ in range(10):
        _, reward, done, _ = own.step(np.zeros((2, 12), np.float32))
    assert done.all()
    assert reward == pytest.approx(0.5, abs=0.1)
