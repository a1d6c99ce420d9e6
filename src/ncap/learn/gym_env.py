"""The tasks as Gymnasium environments; ncap.envs makes them known to Gymnasium.

    env = gymnasium.make("ncap.envs:ncap/FlatWalk-v0")
    envs = gymnasium.make_vec("ncap.envs:ncap/FlatWalk-v0", num_envs=16)  # on the batched engine

Observation: numbers in [-1, 1], per leg (FL, FR, HL, HR) position, torque and velocity of hip, thigh and calf, and foot
contact; where wishes change, then the wanted speed and yaw rate, and the yaw rate. Action: numbers in [-1, 1], per leg
hip, thigh and calf; 0 is the standing pose. Of a swimmer (swim, navigate; robot="swimmer-12" has twelve links) per
joint its bend and the rate of that, then forward, sideways and turning velocity of the link in front of it; where there
is a target, then its place (ahead, left); an action is a torque per joint. An episode is truncated after the task's 15,
20 or 30 s and terminated by a fall. With `circuit` the environment carries that circuit's rhythm generator: see
ncap.learn.interfaces.RhythmDrive for what the agent sees and does then.
"""

from dataclasses import replace
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ncap.circuits.animal import find_circuit
from ncap.errors import UserError, unknown_name
from ncap.learn.interfaces import Interface, Joints, RhythmDrive, check_actions
from ncap.policies.controller import MOST_INDIVIDUALS, check_seeds, finite
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import Arena, Outcome, check_count
from ncap.tasks import Task, find_task, with_robot

Array32 = NDArray[np.float32]

_SEEDS: Final = 2**31


def make_task(task: str | Task, target_speed: float | None, robot: str | None) -> Task:
    """A task, perhaps at another target speed (m/s) or with another robot."""
    found = find_task(task) if isinstance(task, str) else task
    if not isinstance(found, Task):
        raise UserError(f"a task is a name or a Task, not {type(task).__name__}")
    if target_speed is not None:
        speed = finite(target_speed, "a target speed")
        if speed.ndim:
            raise UserError(f"a target speed is one number, not the shape {speed.shape}")
        found = replace(found, target_speed=float(speed))
    return found if robot is None else with_robot(found, robot)


def make_interface(task: Task, circuit: str | None, environments: int) -> Interface:
    """What an agent sees and does: everything itself, or by driving the rhythm generator of a circuit."""
    if circuit is None:
        return Joints(task)
    if task.steered:
        raise UserError(f"{task.name} has wishes that change, which a circuit within an environment does not hear")
    table = find_circuit(circuit).on(task.robot.plan)
    return RhythmDrive(NCAPPolicy(command=task.command, circuit=table), environments)


class WalkingEnv(gymnasium.Env[Array32, Array32]):
    """One robot."""

    metadata: Final = {"render_modes": ["rgb_array"], "render_fps": 33}  # type: ignore[misc]

    def __init__(
        self,
        task: str | Task = "flat-walk",
        *,
        target_speed: float | None = None,
        robot: str | None = None,
        circuit: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown_name("render mode", str(render_mode), self.metadata["render_modes"])
        self.task = make_task(task, target_speed, robot)
        self.render_mode = render_mode
        self._interface = make_interface(self.task, circuit, 1)
        self.observation_space, self.action_space = _spaces(self._interface, circuit)
        self._arena = Arena(self.task, 1)
        self._ids = np.zeros(1, np.int64)
        self._step, self._ended = -1, False  # no step before the first reset
        self._camera: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array32, dict[str, Any]]:
        """Begin an episode whose friction, terrain and start come from the seed."""
        super().reset(seed=_checked(seed))
        self._step, self._ended = 0, False
        seeds = [int(self.np_random.integers(_SEEDS))]
        self._arena.start(self._ids, seeds)
        self._interface.start(self._ids, seeds)
        self._forget_camera()
        return self._observation(), {}

    def step(self, action: Array32) -> tuple[Array32, float, bool, bool, dict[str, Any]]:
        """One control step of 30 ms."""
        if self._step < 0 or self._ended:
            why = "the episode has ended" if self._ended else "no episode has begun"
            raise UserError(f"call reset before step: {why}")
        actions = check_actions(action, self._interface, None)
        outcome = self._arena.step(self._ids, self._interface.joints(actions))
        self._step += 1
        fallen, truncated = bool(outcome.fallen[0]), self._step >= self.task.steps
        self._ended = fallen or truncated
        info = {name: float(values[0]) for name, values in _info(outcome).items()}
        return self._observation(), float(outcome.reward[0]), fallen, truncated, info

    def _observation(self) -> Array32:
        seen: Array32 = self._interface.observation(self._arena.observation(), self._arena.wish())[0]
        return seen

    def render(self) -> Any:
        """A picture (480, 640, 3) if render_mode is rgb_array."""
        if self.render_mode is None:
            return None
        if self._camera is None:
            self._camera = self._arena.camera(0)
        return self._camera.picture(self._arena.state(0))

    def close(self) -> None:
        """Release the drawing context."""
        self._forget_camera()

    def _forget_camera(self) -> None:
        if self._camera is not None:
            self._camera.close()
            self._camera = None


class WalkingVectorEnv(VectorEnv[Array32, Array32, NDArray[Any]]):
    """Many robots on the batched engine. A robot whose episode has ended begins the next one with its next step."""

    metadata: Final = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # type: ignore[misc]

    def __init__(
        self,
        task: str | Task = "flat-walk",
        num_envs: int = 1,
        *,
        target_speed: float | None = None,
        robot: str | None = None,
        circuit: str | None = None,
        max_episode_steps: int | None = None,
        threads: int = 1,
    ) -> None:
        self.task = make_task(task, target_speed, robot)
        self.num_envs = num_envs = check_count(num_envs, "environment", MOST_INDIVIDUALS)
        if max_episode_steps is not None:
            check_count(max_episode_steps, "step", 2**31)
        self._interface = make_interface(self.task, circuit, num_envs)
        self.single_observation_space, self.single_action_space = _spaces(self._interface, circuit)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._arena = Arena(self.task, num_envs, threads=threads)
        self._longest = min(self.task.steps, max_episode_steps or self.task.steps)
        self._steps, self._ended = np.full(num_envs, -1), np.zeros(num_envs, bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array32, dict[str, Any]]:
        """Begin an episode with every robot."""
        super().reset(seed=_checked(seed))
        self._begin(np.arange(self.num_envs))
        return self._observation(), {}

    def step(
        self, actions: Array32
    ) -> tuple[Array32, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """One control step; robots that begin an episode have reward 0 in it."""
        if self._steps[0] < 0:
            raise UserError("call reset before step: no episode has begun")
        going, beginning = np.flatnonzero(~self._ended), np.flatnonzero(self._ended)
        outcome = self._arena.step(
            going, self._interface.joints(check_actions(actions, self._interface, self.num_envs))
        )
        self._steps[going] += 1
        if len(beginning):
            self._begin(beginning)
        reward, fallen = np.where(self._steps > 0, outcome.reward, 0.0), outcome.fallen & (self._steps > 0)
        truncated = self._steps >= self._longest
        self._ended = fallen | truncated
        return self._observation(), reward, fallen, truncated, _info(outcome)

    def _observation(self) -> Array32:
        return self._interface.observation(self._arena.observation(), self._arena.wish())

    def _begin(self, ids: NDArray[np.int64]) -> None:
        self._steps[ids], self._ended[ids] = 0, False
        seeds = [int(seed) for seed in self.np_random.integers(_SEEDS, size=len(ids))]
        self._arena.start(ids, seeds)
        self._interface.start(ids, seeds)


def _spaces(interface: Interface, circuit: str | None) -> tuple[Any, Any]:
    """Spaces of observations and of actions. A circuit's state is not bounded by 1."""
    limit = 1.0 if circuit is None else np.inf
    seen = spaces.Box(-limit, limit, (interface.observation_size,), np.float32)
    return seen, spaces.Box(-interface.action_limits, interface.action_limits)


def _checked(seed: int | None) -> int | None:
    """The seed of a reset, if it is one; None goes on with the generator of the last."""
    return None if seed is None else check_seeds([seed])[0]


def _info(outcome: Outcome) -> dict[str, Any]:
    return {f"reward_{name}": values for name, values in outcome.terms.items()}
