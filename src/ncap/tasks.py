"""What a robot is asked to do, as data. A task has a name; variants are made with `dataclasses.replace`."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError, unknown_name
from ncap.registry import Registry
from ncap.rewards import DRIVE_SPEED, DRIVE_YAW, NEAR, SPEED, SWIM, TRACKING, YAW, RewardTerm
from ncap.sim.a1 import A1, A1_TURNING
from ncap.sim.bodies import find_body, legged
from ncap.sim.body import Body
from ncap.sim.swimmer import Swimmer
from ncap.sim.terrain import Bumpy, Flat, Terrain, Water
from ncap.sim.world import CONTACTS, PHYSICS, Variation, World

FASTEST: Final = 1.2
"""Largest speed that can be wanted, m/s."""
SHARPEST: Final = 1.0
"""Largest yaw rate that can be wanted, rad/s."""
LARGEST_FACTOR: Final = 10.0
"""Largest factor on a gain."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """A brainstem command and the speed that it stands for."""

    command: float
    """In [0, 1]."""
    speed: float
    """Forward speed, m/s."""

    def __post_init__(self) -> None:
        if not (0.0 <= self.command <= 1.0 and 0.0 < self.speed < np.inf):
            raise UserError(f"a pace is a command in [0, 1] and a speed above 0, not {self.command:g}, {self.speed:g}")


@dataclass(frozen=True, kw_only=True)
class Drive:
    """Wishes that are drawn anew every few seconds: a speed and a yaw rate."""

    speed: tuple[float, float] = (0.0, 1.0)
    """Range of speeds, m/s."""
    yaw_rate: tuple[float, float] = (-0.6, 0.6)
    """Range of yaw rates, positive to the left, rad/s."""
    seconds: tuple[float, float] = (3.0, 8.0)
    """How long a wish holds, s."""
    standing: float = 0.1
    """Share of the wishes that are to stand."""

    def __post_init__(self) -> None:
        for name, (low, high), most in (("speed", self.speed, FASTEST), ("yaw rate", self.yaw_rate, SHARPEST)):
            least = 0.0 if name == "speed" else -most
            if not least <= low <= high <= most:
                raise UserError(f"a wish for a {name} from {low:g} to {high:g} is outside [{least:g}, {most:g}]")
        if not (0.0 < self.seconds[0] <= self.seconds[1] < np.inf and 0.0 <= self.standing <= 1.0):
            raise UserError("wishes last for a rising range of seconds above 0, and a share in [0, 1] is to stand")

    def wishes(self, seed: int, steps: int, dt: float) -> NDArray[np.float64]:
        """(steps, 2) the speed and the yaw rate that are wanted in every control step of an episode."""
        draws, result, first = seeding.generator(seed, "wishes"), np.zeros((steps, 2)), 0
        while first < steps:
            until = first + max(1, round(draws.uniform(*self.seconds) / dt))
            wish = draws.uniform(*self.speed), draws.uniform(*self.yaw_rate)
            result[first:until] = 0.0 if draws.uniform() < self.standing else wish
            first = until
        return result


@dataclass(frozen=True, kw_only=True)
class Target:
    """A place to go to, drawn for every episode: somewhere in a square around the start, at times in a small one."""

    radius: float = 0.1
    """m."""
    far: float = 2.0
    """Half of the square's side, m."""
    near: float = 0.3
    """Half of the small square's side, m."""
    near_share: float = 0.2
    """Share of the episodes with the small one."""

    def place(self, seed: int) -> NDArray[np.float64]:
        """(2,) x and y of an episode's target, m."""
        draws = seeding.generator(seed, "target")
        reach = self.near if draws.uniform() < self.near_share else self.far
        return draws.uniform(-reach, reach, 2)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A robot, a terrain, a speed, and the rules of an episode."""

    name: str
    target_speed: float
    """Forward speed that is rewarded, m/s."""
    terrain: Terrain
    command: float = 0.2
    """Brainstem command that suits the task, in [0, 1], for a circuit that was not trained for it."""
    paces: tuple[Pace, ...] = ()
    """Commands that a circuit is trained at, with a target speed each: an episode's seed says which. Empty: its own
    command and speed only."""
    drive: Drive | None = None
    """Wishes that change; None: the target speed, straight ahead."""
    target: Target | None = None
    """A place to go to; None: there is none."""
    rewards: tuple[RewardTerm, ...] = (SPEED, YAW)
    """What is rewarded, beside the penalty for a fall."""
    robot: Body = A1
    contact: str = "default"
    """Contact preset: see ncap.sim.world.CONTACTS."""
    episode_seconds: float = 15.0
    control_dt: float = 0.030
    """Control step, s."""
    physics: str = "paper"
    """Physics preset: see ncap.sim.world.PHYSICS."""
    friction: tuple[float, float] = (0.75, 1.25)
    """Range of the feet's sliding friction, drawn once an episode."""
    kp_factor: tuple[float, float] = (1.0, 1.0)
    """Range of the factor on kp, drawn once an episode."""
    kd_factor: tuple[float, float] = (1.0, 1.0)
    """The same for kd."""
    start_noise: float = 0.02
    """Joints start within this distance of the standing pose, rad."""
    fall_deg: float = 45.0
    """Roll or pitch beyond which the robot has fallen, degrees."""
    fall_penalty: float = 10.0
    """Reward units lost with a fall, beside the rest of the episode."""
    yaw_weight: float = 0.1
    """Weight of the squared yaw rate in the term "yaw"."""
    variation: Variation = field(default_factory=Variation)
    """Mass, gains and strength of every episode; its friction and terrain are drawn."""
    latency: int = 0
    """Control steps by which joint targets come late."""
    sensor_noise: float = 0.0
    """Standard deviation of the noise on every number of an observation, whose range is [-1, 1]."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.target_speed) and self.target_speed > 0):
            raise UserError(f"task {self.name}: target_speed must be positive and finite, not {self.target_speed:g}")
        for name in ("episode_seconds", "control_dt"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise UserError(f"task {self.name}: {name} must be a positive number of seconds")
        if self.contact not in CONTACTS:
            raise unknown_name("contact preset", self.contact, CONTACTS)
        if self.physics not in PHYSICS:
            raise unknown_name("physics preset", self.physics, PHYSICS)
        if not 0.0 <= self.command <= 1.0:
            raise UserError(f"task {self.name}: brainstem command {self.command:g} is outside [0, 1]")
        if not (isinstance(self.latency, int) and 0 <= self.latency < self.steps):
            raise UserError(f"task {self.name}: latency is a number of control steps below {self.steps}")
        if not 0.0 <= self.sensor_noise < np.inf:
            raise UserError(f"task {self.name}: sensor_noise is a number from 0 on, not {self.sensor_noise:g}")
        for name in ("friction", "kp_factor", "kd_factor"):
            low, high = getattr(self, name)
            if not 0 < low <= high < np.inf:
                raise UserError(f"task {self.name}: {name} must be a rising range above 0, not ({low:g}, {high:g})")

    def at(self, pace: Pace) -> "Task":
        """The same task at one of its paces."""
        return replace(self, command=pace.command, target_speed=pace.speed, paces=())

    def pace(self, seed: int) -> Pace:
        """The command and the target speed of an episode."""
        return self.paces[seed % len(self.paces)] if self.paces else Pace(command=self.command, speed=self.target_speed)

    def wishes(self, seed: int) -> NDArray[np.float64]:
        """(steps, 2) the speed, m/s, and the yaw rate, rad/s, that an episode asks for in every control step."""
        if self.drive is not None:
            return self.drive.wishes(seed, self.steps, self.control_dt)
        return np.tile((self.pace(seed).speed, 0.0), (self.steps, 1))

    @property
    def steps(self) -> int:
        """Control steps in an episode."""
        return round(self.episode_seconds / self.control_dt)

    @property
    def senses(self) -> tuple[int, int]:
        """Shape of an observation: (sites, observations per site), without the posture; legs are sites."""
        plan = self.robot.plan
        return len(plan.sites), len(plan.senses)

    @property
    def wish_size(self) -> int:
        """Numbers that say what is wanted: 3 of a speed and a yaw rate, 2 of the place of a target, or none."""
        return 3 if self.drive else 2 if self.target else 0

    @property
    def steered(self) -> bool:
        """Whether a circuit needs commands to turn."""
        return self.drive is not None or self.target is not None

    @property
    def joints(self) -> tuple[int, int]:
        """Shape of an action: (sites, joints per site); legs are sites."""
        sites, joints = self.robot.mid.shape
        return sites, joints


TASKS: Final[Registry[Task]] = Registry("task")
"""Tasks by name."""
for _ground in (Flat(), Bumpy()):
    _word = "flat" if _ground.grid is None else "bumpy"
    # a walk and a trot, away from the commands at which one becomes the other
    TASKS[f"{_word}-walk"] = Task(name=f"{_word}-walk", target_speed=0.5, command=0.18, terrain=_ground)
    TASKS[f"{_word}-run"] = Task(name=f"{_word}-run", target_speed=1.0, command=0.65, terrain=_ground)
PAPER_TASKS: Final = tuple(TASKS)
"""The four tasks of the paper."""
TASKS["flat-speeds"] = replace(
    TASKS["flat-walk"],
    name="flat-speeds",
    rewards=(TRACKING, YAW),
    paces=tuple(Pace(command=c, speed=v) for c, v in ((0.0, 0.2), (0.2, 0.45), (0.45, 0.65), (0.7, 0.95), (0.95, 1.1))),
)
TASKS["rough-walk"] = replace(TASKS["bumpy-walk"], name="rough-walk", terrain=Bumpy(bumpiness=1.0))
for _word in ("flat", "bumpy"):
    TASKS[f"{_word}-drive"] = replace(
        TASKS[f"{_word}-walk"],
        name=f"{_word}-drive",
        drive=Drive(),
        robot=A1_TURNING,
        rewards=(DRIVE_SPEED, DRIVE_YAW),
        episode_seconds=20.0,
    )
TASKS["swim"] = Task(
    name="swim",
    target_speed=0.1,
    command=1.0,
    terrain=Water(),
    robot=Swimmer(),
    rewards=(SWIM,),
    episode_seconds=30.0,
    physics="suite",
)
TASKS["navigate"] = replace(TASKS["swim"], name="navigate", rewards=(NEAR,), target=Target())


def find_task(name: str) -> Task:
    """The task of that name, or the one that a Python file registers."""
    return TASKS.find(name)


def with_robot(task: Task, robot: str | Body) -> Task:
    """The same task for another robot: a name, a data sheet (.json), or a Python file that registers one."""
    body = find_body(robot) if isinstance(robot, str) else robot
    if body.plan.kind != task.robot.plan.kind:
        raise UserError(f"{task.name} is a task for {_in_words(task.robot)}, but {body.name} is {_in_words(body)}")
    return replace(task, robot=body)


def _in_words(body: Body) -> str:
    return {"quadruped": "a robot with four legs", "chain": "a swimmer"}.get(body.plan.kind, body.plan.name)


def robot_name(robot: str | None, links: int | None) -> str | None:
    """Name of the robot that is asked for by its name or, of a swimmer, by its links; None: by neither."""
    if robot is not None and links is not None:
        raise UserError(f"a robot with a name, such as {robot}, has its own number of links")
    return robot if links is None else Swimmer(links=links).name


def with_gains(task: Task, kp: float, kd: float) -> Task:
    """The same task with these factors on the gains of its robot."""
    for name, factor in (("kp", kp), ("kd", kd)):
        if not 0 < factor <= LARGEST_FACTOR:
            raise UserError(f"a factor on {name} is above 0 and at most {LARGEST_FACTOR:g}, not {factor:g}")
    robot = legged(task.robot)
    return replace(task, variation=replace(task.variation, kp=kp * robot.kp, kd=kd * robot.kd))


def with_wish(task: Task, speed: float, yaw_rate: float) -> Task:
    """The same drive task with one wish all the time: a speed, m/s, and a yaw rate, rad/s."""
    if task.drive is None:
        drives = ", ".join(name for name, other in TASKS.items() if other.drive)
        raise UserError(f"{task.name} has no wishes for a speed and a yaw rate; valid: {drives}")
    whole = (task.episode_seconds, task.episode_seconds)
    wish = Drive(speed=(speed, speed), yaw_rate=(yaw_rate, yaw_rate), seconds=whole, standing=0.0)
    return replace(task, drive=wish)


@lru_cache(maxsize=32)
def build(task: Task) -> World:
    """The task's world, compiled once."""
    return World(task.robot, task.terrain, contact=task.contact, physics=task.physics, control_dt=task.control_dt)


def drawn_variation(task: Task, seed: int) -> Variation:
    """Mass and gains of the task, with the factors on gains, the friction and the terrain of an episode's seed."""
    kp, kd = task.variation.kp, task.variation.kd
    if (task.kp_factor, task.kd_factor) != ((1.0, 1.0), (1.0, 1.0)):
        draws = seeding.generator(seed, "gains")
        own = task.robot.gains(kp, kd)
        kp = float(draws.uniform(*task.kp_factor)) * own.stiffness
        kd = float(draws.uniform(*task.kd_factor)) * own.damping
    friction = float(seeding.generator(seed, "friction").uniform(*task.friction))
    return replace(task.variation, friction=friction, kp=kp, kd=kd, terrain_seed=seed)
