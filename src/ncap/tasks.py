"""What a robot is asked to do, as data. A task has a name; variants are made with `dataclasses.replace`."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ncap import seeding
from ncap.errors import UserError, unknown_name
from ncap.sim.a1 import A1
from ncap.sim.robot import Robot
from ncap.sim.terrain import Bumpy, Flat, Terrain
from ncap.sim.world import Variation, World


@dataclass(frozen=True, kw_only=True)
class Task:
    """A robot, a terrain, a speed, and the rules of an episode."""

    name: str
    target_speed: float
    """m/s."""
    terrain: Terrain
    robot: Robot = A1
    contact: str = "default"
    """Contact preset: see ncap.sim.world.CONTACTS."""
    episode_seconds: float = 15.0
    control_dt: float = 0.030
    physics_dt: float = 0.001
    friction: tuple[float, float] = (0.75, 1.25)
    """Range of the feet's sliding friction, drawn once an episode."""
    start_noise: float = 0.02
    """rad: joints start within this distance of the standing pose."""
    fall_deg: float = 45.0
    """Roll or pitch beyond which the robot has fallen."""
    fall_penalty: float = 10.0
    """Reward units lost with a fall, beside the rest of the episode."""
    yaw_weight: float = 0.1
    variation: Variation = field(default_factory=Variation)
    """Mass and gains of every episode; its friction and terrain are drawn."""

    def __post_init__(self) -> None:
        if not self.target_speed > 0:
            raise UserError(f"task {self.name}: target_speed must be positive, not {self.target_speed:g}")
        if not 0 < self.friction[0] <= self.friction[1]:
            raise UserError(f"task {self.name}: friction must be a rising range above 0, not {self.friction}")

    @property
    def steps(self) -> int:
        """Control steps in an episode."""
        return round(self.episode_seconds / self.control_dt)


WALK: Final = 0.5
RUN: Final = 1.0

TASKS: Final = {
    task.name: task
    for task in (
        Task(name="flat-walk", target_speed=WALK, terrain=Flat()),
        Task(name="flat-run", target_speed=RUN, terrain=Flat()),
        Task(name="bumpy-walk", target_speed=WALK, terrain=Bumpy()),
        Task(name="bumpy-run", target_speed=RUN, terrain=Bumpy()),
    )
}


def find_task(name: str) -> Task:
    """The task of that name."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    return TASKS[name]


@lru_cache(maxsize=32)
def build(task: Task) -> World:
    """The task's world, compiled once."""
    return World(task.robot, task.terrain, contact=task.contact, physics_dt=task.physics_dt)


def drawn_variation(task: Task, seed: int) -> Variation:
    """Mass and gains of the task, with the friction and terrain that belong to an episode's seed."""
    given = task.variation
    return Variation(
        friction=float(seeding.generator(seed, "friction").uniform(*task.friction)),
        trunk_mass_scale=given.trunk_mass_scale,
        kp=given.kp,
        kd=given.kd,
        terrain_seed=seed,
    )
