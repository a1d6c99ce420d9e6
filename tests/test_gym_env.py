import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ncap.envs import IDS
from ncap.errors import UserError
from ncap.learn.gym_env import WalkingEnv, WalkingVectorEnv
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import Arena
from ncap.sim.a1 import A1
from ncap.sim.robot import describe_robot
from ncap.tasks import TASKS

MAKE = {"disable_env_checker": True}
VECTOR = {"vectorization_mode": "vector_entry_point"}


def test_importing_the_module_makes_the_ids_known_to_gymnasium():
    names = ("FlatWalk", "FlatRun", "BumpyWalk", "BumpyRun", "FlatDrive", "BumpyDrive", "Swim", "Navigate")
    assert list(IDS.values()) == [f"ncap/{name}-v0" for name in names]
    assert set(IDS.values()) <= set(gymnasium.registry)
    assert set(IDS) <= set(TASKS)


def test_gymnasium_finds_them_in_a_fresh_process_without_an_import_of_ours():
    program = """
import gymnasium
env = gymnasium.make("ncap.envs:ncap/FlatWalk-v0")
observation, _ = env.reset(seed=0)
print(env.spec.max_episode_steps, observation.shape, env.action_space.shape)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "500 (40,) (12,)"


@pytest.mark.parametrize("name", IDS)
def test_the_specification_says_how_long_an_episode_is(name):
    steps = {"flat-drive": 667, "bumpy-drive": 667, "swim": 1000, "navigate": 1000}.get(name, 500)
    assert gymnasium.spec(IDS[name]).max_episode_steps == TASKS[name].steps == steps


def test_an_episode_ends_after_as_many_steps_as_the_maker_asks_for():
    env = gymnasium.make("ncap/FlatWalk-v0", max_episode_steps=3, **MAKE)
    env.reset(seed=0)
    assert [env.step(np.zeros(12, np.float32))[3] for _ in range(3)] == [False, False, True]
    vector = gymnasium.make_vec("ncap/FlatWalk-v0", num_envs=2, max_episode_steps=3, **VECTOR)
    vector.reset(seed=0)
    truncated = [vector.step(np.zeros((2, 12), np.float32))[3].tolist() for _ in range(3)]
    assert truncated == [[False, False], [False, False], [True, True]]


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


def flat(arena):
    """What an agent sees: what the legs feel themselves, without the posture."""
    return arena.observation()[..., :10].reshape(40).astype(np.float32)


def test_make_vec_runs_on_our_engine_and_equals_single_environments():
    vector = gymnasium.make_vec("ncap/FlatWalk-v0", num_envs=3, **VECTOR)
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
        assert np.array_equal(flat(arena), first[i])
        for t, action in enumerate(actions[:, i]):
            outcome = arena.step(np.zeros(1, int), action.reshape(1, 4, 3).astype(float))
            assert np.array_equal(flat(arena), together[t][0][i])
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


def test_a_target_speed_can_be_asked_for():
    # standing still: 1 at 0.5 m/s falls linearly to 0 at -target, so v = 0 is worth (0 + target) / (2 target) = 0.5;
    # walking backwards at v is worth (v + target) / (2 target), which depends on the target
    for speed in (0.25, 1.0):
        env = gymnasium.make("ncap/FlatWalk-v0", target_speed=speed, **MAKE)
        assert env.unwrapped.task.target_speed == speed
        env.reset(seed=0)
        for action in np.random.default_rng(0).uniform(-1, 1, (10, 12)).astype(np.float32):
            *_, info = env.step(action)
            now = env.unwrapped._arena.measured
            forward = now.velocity[0, 0] * np.cos(np.arctan2(-now.up[0, 0], now.up[0, 2]))
            rising, falling = (forward + speed) / (2 * speed), (4 * speed - forward) / (2 * speed)
            assert info["reward_speed"] == pytest.approx(np.clip(min(rising, falling), 0, 1))


def test_another_robot_can_be_asked_for(tmp_path):
    sheet = describe_robot(A1) | {"name": "weak", "kp": 0.1, "kd": 0.1}
    (tmp_path / "weak.json").write_text(json.dumps(sheet))
    falls = {}
    for robot in ("a1", str(tmp_path / "weak.json")):
        vector = gymnasium.make_vec("ncap/FlatWalk-v0", num_envs=2, robot=robot, **VECTOR)
        vector.reset(seed=0)
        falls[robot] = any(vector.step(np.zeros((2, 12), np.float32))[2].any() for _ in range(50))
    assert list(falls.values()) == [False, True]


def test_with_a_circuit_the_agent_drives_its_rhythm_generator():
    env = gymnasium.make("ncap/FlatWalk-v0", circuit="default", **MAKE)
    # 2 drives and 3 motor neurons per leg; 40 senses and 16 of the posture, 36 outputs, 12 inputs and a 1, then 32
    # voltages and 2 · 4 numbers of the oscillators
    assert env.action_space.shape == (20,)
    assert env.observation_space.shape == (56 + 36 + 12 + 1 + 32 + 8,)
    assert env.action_space.high.tolist() == [10.0] * 8 + [1.0] * 12
    # without drives, and with the motor neurons of the untrained circuit, it walks as that circuit without afferents
    env.reset(seed=0)
    seed = int(gymnasium.utils.seeding.np_random(0)[0].integers(2**31))
    policy = NCAPPolicy(command=TASKS["flat-walk"].command)
    cut, theta = policy.without(["afferents"], policy.space.initial)
    controller = cut.bind(theta[None])
    state, arena = controller.reset([seed]), Arena(TASKS["flat-walk"], 1)
    arena.start(np.zeros(1, int), [seed])
    for _ in range(40):
        state, action = controller.act(state, arena.observation())
        expected = arena.step(np.zeros(1, int), action)
        outwards = action[0] * np.array([[1, 1, 1], [-1, 1, 1]] * 2)  # what the motor neurons of hips say
        said = np.concatenate((np.zeros(8), outwards.ravel())).astype(np.float32)
        observation, reward, *_ = env.step(said)
        # actions are rounded to single precision on their way through Gymnasium
        assert reward == pytest.approx(expected.reward[0], abs=1e-3)
        assert observation[:56] == pytest.approx(arena.observation().ravel(), abs=2e-3)
        assert observation[56:92] == pytest.approx(controller.circuit.outputs(state)[0], abs=1e-6)
    vector = gymnasium.make_vec("ncap/FlatWalk-v0", num_envs=3, circuit="default", **VECTOR)
    assert vector.reset(seed=0)[0].shape == (3, 145)


ENVS = {
    "single": (WalkingEnv, ()),
    "vector": (lambda **words: WalkingVectorEnv(num_envs=2, **words), (2,)),
    "circuit": (lambda **words: WalkingEnv(circuit="default", **words), ()),
}


@pytest.fixture(params=ENVS)
def env_and_zeros(request):
    make, shape = ENVS[request.param]
    env = make()
    size = (env.single_action_space if shape else env.action_space).shape[0]
    return env, np.zeros((*shape, size), np.float32)


def test_a_step_before_reset_gets_a_sentence(env_and_zeros):
    env, zeros = env_and_zeros
    with pytest.raises(UserError, match="call reset before step: no episode has begun"):
        env.step(zeros)


def test_lists_and_every_precision_are_accepted_and_are_the_same(env_and_zeros):
    env, zeros = env_and_zeros
    seen = []
    for action in (zeros, zeros.astype(np.float64), zeros.astype(int), zeros.tolist()):
        env.reset(seed=3)
        seen.append(env.step(action)[0])
    assert all(np.array_equal(one, seen[0]) for one in seen)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda a: a[..., :-1], r"the shape \(.*\), not \("),
        (lambda a: np.append(a, a, axis=-1), r"the shape \(.*\), not \("),
        (lambda a: a[None], r"the shape \(.*\), not \("),
        (lambda a: 0.0, r"the shape \(.*\), not \(\)"),
        (lambda a: [], r"the shape \(.*\), not \(0,\)"),
        (lambda a: a + np.nan, "an action has numbers that are not finite"),
        (lambda a: a + np.inf, "an action has numbers that are not finite"),
        (lambda a: None, "an action is made of numbers, not of NoneType"),
        (lambda a: "forward", "an action is made of numbers, not of 'forward'"),
        (lambda a: a.astype(str), "an action is made of numbers, not of ndarray"),
        (lambda a: a.astype(complex), "an action is made of numbers, not of ndarray"),
        (lambda a: [[0.0], [0.0, 1.0]], "an action is made of numbers, not of list"),
        (lambda a: {"hip": 1.0}, "an action is made of numbers, not of dict"),
    ],
)
def test_actions_that_are_none_get_a_sentence_and_change_nothing(env_and_zeros, spoil, complaint):
    env, zeros = env_and_zeros
    env.reset(seed=0)
    expected = env.step(zeros)[0]
    env.reset(seed=0)
    with pytest.raises(UserError, match=complaint):
        env.step(spoil(zeros))
    assert np.array_equal(env.step(zeros)[0], expected)


def test_a_step_after_the_end_gets_a_sentence():
    env = WalkingEnv(replace(TASKS["flat-walk"], episode_seconds=0.06))  # of two steps
    env.reset(seed=0)
    assert [env.step(np.zeros(12))[3] for _ in range(2)] == [False, True]
    with pytest.raises(UserError, match="call reset before step: the episode has ended"):
        env.step(np.zeros(12))
    env.reset()
    assert not env.step(np.zeros(12))[3]


@pytest.mark.parametrize("seed", ["1", 1.5, -1, [1], np.nan, object()])
def test_a_seed_is_a_whole_number(env_and_zeros, seed):
    with pytest.raises(UserError, match=r"seeds are whole numbers|a seed is a number from 0 on"):
        env_and_zeros[0].reset(seed=seed)
    env_and_zeros[0].reset(seed=np.int64(1))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"task": "fly"}, "unknown task 'fly'"),
        ({"task": None}, "a task is a name or a Task, not NoneType"),
        ({"circuit": "lamprey"}, "unknown circuit 'lamprey'; valid: default, drive, paper"),
        ({"robot": "spot"}, "unknown robot 'spot'"),
        ({"target_speed": "fast"}, "a target speed is made of numbers, not of 'fast'"),
        ({"target_speed": np.nan}, "a target speed has numbers that are not finite"),
        ({"target_speed": np.inf}, "a target speed has numbers that are not finite"),
        ({"target_speed": 0}, "target_speed must be positive"),
        ({"target_speed": [1.0, 2.0]}, "a target speed is one number"),
        ({"render_mode": "human"}, "unknown render mode 'human'; valid: rgb_array"),
        ({"num_envs": 0}, "at least one environment is needed, not 0"),
        ({"num_envs": 10**9}, "up to 10,000 environments are possible, not 1000000000"),
        ({"num_envs": "two"}, "the number of environments is a whole number, not str"),
        ({"num_envs": 2, "threads": 0}, "at least one thread is needed, not 0"),
        ({"num_envs": 2, "threads": 10**6}, "up to 1,024 threads are possible"),
        ({"num_envs": 2, "max_episode_steps": 0}, "at least one step is needed, not 0"),
    ],
)
def test_environments_that_cannot_be_get_a_sentence(words, complaint):
    with pytest.raises(UserError, match=complaint):
        (WalkingVectorEnv if "num_envs" in words else WalkingEnv)(**words)


def test_the_environment_of_stable_baselines3_is_as_strict():
    pytest.importorskip("stable_baselines3")
    from ncap.learn.vec_env import vec_env

    env = vec_env("flat-walk", 2)
    with pytest.raises(UserError, match="call reset before step: no episode has begun"):
        env.step(np.zeros((2, 12)))
    env.reset()
    with pytest.raises(UserError, match="call step_async before step_wait"):
        env.step_wait()
    for actions, complaint in (
        (np.zeros((2, 8)), r"2 actions have the shape \(2, 12\), not \(2, 8\)"),
        (np.zeros(12), r"not \(12,\)"),
        (np.full((2, 12), np.nan), "an action has numbers that are not finite"),
        (None, "an action is made of numbers, not of NoneType"),
    ):
        with pytest.raises(UserError, match=complaint):
            env.step(actions)
    assert env.step(np.zeros((2, 12)).tolist())[0].shape == (2, 40)
    for words, complaint in (
        ({"seed": -1}, "a seed is a number from 0 on, not -1"),
        ({"seed": "x"}, "seeds are whole numbers"),
        ({"environments": 0}, "at least one robot is needed, not 0"),
        ({"threads": 0}, "at least one thread is needed, not 0"),
        ({"task": "fly"}, "unknown task 'fly'"),
    ):
        with pytest.raises(UserError, match=complaint):
            vec_env(**({"task": "flat-walk"} | words))


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("steps", [800, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", IDS)
def test_random_steps_stay_finite_and_take_no_more_memory(name, steps):
    env, rng = gymnasium.make(IDS[name], **MAKE), np.random.default_rng(0)
    env.reset(seed=0)
    for step in range(steps):
        observation, reward, fallen, truncated, _ = env.step(
            rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        )
        assert np.isfinite(observation).all()
        assert np.isfinite(reward)
        if fallen or truncated:
            env.reset()
        if step == steps // 4:
            before = resident()
    assert resident() - before < 8e6
