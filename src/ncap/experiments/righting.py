"""Righting: how often and how fast the robot gets up after random falls onto a plane."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.analysis import plots
from ncap.errors import UserError
from ncap.experiments.library import Library, Scale
from ncap.report.tables import write_table
from ncap.righting import ROLL, GettingUp, Lying, lying_on
from ncap.sim.a1 import A1
from ncap.sim.camera import Camera
from ncap.sim.simulation import Measurements, Simulation
from ncap.sim.terrain import Flat
from ncap.sim.world import Variation, World

Array = NDArray[np.float64]

FALLS: Final = 100
FIRST_SEED: Final = 1000
"""Seed of the first fall: the poses were chosen by looking at falls of seeds 0 to 99."""
CONTROL_DT: Final = 0.030
"""Control step, s."""
DROP: Final = 0.65
"""Height of the trunk at the start of a fall, m: no leg reaches so far."""
LIMP_SECONDS: Final = 1.5
"""Time of a fall, in which the motors only brake, s."""
LIMP_KD: Final = 5.0
"""Damping of the motors meanwhile, N m s / rad, as after a fault on a robot."""
UPRIGHT: Final = float(np.cos(np.deg2rad(15.0)))
"""Cosine of the largest angle between the vertical and the trunk's in a robot that stands."""
HEIGHT_MARGIN: Final = 0.15
"""Share by which the trunk of a robot that stands may be higher or lower than in the standing pose."""
LYING: Final[tuple[Lying, ...]] = ("back", "left", "right", "belly")


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A plane, and how the robot touches it."""

    contact: str
    """Contact preset: see ncap.sim.world.CONTACTS."""
    friction: float = 1.0
    """Sliding friction of feet and ground."""


GROUNDS: Final = (Ground(contact="released"), Ground(contact="released", friction=0.5), Ground(contact="default"))
"""All parts touch the ground and each other; the same on slippery ground; only feet, knees, trunk and head touch it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Risings:
    """Results of P robots that got up, or did not."""

    lying: tuple[Lying, ...]
    """Part on which each of them lay at first."""
    seconds: Array
    """(P,) time until it stood, or had given up, s."""
    attempts: NDArray[np.int64]
    stands: NDArray[np.bool_]
    """(P,) whether it stands at the end."""
    height: Array
    """(P, T) of the trunk, m; NaN after the end."""
    tilt_deg: Array
    """(P, T) angle between the vertical and the trunk's, degrees; NaN after the end."""
    moves: tuple[str, ...]
    """(T,) moves of the first robot."""
    states: Array
    """(T, nq) states of the first robot."""
    largest_torque: float
    """Of all motors, N m."""
    largest_velocity: float
    """Of all joints, rad/s."""


def random_fall(world: World, seed: int) -> Array:
    """(nq,) the robot above the ground in any orientation, its joints anywhere within their limits."""
    draws = seeding.generator(seed, "fall")
    qpos: Array = world.model.qpos0.copy()
    turned = draws.normal(size=4)  # a normal direction in four dimensions is a uniform rotation
    qpos[2], qpos[3:7] = DROP, turned / np.linalg.norm(turned)
    qpos[world.position_columns] = draws.uniform(*world.joint_limits).ravel()
    return qpos


def fallen(ground: Ground, seeds: Sequence[int], *, threads: int = 1) -> tuple[Simulation, NDArray[np.bool_]]:
    """(a simulation of robots that have fallen, which of them diverged on the way), one robot per seed."""
    world, everybody = World(A1, Flat(), contact=ground.contact, control_dt=CONTROL_DT), np.arange(len(seeds))
    simulation = Simulation(world, len(seeds), control_dt=CONTROL_DT, threads=threads)
    limp = world.variant(Variation(friction=ground.friction, kp=0.0, kd=LIMP_KD))
    starts = np.array([random_fall(world, seed) for seed in seeds])
    simulation.place(everybody, [limp] * len(seeds), starts, np.zeros((len(seeds), world.model.nv)))
    diverged = np.zeros(len(seeds), bool)
    for _ in range(round(LIMP_SECONDS / CONTROL_DT)):
        alive = np.flatnonzero(~diverged)
        diverged[simulation.step(alive, simulation.measure().joint_position)] = True
    simulation.exchange(everybody, [world.variant(Variation(friction=ground.friction))] * len(seeds))
    return simulation, diverged


def standing_height() -> float:
    """Height of the trunk in the standing pose, m."""
    world = World(A1, Flat())
    return float(world.standing(world.variant(Variation()), np.zeros_like(A1.mid))[0][2])


def stands(now: Measurements, height: float) -> NDArray[np.bool_]:
    """(P,) whether each robot is upright, at the height of the standing pose, on four feet and on nothing else."""
    high_enough = np.abs(now.position[:, 2] / height - 1.0) < HEIGHT_MARGIN
    on_feet = (now.foot_force > 0.0).all(axis=1) & ~now.trunk_touches
    result: NDArray[np.bool_] = (now.up[:, 2] > UPRIGHT) & high_enough & on_feet
    return result


def get_up(ground: Ground, seeds: Sequence[int], *, threads: int = 1) -> Risings:
    """Let robots fall, one per seed, and get up."""
    simulation, diverged = fallen(ground, seeds, threads=threads)
    low, high = simulation.world.joint_limits
    now = simulation.measure()
    lying = tuple(lying_on(up) for up in now.up)
    robots = [GettingUp(np.clip(joints, low, high), A1.mid) for joints in now.joint_position]
    targets = np.array([robot.target for robot in robots])
    steps = np.zeros(len(seeds), np.int64)
    rows: list[tuple[Array, Array]] = []
    moves, states = [""], [simulation.state(0)]
    torque = velocity = 0.0
    while True:
        for i in np.flatnonzero(~diverged):
            targets[i] = robots[i].step(now.up[i], now.joint_position[i], CONTROL_DT)
        alive = np.array([i for i, robot in enumerate(robots) if robot.state == "moving" and not diverged[i]], int)
        if not len(alive):
            break
        diverged[simulation.step(alive, targets)] = True
        now = simulation.measure()
        steps[alive] += 1
        tilt = np.rad2deg(np.arccos(np.clip(now.up[:, 2], -1.0, 1.0)))
        playing = np.isin(np.arange(len(seeds)), alive)
        rows.append((np.where(playing, now.position[:, 2], np.nan), np.where(playing, tilt, np.nan)))
        torque = max(torque, float(np.abs(now.torque[alive]).max()))
        velocity = max(velocity, float(np.abs(now.joint_velocity[alive]).max()))
        if playing[0]:
            moves.append(robots[0].move)
            states.append(simulation.state(0))
    height, tilts = np.array(rows).transpose(1, 2, 0)
    return Risings(
        lying=lying,
        seconds=steps * np.float64(CONTROL_DT),
        attempts=np.array([robot.attempt for robot in robots]),
        stands=stands(now, standing_height()) & ~diverged,
        height=height,
        tilt_deg=tilts,
        moves=tuple(moves),
        states=np.array(states),
        largest_torque=torque,
        largest_velocity=velocity,
    )


def run(library: Library, scale: Scale, out: Path) -> None:
    """Measure falls on every ground, and draw one that ended on the back and all of them over time."""
    seeds = range(FIRST_SEED, FIRST_SEED + min(FALLS, 10 * scale.episodes))
    rows: list[dict[str, object]] = []
    summary: list[dict[str, object]] = []
    found = {}
    for ground in GROUNDS:
        library.say(f"{len(seeds)} falls, contacts {ground.contact}, friction {ground.friction:g}")
        found[ground] = done = get_up(ground, seeds, threads=library.threads)
        where: dict[str, object] = {"contact": ground.contact, "friction": ground.friction}
        for i, seed in enumerate(seeds):
            rows.append(
                where
                | {"seed": seed, "lying_on": done.lying[i], "seconds": done.seconds[i]}
                | {"attempts": done.attempts[i], "stands": bool(done.stands[i])}
            )
        summary += [where | row for row in _summary(done)]
        library.say(
            f"{done.stands.sum()} of {len(seeds)} stand, contacts {ground.contact}, friction {ground.friction:g}"
        )
    write_table(out / "righting.csv", rows)
    write_table(out / "righting-summary.csv", summary)
    first = found[GROUNDS[0]]
    on_back = next((seed for seed, lying in zip(seeds, first.lying, strict=True) if lying == "back"), seeds[0])
    _figure(first, get_up(GROUNDS[0], [on_back]), out / "righting.png")


def _summary(done: Risings) -> list[dict[str, object]]:
    """A row for all falls, and one for each part that robots lay on."""
    result: list[dict[str, object]] = []
    for part in ("all", *LYING):
        own = np.array([part in ("all", lying) for lying in done.lying])
        if not own.any():
            continue
        result.append(
            {
                "lying_on": part,
                "falls": int(own.sum()),
                "stand": int(done.stands[own].sum()),
                "in_one_attempt": int((done.stands & (done.attempts == 1))[own].sum()),
                "seconds_median": float(np.median(done.seconds[own])),
                "seconds_longest": float(done.seconds[own].max()),
                "largest_torque": done.largest_torque if part == "all" else None,
                "largest_velocity": done.largest_velocity if part == "all" else None,
            }
        )
    return result


@plots.styled
def _figure(every: Risings, one: Risings, path: Path) -> None:
    """Pictures of one robot at the end of every move, and the height and tilt of all robots over time."""
    ends = [t for t in range(len(one.moves)) if t + 1 == len(one.moves) or one.moves[t + 1] != one.moves[t]]
    ends = ends[: len(ROLL) + 3]  # lying, the moves of a roll, crouch and stand
    names = [f"picture{i}" for i in range(len(ends))]
    rows = [" ".join(names), " ".join(["height"] * (len(ends) - len(ends) // 2) + ["tilt"] * (len(ends) // 2))]
    fig, axes = plots.figure(rows, size=(13, 5), heights=(1, 1.5))
    for name, t, picture in zip(names, ends, _pictures(one, ends), strict=True):
        if picture is not None:
            axes[name].imshow(picture)
        axes[name].set_title(f"{one.moves[t] or 'fallen'}\n{t * CONTROL_DT:.1f} s", fontsize=7)
        axes[name].axis("off")
    seconds = CONTROL_DT * np.arange(1, every.height.shape[1] + 1)
    for name, values, label in (
        ("height", every.height, "height of the trunk (m)"),
        ("tilt", every.tilt_deg, "tilt (°)"),
    ):
        colours = dict(zip(LYING, plots.LEG_COLOURS, strict=False))
        for lying, line in zip(every.lying, values, strict=True):
            axes[name].plot(seconds, line, color=colours[lying], linewidth=0.6, alpha=0.6)
        for lying in LYING:
            axes[name].plot([], [], color=colours[lying], label=lying)
        axes[name].set(xlabel="time (s)", ylabel=label)
    axes["tilt"].legend(title="lay on", frameon=False, fontsize=8)
    plots.save_both(fig, path)


def _pictures(one: Risings, moments: Sequence[int]) -> list[NDArray[np.uint8] | None]:
    """A picture of each moment; nothing on a machine that cannot draw."""
    world = World(A1, Flat())
    try:
        camera = Camera(world.variant(Variation()), world.trunk_id, width=280, height=280, distance=1.0)
    except UserError:
        return [None] * len(moments)
    pictures: list[NDArray[np.uint8] | None] = [camera.picture(one.states[t]) for t in moments]
    camera.close()
    return pictures
