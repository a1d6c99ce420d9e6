"""The simulation behind the live page: a robot, perhaps a ghost, and everything that a person can do to them.

It has no page: `change`, `click`, `push`, `reset` and `step` are called by the program that shows it. Not thread-safe:
one thread calls everything.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis.gaits import Gait, measure_gait
from ncap.circuits.rhythm import EXTENSOR_STANCE
from ncap.errors import UserError, unknown_name
from ncap.evaluation import cost_of_transport, foot_gait, motor_power, own_command, task_for
from ncap.policies.brainstem import Brainstem
from ncap.rewards import FALL
from ncap.righting import GettingUp, within
from ncap.rollouts import Arena
from ncap.sim.terrain import Bumpy, Flat, Terrain
from ncap.tasks import Task, drawn_variation
from ncap.threads import one_blas_thread
from ncap.trained import TrainedPolicy, load
from ncap.view.brain import Brain, toggled, valid_knock_outs
from ncap.view.controls import GET_UP, RANGES, START_ANEW, Controls
from ncap.view.paths import Paths
from ncap.view.reading import GAIT_WINDOWS, Moment, Reading

Array = NDArray[np.float64]

PUSHES: Final = {"forward": (1.0, 0.0), "back": (-1.0, 0.0), "left": (0.0, 1.0), "right": (0.0, -1.0)}
"""Directions of a push: unit vectors in the world, x forward and y to the left."""
MAX_PUSH: Final = 40.0
"""Largest impulse of a push, N s."""
HISTORY: Final = 6.0
"""Time that is remembered, s."""
FIRST_SPEED: Final = 0.3
"""Speed at which a robot that can be driven begins, m/s."""
KEY_STEP: Final = {"speed": 0.1, "yaw_rate": 0.1}
"""What a press of a key changes, m/s and rad/s."""
FALL_PAUSE: Final = 1.5
"""Time between a fall and the next start, or the first move of a robot that gets up, s."""
EDGE: Final = 1.5
"""Distance from the end of a height field at which the robot starts again, m."""
ROBOT, GHOST = 0, 1
"""Individuals of the simulation."""


class Session:
    """A robot in a task that goes on without end: after a fall it gets up, or starts again with the next seed."""

    def __init__(
        self,
        task: Task,
        policy: str | TrainedPolicy,
        *,
        ghost: str | TrainedPolicy | None = None,
        without: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        if seed < 0:
            raise UserError(f"seed {seed} is negative: seeds are 0, 1, 2, …")
        self.seed, self.falls = seed, 0
        self._base = task
        self._given = {given.name: given for given in (policy, ghost) if isinstance(given, TrainedPolicy)}
        self.brain = self._brain(policy if isinstance(policy, str) else policy.name)
        self.brain.knock_out(without)
        self.ghost: Brain | None = None
        if ghost is not None:
            self.ghost = self._brain(ghost if isinstance(ghost, str) else ghost.name)
        self.controls = Controls(
            policy=self.brain.name,
            ghost=None if self.ghost is None else self.ghost.name,
            command=self.brain.command,
            without=self.brain.without,
            target_speed=task.target_speed,
            bumpiness=task.terrain.bumpiness if isinstance(task.terrain, Bumpy) else 0.0,
            kp=task.robot.kp if task.variation.kp is None else task.variation.kp,
            kd=task.robot.kd if task.variation.kd is None else task.variation.kd,
            trunk_mass_scale=task.variation.trunk_mass_scale,
            can_be_driven=self.brain.can_be_driven,
            driven=self.brain.can_be_driven,
            speed=FIRST_SPEED if self.brain.can_be_driven else 0.0,
        )
        self._first = self.controls
        self.ranges = {
            name: (low, high) if value is None else (min(low, value), max(high, value))
            for name, (low, high) in RANGES.items()
            for value in (getattr(self.controls, name),)
        }
        """Bounds of the controls that are numbers."""
        self._brainstem = Brainstem()
        self.spoken = 0.0
        """The command that the brainstem gave last, in [0, 1]."""
        self.arena: Arena
        self._build()
        self.can_get_up = within(*self.arena.world.joint_limits)
        """Whether the robot's joints reach the poses of getting up."""
        if not self.can_get_up:
            self.controls = replace(self.controls, after_fall=START_ANEW)

    def _brain(self, name: str) -> Brain:
        """A policy of that name, ready for the session's task."""
        trained = self._given[name] if name in self._given else load(name)
        task_for(trained, self._base, self._base.robot.name)  # refuses a policy with another control step
        own = own_command(trained, replace(self._base, drive=None))
        return Brain(trained, own if isinstance(own, float) else None)

    @property
    def control_dt(self) -> float:
        """Control step, s."""
        return self._base.control_dt

    def _task(self) -> Task:
        """The task as it is now set."""
        now = self.controls
        return replace(
            self._base,
            target_speed=now.target_speed,
            paces=(),
            drive=None,
            terrain=self._terrain(now.bumpiness),
            friction=(now.friction, now.friction),
            variation=replace(self._base.variation, trunk_mass_scale=now.trunk_mass_scale, kp=now.kp, kd=now.kd),
        )

    def _terrain(self, bumpiness: float) -> Terrain:
        if bumpiness == self._first.bumpiness:
            return self._base.terrain
        if bumpiness == 0.0:
            return Flat()
        bumps = self._base.terrain if isinstance(self._base.terrain, Bumpy) else Bumpy()
        return replace(bumps, bumpiness=bumpiness)

    def _build(self) -> None:
        """Compile the ground anew and begin."""
        self.arena = Arena(self._task(), len((ROBOT, GHOST)))
        self._ask()
        self.reset()

    @one_blas_thread()
    def reset(self) -> None:
        """Put the robot, and the ghost, on their feet at the start."""
        self._fallen_for: float | None = None
        self._way_up: GettingUp | None = None
        self.time = 0.0
        """Time since the start of the episode, s."""
        self.history: deque[Moment] = deque(maxlen=round(HISTORY / self.control_dt))
        self.arena.start(np.array([ROBOT, GHOST]), [self.seed, self.seed])
        self.paths = Paths(*self._trunk())
        self.brain.reset(self.seed)
        self._will = self._brainstem.start(1)
        self._ghost_stands = self.ghost is not None
        if self.ghost is not None:
            self.ghost.reset(self.seed)

    def change(self, **values: Any) -> None:
        """Set controls by name. A bad name or value is refused, and nothing is changed then.

        With another policy, knock-outs that its circuit does not have are dropped, and the command becomes its own.
        """
        names = [field.name for field in fields(Controls)]
        for name in values:
            if name not in names:
                raise unknown_name("control", name, names)
        before, after = self.controls, replace(self.controls, **values)
        after.check(self.ranges)
        if "driven" not in values and values.keys() & {"command", "speed", "yaw_rate"}:
            after = replace(after, driven="command" not in values)  # the last word counts
        brain, ghost = self.brain, self.ghost
        if after.policy != before.policy:
            brain = self._brain(after.policy)
            brain.reset(self.seed)
            if "without" not in values:
                after = replace(after, without=valid_knock_outs(brain.table, before.without))
            if "command" not in values:
                after = replace(after, command=brain.command)
            if "driven" not in values:
                begins = brain.can_be_driven and not before.driven and "speed" not in values
                after = replace(after, driven=brain.can_be_driven, speed=FIRST_SPEED if begins else after.speed)
        if after.driven and not brain.can_be_driven:
            raise UserError(f"{brain.name} cannot be driven: its circuit has no commands to turn and to stop")
        if after.after_fall == GET_UP and not self.can_get_up:
            raise UserError(f"the joints of robot {self._base.robot.name} do not reach the poses of getting up")
        changed = {name for name in names if getattr(before, name) != getattr(after, name)}
        if "ghost" in changed:
            ghost = None if after.ghost is None else self._brain(after.ghost)
        brain.knock_out(after.without)  # the last that can be refused
        if after.command is not None:
            brain.drive(after.command)
        if brain is not self.brain:
            self.history.clear()  # another circuit's signals have another shape
        self.brain, self.ghost = brain, ghost
        self.controls = replace(after, without=brain.without, command=brain.command, can_be_driven=brain.can_be_driven)
        self._ask()
        if changed & {"driven", "speed", "yaw_rate"}:
            self.paths.wish_anew(*self._trunk())
        if "bumpiness" in changed:
            self._build()
        elif "ghost" in changed:
            self.reset()
        elif changed & {"friction", "trunk_mass_scale", "kp", "kd", "target_speed"}:
            self.arena.task = self._task()
            model = self.arena.world.variant(drawn_variation(self.arena.task, self.seed))
            self.arena.simulation.exchange(np.array([ROBOT, GHOST]), [model, model])

    def press(self, control: str, sign: int) -> None:
        """Change the wanted speed or yaw rate by a step of a key, up (1) or down (-1), as far as it goes."""
        low, high = self.ranges[control]
        value = round(getattr(self.controls, control) + sign * KEY_STEP[control], 3)
        self.change(**{control: min(max(value, low), high)})

    def _ask(self) -> None:
        """Reward what is wanted now, in a task that rewards wishes; in others the target speed, straight ahead."""
        now, wished = self.controls, self.controls.driven and self._base.drive is not None
        self.arena.goal.speed[:] = now.speed if wished else now.target_speed
        self.arena.goal.yaw_rate[:] = now.yaw_rate if wished else 0.0

    def click(self, name: str) -> None:
        """Silence a part of the circuit by the name of a knock-out, or heal it if it is silent."""
        if self.brain.table is None:
            raise UserError(f"{self.brain.name} has no circuit, so a knock-out means nothing to it")
        self.change(without=toggled(self.brain.table, self.controls.without, name))

    def push(self, direction: str, impulse: float) -> None:
        """Give the robot, and the ghost, a blow with an impulse in N s."""
        if direction not in PUSHES:
            raise unknown_name("direction", direction, PUSHES)
        if not 0.0 <= impulse <= MAX_PUSH:
            raise UserError(f"a push of {impulse:g} N s is outside [0, {MAX_PUSH:g}]")
        velocity = np.array([*PUSHES[direction], 0.0]) * impulse / self._mass()
        self.arena.simulation.push(np.array([ROBOT, GHOST]), velocity)

    @one_blas_thread()
    def step(self) -> None:
        """One control step, also when paused. A fallen robot gets up, or starts anew after FALL_PAUSE."""
        action = np.zeros((len((ROBOT, GHOST)), *self._base.joints))
        observation = self.arena.observation()
        gets_up = self._fallen_for is not None and self.controls.after_fall == GET_UP
        if not gets_up:
            action[ROBOT] = self.brain.act(observation[ROBOT], self._said())
        alive = [ROBOT]
        if self.ghost is not None and self._ghost_stands:
            action[GHOST] = self.ghost.act(observation[GHOST])
            alive.append(GHOST)
        targets = self._base.robot.targets(action)
        if gets_up:
            targets[ROBOT] = self._get_up()
        outcome = self.arena.move(np.array(alive), targets)
        self.time += self.control_dt
        now = self.arena.measured
        self.paths.step(self._trunk()[0], float(self._will.speed[0]), float(self._will.yaw_rate[0]), self.control_dt)
        self._ghost_stands = self._ghost_stands and not outcome.fallen[GHOST] and not self._at_the_edge(GHOST)
        self.history.append(
            Moment(
                foot_force=now.foot_force[ROBOT],
                signals=self.brain.signals(),
                speed=float(now.velocity[ROBOT, 0]),
                power=float(motor_power(now.torque[ROBOT], now.joint_velocity[ROBOT])),
                reward=float(sum(values[ROBOT] for name, values in outcome.terms.items() if name != FALL)),
                yaw_rate=float(now.angular_velocity[ROBOT, 2]),
            )
        )
        if outcome.fallen[ROBOT] and self._fallen_for is None:
            self._fallen_for = 0.0
            self.falls += 1
        if self._fallen_for is not None:
            self._fallen_for += self.control_dt
        if outcome.diverged[ROBOT] or self._lies_for_good() or self._at_the_edge(ROBOT):
            self.seed += 1
            self.reset()
        elif self._way_up is not None and self._way_up.state == "done":
            self._walk_on()

    def _get_up(self) -> Array:
        """Joint targets (leg, 3) of a fallen robot: where its joints are for FALL_PAUSE, then those of the way up."""
        now = self.arena.measured
        joints: Array = np.clip(now.joint_position[ROBOT], *self.arena.world.joint_limits)
        if self._fallen_for is not None and self._fallen_for < FALL_PAUSE:
            return joints
        if self._way_up is None:
            self._way_up = GettingUp(joints, self._base.robot.mid)
        return self._way_up.step(now.up[ROBOT], joints, self.control_dt)

    def _lies_for_good(self) -> bool:
        """Whether a fallen robot will not get up."""
        if self.controls.after_fall == GET_UP:
            return self._way_up is not None and self._way_up.state == "given up"
        return (self._fallen_for or 0.0) > FALL_PAUSE

    def _walk_on(self) -> None:
        """Let the policy begin anew where the robot stands."""
        self._fallen_for = self._way_up = None
        self.brain.reset(self.seed)
        self._will = self._brainstem.start(1)
        self.paths.wish_anew(*self._trunk())

    def _trunk(self) -> tuple[Array, Array]:
        """(position (3,) m, orientation (4,)) of the robot's trunk."""
        return self.arena.measured.position[ROBOT], self.arena.measured.quaternion[ROBOT]

    def _said(self) -> Mapping[str, Array] | None:
        """What the brainstem says in this step to a robot that is driven; None: its command."""
        if not self.controls.driven:
            return None
        wanted = np.array([self.controls.speed]), np.array([self.controls.yaw_rate])
        speed, yaw_rate = (values[[ROBOT]] for values in self.arena.motion())
        self._will, said = self._brainstem.step(self._will, wanted, (speed, yaw_rate), self.control_dt)
        self.spoken = float(said["c"][0])
        return said

    def _at_the_edge(self, individual: int) -> bool:
        """Whether a robot has come so far that the bumps, and in the end the world, would end under it."""
        grid = self.arena.task.terrain.grid
        if grid is None:
            return False
        x, y, _ = self.arena.measured.position[individual]
        return not (EDGE - grid.behind < x < grid.ahead - EDGE and abs(y) < grid.aside - EDGE)

    def _mass(self) -> float:
        return self.arena.world.mass(self.arena.task.variation)

    def foot_force(self) -> Array:
        """(T, leg) N, of the steps that are remembered."""
        return np.array([moment.foot_force for moment in self.history]).reshape(-1, self._base.joints[0])

    def signals(self) -> Array:
        """(T, S) signals of the circuit in the steps that are remembered, as Brain.names lists them."""
        return np.array([moment.signals for moment in self.history])

    def reading(self) -> Reading:
        """Values of the instruments now."""
        recent = list(self.history)[-round(GAIT_WINDOWS[0] / self.control_dt) :]
        speed, power, reward, yaw_rate = (
            float(np.mean([getattr(moment, name) for moment in recent])) if recent else 0.0
            for name in ("speed", "power", "reward", "yaw_rate")
        )
        circuit_gait = None
        extensors = self.brain.columns("extensor")
        if extensors is not None and self.history:
            circuit_gait = self._gait(self.signals()[:, extensors], partial(measure_gait, threshold=EXTENSOR_STANCE))
        return Reading(
            time=self.time,
            gait=self._gait(self.foot_force(), foot_gait),
            circuit_gait=circuit_gait,
            speed=speed,
            cost_of_transport=cost_of_transport(power, self._mass(), speed),
            reward=reward,
            fallen=self._fallen_for is not None,
            getting_up=self._way_up is not None,
            falls=self.falls,
            yaw_rate=yaw_rate,
        )

    def _gait(self, legs: Array, measure: Callable[[Array, float], Gait]) -> Gait:
        for window in GAIT_WINDOWS:
            gait = measure(legs[-round(window / self.control_dt) :], self.control_dt)
            if gait.frequency_hz > 0:
                break
        return gait
