"""Every figure of the paper by name. An experiment is a function of a library of runs, a scale and a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ncap.circuits.rhythm import CIRCUIT_DT, rhythm_spec
from ncap.errors import UserError, unknown_name
from ncap.experiments import (
    algorithms,
    footfalls,
    gaits,
    generalization,
    parameters,
    performance,
    units,
    variable_speed,
    weights,
)
from ncap.experiments.library import SCALES, Library, Scale
from ncap.learn.reinforcement import check_installed
from ncap.tasks import TASKS


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """How it is done, and what it is about."""

    run: Callable[[Library, Scale, Path], None]
    tasks: tuple[str, ...] = ()
    """It needs at least one of these; none: it needs no task."""
    gradients: bool = False
    """Whether it needs reinforcement learning."""


def _gaits(library: Library, scale: Scale, out: Path) -> None:
    spec = rhythm_spec()
    commands = [i / 20 for i in range(21)]
    measured = {c: gaits.measure_states(spec, c, states=scale.states, seed=0, dt=CIRCUIT_DT) for c in commands}
    ramps = gaits.sweep(spec, seconds=60.0, seed=0, dt=CIRCUIT_DT)
    for suffix in (".svg", ".png"):
        gaits.figure(measured, ramps, out / f"gaits{suffix}", "Rhythm generator, preset default")


def _units(library: Library, scale: Scale, out: Path) -> None:
    for suffix in (".svg", ".png"):
        units.figure(out / f"units{suffix}")


EXPERIMENTS: Final[dict[str, Experiment]] = {
    "gaits": Experiment(run=_gaits),
    "units": Experiment(run=_units),
    "performance": Experiment(run=performance.run, tasks=tuple(TASKS)),
    "footfalls": Experiment(run=footfalls.run, tasks=(footfalls.TASK,)),
    "parameters": Experiment(run=parameters.run, tasks=parameters.TASKS),
    "generalization": Experiment(run=generalization.run, tasks=(generalization.TASK,), gradients=True),
    "weights": Experiment(run=weights.run, tasks=(weights.TASK,)),
    "variable-speed": Experiment(run=variable_speed.run, tasks=(variable_speed.WORLD,)),
    "algorithms": Experiment(run=algorithms.run, tasks=algorithms.TASKS, gradients=True),
}
"""In the paper's order, but algorithms last: they take longest."""


def chosen(names: Sequence[str], tasks: Sequence[str]) -> list[str]:
    """The experiments that were asked for, in the order above; of "all", those about one of the tasks."""
    for name in names:
        if name == "all":
            continue
        if name not in EXPERIMENTS:
            raise unknown_name("experiment", name, [*EXPERIMENTS, "all"])
        if (about := EXPERIMENTS[name].tasks) and not set(about) & set(tasks):
            raise UserError(f"{name} is about {' and '.join(about)}, not {', '.join(tasks)}")
    todo = [
        name
        for name, experiment in EXPERIMENTS.items()
        if name in names or ("all" in names and (not experiment.tasks or set(experiment.tasks) & set(tasks)))
    ]
    if any(EXPERIMENTS[name].gradients for name in todo):
        check_installed()
    return todo


def find_scale(name: str) -> Scale:
    """The scale of that name."""
    if name not in SCALES:
        raise unknown_name("scale", name, SCALES)
    return SCALES[name]
