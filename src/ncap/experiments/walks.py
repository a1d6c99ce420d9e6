"""Walks of Go1 and Go2, every seed: trained on the plane, then from there on bumps, and played where nobody has looked.

A seed to ship is chosen by other episodes than those that are reported.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ncap.experiments.curves import read_curve
from ncap.experiments.library import Library, Scale, measured
from ncap.learn.settings import Training
from ncap.report.tables import merge_table

PLANE: Final = "flat-walk"
BUMPS: Final = "bumpy-walk"
ROBOTS: Final = ("go1", "go2")
"""Robots that are trained, unless one is asked for."""
ON_BUMPS: Final[dict[str, Any]] = {"sigma": 0.1, "episodes": 6, "epochs": 30, "footfalls": 1.0}
"""Settings of Training on bumps: small mutations of a circuit that walks, more episodes per candidate, and feet that do
what the circuit says count twice as much as usual. With the usual weight a Go2 went over to a trot, and fell."""
REPORTED: Final = 5000
"""Seed of the first episode that is reported."""
CHOOSING: Final = 1000
"""Seed of the first episode by which a training's seed is chosen. They are twice as many as those that are reported."""
RUN: Final = ("robot", "task", "seed")
"""Columns that name a run."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, one seed of every robot after the other, and write the table after each run."""
    for seed in range(scale.seeds):
        for robot in (scale.robot,) if scale.robot else ROBOTS:
            start = None
            for task in (PLANE, BUMPS):
                (start,) = library.within("walks").train([training(robot, task, seed, start, scale)])
                merge_table(out / "walks.csv", [_row(library, scale, robot, task, seed, start)], RUN)


def training(robot: str, task: str, seed: int, start: Path | None, scale: Scale) -> Training:
    """The training of a robot: on the plane from the untrained circuit, on bumps from a walker of the plane."""
    settings = scale.ncap
    if task == BUMPS:
        settings = settings | ON_BUMPS | {"epochs": min(ON_BUMPS["epochs"], settings["epochs"])}
    begin = None if start is None else str(start)
    return replace(Training(task=task, robot=robot, start=begin, **settings), seed=seed).filled()


def _row(library: Library, scale: Scale, robot: str, task: str, seed: int, place: Path) -> dict[str, object]:
    world = training(robot, task, seed, None, scale).world
    other = library.evaluation(str(place), world, 2 * scale.trials, first=CHOOSING)
    return {
        **dict(zip(RUN, (robot, task, seed), strict=True)),
        "cpu_minutes": read_curve(place).cpu_seconds[-1] / 60,
        "choosing_return": other.return_mean,
        "choosing_falls": other.falls,
        **measured(library.evaluation(str(place), world, scale.trials, first=REPORTED)),
    }
