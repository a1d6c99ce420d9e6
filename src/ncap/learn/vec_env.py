"""The tasks as a vector environment for stable-baselines3, on the batched engine: `vec_env("flat-walk", 16)`.

Episodes are addressed by seed, epoch, environment and number, and every epoch begins with new ones. So nothing of the
simulation has to be saved between epochs, and a resumed run plays what an unbroken one would have played.
"""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from ncap import seeding
from ncap.errors import UserError
from ncap.learn.gym_env import make_task
from ncap.learn.interfaces import Array, Array32, Indices, Interface, Joints, check_actions
from ncap.policies.controller import check_seeds
from ncap.rollouts import Arena
from ncap.tasks import Task


class Practice(NamedTuple):
    """Episodes played in an epoch."""

    returns: list[float]
    """Returns of the episodes that ended, normalised as in an evaluation."""
    falls: int
    steps: int
    """Played in all environments together, also those of episodes that have not ended."""


class BatchedVecEnv(VecEnv):
    """Many robots on one engine. Call `begin` before an epoch; ended episodes are followed by new ones at once."""

    def __init__(
        self, task: Task, environments: int, interface: Interface, *, seed: int, reward_scale: float, threads: int
    ) -> None:
        self._arena, self._interface = Arena(task, environments, threads=threads), interface
        self._seed, self._epoch, self._reward_scale = check_seeds([seed])[0], 0, reward_scale
        self._actions: Array | None = None
        self._everybody = np.arange(environments)
        self._episodes, self._lived = np.zeros((2, environments), np.int64)
        self._returns = np.zeros(environments)
        self._practice = Practice([], 0, 0)
        limits = interface.action_limits
        self.sizes = interface.observation_size, len(limits)
        """Numbers in an observation and in an action."""
        seen = spaces.Box(-np.inf, np.inf, self.sizes[:1], np.float32)
        super().__init__(environments, seen, spaces.Box(-limits, limits))

    @property
    def epoch_steps(self) -> int:
        """Control steps of an epoch: a whole episode for a robot that does not fall."""
        return self._arena.task.steps

    def begin(self, epoch: int) -> None:
        """The next reset begins this epoch."""
        self._epoch, self._practice = epoch, Practice([], 0, 0)

    def practice(self) -> Practice:
        """Episodes played since the epoch began."""
        return self._practice

    def reset(self) -> Array32:
        """Begin an episode in every environment."""
        self._episodes[:] = 0
        self._start(self._everybody)
        return self._observation()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Remember the actions (P, A)."""
        if not self._episodes.any():
            raise UserError("call reset before step: no episode has begun")
        self._actions = check_actions(actions, self._interface, self.num_envs)

    def step_wait(self) -> tuple[Array32, Array32, NDArray[np.bool_], list[dict[str, Any]]]:
        """One control step. The last observation of an ended episode stands in its info."""
        if self._actions is None:
            raise UserError("call step_async before step_wait: there are no actions")
        outcome = self._arena.step(self._everybody, self._interface.joints(self._actions))
        observation, reward = self._observation(), outcome.reward
        self._lived += 1
        self._returns += reward
        truncated = ~outcome.fallen & (self._lived >= self._arena.task.steps)
        done = outcome.fallen | truncated
        returns, falls, steps = self._practice
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if done.any():
            ended = np.flatnonzero(done)
            for i in ended:
                infos[i] = {"terminal_observation": observation[i], "TimeLimit.truncated": bool(truncated[i])}
            returns += (self._returns[ended] / self._arena.task.steps).tolist()
            self._start(ended)
            observation = self._observation()
        self._practice = Practice(returns, falls + int(outcome.fallen.sum()), steps + self.num_envs)
        return observation, (reward * self._reward_scale).astype(np.float32), done, infos

    def _start(self, ids: Indices) -> None:
        seeds = [
            int(seeding.generator(self._seed, "training episode", self._epoch, int(i), int(number)).integers(2**31))
            for i, number in zip(ids, self._episodes[ids], strict=True)
        ]
        self._episodes[ids] += 1
        self._lived[ids], self._returns[ids] = 0, 0.0
        self._arena.start(ids, seeds)
        self._interface.start(ids, seeds)

    def _observation(self) -> Array32:
        return self._interface.observation(self._arena.observation(), self._arena.wish())

    def close(self) -> None:
        """Nothing to release."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of every environment, which is the same."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Environments have nothing of their own to set."""
        raise NotImplementedError

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Environments have no methods of their own."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Always False: environments have no wrappers."""
        return [False] * self.num_envs


def vec_env(task: str | Task, environments: int = 16, *, seed: int = 0, threads: int = 1) -> BatchedVecEnv:
    """A task for an agent of stable-baselines3 that sees all observations and moves all joints."""
    world = make_task(task, None, None)
    return BatchedVecEnv(world, environments, Joints(world), seed=seed, reward_scale=1.0, threads=threads)
