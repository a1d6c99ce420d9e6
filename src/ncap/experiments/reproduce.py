"""Every figure of the paper by name. An experiment is a function of a library of runs, a scale and a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ncap.errors import UserError, unknown_name
from ncap.experiments import (
    algorithms,
    bodies,
    claims,
    deployment,
    driving,
    driving_training,
    evolution,
    flights,
    footfalls,
    gains,
    gaits,
    generalization,
    leading,
    mlp_evolution,
    parameters,
    performance,
    performance_figures,
    physics,
    posture,
    righting,
    shipped,
    swimmer,
    transfer,
    units,
    variable_speed,
    walks,
    weights,
)
from ncap.experiments.library import SCALES, Library, Scale
from ncap.learn.settings import check_installed
from ncap.tasks import PAPER_TASKS


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The function of an experiment, and what has to be known before it is started."""

    run: Callable[[Library, Scale, Path], None]
    tasks: tuple[str, ...] = ()
    """It needs at least one of these; none: it needs no task."""
    gradients: bool = False
    """Whether it needs reinforcement learning."""
    any_robot: bool = False
    """Whether it can be done with another robot than the A1."""
    draw: Callable[[Path], None] | None = None
    """Draws its figures from its tables in a folder, without any run."""
    table: str = "performance.csv"
    """The table that this needs."""
    only_by_name: bool = False
    """Whether "all" leaves it out, because it is long and not about training on the four tasks."""


EXPERIMENTS: Final[dict[str, Experiment]] = {
    "gaits": Experiment(run=gaits.run),
    "units": Experiment(run=units.run),
    "performance": Experiment(
        run=performance.run, tasks=PAPER_TASKS, any_robot=True, gradients=True, draw=performance_figures.draw
    ),
    "footfalls": Experiment(run=footfalls.run, tasks=PAPER_TASKS, gradients=True, any_robot=True),
    "parameters": Experiment(
        run=parameters.run, tasks=parameters.TASKS, any_robot=True, draw=parameters.draw, table="parameters.csv"
    ),
    "generalization": Experiment(
        run=generalization.run,
        tasks=(generalization.TASK,),
        gradients=True,
        draw=generalization.draw,
        table="generalization.csv",
    ),
    "weights": Experiment(run=weights.run, tasks=(weights.TASK,), any_robot=True),
    "variable-speed": Experiment(run=variable_speed.run),  # its task has several commands, and is none of the four
    "algorithms": Experiment(
        run=algorithms.run,
        tasks=algorithms.TASKS,
        gradients=True,
        any_robot=True,
        draw=performance_figures.draw_algorithms,
    ),
    "claims": Experiment(run=claims.run, draw=claims.write, table=performance.FINAL),
    "leading": Experiment(run=leading.run, tasks=leading.TASKS, only_by_name=True),
    "evolution": Experiment(run=evolution.run, tasks=(evolution.TASK,), only_by_name=True),
    "mlp-evolution": Experiment(
        run=mlp_evolution.run,
        tasks=mlp_evolution.TASKS,
        draw=mlp_evolution.draw,
        table=mlp_evolution.CURVES,
        only_by_name=True,
    ),
    "physics": Experiment(run=physics.run, tasks=PAPER_TASKS, only_by_name=True),
    "driving": Experiment(run=driving.run, only_by_name=True),
    "driving-training": Experiment(
        run=driving_training.run,
        gradients=True,
        draw=driving_training.draw,
        table=driving_training.CURVES,
        only_by_name=True,
    ),
    "posture": Experiment(run=posture.run, draw=posture.draw, table=posture.PUSHES, only_by_name=True),
    "righting": Experiment(run=righting.run, only_by_name=True),
    "bodies": Experiment(run=bodies.run, any_robot=True, only_by_name=True),
    "gains": Experiment(run=gains.run, tasks=(gains.TASK,), any_robot=True, only_by_name=True),
    "transfer": Experiment(run=transfer.run, tasks=(transfer.TASK,), any_robot=True, only_by_name=True),
    "walks": Experiment(run=walks.run, tasks=(walks.PLANE,), any_robot=True, only_by_name=True),
    "swimmer": Experiment(run=swimmer.run, gradients=True, draw=swimmer.draw, table=swimmer.CURVES, only_by_name=True),
    "shipped": Experiment(run=shipped.run, tasks=PAPER_TASKS, only_by_name=True),
    "deployment": Experiment(
        run=deployment.run, any_robot=True, draw=flights.draw, table=f"{flights.FLIGHTS}.csv", only_by_name=True
    ),
}
"""In the paper's order, but algorithms, which take long, behind the others, and last what has to be named."""


def chosen(names: Sequence[str], tasks: Sequence[str], robot: str | None = None) -> list[str]:
    """The experiments that were asked for, in the order above; of "all", those about one of the tasks.

    With a robot, only experiments that can be done with any: others must not be named, and "all" leaves them out.
    """
    for name in names:
        if name == "all":
            continue
        if name not in EXPERIMENTS:
            raise unknown_name("experiment", name, [*EXPERIMENTS, "all"])
        if (about := EXPERIMENTS[name].tasks) and not set(about) & set(tasks):
            raise UserError(f"{name} is about {' and '.join(about)}, not {', '.join(tasks)}")
        if robot is not None and not EXPERIMENTS[name].any_robot:
            able = ", ".join(other for other, experiment in EXPERIMENTS.items() if experiment.any_robot)
            raise UserError(f"{name} is about the A1, or about no robot: leave out --robot; it goes with {able}")
    todo = [
        name
        for name, experiment in EXPERIMENTS.items()
        if name in names or ("all" in names and _in_all(experiment, tasks) and (robot is None or experiment.any_robot))
    ]
    if any(EXPERIMENTS[name].gradients for name in todo):
        check_installed()
    return todo


def _in_all(experiment: Experiment, tasks: Sequence[str]) -> bool:
    return not experiment.only_by_name and (not experiment.tasks or bool(set(experiment.tasks) & set(tasks)))


def redraw(names: Sequence[str], tables: Path) -> list[str]:
    """Draw figures anew from the tables in a folder. Returns the experiments; of "all", those whose table is there."""
    able = {name: experiment for name, experiment in EXPERIMENTS.items() if experiment.draw is not None}
    for name in names:
        if name not in (*able, "all"):
            raise unknown_name("experiment whose figures are drawn from tables", name, [*able, "all"])
    todo = [name for name, one in able.items() if name in names or ("all" in names and (tables / one.table).exists())]
    for name in todo:
        draw = able[name].draw
        assert draw is not None
        draw(tables)
    if not todo:
        raise UserError(f"{tables} has none of the tables {', '.join(one.table for one in able.values())}")
    return todo


def find_scale(name: str) -> Scale:
    """The scale of that name."""
    if name not in SCALES:
        raise unknown_name("scale", name, SCALES)
    return SCALES[name]
