"""The tasks as a vector environment for stable-baselines3, on the batched engine.

Episodes are addressed by seed, epoch, environment and number, and every epoch begins with new ones. So nothing of the
simulation has to be saved between epochs, and a resumed run plays what an unbroken one would have played.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from ncap import seeding
from ncap.circuits.circuit import Circuit, CircuitState
from ncap.circuits.rhythm import rhythm_inputs
from ncap.policies.ncap import NCAPPolicy
from ncap.rollout import Arena
from ncap.tasks import Task

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]
Indices = NDArray[np.int64]

OBSERVED: Final = 40
DRIVES: Final = 8
LARGEST_DRIVE: Final = 10.0
"""Afferent drives are clipped here, far beyond what five reflexes of weight 1 can add up to."""


class Interface(Protocol):
    """What a policy sees of a robot and does to it."""

    observation_size: int
    action_limits: Array32
    """Actions lie within plus and minus these."""

    def start(self, ids: Indices, seeds: Sequence[int]) -> None:
        """Episodes with these seeds begin."""
        ...

    def observation(self, seen: Array) -> Array32:
        """(P, observation_size) from the robots' observations (P, leg, 10)."""
        ...

    def joints(self, action: Array) -> Array:
        """(P, leg, 3) joint actions from a policy's (P, A)."""
        ...


class Joints:
    """The policy sees the 40 observations and moves the 12 joints."""

    observation_size = OBSERVED
    action_limits = np.ones(12, np.float32)

    def start(self, ids: Indices, seeds: Sequence[int]) -> None:
        """Nothing to remember."""

    def observation(self, seen: Array) -> Array32:
        """All legs in a row."""
        return seen.reshape(len(seen), OBSERVED).astype(np.float32)

    def joints(self, action: Array) -> Array:
        """The actions themselves."""
        return action.reshape(-1, 4, 3)


class RhythmDrive:
    """The environment carries the rhythm generator: the policy sees its state too, drives it, and moves 8 joints.

    Action: 8 afferent drives (leg, half-centre), then 8 joint actions (leg, thigh and calf); hips are held at 0.
    """

    action_limits = np.repeat(np.array([LARGEST_DRIVE, 1.0], np.float32), DRIVES)

    def __init__(self, policy: NCAPPolicy, environments: int) -> None:
        self.circuit, self.command = policy.circuit, policy.command
        self._controller = policy.bind(np.tile(policy.space.initial, (1, 1)))
        self._state = self._controller.reset([0] * environments)
        self.observation_size = OBSERVED + flat_state(self._state).shape[1]

    def start(self, ids: Indices, seeds: Sequence[int]) -> None:
        """The rhythm begins where it does in any other episode of these seeds."""
        for mine, new in zip(self._state, self._controller.reset(seeds), strict=True):
            mine[ids] = new

    def observation(self, seen: Array) -> Array32:
        """40 observations, then the circuit's state."""
        return np.concatenate((seen.reshape(len(seen), OBSERVED), flat_state(self._state)), axis=1).astype(np.float32)

    def joints(self, action: Array) -> Array:
        """Step the rhythm with the drives; the joints take what is left."""
        self._state = driven(self.circuit, self.command, self._state, action[:, :DRIVES])
        joints = np.zeros((len(action), 4, 3))
        joints[..., 1:] = action[:, DRIVES:].reshape(-1, 4, 2)
        return joints


def driven(circuit: Circuit, command: float, state: CircuitState, drives: Array) -> CircuitState:
    """The rhythm generator a control step later, with drives (P, 8) by leg and half-centre."""
    by_leg = drives.reshape(-1, 4, 2)
    return circuit.step(state, rhythm_inputs(np.full(len(drives), command), by_leg[..., 0], by_leg[..., 1]))


def flat_state(state: CircuitState) -> Array:
    """A circuit's state as (P, numbers)."""
    return np.concatenate(state, axis=1, dtype=np.float64)


def unflat_state(circuit: Circuit, flat: Array) -> CircuitState:
    """The inverse of `flat_state`."""
    like = circuit.reset_to(np.zeros((1, len(circuit.columns("flexor")))))
    signals, adaptation, active, voltage = np.split(flat, np.cumsum([part.shape[1] for part in like])[:-1], axis=1)
    return CircuitState(signals, adaptation, active > 0.5, voltage)


class Practice(NamedTuple):
    """What was played in an epoch."""

    returns: list[float]
    """Of the episodes that ended, normalised as in an evaluation."""
    falls: int
    steps: int
    """Played in all environments together, also those of episodes that have not ended."""


class BatchedVecEnv(VecEnv):
    """Many robots on one engine. Call `begin` before an epoch; ended episodes are followed by new ones at once."""

    def __init__(
        self, task: Task, environments: int, interface: Interface, *, seed: int, reward_scale: float, threads: int
    ) -> None:
        self._arena, self._interface = Arena(task, environments, threads=threads), interface
        self._seed, self._epoch, self._reward_scale = seed, 0, reward_scale
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
        """What was played since the epoch began."""
        return self._practice

    def reset(self) -> Array32:
        """Begin an episode in every environment."""
        self._episodes[:] = 0
        self._start(self._everybody)
        return self._observation()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Remember the actions (P, A)."""
        self._actions = np.asarray(actions, np.float64)

    def step_wait(self) -> tuple[Array32, Array32, NDArray[np.bool_], list[dict[str, Any]]]:
        """One control step. The last observation of an ended episode stands in its info."""
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
        return self._interface.observation(self._arena.observation())

    def close(self) -> None:
        """Nothing to release."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same for every environment."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Environments have nothing of their own to set."""
        raise NotImplementedError

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Environments have no methods of their own."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Never."""
        return [False] * self.num_envs
