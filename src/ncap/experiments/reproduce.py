"""Every figure of the paper by name. An experiment is a function of a library of runs, a scale and a folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ncap.circuits.rhythm import CIRCUIT_DT, rhythm_spec
from ncap.errors import unknown_name
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

Experiment = Callable[[Library, Scale, Path], None]


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
    "gaits": _gaits,
    "units": _units,
    "performance": performance.run,
    "footfalls": footfalls.run,
    "parameters": parameters.run,
    "generalization": generalization.run,
    "weights": weights.run,
    "variable-speed": variable_speed.run,
    "algorithms": algorithms.run,
}
"""In the paper's order, but algorithms last: they take longest and need an extra."""


def chosen(names: Sequence[str]) -> list[str]:
    """The experiments that were asked for, in that order."""
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise unknown_name("experiment", name, [*EXPERIMENTS, "all"])
    return [name for name in EXPERIMENTS if name in names or "all" in names]


def find_scale(name: str) -> Scale:
    """The scale of that name."""
    if name not in SCALES:
        raise unknown_name("scale", name, SCALES)
    return SCALES[name]
