"""The simulation behind the live page: a robot, perhaps a ghost, and everything that a person can do to them.

It has no page: `change`, `click`, `push`, `reset` and `step` are called by the program that shows it. Not thread-safe:
one thread calls everything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError, unknown_name
from ncap.evaluation import own_command
from ncap.policies.seeker import Seeker, can_seek
from ncap.recording import Recording
from ncap.rewards import FALL
from ncap.righting import within
from ncap.rollouts import Arena
from ncap.rotations import heading_of
from ncap.tasks import Task, drawn_variation
from ncap.threads import one_blas_thread
from ncap.trained import TrainedPolicy, load
from ncap.view import stage
from ncap.view.brain import Brain, toggled, valid_knock_outs
from ncap.view.controls import BEHIND, FIRST_SPEED, GET_UP, KEY_STEP, START_ANEW, Controls, blow
from ncap.view.course import Course
from ncap.view.driving import Driving
from ncap.view.falling import Falling
from ncap.view.film import filmed
from ncap.view.memory import Memory
from ncap.view.reading import Reading

Array = NDArray[np.float64]

ROBOT, GHOST = 0, 1
"""Individuals of the simulation."""
BOTH: Final = (ROBOT, GHOST)


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
        self.seed, self.falls, self.best, self.reached = seed, 0, 0, 0
        self.news: list[str] = []
        """Sentences for visitors about what was done beside what they asked for."""
        self._given, self._base = task, task
        self._policies = {given.name: given for given in (policy, ghost) if isinstance(given, TrainedPolicy)}
        self.brain = self._brain(policy if isinstance(policy, str) else policy.name, task)
        self.brain.knock_out(without)
        self.ghost: Brain | None = None
        if ghost is not None:
            self.ghost = self._brain(ghost if isinstance(ghost, str) else ghost.name, task)
        self.controls = Controls(
            policy=self.brain.name,
            ghost=None if self.ghost is None else self.ghost.name,
            command=self.brain.command,
            without=self.brain.without,
            can_be_driven=self.brain.can_be_driven,
            driven=self.brain.can_be_driven,
            speed=FIRST_SPEED if self.brain.can_be_driven else 0.0,
            **stage.numbers_of(task),
        )
        self.course: Course | None = None
        """Gates to drive through; None if nobody asked for them."""
        self.arena: Arena
        self._begin_in(task)

    def _brain(self, name: str, task: Task) -> Brain:
        """A policy of that name, ready for a task."""
        trained = self._policies[name] if name in self._policies else load(name)
        if reason := stage.misfit(trained, task):
            raise UserError(reason)
        trained = trained.on(task)
        own = own_command(trained, replace(task, drive=None, target=None))
        return Brain(trained, own if isinstance(own, float) else None)

    @property
    def control_dt(self) -> float:
        """Control step, s."""
        return self._base.control_dt

    @property
    def task(self) -> Task:
        """The task as it is now set."""
        return stage.as_set(self._base, self._original, self.controls)

    def _begin_in(self, task: Task) -> None:
        """Begin in a world whose own numbers the controls have."""
        self._base, self._original = task, self.controls
        self.ranges = stage.ranges_around(self.controls)
        """Bounds of the controls that are numbers."""
        self._build()
        limits = self.arena.world.joint_limits
        self.falling = Falling(task.robot.mid, limits)
        self.can_get_up = bool(task.robot.feet) and within(*limits)
        """Whether the robot's joints reach the poses of getting up."""
        if not self.can_get_up:
            self.controls = replace(self.controls, after_fall=START_ANEW)
        self.reset()

    def _build(self) -> None:
        """Compile the ground anew."""
        self.arena = Arena(self.task, len(BOTH))
        self._ask()

    @one_blas_thread()
    def reset(self) -> None:
        """Put the robot, and the ghost, on their feet at the start. A course is over then."""
        self.falling.stand()
        self.course = None
        self.time = 0.0
        """Time since the start of the episode, s."""
        self.memory = Memory(self.control_dt, len(self._base.robot.feet))
        self.arena.start(np.array(BOTH), [self.seed, self.seed])
        self.driving = Driving(*self._trunk())
        self.brain.reset(self.seed)
        self._ghost_stands = self.ghost is not None
        if self.ghost is not None:
            self.ghost.reset(self.seed)

    def change(self, **values: Any) -> None:
        """Set controls by name. A bad name or value is refused, and nothing is changed then.

        With another policy, knock-outs that its circuit does not have are dropped, and the command becomes its own.
        With another task or robot, a policy that cannot play there gives way to one that can, and `news` says why.
        """
        names = [field.name for field in fields(Controls)]
        for name in values:
            if name not in names:
                raise unknown_name("control", name, names)
        place = values.get("task", self.controls.task), values.get("robot", self.controls.robot)
        if place != (self.controls.task, self.controls.robot):
            before = dict(vars(self))
            try:
                self._move_to(place[0], values.get("robot"))
            except Exception:
                vars(self).update(before)  # nothing of the other world stays
                raise
        self._change(names, {name: value for name, value in values.items() if name not in ("task", "robot")})

    def _move_to(self, name: str, robot: str | None) -> None:
        """Begin in another task, or with another robot."""
        task = stage.found_task(self._given, name, robot, self.brain.trained)
        ghost = None if self.ghost is None else self.ghost.trained
        trained, stays, news = stage.players_in(task, self.brain.trained, ghost, self._policies.values())
        self._policies[trained.name] = trained
        new = self._brain(trained.name, task)
        new.knock_out(valid_knock_outs(new.table, self.controls.without))
        ghost_name = self.controls.ghost if stays else None
        self.brain, self.ghost = new, None if ghost_name is None else self._brain(ghost_name, task)
        driven = new.can_be_driven and (self.controls.driven or not self.controls.can_be_driven)
        self.controls = replace(
            self.controls,
            policy=new.name,
            ghost=ghost_name,
            command=new.command,
            without=new.without,
            can_be_driven=new.can_be_driven,
            driven=driven,
            speed=self.controls.speed or (FIRST_SPEED if driven else 0.0),
            after_fall=self.controls.after_fall if self.can_get_up else GET_UP,
            **stage.numbers_of(task),
        )
        self.news += news
        self._begin_in(task)

    def _change(self, names: Sequence[str], values: Mapping[str, Any]) -> None:
        """Set controls other than task and robot."""
        before, after = self.controls, replace(self.controls, **values)
        after.check(self.ranges)
        if "driven" not in values and values.keys() & {"command", "speed", "yaw_rate"}:
            after = replace(after, driven="command" not in values)  # the last word counts
        brain, ghost = self.brain, self.ghost
        if after.policy != before.policy:
            brain = self._brain(after.policy, self._base)
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
            ghost = None if after.ghost is None else self._brain(after.ghost, self._base)
        brain.knock_out(after.without)  # the last that can be refused
        if after.command is not None:
            brain.drive(after.command)
        if brain is not self.brain:
            self.memory = Memory(
                self.control_dt, len(self._base.robot.feet)
            )  # another circuit's signals have another shape
        self.brain, self.ghost = brain, ghost
        self.controls = replace(after, without=brain.without, command=brain.command, can_be_driven=brain.can_be_driven)
        self._ask()
        if changed & {"driven", "speed", "yaw_rate"}:
            self.driving.paths.wish_anew(*self._trunk())
        if "bumpiness" in changed:
            self._build()
        if changed & {"bumpiness", "ghost"}:
            self.reset()
        elif changed & {"friction", "trunk_mass_scale", "kp", "kd", "target_speed"}:
            self.arena.task = self.task
            model = self.arena.world.variant(drawn_variation(self.arena.task, self.seed))
            self.arena.simulation.exchange(np.array(BOTH), [model, model])

    def restore(self) -> None:
        """Give the world the numbers of the task."""
        self.change(**{name: value for name, value in stage.numbers_of(self._base).items() if name in self.ranges})

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
        if not self._base.robot.feet:
            raise UserError(f"{self._base.robot.name} weighs {1000 * self._mass():.0f} g: a push would fling it away")
        self.arena.simulation.push(np.array(BOTH), np.array(blow(direction, impulse)) / self._mass())

    def start_course(self) -> None:
        """Put the robot at the start of a course of gates, whose clock runs from now on."""
        if not self.brain.can_be_driven:
            raise UserError(f"{self.brain.name} cannot be driven along a course: choose a policy such as ncap-drive")
        self.reset()
        self.course = Course(self._trunk()[0][:2], float(np.arctan2(*self.heading()[::-1])))
        self.change(driven=True, speed=self.controls.speed or FIRST_SPEED, yaw_rate=0.0, paused=False, camera=BEHIND)

    @one_blas_thread()
    def step(self) -> None:
        """One control step, also when paused. A fallen robot gets up, or starts anew after a while."""
        action = np.zeros((len(BOTH), *self._base.joints))
        observation = self.arena.observation()
        gets_up = self.falling.fallen and self.controls.after_fall == GET_UP
        if not gets_up:
            speed, yaw_rate = (values[[ROBOT]] for values in self.arena.motion())
            said = self.driving.say(self.controls, (speed, yaw_rate), self.control_dt) or self._sought()
            action[ROBOT] = self.brain.act(observation[ROBOT], said)
        alive = [ROBOT]
        if self.ghost is not None and self._ghost_stands:
            action[GHOST] = self.ghost.act(observation[GHOST])
            alive.append(GHOST)
        targets = self._base.robot.targets(action)
        if gets_up:
            now = self.arena.measured
            targets[ROBOT] = self.falling.targets(now.up[ROBOT], now.joint_position[ROBOT], self.control_dt)
        outcome = self.arena.move(np.array(alive), targets)
        self.time += self.control_dt
        self._aim_anew()
        now = self.arena.measured
        self.driving.step(now.position[ROBOT], self.control_dt)
        self._ghost_stands = self._ghost_stands and not outcome.fallen[GHOST] and not self._at_the_edge(GHOST)
        reward = float(sum(values[ROBOT] for name, values in outcome.terms.items() if name != FALL))
        self.memory.add(now, ROBOT, action[ROBOT], self.brain.signals(), reward)
        self.falls += self.falling.feel(bool(outcome.fallen[ROBOT]), self.control_dt)
        if self.course is not None:
            self.course.step(now.position[ROBOT, :2], self.control_dt)
            self.best = max(self.best, self.course.score.total)
        lies = self.falling.for_good(gets_up=self.controls.after_fall == GET_UP)
        if outcome.diverged[ROBOT] or lies or self._at_the_edge(ROBOT):
            self.seed += 1
            self.reset()
        elif self.falling.stands_again:
            self._walk_on()

    def _sought(self) -> Mapping[str, Array] | None:
        """What leads a body that can turn to its target; None without either."""
        table = self.brain.table
        if self._base.target is None or table is None or not can_seek(table):
            return None
        goal = [values[[ROBOT]] for values in self.arena.goal]
        return Seeker().step(None, goal, (goal[0], goal[1]), self.control_dt)[1]

    def _aim_anew(self) -> None:
        """Put the target that was reached to another place."""
        target, arena = self._base.target, self.arena
        if target is not None and np.hypot(arena.goal.ahead[ROBOT], arena.goal.left[ROBOT]) <= target.radius:
            self.reached += 1
            here = arena.measured.position[ROBOT, :2]
            arena.targets[:] = here + target.place(self.seed + 1000 * self.reached)

    def _walk_on(self) -> None:
        """Let the policy begin anew where the robot stands."""
        self.falling.stand()
        self.brain.reset(self.seed)
        self.driving.begin_anew(*self._trunk())

    def heading(self) -> Array:
        """(2,) unit vector along which the robot looks."""
        angle = heading_of(self._trunk()[1][None])[0]
        return np.array([np.cos(angle), np.sin(angle)])

    def _trunk(self) -> tuple[Array, Array]:
        """(position (3,) m, orientation (4,)) of the robot's trunk."""
        return self.arena.measured.position[ROBOT], self.arena.measured.quaternion[ROBOT]

    def _at_the_edge(self, individual: int) -> bool:
        return stage.at_the_edge(self.arena.task, *self.arena.measured.position[individual, :2])

    def _mass(self) -> float:
        return self.arena.world.mass(self.arena.task.variation)

    def recording(self) -> Recording:
        """The last seconds since the start, or since another policy was chosen, at most as many as are remembered."""
        return filmed(list(self.memory.moments), self.brain, self.arena.task, self.seed)

    def reading(self) -> Reading:
        """Values of the instruments now."""
        return self.memory.reading(
            self.brain.columns("extensor"), self._mass(), self.falling, falls=self.falls, time=self.time
        )
