"""The simulation behind the live page: a robot, perhaps a ghost, and everything that a person can do to them.

Knows nothing of pages: `change`, `push`, `reset` and `step` are called by whoever shows it. Not thread-safe: one thread
calls everything.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.analysis.gaits import Gait, measure_gait
from ncap.circuits.rhythm import EXTENSOR_STANCE
from ncap.errors import UserError, unknown_name
from ncap.experiments.evaluation import foot_gait
from ncap.rollout import Arena
from ncap.sim.terrain import Bumpy, Flat
from ncap.tasks import Task, drawn_variation
from ncap.view.brain import INTACT, Brain

Array = NDArray[np.float64]

#: What may be changed by a number, and between which bounds.
RANGES: Final = {
    "command": (0.0, 1.0),
    "target_speed": (0.1, 2.0),
    "bumpiness": (0.0, 1.0),
    "friction": (0.1, 2.0),
    "trunk_mass_scale": (0.5, 2.5),
    "kp": (10.0, 150.0),
    "kd": (0.5, 20.0),
    "pace": (0.05, 1.0),
}
#: Unit vectors in the world (x forward, y left) of a push.
PUSHES: Final = {"forward": (1.0, 0.0), "back": (-1.0, 0.0), "left": (0.0, 1.0), "right": (0.0, -1.0)}
MAX_PUSH: Final = 40.0
"""N s."""
HISTORY: Final = 6.0
"""s that are remembered."""
GAIT_WINDOWS: Final = (2.0, 4.0)
"""s in which a gait is looked for: the short one answers sooner, the long one sees slow gaits."""
FALL_PAUSE: Final = 1.5
"""s after a fall, until the robot is put on its feet again."""
EDGE: Final = 1.5
"""m from the end of the bumps at which the robot starts again."""


@dataclass(frozen=True, kw_only=True)
class Controls:
    """Everything that a person may set. Building one checks it."""

    policy: str
    ghost: str | None = None
    """Another policy that walks beside, on the same ground, touching nobody."""
    command: float | None
    """Brainstem command; None for a policy without a circuit."""
    without: str = INTACT
    """A name of KNOCKOUTS."""
    feedback: bool = True
    """Whether afferents reach the circuit."""
    target_speed: float
    bumpiness: float
    """0 is the plane."""
    friction: float = 1.0
    trunk_mass_scale: float = 1.0
    kp: float
    kd: float
    pace: float = 1.0
    """Seconds of the robot in a second of ours."""
    paused: bool = False

    def __post_init__(self) -> None:
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if value is None and name == "command":
                continue
            if not isinstance(value, int | float) or not low <= value <= high:
                raise UserError(f"{name} {value!r} is not a number in [{low:g}, {high:g}]")


class Moment(NamedTuple):
    """What is remembered of a control step."""

    foot_force: Array
    """(leg,) N."""
    signals: Array
    """(N + I,) neurons and inputs of the circuit."""
    speed: float
    """m/s forward."""
    power: float
    """W, of all motors."""
    reward: float


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the instruments say. Means are over the last two seconds."""

    time: float
    """s since the start of the episode."""
    gait: Gait
    """From the feet."""
    circuit_gait: Gait | None
    """From the circuit's extensors; None without a circuit."""
    speed: float
    """m/s."""
    cost_of_transport: float | None
    """None when the robot does not move forward."""
    reward: float
    """Mean per step; 1 is the best."""
    fallen: bool
    falls: int


class Session:
    """A robot that lives, whatever is done to it."""

    def __init__(self, task: Task, policy: str, *, ghost: str | None = None, seed: int = 0) -> None:
        self.seed, self.falls = seed, 0
        self._base = task
        self.brain = Brain(policy, task.name)
        self.ghost = None if ghost is None else Brain(ghost, task.name)
        self.controls = Controls(
            policy=policy,
            ghost=ghost,
            command=self.brain.command,
            target_speed=task.target_speed,
            bumpiness=task.terrain.bumpiness if isinstance(task.terrain, Bumpy) else 0.0,
            kp=task.robot.kp,
            kd=task.robot.kd,
        )
        self.arena: Arena
        self._build()

    @property
    def control_dt(self) -> float:
        """S of a step."""
        return self._base.control_dt

    def _task(self) -> Task:
        """The task as it is now set."""
        now = self.controls
        return replace(
            self._base,
            target_speed=now.target_speed,
            terrain=Bumpy(bumpiness=now.bumpiness) if now.bumpiness > 0 else Flat(),
            friction=(now.friction, now.friction),
            variation=replace(self._base.variation, trunk_mass_scale=now.trunk_mass_scale, kp=now.kp, kd=now.kd),
        )

    def _build(self) -> None:
        """Compile the ground anew and begin."""
        self.arena = Arena(self._task(), 2)
        self.reset()

    def reset(self) -> None:
        """Put the robot, and the ghost, on their feet at the start."""
        self._fallen_for: float | None = None
        self.time = 0.0
        self.history: deque[Moment] = deque(maxlen=round(HISTORY / self.control_dt))
        self.arena.start(np.arange(2), [self.seed, self.seed])
        self.brain.reset(self.seed)
        self.ghost_lives = self.ghost is not None
        if self.ghost is not None:
            self.ghost.reset(self.seed)

    def change(self, **values: Any) -> None:
        """Set controls by name. A bad name or value is refused, and nothing is changed then."""
        names = [field.name for field in fields(Controls)]
        for name in values:
            if name not in names:
                raise unknown_name("control", name, names)
        before, after = self.controls, replace(self.controls, **values)
        changed = {name for name in names if getattr(before, name) != getattr(after, name)}
        if changed & {"policy", "without", "feedback", "command"}:
            brain = self.brain
            if "policy" in changed:
                brain = Brain(after.policy, self._base.name)
                brain.reset(self.seed)
                if "command" not in values:
                    after = replace(after, command=brain.command)
            brain.knock_out(after.without)
            brain.set_feedback(after.feedback)
            if after.command is not None:
                brain.drive(after.command)
            self.brain = brain
            if "policy" in changed:
                self.history.clear()  # another circuit's signals have another shape
        if "ghost" in changed:
            self.ghost = None if after.ghost is None else Brain(after.ghost, self._base.name)
        self.controls = after
        if "bumpiness" in changed:
            self._build()
        elif "ghost" in changed:
            self.reset()
        elif changed & {"friction", "trunk_mass_scale", "kp", "kd", "target_speed"}:
            self.arena.task = self._task()
            model = self.arena.world.variant(drawn_variation(self.arena.task, self.seed))
            self.arena.simulation.exchange(np.arange(2), [model, model])

    def push(self, direction: str, impulse: float) -> None:
        """Give the robot, and the ghost, a blow of so many N s."""
        if direction not in PUSHES:
            raise unknown_name("direction", direction, PUSHES)
        if not 0.0 <= impulse <= MAX_PUSH:
            raise UserError(f"a push of {impulse:g} N s is outside [0, {MAX_PUSH:g}]")
        self.arena.simulation.push(np.arange(2), np.array([*PUSHES[direction], 0.0]) * impulse / self._mass())

    def step(self) -> None:
        """One control step, also when paused. A fallen robot struggles for a moment, then starts anew."""
        action = np.zeros((2, 4, 3))
        observation = self.arena.observation()
        action[0] = self.brain.act(observation[0])
        alive = [0]
        if self.ghost is not None and self.ghost_lives:
            action[1] = self.ghost.act(observation[1])
            alive.append(1)
        outcome = self.arena.step(np.array(alive), action)
        self.time += self.control_dt
        now = self.arena.measured
        self.ghost_lives = self.ghost_lives and not outcome.fallen[1]
        self.history.append(
            Moment(
                now.foot_force[0],
                self.brain.signals(),
                float(now.velocity[0, 0]),
                float(np.abs(now.torque[0] * now.joint_velocity[0]).sum()),
                float(outcome.terms["speed"][0] + outcome.terms["yaw"][0]),
            )
        )
        if outcome.fallen[0] and self._fallen_for is None:
            self._fallen_for = 0.0
            self.falls += 1
        if self._fallen_for is not None:
            self._fallen_for += self.control_dt
        if outcome.diverged[0] or (self._fallen_for or 0.0) > FALL_PAUSE or self._at_the_edge():
            self.seed += 1
            self.reset()

    def _at_the_edge(self) -> bool:
        terrain = self.arena.task.terrain
        if isinstance(terrain, Flat):
            return False
        x, y, _ = self.arena.measured.position[0]
        return not (EDGE - terrain.behind < x < terrain.ahead - EDGE and abs(y) < terrain.aside - EDGE)

    def _mass(self) -> float:
        world = self.arena.world
        trunk = float(world.model.body_mass[world.trunk_id])
        return world.total_mass + trunk * (self.controls.trunk_mass_scale - 1.0)

    def foot_force(self) -> Array:
        """(T, leg) N, of the steps that are remembered."""
        return np.array([moment.foot_force for moment in self.history]).reshape(-1, 4)

    def signals(self) -> Array:
        """(T, N + I) of the steps that are remembered."""
        return np.array([moment.signals for moment in self.history])

    def reading(self) -> Reading:
        """What the instruments say now."""
        recent = list(self.history)[-round(GAIT_WINDOWS[0] / self.control_dt) :]
        speed = float(np.mean([moment.speed for moment in recent])) if recent else 0.0
        power = float(np.mean([moment.power for moment in recent])) if recent else 0.0
        circuit_gait = None
        if self.brain.circuit is not None and self.history:
            extensors = self.signals()[:, self.brain.circuit.columns("extensor")]
            circuit_gait = self._gait(extensors, partial(measure_gait, threshold=EXTENSOR_STANCE))
        return Reading(
            time=self.time,
            gait=self._gait(self.foot_force(), foot_gait),
            circuit_gait=circuit_gait,
            speed=speed,
            cost_of_transport=power / (self._mass() * 9.81 * speed) if speed > 0.02 else None,
            reward=float(np.mean([moment.reward for moment in recent])) if recent else 0.0,
            fallen=self._fallen_for is not None,
            falls=self.falls,
        )

    def _gait(self, legs: Array, measure: Callable[[Array, float], Gait]) -> Gait:
        for window in GAIT_WINDOWS:
            gait = measure(legs[-round(window / self.control_dt) :], self.control_dt)
            if gait.frequency_hz > 0:
                break
        return gait
