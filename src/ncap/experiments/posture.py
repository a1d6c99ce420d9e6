"""Posture: what the vestibular rows are worth on rough ground, and how hard a blow a walk survives.

The paper names posture as a next step. Circuits are trained on the roughest bumps with and without these rows; then
they, and an MLP, are pushed while they walk on the plane.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.analysis import plots
from ncap.evaluation import own_command
from ncap.experiments.library import Library, Scale
from ncap.policies.seeker import Guide
from ncap.report.tables import merge_table, read_table
from ncap.rollouts import Arena
from ncap.tasks import TASKS, Task
from ncap.threads import one_blas_thread
from ncap.trained import TrainedPolicy, load

Array = NDArray[np.float64]

TASK: Final = "rough-walk"
PUSHED_ON: Final = "flat-walk"
CONDITIONS: Final[dict[str, tuple[str, ...]]] = {"with vestibular rows": (), "without vestibular rows": ("vestibular",)}
"""Knock-outs before training, by the names in the tables."""
MLP: Final = "mlp-flat-walk"
"""The MLP that is pushed beside them."""
DIRECTIONS: Final = {"sideways": (0.0, 1.0, 0.0), "forward": (1.0, 0.0, 0.0)}
"""Of a push: unit vectors in the world, x forward and y to the left."""
IMPULSES: Final = tuple(float(impulse) for impulse in range(3, 31, 3))
"""Of pushes, N s."""
SURVIVED: Final = 0.9
"""Share of trials that must go well."""
PUSH_AFTER: Final = (2.0, 3.0)
"""When a push comes, s: drawn from this range, so that it meets any phase of a stride."""
WATCHED: Final = 3.0
"""Time after a push in which a fall counts, s."""


RUN: Final = ("condition", "seed")
PUSHES: Final = "pushes.csv"


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, walk on rough ground, push, and write tables and figure after every run."""
    for name, without in CONDITIONS.items():
        trainings = [replace(one, without=without) for one in scale.trainings(TASK, "ncap")]
        for seed, place in enumerate(library.train(trainings)):
            found = library.evaluation(str(place), TASKS[TASK], scale.trials)
            row = {
                "condition": name,
                "seed": seed,
                "episodes": found.episodes,
                "return": found.return_mean,
                "falls": found.falls,
                "roll_rms_deg": found.roll_rms_deg,
                "pitch_rms_deg": found.pitch_rms_deg,
                "cost_of_transport": found.cost_of_transport,
                "commanded_share": found.walk.commanded_share,
            }
            merge_table(out / "posture.csv", [row], RUN)
            push(library, scale, out, name, seed, load(place))
    push(library, scale, out, "MLP by D4PG", 0, load(MLP))
    draw(out)


def push(library: Library, scale: Scale, out: Path, name: str, seed: int, player: TrainedPolicy) -> None:
    """Push a walking robot from both directions, and write down what it survives."""
    for direction, towards in DIRECTIONS.items():
        library.say(f"pushing {name}, seed {seed}, {direction}")
        well = survived(player, TASKS[PUSHED_ON], towards, IMPULSES, scale.trials, library.threads)
        row = {"condition": name, "seed": seed, "direction": direction, "trials": scale.trials}
        row |= {"largest_impulse": largest(IMPULSES, well)}
        row |= {f"{i:g}_N_s": share for i, share in zip(IMPULSES, well, strict=True)}
        merge_table(out / PUSHES, [row], (*RUN, "direction"))


def draw(tables: Path) -> None:
    """Draw pushes.png from the table in a folder."""
    _figure(read_table(tables / PUSHES), tables / "pushes.png")


@one_blas_thread()
def survived(
    player: TrainedPolicy, task: Task, towards: Sequence[float], impulses: Sequence[float], trials: int, threads: int
) -> list[float]:
    """The share of trials in which a walking robot does not fall after a push, for every impulse in N s.

    A trial is an episode of the task; the same trials, pushed at the same moments, are played for every impulse.
    """
    robots = trials * len(impulses)
    seeds = list(range(trials)) * len(impulses)
    arena, everybody = Arena(task, robots, threads=threads), np.arange(robots)
    arena.start(everybody, seeds)
    moments = [seeding.generator(seed, "push").uniform(*PUSH_AFTER) for seed in seeds]
    when = np.round(np.array(moments) / task.control_dt).astype(int)
    mass = float(arena.world.model.body_mass.sum())
    blows = np.repeat(impulses, trials)[:, None] / mass * np.array(towards)
    controller, command = player.controller(robots), own_command(player, task)
    assert not isinstance(command, Guide), "a task without wishes needs none"
    state = controller.reset(seeds, command)
    fell = np.zeros(robots, bool)
    for t in range(round((PUSH_AFTER[1] + WATCHED) / task.control_dt)):
        for robot in np.flatnonzero((when == t) & ~fell):
            arena.simulation.push(np.array([robot]), blows[robot])
        observation = arena.observation()
        observation[fell] = 0.0
        state, action = controller.act(state, observation, command)
        outcome = arena.step(np.flatnonzero(~fell), action)
        fell |= outcome.fallen
        if fell.all():
            break
    shares: list[float] = (~fell).reshape(len(impulses), trials).mean(axis=1).tolist()
    return shares


def largest(impulses: Sequence[float], shares: Sequence[float]) -> float:
    """The largest impulse up to which every one is survived in SURVIVED of the trials, N s; 0 if none is."""
    found = 0.0
    for impulse, share in zip(impulses, shares, strict=True):
        if share < SURVIVED:
            break
        found = impulse
    return found


@plots.styled
def _figure(rows: list[dict[str, str]], path: Path) -> None:
    """The share of pushes survived against the impulse, a panel per direction, a line per policy and seed."""
    fig, axes = plots.figure(["sideways forward"], size=(9, 3.4), heights=(1,))
    names = list(dict.fromkeys(row["condition"] for row in rows))
    for row in rows:
        shares = [float(row[f"{impulse:g}_N_s"]) for impulse in IMPULSES]
        label = row["condition"] if row["seed"] == "0" else None
        colour = plots.LEG_COLOURS[names.index(row["condition"])]
        axes[row["direction"]].plot(IMPULSES, shares, color=colour, label=label, marker="o", markersize=3)
    for direction in DIRECTIONS:
        axes[direction].axhline(SURVIVED, color="#999999", linestyle=":", linewidth=1)
        axes[direction].set(title=f"pushed {direction}", xlabel="impulse (N s)", ylim=(-0.02, 1.02))
    axes["sideways"].set_ylabel("share without a fall")
    axes["sideways"].legend(frameon=False)
    plots.save_both(fig, path)
