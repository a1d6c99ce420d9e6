import numpy as np
import pytest


class PointEnv:
    """A point on a line that should go to 0: it moves by 0.2 times the action; the reward is 1 minus the distance.

    Starts are uniform in [-1, 1], so doing nothing gives 0.5 on average. Going straight there gives, from distance u,
    a loss of about u²/(2 · 0.2) over the 20 steps, on average 1/3/0.4/20 = 0.04: the best is about 0.96.
    """

    num_envs, epoch_steps, sizes = 16, 20, (1, 1)
    render_mode = None

    def __init__(self, reward_scale=1.0):
        from gymnasium import spaces

        self.observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)
        self.reward_scale = reward_scale
        self.begin(0)

    def begin(self, epoch):
        self.rng = np.random.default_rng([7, epoch])

    def reset(self):
        self.t, self.x = 0, self.rng.uniform(-1, 1, 16)
        return self.observation()

    def observation(self):
        return self.x[:, None].astype(np.float32)

    def step_async(self, actions):
        self.x = self.x + 0.2 * np.clip(actions[:, 0], -1, 1)

    def step_wait(self):
        self.t += 1
        reward, done = (1 - np.abs(self.x)) * self.reward_scale, np.full(16, self.t == 20)
        infos = [{} for _ in range(16)]
        following = self.observation()
        if done[0]:
            infos = [{"terminal_observation": one, "TimeLimit.truncated": True} for one in following]
            following = self.reset()
        return following, reward.astype(np.float32), done, infos

    def score(self, act):
        """Mean reward of a policy without noise."""
        self.begin(10**6)
        observation, total = self.reset(), 0.0
        for _ in range(20):
            self.step_async(act(observation))
            observation, reward, *_ = self.step_wait()
            total += reward.mean() / self.reward_scale / 20
        return total


@pytest.fixture
def one_thread():
    """Torch with one thread, as within `train`: many would make small networks slow on a busy machine."""
    pytest.importorskip("torch")
    from ncap.learn.networks import one_torch_thread

    with one_torch_thread():
        yield


@pytest.fixture
def point_env(one_thread):
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")

    class PointVecEnv(PointEnv, vec_env.VecEnv):
        close = get_attr = set_attr = env_method = env_is_wrapped = None

    return PointVecEnv
