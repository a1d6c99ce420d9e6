"""A circuit table compiled into arrays, and stepped for a whole population at once.

Shapes: P individuals, N neurons of the core, I signals that drive the core, K numbers of the table. Everything is
float64. A control step has three parts: `Stage`s of neurons without memory that add up what drives the core, the core
itself (`Circuit.step`), and stages that read it, down to the motor neurons.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.spec import CircuitSpec, Neuron
from ncap.circuits.units import Array, Group, UnitState
from ncap.errors import UserError

Indices = NDArray[np.int64]


class CircuitState(NamedTuple):
    """Everything a circuit remembers between two steps. Passed in and returned, never changed in place."""

    signals: Array
    """(P, N + I + 1) what synapses will carry at the next step: outputs, inputs, and a constant 1 for the biases."""
    units: tuple[UnitState, ...]
    """State of every group of units, in the order of the groups."""

    def map(self, change: Callable[..., NDArray[Any]], *others: "CircuitState") -> "CircuitState":
        """A state made by applying a function to every array of this one, and the same array of the others."""
        signals = change(self.signals, *(other.signals for other in others))
        units = tuple(
            tuple(change(*parts) for parts in zip(*states, strict=True))
            for states in zip(self.units, *(other.units for other in others), strict=True)
        )
        return CircuitState(signals, units)

    def flat(self) -> Array:
        """Everything as (P, numbers)."""
        return np.concatenate([self.signals, *(part for state in self.units for part in state)], 1, dtype=np.float64)


class Circuit:
    """The compiled core of a table. Neurons are grouped by their type, otherwise in the table's order, then by site.

    As in the released code, synapses and inputs act with a delay of one circuit step; one call of `step` does
    `substeps` of them while the inputs are held.
    """

    def __init__(self, spec: CircuitSpec, *, dt: float | None = None, substeps: int = 1) -> None:
        self.spec, self.dt, self.substeps = spec, spec.dt if dt is None else dt, substeps
        if not (np.isfinite(self.dt) and self.dt > 0 and substeps >= 1):
            raise UserError(f"a circuit needs dt > 0 and substeps >= 1, not dt={self.dt} and substeps={substeps}")
        core = spec.rhythm()
        kinds = list(dict.fromkeys(type(row.unit) for row in core.neurons))
        rows = sorted(core.neurons, key=lambda row: kinds.index(type(row.unit)))
        placed = [(row, site) for row in rows for site in core.sites_of(row)]
        self.neurons = tuple(f"{row.name}.{site}" for row, site in placed)
        self.inputs = tuple(f"{row.name}.{place}" for row in core.inputs for place in core.places_of(row))
        self.groups: list[tuple[slice, Group]] = []
        """Columns of the neurons of each type, and their units."""
        first = 0
        for _, members in groupby((row.unit for row, _ in placed), type):
            units = list(members)
            self.groups.append((slice(first, first + len(units)), units[0].group(units, self.dt)))
            first += len(units)
        self._compile(placed)

    def _compile(self, placed: Sequence[tuple[Neuron, str]]) -> None:
        """Where every number of the table goes: (its index, target neuron, source signal)."""
        spec, neurons = self.spec, len(self.neurons)
        index = {name: i for i, name in enumerate((*self.neurons, *self.inputs))}
        number = number_index(spec)
        core = {row.name for row in spec.core}
        self._places = [
            (
                number[synapse, spec.plan.part_of(target[1], synapse.tied_by)],
                index[".".join(target)],
                index[".".join(source)],
            )
            for synapse in spec.synapses
            if synapse.target in core
            for source, target in spec.connections(synapse)
        ]
        bias = neurons + len(self.inputs)
        self._places += [
            (number[row, spec.plan.part_of(site, row.tied_by)], i, bias) for i, (row, site) in enumerate(placed)
        ]
        self.weights = self.weights_from(initial_numbers(spec))

    def weights_from(self, numbers: Array) -> Array:
        """Matrices (..., N, N + I + 1) for `step` from the table's numbers (..., K), the leading axes free."""
        matrix = np.zeros((*numbers.shape[:-1], len(self.neurons), len(self.neurons) + len(self.inputs) + 1))
        for number, target, source in self._places:
            matrix[..., target, source] += numbers[..., number]
        return matrix

    @cached_property
    def weight_index(self) -> Indices:
        """(N, N + I + 1) which number of the table each weight is; the number of all of them where there is none."""
        index: Indices = np.full(self.weights.shape, len(self.spec.entries))
        for number, target, source in self._places:
            index[target, source] = number
        return index

    @cached_property
    def trained(self) -> bool:
        """Whether some number of the core is trained."""
        entries = self.spec.entries
        return any(entries[number].row.trainable for number, _, _ in self._places)

    def columns(self, population: str) -> list[int]:
        """Where the neurons of a population stand in the output, in the order of sites."""
        return [self.neurons.index(f"{population}.{site}") for site in self.spec.sites_of(self.spec.neuron(population))]

    def reset(self, individuals: int, rng: np.random.Generator | None = None) -> CircuitState:
        """A start of all units: a random one, or that at rest without a generator. All signals are 0."""
        signals = np.zeros((individuals, self.weights.shape[-1]))
        signals[:, -1] = 1.0
        return CircuitState(signals, tuple(group.start(individuals, rng) for _, group in self.groups))

    def place_of(self, population: str) -> tuple[int, list[int]]:
        """(number of the group of units, columns within the group) of a population, in the order of sites."""
        columns = self.columns(population)
        number = next(i for i, (place, _) in enumerate(self.groups) if columns[0] in range(place.start, place.stop))
        return number, [column - self.groups[number][0].start for column in columns]

    def state_of(self, state: CircuitState, population: str) -> UnitState:
        """What the units of a population remember, (P, sites) each, in the order of sites."""
        number, columns = self.place_of(population)
        return tuple(part[:, columns] for part in state.units[number])

    def step(self, state: CircuitState, inputs: Array, weights: Array | None = None) -> CircuitState:
        """Advance `substeps` circuit steps with inputs (P, I) held. `weights`: (P, N, N + I + 1) if they differ.

        The product is taken per individual, so that nobody's result depends on who else is in the batch, to the bit.
        """
        weights = self.weights if weights is None else weights
        before, units, n = state.signals, list(state.units), len(self.neurons)
        signals = np.empty_like(before)
        signals[:, n:-1] = inputs
        signals[:, -1] = 1.0
        for _ in range(self.substeps):
            drive = np.matvec(weights, before)
            for i, (place, group) in enumerate(self.groups):
                units[i], signals[:, place] = group.step(units[i], drive[:, place].copy())  # quicker than a view
            before = signals
        return CircuitState(signals, tuple(units))

    def outputs(self, state: CircuitState) -> Array:
        """Activity (P, N) of all neurons of the core, in [0, 1] for the paper's units; a view."""
        return state.signals[:, : len(self.neurons)]

    def adopt(self, state: CircuitState, other: "Circuit") -> CircuitState:
        """Another circuit's state as far as both have the same neurons and inputs; the rest starts at rest."""
        mine = self.reset(len(state.signals))
        theirs = {name: i for i, name in enumerate((*other.neurons, *other.inputs))}
        for i, name in enumerate((*self.neurons, *self.inputs)):
            if name in theirs:
                mine.signals[:, i] = state.signals[:, theirs[name]]
        for (place, group), unit_state in zip(self.groups, mine.units, strict=True):
            for (their_place, their_group), their_state in zip(other.groups, state.units, strict=True):
                if type(group) is not type(their_group):
                    continue
                names = {name: j for j, name in enumerate(other.neurons[their_place])}
                for j, name in enumerate(self.neurons[place]):
                    if name in names:
                        for part, their_part in zip(unit_state, their_state, strict=True):
                            part[:, j] = their_part[:, names[name]]
        return mine

    def __str__(self) -> str:
        return str(self.spec)


class Stage:
    """Neurons without memory that can respond together, at every site: sums of what arrives there, through their units.

    Everything that may arrive at a site is one source, a pair of a row and a route; where nothing arrives, it is 0.
    """

    def __init__(self, spec: CircuitSpec, names: Sequence[str], signals: Mapping[str, int]) -> None:
        """`signals`: where in the vector (P, M) that `respond` gets, whose last entry is 0, which signal stands."""
        self.names, sites = tuple(names), spec.plan.sites
        rows = [spec.neuron(name) for name in names]
        synapses = [row for row in spec.synapses if row.target in names]
        sources = list(dict.fromkeys((row.source, row.route) for row in synapses))
        number, nothing = number_index(spec), len(spec.entries)
        self.arriving: Indices = np.full((len(sites), len(sources)), -1)
        self.weight_index: Indices = np.full((len(sites), len(rows), len(sources)), nothing)
        self.bias_index: Indices = np.full((len(sites), len(rows)), nothing)
        for synapse in synapses:
            column = sources.index((synapse.source, synapse.route))
            for source, (_, site) in spec.connections(synapse):
                at = sites.index(site)
                self.arriving[at, column] = signals[".".join(source)]
                part = spec.plan.part_of(site, synapse.tied_by)
                self.weight_index[at, names.index(synapse.target), column] = number[synapse, part]
        for i, row in enumerate(rows):
            for site in spec.sites_of(row):
                self.bias_index[sites.index(site), i] = number[row, spec.plan.part_of(site, row.tied_by)]
        kinds = dict.fromkeys(type(row.unit) for row in rows)
        self.groups: list[tuple[list[int], Group]] = []
        """Columns of the neurons of each type within a site, and their units."""
        for kind in kinds:
            columns = [i for i, row in enumerate(rows) if type(row.unit) is kind]
            units = [rows[i].unit for i in columns]
            self.groups.append((columns, units[0].group(units, spec.dt)))

    def weights_from(self, numbers: Array) -> tuple[Array, Array]:
        """(weights (..., site, neuron, source), biases (..., site, neuron)) from the table's numbers (..., K)."""
        padded = np.concatenate((numbers, np.zeros((*numbers.shape[:-1], 1))), axis=-1)
        return np.ascontiguousarray(padded[..., self.weight_index]), np.ascontiguousarray(padded[..., self.bias_index])

    def respond(self, signals: Array, weights: tuple[Array, Array]) -> Array:
        """Outputs (P, site, neuron) to signals (P, M)."""
        drive: Array = np.matmul(weights[0], signals[:, self.arriving][..., None])[..., 0] + weights[1]
        if len(self.groups) == 1:
            return self.groups[0][1].step((), drive)[1]
        output: Array = np.empty_like(drive)
        for columns, group in self.groups:
            output[..., columns] = group.step((), drive[..., columns])[1]
        return output


def number_index(spec: CircuitSpec) -> dict[tuple[Any, str], int]:
    """Where in the table's numbers the weight or bias of a row in a part of the body stands: {(row, part): index}."""
    return {(row, entry.part): i for i, entry in enumerate(spec.entries) for row in (entry.row, *entry.others)}


def initial_numbers(spec: CircuitSpec) -> Array:
    """(K,) the numbers as the table gives them."""
    return np.array([entry.number.initial for entry in spec.entries])
