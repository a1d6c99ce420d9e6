"""A neural circuit as a table that can be read and edited: neuron rows, synapse rows, input rows.

A row stands for the same thing in every leg that has it. The table is checked when it is built, and every complaint
names the row. It knows nothing of matrices: see circuit.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ncap.circuits.units import BasicUnit, OscillatorUnit
from ncap.errors import UserError, unknown_name
from ncap.legs import LEGS, ROUTES, SIDES, side_of


@dataclass(frozen=True, kw_only=True)
class Neuron:
    """A population with one neuron in each of its legs."""

    name: str
    unit: BasicUnit | OscillatorUnit
    bias: float
    legs: tuple[str, ...] = LEGS

    def __str__(self) -> str:
        return f"neuron {self.name}"


@dataclass(frozen=True, kw_only=True)
class Input:
    """An external signal, one for each leg or one for each body side."""

    name: str
    per: Literal["leg", "side"]

    def __str__(self) -> str:
        return f"input {self.name}"

    @property
    def places(self) -> tuple[str, ...]:
        """The legs or sides that have their own signal."""
        return LEGS if self.per == "leg" else SIDES


@dataclass(frozen=True, kw_only=True)
class Synapse:
    """A projection from a population or an input to a population, along a route between legs."""

    source: str
    target: str
    route: str
    weight: float
    sign: Literal[1, -1]

    def __str__(self) -> str:
        return f"synapse {self.key}"

    @property
    def key(self) -> str:
        """What identifies the row: "source>target route"."""
        return f"{self.source}>{self.target} {self.route}"


@dataclass(frozen=True)
class CircuitSpec:
    """The whole table. Building one validates it; see `Circuit` for running it."""

    neurons: tuple[Neuron, ...]
    synapses: tuple[Synapse, ...]
    inputs: tuple[Input, ...] = ()

    def __post_init__(self) -> None:
        rows: list[Neuron | Input] = [*self.neurons, *self.inputs]
        names = Counter(row.name for row in rows)
        for neuron in self.neurons:
            self._check_neuron(neuron)
        for row in rows:
            if names[row.name] > 1:
                raise UserError(f"{row}: its name appears {names[row.name]} times in the table")
        keys = Counter(synapse.key for synapse in self.synapses)
        for synapse in self.synapses:
            self._check_synapse(synapse)
            if keys[synapse.key] > 1:
                raise UserError(f"{synapse}: the row appears {keys[synapse.key]} times")

    def _check_neuron(self, neuron: Neuron) -> None:
        for leg in neuron.legs:
            if leg not in LEGS:
                raise UserError(f"{neuron}: leg {leg!r} does not exist; valid: {', '.join(LEGS)}")
        if not neuron.legs or len(set(neuron.legs)) < len(neuron.legs):
            raise UserError(f"{neuron}: legs must be a non-empty selection without repetition, not {neuron.legs}")
        if not np.isfinite(neuron.bias):
            raise UserError(f"{neuron}: bias is {neuron.bias}")

    def _check_synapse(self, synapse: Synapse) -> None:
        populations = [neuron.name for neuron in self.neurons]
        sources = [*populations, *(row.name for row in self.inputs)]
        if synapse.source not in sources:
            raise UserError(f"{synapse}: {unknown_name('source', synapse.source, sources)}")
        if synapse.target not in populations:
            raise UserError(f"{synapse}: {unknown_name('target', synapse.target, populations)}")
        if synapse.route not in ROUTES:
            raise UserError(f"{synapse}: {unknown_name('route', synapse.route, ROUTES)}")
        if synapse.source not in populations and synapse.route != "same":
            raise UserError(f"{synapse}: an input reaches only its own leg or side, by the route 'same'")
        if not np.isfinite(synapse.weight) or synapse.weight * synapse.sign < 0:
            expected = "excitatory (weight >= 0)" if synapse.sign > 0 else "inhibitory (weight <= 0)"
            raise UserError(f"{synapse}: declared {expected}, but its weight is {synapse.weight}")
        if not any(True for _ in self.connections(synapse)):
            raise UserError(f"{synapse}: {synapse.source} and {synapse.target} are in no legs that this route joins")

    def neuron(self, name: str) -> Neuron:
        """The row of that name."""
        for row in self.neurons:
            if row.name == name:
                return row
        raise unknown_name("neuron", name, [row.name for row in self.neurons])

    def connections(self, synapse: Synapse) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
        """Every single connection of a row: ((source, leg or side), (target, leg))."""
        target = self.neuron(synapse.target)
        for row in self.inputs:
            if row.name == synapse.source:
                for leg in target.legs:
                    yield (row.name, leg if row.per == "leg" else side_of(leg)), (target.name, leg)
                return
        for leg in self.neuron(synapse.source).legs:
            arrival = ROUTES[synapse.route].get(leg)
            if arrival in target.legs:
                yield (synapse.source, leg), (target.name, arrival)

    def without(self, populations: Iterable[str] = (), routes: Iterable[str] = ()) -> "CircuitSpec":
        """The same table after a knock-out: no row of these populations, no synapse along these routes."""
        populations, routes = set(populations), set(routes)
        for name in sorted(populations):
            self.neuron(name)
        for name in sorted(routes - ROUTES.keys()):
            raise unknown_name("route", name, ROUTES)
        return replace(
            self,
            neurons=tuple(row for row in self.neurons if row.name not in populations),
            synapses=tuple(
                row for row in self.synapses if not {row.source, row.target} & populations and row.route not in routes
            ),
        )

    def __str__(self) -> str:
        lines = [f"{'neuron':<12} {'unit':<11} {'bias':>8}  legs"]
        for neuron in self.neurons:
            unit = type(neuron.unit).__name__.removesuffix("Unit").lower()
            lines.append(f"{neuron.name:<12} {unit:<11} {neuron.bias:>8.4f}  {' '.join(neuron.legs)}")
        lines += ["", f"{'from':<18} {'to':<12} {'route':<10} {'weight':>8}"]
        for row in self.synapses:
            lines.append(f"{row.source:<18} {row.target:<12} {row.route:<10} {row.weight:>+8.4f}")
        lines += ["", f"{'input':<18} one per"]
        lines += [f"{row.name:<18} {row.per}" for row in self.inputs]
        units = dict.fromkeys(str(neuron.unit) for neuron in self.neurons)
        return "\n".join([*lines, "", *units])
