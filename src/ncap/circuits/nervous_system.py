"""A whole table at work: from senses and commands over the core to the motor neurons, for a population of individuals.

Every signal of the animal has its place on a board (P, M): senses, commands, neurons without memory that drive the
core, the core, neurons that read it, and a 0 for what nobody sends.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ncap.circuits.circuit import Circuit, CircuitState, Indices, Stage
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.units import Array
from ncap.errors import UserError


class Weights(NamedTuple):
    """What the numbers of a table become, for some individuals."""

    before: tuple[tuple[Array, Array], ...]
    """(weights, biases) of every stage that drives the core."""
    core: Array | None
    """(P, N, N + I + 1), None where everybody has the table's own."""
    after: tuple[tuple[Array, Array], ...]


class NervousSystem:
    """A compiled table. `substeps` circuit steps make a control step."""

    def __init__(self, spec: CircuitSpec, senses: Sequence[str], substeps: int) -> None:
        """`senses`: names, such as "foot+.FL", of what the body offers, in the order in which `step` gets it."""
        self.spec, self.circuit = spec, Circuit(spec, substeps=substeps)
        wanted = [f"{row.name}.{place}" for row in spec.inputs if row.kind == "sense" for place in spec.places_of(row)]
        for name in wanted:
            if name not in senses:
                offered = ", ".join(dict.fromkeys(sense.rsplit(".", 1)[0] for sense in senses))
                raise UserError(f"input {name.rsplit('.', 1)[0]}: this body has no such sense; valid: {offered}")
        self.commands = tuple(
            f"{row.name}.{place}" for row in spec.inputs if row.kind == "command" for place in spec.places_of(row)
        )
        sites = spec.plan.sites

        def placed(names: Sequence[str]) -> list[str]:
            return [f"{name}.{site}" for site in sites for name in names]

        self.names = (
            *senses,
            *self.commands,
            *(name for level in spec.before for name in placed(level)),
            *self.circuit.neurons,
            *(name for level in spec.after for name in placed(level)),
        )
        """What stands where on the board; the last place, which has no name, is always 0."""
        self.index = {name: i for i, name in enumerate(self.names)}
        self.n_senses, n_commands = len(senses), len(self.commands)
        self.before = [(self._slot(placed(level)), Stage(spec, level, self.index)) for level in spec.before]
        self.after = [(self._slot(placed(level)), Stage(spec, level, self.index)) for level in spec.after]
        self._command_slot = slice(self.n_senses, self.n_senses + n_commands)
        self.core_slot = self._slot(self.circuit.neurons)
        self.core_inputs: Indices = np.array([self.index[name] for name in self.circuit.inputs], dtype=np.int64)

    def _slot(self, names: Sequence[str]) -> slice:
        first = self.index[names[0]] if names else 0
        return slice(first, first + len(names))

    def weights_from(self, numbers: Array) -> Weights:
        """What P individuals need to act, from the numbers (P, K) of their tables."""
        return Weights(
            before=tuple(stage.weights_from(numbers) for _, stage in self.before),
            core=self.circuit.weights_from(numbers) if self.circuit.trained else None,
            after=tuple(stage.weights_from(numbers) for _, stage in self.after),
        )

    def step(self, state: CircuitState, senses: Array, commands: Array, weights: Weights) -> tuple[CircuitState, Array]:
        """(next state, board (P, M)) after a control step with senses (P, S) and commands (P, C)."""
        board = np.zeros((len(senses), len(self.names) + 1))
        board[:, : self.n_senses] = senses
        board[:, self._command_slot] = commands
        for (slot, stage), own in zip(self.before, weights.before, strict=True):
            board[:, slot] = stage.respond(board, own).reshape(len(senses), -1)
        state = self.circuit.step(state, board.take(self.core_inputs, axis=1), weights.core)
        board[:, self.core_slot] = self.circuit.outputs(state)
        for (slot, stage), own in zip(self.after, weights.after, strict=True):
            board[:, slot] = stage.respond(board, own).reshape(len(senses), -1)
        return state, board
