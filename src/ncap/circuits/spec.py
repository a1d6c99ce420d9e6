"""A neural circuit as a table that can be read and edited: neuron rows, synapse rows, input rows.

A row stands for the same thing at every site of the body plan that has it. The whole animal is one table: afferents,
rhythm generator, brainstem inputs and motor neurons. The table is checked when it is built, and every complaint names
the row. It knows nothing of matrices: see circuit.py; nor of files: see tables.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from ncap.circuits.rows import SAME as SAME
from ncap.circuits.rows import Entry as Entry
from ncap.circuits.rows import Input as Input
from ncap.circuits.rows import Neuron as Neuron
from ncap.circuits.rows import Synapse as Synapse
from ncap.circuits.rows import merged, number_of
from ncap.circuits.units import unit_name
from ncap.errors import UserError, unknown_name
from ncap.plan import BODY, QUADRUPED, SITE, BodyPlan

STAGES: Final = ("AF", "BC", "RG", "PF")
"""Afferent feedback, brainstem command, rhythm generation, pattern formation: what can be trained by name."""


@dataclass(frozen=True)
class CircuitSpec:
    """The whole table. Building one validates it; see `Circuit` for running it."""

    neurons: tuple[Neuron, ...]
    synapses: tuple[Synapse, ...]
    inputs: tuple[Input, ...] = ()
    plan: BodyPlan = QUADRUPED
    dt: float = 0.0025
    """Circuit step that these numbers are meant for, s."""

    @cached_property
    def _hash(self) -> int:
        return hash((self.neurons, self.synapses, self.inputs, self.plan, self.dt))

    def __hash__(self) -> int:
        return self._hash

    def __post_init__(self) -> None:
        rows: list[Neuron | Input] = [*self.neurons, *self.inputs]
        names = Counter(row.name for row in rows)
        if not (np.isfinite(self.dt) and self.dt > 0):
            raise UserError(f"a circuit needs a step dt > 0 s, not {self.dt}")
        for neuron in self.neurons:
            self._check_neuron(neuron)
        for row in self.inputs:
            if row.per not in self.plan.divisions:
                raise UserError(f"{row}: {unknown_name('division of the body', row.per, self.plan.divisions)}")
        for named in rows:
            if names[named.name] > 1:
                raise UserError(f"{named}: its name appears {names[named.name]} times in the table")
        keys = Counter(synapse.key for synapse in self.synapses)
        for synapse in self.synapses:
            self._check_synapse(synapse)
            if keys[synapse.key] > 1:
                raise UserError(f"{synapse}: the row appears {keys[synapse.key]} times")
        self._check_order()
        self._check_shared()

    def _check_neuron(self, neuron: Neuron) -> None:
        sites = self.sites_of(neuron)
        for site in sites:
            if site not in self.plan.sites:
                raise UserError(f"{neuron}: site {site!r} does not exist; valid: {', '.join(self.plan.sites)}")
        if not sites or len(set(sites)) < len(sites):
            raise UserError(f"{neuron}: sites must be a non-empty selection without repetition, not {sites}")
        if not np.isfinite(neuron.bias):
            raise UserError(f"{neuron}: bias is {neuron.bias}")
        self._check_tie(neuron)

    def _check_tie(self, row: Neuron | Synapse) -> None:
        if row.tied_by not in self.plan.divisions:
            raise UserError(f"{row}: {unknown_name('tied_by', row.tied_by, self.plan.divisions)}")

    def _check_synapse(self, synapse: Synapse) -> None:
        populations = [neuron.name for neuron in self.neurons]
        sources = [*populations, *(row.name for row in self.inputs)]
        if synapse.source not in sources:
            raise UserError(f"{synapse}: {unknown_name('source', synapse.source, sources)}")
        if synapse.target not in populations:
            raise UserError(f"{synapse}: {unknown_name('target', synapse.target, populations)}")
        if synapse.route not in self.plan.routes:
            raise UserError(f"{synapse}: {unknown_name('route', synapse.route, self.plan.routes)}")
        source = self._input(synapse.source)
        if source is not None and source.per != SITE and synapse.route != SAME:
            raise UserError(f"{synapse}: an input per {source.per} reaches its own part only, by the route 'same'")
        if not np.isfinite(synapse.weight) or synapse.weight * synapse.sign < 0:
            expected = {1: "excitatory (weight >= 0)", -1: "inhibitory (weight <= 0)", 0: "free"}[synapse.sign]
            raise UserError(f"{synapse}: declared {expected}, but its weight is {synapse.weight}")
        self._check_tie(synapse)
        if not any(True for _ in self.connections(synapse)):
            raise UserError(f"{synapse}: {synapse.source} and {synapse.target} are in no sites that this route joins")

    def _check_order(self) -> None:
        """Neurons without memory need their input at once, so they cannot form loops, with or without the rhythm."""
        before = {name for level in self.before for name in level}
        core = {row.name for row in self.core}
        for synapse in self.synapses:
            if synapse.target in before and synapse.source in core:
                raise UserError(f"{synapse}: {synapse.target} has no memory and drives neurons that have one, so only "
                                "inputs can drive it")  # fmt: skip

    def _check_shared(self) -> None:
        """Rows that share a weight must say the same of it."""
        first: dict[str, Synapse] = {}
        for row in (row for row in self.synapses if row.shared):
            other = first.setdefault(row.shared, row)
            for name in ("weight", "sign", "trainable", "tied_by"):
                mine, its = getattr(row, name), getattr(other, name)
                if mine != its:
                    raise UserError(f"{row}: shares {row.shared!r} with {other}, but its {name} is {mine}, not {its}")
            if self.stage_of(row) != self.stage_of(other):
                raise UserError(f"{row}: shares {row.shared!r} with {other}, which belongs to another stage")

    def _input(self, name: str) -> Input | None:
        return next((row for row in self.inputs if row.name == name), None)

    def neuron(self, name: str) -> Neuron:
        """The row of that name."""
        for row in self.neurons:
            if row.name == name:
                return row
        raise unknown_name("neuron", name, [row.name for row in self.neurons])

    def sites_of(self, neuron: Neuron) -> tuple[str, ...]:
        """Where a population occurs."""
        return self.plan.sites if neuron.sites is None else neuron.sites

    def places_of(self, row: Input) -> tuple[str, ...]:
        """The sites or parts of the body that have a signal of their own."""
        return self.plan.parts(row.per)

    def connections(self, synapse: Synapse) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
        """Every single connection of a row: ((source, site or part), (target, site))."""
        target = self.neuron(synapse.target)
        source = self._input(synapse.source)
        arrivals = self.sites_of(target)
        if source is not None and source.per != SITE:
            for site in arrivals:
                yield (source.name, self.plan.part_of(site, source.per)), (target.name, site)
            return
        starts = self.plan.sites if source is not None else self.sites_of(self.neuron(synapse.source))
        for site in starts:
            arrival = self.plan.routes[synapse.route].get(site)
            if arrival in arrivals:
                yield (synapse.source, site), (target.name, arrival)

    @property
    def rows(self) -> tuple[Synapse | Neuron, ...]:
        """All rows that have numbers: synapses, then neurons."""
        return *self.synapses, *self.neurons

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all populations and inputs."""
        return *(row.name for row in self.neurons), *(row.name for row in self.inputs)

    # --- stages -----------------------------------------------------------------------------------------------------

    @cached_property
    def core(self) -> tuple[Neuron, ...]:
        """Neurons with a memory: the rhythm generator."""
        return tuple(row for row in self.neurons if not row.unit.instantaneous)

    @cached_property
    def before(self) -> tuple[tuple[str, ...], ...]:
        """Names of the neurons without memory that drive the core, in levels: each needs only those before it."""
        reaching = {row.name for row in self.core}
        driving: set[str] = set()
        while (
            found := {s.source for s in self.synapses if s.target in reaching | driving and self._instant(s.source)}
            - driving
        ):
            driving |= found
        return self._levels(driving)

    @cached_property
    def after(self) -> tuple[tuple[str, ...], ...]:
        """Names of the other neurons without memory, in levels: the motor neurons."""
        before = {name for level in self.before for name in level}
        rest = {row.name for row in self.neurons if row.unit.instantaneous} - before
        return self._levels(rest)

    def _instant(self, name: str) -> bool:
        return any(row.name == name and row.unit.instantaneous for row in self.neurons)

    def _levels(self, names: set[str]) -> tuple[tuple[str, ...], ...]:
        levels, left = [], set(names)
        while left:
            waiting = {s.target for s in self.synapses if s.target in left and s.source in left}
            level = tuple(row.name for row in self.neurons if row.name in left - waiting)
            if not level:
                raise UserError(f"neuron {min(left)}: neurons without memory drive each other in a circle")
            levels.append(level)
            left -= set(level)
        return tuple(levels)

    @cached_property
    def _around_rhythm(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of the neurons that drive the rhythm generator, and of those that only hear it."""
        before, after = (frozenset(name for level in levels for name in level) for levels in (self.before, self.after))
        core = {row.name for row in self.core}
        driving = {row.source for row in self.synapses if row.target in core and row.source != row.target}
        return before, after | (core - driving if core & driving else set())

    def stage_of(self, row: Neuron | Synapse) -> str:
        """AF, BC, RG or PF: what a row belongs to. Neurons with a memory that drive no other such neuron are PF."""
        before, after = self._around_rhythm
        target = row.target if isinstance(row, Synapse) else row.name
        if isinstance(row, Synapse) and (source := self._input(row.source)) is not None:
            return "BC" if source.kind == "command" else "PF" if target in after else "AF"
        return "AF" if target in before else "PF" if target in after else "RG"

    # --- numbers ----------------------------------------------------------------------------------------------------

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every number of the table: by stage, then by part of the body, weights before biases."""
        found = []
        for position, row in enumerate(self.rows):
            stage, divisions = self.stage_of(row), self.plan.divisions
            for place, part in enumerate(self.plan.parts(row.tied_by)):
                if part not in self._parts_with(row):
                    continue
                order = STAGES.index(stage), divisions.index(row.tied_by), place, isinstance(row, Neuron), position
                block = stage if row.tied_by == BODY else f"{stage}.{part}"
                found.append((order, Entry(row, part, number_of(row, block))))
        return merged(entry for _, entry in sorted(found, key=lambda pair: pair[0]))

    def _parts_with(self, row: Neuron | Synapse) -> set[str]:
        """Parts of the body in which a row has a neuron to act on."""
        sites = self.sites_of(row) if isinstance(row, Neuron) else [target for _, (_, target) in self.connections(row)]
        return {self.plan.part_of(site, row.tied_by) for site in sites}

    def trained_by(self, stages: Iterable[str]) -> "CircuitSpec":
        """The same table with only the rows of these stages trainable: those that it marks, or all if it marks none."""
        wanted = set(stages)
        for name in sorted(wanted - set(STAGES)):
            raise unknown_name("stage", name, STAGES)
        marked = {self.stage_of(row) for row in self.rows if row.trainable}

        def trained(row: Neuron | Synapse) -> bool:
            stage = self.stage_of(row)
            return stage in wanted and (row.trainable or stage not in marked)

        return replace(
            self,
            neurons=tuple(replace(row, trainable=trained(row)) for row in self.neurons),
            synapses=tuple(replace(row, trainable=trained(row)) for row in self.synapses),
        )

    # --- other tables -----------------------------------------------------------------------------------------------

    def without(
        self, populations: Iterable[str] = (), routes: Iterable[str] = (), synapses: Iterable[str] = ()
    ) -> "CircuitSpec":
        """The same table after a knock-out: no row of these populations, no synapse of these routes or keys.

        A population is a neuron row, an input, or a single neuron such as "flexor.FL", whose row then has a site less.
        """
        gone, routes, synapses = set(populations), set(routes), set(synapses)
        neurons, names = [], set(self.names)
        singles = {f"{row.name}.{site}" for row in self.neurons for site in self.sites_of(row)}
        for name in sorted(gone - names - singles):
            raise unknown_name("population", name, sorted(names))
        for name in sorted(routes - self.plan.routes.keys()):
            raise unknown_name("route", name, self.plan.routes)
        for name in sorted(synapses - {row.key for row in self.synapses}):
            raise unknown_name("synapse", name, [row.key for row in self.synapses])
        for row in self.neurons:
            left = tuple(site for site in self.sites_of(row) if f"{row.name}.{site}" not in gone)
            if left and row.name not in gone:
                neurons.append(row if left == self.sites_of(row) else replace(row, sites=left))
            else:
                gone.add(row.name)
        kept = [
            row
            for row in self.synapses
            if not {row.source, row.target} & gone and row.route not in routes and row.key not in synapses
        ]
        joined = CircuitSpec(tuple(neurons), (), self.inputs, self.plan, self.dt)
        return replace(joined, synapses=tuple(row for row in kept if any(True for _ in joined.connections(row))))

    def on(self, plan: BodyPlan) -> "CircuitSpec":
        """The same rows on another plan of the same kind, such as a longer chain."""
        if plan.kind != self.plan.kind:
            raise UserError(f"a circuit for the body {self.plan.name} does not fit the body {plan.name}")
        return self if plan == self.plan else replace(self, plan=plan)

    def rhythm(self) -> "CircuitSpec":
        """The core alone: neurons without memory that drive it become inputs, and the others are left out."""
        core = {row.name for row in self.core}
        synapses = tuple(row for row in self.synapses if row.target in core)
        sources = {row.source for row in synapses}
        driving = tuple(Input(name=row.name) for row in self.neurons if row.name in sources - core)
        inputs = (*driving, *(row for row in self.inputs if row.name in sources))
        return CircuitSpec(self.core, synapses, inputs, self.plan, self.dt)

    def __str__(self) -> str:
        lines = [f"{'neuron':<18} {'unit':<11} {'bias':>8}  trained     sites"]
        for neuron in self.neurons:
            sites = " ".join(self.sites_of(neuron))
            lines.append(
                f"{neuron.name:<18} {unit_name(neuron.unit):<11} {neuron.bias:>8.4f}  {_trained(neuron):<11} {sites}"
            )
        lines += ["", f"{'from':<18} {'to':<18} {'route':<10} {'weight':>8}  trained"]
        for row in self.synapses:
            lines.append(f"{row.source:<18} {row.target:<18} {row.route:<10} {row.weight:>+8.4f}  {_trained(row)}")
        lines += ["", f"{'input':<18} {'kind':<10} one per"]
        lines += [f"{row.name:<18} {row.kind:<10} {row.per}" for row in self.inputs]
        units = dict.fromkeys(str(neuron.unit) for neuron in self.neurons)
        return "\n".join([*lines, "", *units])


def _trained(row: Neuron | Synapse) -> str:
    return "" if not row.trainable else "once" if row.tied_by == BODY else f"per {row.tied_by}"
