"""The tasks as Gymnasium environments, known to Gymnasium once this module is imported.

    import gymnasium, ncap.learn.gym_env
    env = gymnasium.make("ncap/FlatWalk-v0")
    envs = gymnasium.make_vec("ncap/FlatWalk-v0", num_envs=16)  # on the batched engine

Observation: 40 numbers in [-1, 1], per leg (FL, FR, HL, HR) position, torque and velocity of hip, thigh and calf, and
foot contact. Action: 12 numbers in [-1, 1], per leg hip, thigh and calf; 0 is the standing pose. An episode is
truncated after the task's 15 s and terminated by a fall.
"""

from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ncap.rollout import Arena, Outcome
from ncap.tasks import TASKS, Task, find_task

Array32 = NDArray[np.float32]

IDS: Final = {name: f"ncap/{name.title().replace('-', '')}-v0" for name in TASKS}
"""Gymnasium's id of every task."""

_OBSERVATION: Final = spaces.Box(-1.0, 1.0, (40,), np.float32)
_ACTION: Final = spaces.Box(-1.0, 1.0, (12,), np.float32)
_SEEDS: Final = 2**31


class WalkingEnv(gymnasium.Env[Array32, Array32]):
    """One robot."""

    metadata: Final = {"render_modes": ["rgb_array"], "render_fps": 33}  # type: ignore[misc]

    def __init__(self, task: str | Task, render_mode: str | None = None) -> None:
        self.task = find_task(task) if isinstance(task, str) else task
        self.render_mode = render_mode
        self.observation_space, self.action_space = _OBSERVATION, _ACTION
        self._arena = Arena(self.task, 1)
        self._ids, self._step = np.zeros(1, np.int64), 0
        self._camera: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array32, dict[str, Any]]:
        """Begin an episode whose friction, terrain and start come from the seed."""
        super().reset(seed=seed)
        self._step = 0
        self._arena.start(self._ids, [int(self.np_random.integers(_SEEDS))])
        if self._camera is not None:
            self._camera.close()
            self._camera = None
        return _flat(self._arena)[0], {}

    def step(self, action: Array32) -> tuple[Array32, float, bool, bool, dict[str, Any]]:
        """One control step of 30 ms."""
        outcome = self._arena.step(self._ids, _legs(action[None]))
        self._step += 1
        return (
            _flat(self._arena)[0],
            float(outcome.reward[0]),
            bool(outcome.fallen[0]),
            self._step >= self.task.steps,
            {name: float(values[0]) for name, values in _info(outcome).items()},
        )

    def render(self) -> Any:
        """A picture (480, 640, 3) if render_mode is rgb_array."""
        if self.render_mode is None:
            return None
        if self._camera is None:
            self._camera = self._arena.camera(0)
        return self._camera.picture(self._arena.state(0))

    def close(self) -> None:
        """Give the drawing context back."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None


class WalkingVectorEnv(VectorEnv[Array32, Array32, NDArray[Any]]):
    """Many robots on the batched engine. A robot whose episode has ended begins the next one with its next step."""

    metadata: Final = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # type: ignore[misc]

    def __init__(self, task: str | Task, num_envs: int = 1, threads: int = 1) -> None:
        self.task = find_task(task) if isinstance(task, str) else task
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _OBSERVATION, _ACTION
        self.observation_space, self.action_space = batch_space(_OBSERVATION, num_envs), batch_space(_ACTION, num_envs)
        self._arena = Arena(self.task, num_envs, threads=threads)
        self._steps, self._ended = np.zeros(num_envs, np.int64), np.zeros(num_envs, bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array32, dict[str, Any]]:
        """Begin an episode with every robot."""
        super().reset(seed=seed)
        self._begin(np.arange(self.num_envs))
        return _flat(self._arena), {}

    def step(
        self, actions: Array32
    ) -> tuple[Array32, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """One control step; robots that begin an episode have reward 0 in it."""
        going, beginning = np.flatnonzero(~self._ended), np.flatnonzero(self._ended)
        outcome = self._arena.step(going, _legs(actions))
        self._steps[going] += 1
        if len(beginning):
            self._begin(beginning)
        reward, fallen = np.where(self._steps > 0, outcome.reward, 0.0), outcome.fallen & (self._steps > 0)
        truncated = self._steps >= self.task.steps
        self._ended = fallen | truncated
        return _flat(self._arena), reward, fallen, truncated, _info(outcome)

    def _begin(self, ids: NDArray[np.int64]) -> None:
        self._steps[ids], self._ended[ids] = 0, False
        self._arena.start(ids, [int(seed) for seed in self.np_random.integers(_SEEDS, size=len(ids))])


def _legs(action: Array32) -> NDArray[np.float64]:
    return np.asarray(action, np.float64).reshape(-1, 4, 3)


def _flat(arena: Arena) -> Array32:
    return arena.observation().reshape(-1, 40).astype(np.float32)


def _info(outcome: Outcome) -> dict[str, Any]:
    return {f"reward_{name}": values for name, values in outcome.terms.items()}


for _name, _identifier in IDS.items():
    gymnasium.register(
        _identifier,
        entry_point="ncap.learn.gym_env:WalkingEnv",
        vector_entry_point="ncap.learn.gym_env:WalkingVectorEnv",
        kwargs={"task": _name},
    )
