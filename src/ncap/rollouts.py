"""Closed-loop episodes of a whole population: the one room where bodies and brains meet.

Shapes: P individuals, T control steps. Individual i plays the episode of seeds[i]; equal seeds give equal friction,
terrain and start, so that candidates are compared on the same episode (common random numbers).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError, unknown_name
from ncap.policies.controller import MOST_INDIVIDUALS, Command, Controller, check_seeds, numbers
from ncap.policies.mlp import MLPController
from ncap.policies.seeker import Guide
from ncap.rewards import FALL, STRIDE, Goal
from ncap.rotations import heading_of, pitch_of, roll_of
from ncap.sim.bodies import legged
from ncap.sim.camera import Camera
from ncap.sim.legs import foot_forces, legs_of
from ncap.sim.robot import Robot
from ncap.sim.simulation import Measurements, Simulation
from ncap.tasks import FASTEST, SHARPEST, Task, build, drawn_variation
from ncap.threads import one_blas_thread

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

FASTEST_TURN: Final = 3.0
"""Yaw rate that is 1 in a wish, rad/s."""
FARTHEST: Final = 3.0
"""Distance to a target that is 1 in a wish, m."""
LOST_HEIGHT: Final = -1.0
"""Height of a trunk that has left the world, m."""


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """Results of a rollout, one entry per individual."""

    returns: Array
    """(P,) normalised: the sum of rewards divided by the number of steps of a full episode; 1 is the best."""
    terms: dict[str, Array]
    """(P,) the same, split into its named terms."""
    steps: NDArray[np.int64]
    """(P,) control steps lived."""
    fell: Mask
    """(P,) fell, for whatever reason."""
    diverged: Mask
    """(P,) the simulation itself failed, which counts as a fall."""
    distance: Array
    """(P,) travelled forward along the world's x, m."""
    signals: dict[str, Array]
    """(P, T, …) what was asked for in `record`, NaN after a fall."""


class Outcome(NamedTuple):
    """Results of a control step, (P,) each."""

    terms: dict[str, Array]
    """Named reward terms."""
    fallen: Mask
    """Fell in this step, for whatever reason."""
    diverged: Mask
    """The simulation itself failed in this step, which counts as a fall."""

    @property
    def reward(self) -> Array:
        """Sum of the terms."""
        return np.asarray(sum(self.terms.values()))


MOST_THREADS: Final = 1024


def check_count(number: object, what: str, most: int) -> int:
    """A whole number from 1 to `most` of something whose name stands in the singular; otherwise an error."""
    try:
        found = index(number)  # type: ignore[arg-type]
    except TypeError:
        raise UserError(f"the number of {what}s is a whole number, not {type(number).__name__}") from None
    if found < 1:
        raise UserError(f"at least one {what} is needed, not {found}")
    if found > most:
        raise UserError(f"up to {most:,} {what}s are possible, not {found}")
    return found


class Arena:
    """P robots that play a task, each in its own episode. Gymnasium's environments and `rollout` both run on it."""

    def __init__(self, task: Task, individuals: int, *, threads: int = 1) -> None:
        check_count(threads, "thread", MOST_THREADS)
        check_count(individuals, "robot", MOST_INDIVIDUALS)
        self.task, self.world = task, build(task)
        numb = isinstance(task.robot, Robot) and task.robot.foot_sensors is False
        self._legs = legs_of(legged(task.robot)) if numb else None
        self.simulation = Simulation(self.world, individuals, control_dt=task.control_dt, threads=threads)
        self.measured: Measurements
        self.goal = Goal(np.full(individuals, task.target_speed), *np.zeros((3, individuals)))
        self.targets = np.zeros((individuals, 2))
        """(P, 2) x and y of everybody's target, m; 0 in a task without one."""
        self._wishes = np.zeros((individuals, task.steps, 2)) if task.drive else None
        self._stride = np.zeros((individuals, round(STRIDE / task.control_dt), 2))
        self._lived = np.zeros(individuals, np.int64)
        self._late = np.zeros((task.latency, individuals, *task.joints))
        self._seeds = np.zeros(individuals, np.int64)

    def start(self, ids: Indices, seeds: Sequence[int]) -> None:
        """Begin the episodes of these seeds: equal seeds give equal friction, terrain and start."""
        episodes = {}
        for seed in dict.fromkeys(seeds):
            model = self.world.variant(drawn_variation(self.task, seed))
            draws = seeding.generator(seed, "start")
            episodes[seed] = (model, *self.world.standing(model, *self.task.robot.start(draws, self.task.start_noise)))
        models, qpos, qvel = zip(*(episodes[seed] for seed in seeds), strict=True)
        self.goal.speed[ids] = [self.task.pace(seed).speed for seed in seeds]
        self._lived[ids] = 0
        self._stride[ids] = 0.0
        self._late[:, ids] = self.task.robot.at_rest(self.task.robot.mid)
        self._seeds[ids] = seeds
        if self._wishes is not None:
            self._wishes[ids] = [self.task.wishes(seed) for seed in seeds]
            self._ask()
        if self.task.target is not None:
            self.targets[ids] = [self.task.target.place(seed) for seed in seeds]
        self.simulation.place(ids, models, np.array(qpos), np.array(qvel))
        self.measured = self.simulation.measure()
        self._aim()

    def observation(self) -> Array:
        """(P, site, sense) in [-1, 1], with the posture at the end, a new array; 0 where a simulation has failed.

        Where feet have no sensors, their forces are estimated from the torques of the joints.
        """
        now = self.measured
        if self._legs is not None:
            now = now._replace(foot_force=foot_forces(now.joint_position, now.torque, self._legs))
        seen = self.task.robot.seen(now)
        seen[np.isnan(seen)] = 0.0
        return seen if not self.task.sensor_noise else np.clip(seen + self._noise(seen.shape[1:]), -1.0, 1.0)

    def _noise(self, shape: tuple[int, ...]) -> Array:
        """(P, *shape) noise on observations, addressed by the episode's seed and the control step."""
        now = zip(self._seeds.tolist(), self._lived.tolist(), strict=True)
        draws = [seeding.generator(seed, "sensor noise", step).normal(size=shape) for seed, step in now]
        return self.task.sensor_noise * np.array(draws)

    def motion(self) -> tuple[Array, Array]:
        """(forward speed m/s, yaw rate about the vertical rad/s), (P,) each; 0 where a simulation has failed."""
        now = self.measured
        return np.nan_to_num(now.velocity[:, 0]), np.nan_to_num((now.up * now.angular_velocity).sum(axis=1))

    def wish(self) -> Array:
        """(P, wish_size) in [-1, 1]: the wanted speed and yaw rate, and the yaw rate now, or where the target is.

        Empty in other tasks.
        """
        if self.task.target is not None:
            place: Array = np.clip(np.stack((self.goal.ahead, self.goal.left), axis=1) / FARTHEST, -1.0, 1.0)
            return place
        if self._wishes is None:
            return np.zeros((len(self._lived), 0))
        scaled = self.goal.speed / FASTEST, self.goal.yaw_rate / SHARPEST, self.motion()[1] / FASTEST_TURN
        return np.clip(np.stack(scaled, axis=1), -1.0, 1.0)

    def state(self, individual: int) -> Array:
        """The generalised position (nq,) of an individual, for a camera."""
        return self.simulation.state(individual)

    def camera(self, individual: int) -> Camera:
        """A camera for the episode that an individual plays now."""
        return Camera(self.simulation.model(individual), self.world.trunk_id)

    def step(self, alive: Indices, action: Array) -> Outcome:
        """One control step of the individuals `alive`, with actions (P, site, joint) in [-1, 1]."""
        targets = self.task.robot.targets(action)
        if self.task.latency:
            self._late = np.concatenate((self._late, targets[None]))
            targets, self._late = self._late[0], self._late[1:]
        return self.move(alive, targets)

    def move(self, alive: Indices, targets: Array) -> Outcome:
        """One control step of the individuals `alive` with joint targets (P, leg, 3) in rad, whatever actions reach.

        For bodies whose motors hold no positions they are what the body makes of actions.
        """
        failed = self.simulation.step(alive, targets)
        self.measured = now = self.simulation.measure()
        self._aim()
        diverged = np.zeros(len(targets), bool)
        diverged[failed] = True
        limit = np.deg2rad(self.task.fall_deg)
        upright = (np.abs(roll_of(now.up)) <= limit) & (np.abs(pitch_of(now.up)) <= limit)
        below = now.position[:, 2] < LOST_HEIGHT  # beyond the end of the ground
        fallen = ~upright | now.trunk_touches | below | diverged
        seen = now if self._wishes is None else self._over_a_stride(now)
        terms = {
            term.name: np.where(diverged, 0.0, term.value(seen, self.goal, self.task)) for term in self.task.rewards
        }
        terms[FALL] = np.where(fallen, -self.task.fall_penalty, 0.0)
        self._lived[alive] += 1
        if self._wishes is not None:
            self._ask()
        return Outcome(terms, fallen, diverged)

    def _over_a_stride(self, now: Measurements) -> Measurements:
        """The same with means over the last STRIDE for forward velocity and yaw rate, which a drive rewards."""
        everybody, length = np.arange(len(self._lived)), self._stride.shape[1]
        self._stride[everybody, self._lived % length] = np.stack(self.motion(), axis=1)
        means = self._stride.sum(axis=1) / np.minimum(self._lived + 1, length)[:, None]
        velocity, turning = now.velocity.copy(), now.angular_velocity.copy()
        velocity[:, 0], turning[:, 2] = means.T
        return now._replace(velocity=velocity, angular_velocity=turning)

    def _aim(self) -> None:
        """Where everybody's target is now, seen from the nose."""
        if self.task.target is None:
            return
        now = self.measured
        heading = heading_of(now.quaternion)
        east, north = np.nan_to_num(self.targets - now.position[:, :2]).T
        self.goal.ahead[:] = np.cos(heading) * east + np.sin(heading) * north - self.task.robot.nose
        self.goal.left[:] = np.cos(heading) * north - np.sin(heading) * east

    def _ask(self) -> None:
        """What everybody is asked for in the next step of a task whose wishes change."""
        assert self._wishes is not None
        now = self._wishes[np.arange(len(self._lived)), np.minimum(self._lived, self.task.steps - 1)]
        self.goal.speed[:], self.goal.yaw_rate[:] = now.T


@one_blas_thread()
def rollout(
    task: Task,
    controller: Controller,
    seeds: Sequence[int],
    *,
    command: Command | Guide | None = None,
    threads: int = 1,
    record: Sequence[str] = (),
) -> Episodes:
    """Play one episode per seed, individual i controlled by row i of the controller.

    command: what the brainstem says all the time; a Brainstem or a Seeker that says what the task's wishes need; None:
    the policy's own. record: names of signals to keep: fields of Measurements, "observation", "action", "reward",
    "wanted" (speed, yaw rate), "target" (ahead, left), the "command" of what guides, reward terms, and the controller's
    own. Individuals that have fallen are no longer stepped.
    """
    seeds = check_seeds(seeds)
    individuals = len(seeds)
    arena, alive = Arena(task, individuals, threads=threads), np.arange(individuals)
    arena.start(alive, seeds)
    fell, diverged = np.zeros(individuals, bool), np.zeros(individuals, bool)
    steps = np.zeros(individuals, np.int64)
    sums = {name: np.zeros(individuals) for name in (*(term.name for term in task.rewards), FALL)}
    start_x = arena.measured.position[:, 0]
    final_x = start_x.copy()
    signals: dict[str, Array] = {}
    said: Command | None = None if isinstance(command, Guide) else command
    will: Any = command.start(individuals) if isinstance(command, Guide) else None
    state = controller.reset(seeds, said)
    for t in range(task.steps):
        observation = arena.observation()
        observation[fell] = 0.0
        wanted, target = np.stack(arena.goal[:2], axis=1), np.stack(arena.goal[2:], axis=1)
        if isinstance(command, Guide):
            will, said = command.step(will, arena.goal, arena.motion(), task.control_dt)
        elif isinstance(controller, MLPController):
            said = {"wish": arena.wish()}
        state, action = controller.act(state, observation, said)
        action = numbers(action, "an action")
        if action.shape != (individuals, *task.joints):
            needed = (individuals, *task.joints)
            raise UserError(f"the controller's actions have the shape {action.shape}, but {needed} is needed")
        outcome = arena.step(alive, action)
        playing = slice(None) if len(alive) == individuals else alive
        steps[playing] += 1
        for name, values in outcome.terms.items():
            sums[name][playing] += values[playing]
        sound = alive[~outcome.diverged[alive]]
        final_x[sound] = arena.measured.position[sound, 0]
        if record:
            now = arena.measured._asdict() | {
                "observation": observation,
                "action": action,
                "reward": outcome.reward,
                "wanted": wanted,
                "target": target,
            }
            if isinstance(command, Guide) and isinstance(said, Mapping):
                now["command"] = said["c"]
            _keep(signals, record, now | outcome.terms | controller.signals(state), t, task.steps, alive)
        if outcome.fallen[alive].any():
            diverged |= outcome.diverged
            fell[alive] = outcome.fallen[alive]
            alive = np.flatnonzero(~fell)
            if not len(alive):
                break
    terms = {name: values / task.steps for name, values in sums.items()}
    return Episodes(
        returns=np.sum(list(terms.values()), axis=0),
        terms=terms,
        steps=steps,
        fell=fell,
        diverged=diverged,
        distance=final_x - start_x,
        signals=signals,
    )


def _keep(
    kept: dict[str, Array], record: Sequence[str], now: dict[str, Array], t: int, steps: int, alive: Indices
) -> None:
    for name in record:
        if name not in now:
            raise unknown_name("signal", name, now)
        value = np.asarray(now[name])
        if name not in kept:
            kept[name] = np.full((len(value), steps, *value.shape[1:]), np.nan)
        kept[name][alive, t] = value[alive]
