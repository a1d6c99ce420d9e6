"""A circuit table compiled into matrices, and stepped for a whole population at once.

Shapes: P individuals, N neurons, I inputs, R synapse rows. Everything is float64.
"""

from typing import NamedTuple

import numpy as np

from ncap.circuits.spec import CircuitSpec
from ncap.circuits.units import Array, BasicGroup, BasicUnit, Mask, OscillatorGroup, OscillatorUnit
from ncap.errors import UserError


class CircuitState(NamedTuple):
    """Everything a circuit remembers between two steps. Passed in and returned, never changed in place."""

    signals: Array
    """(P, N + I + 1) what synapses will carry at the next step: outputs, inputs, and a constant 1 for the biases."""
    adaptation: Array
    """(P, oscillators) in [0, 1]."""
    active: Mask
    """(P, oscillators)."""
    voltage: Array
    """(P, basic units) in [-1, 1]."""


class Circuit:
    """A compiled circuit. Neurons are ordered oscillators first, otherwise as in the table, then by leg.

    As in the released code, synapses and inputs act with a delay of one circuit step of `dt` seconds; one call of
    `step` does `substeps` of them while the inputs are held.
    """

    def __init__(self, spec: CircuitSpec, *, dt: float, substeps: int = 1) -> None:
        if not (np.isfinite(dt) and dt > 0 and substeps >= 1):
            raise UserError(f"a circuit needs dt > 0 and substeps >= 1, not dt={dt} and substeps={substeps}")
        self.spec, self.dt, self.substeps = spec, dt, substeps
        rows = sorted(spec.neurons, key=lambda row: isinstance(row.unit, BasicUnit))
        placed = [(row, leg) for row in rows for leg in row.legs]
        self.neurons = tuple(f"{row.name}.{leg}" for row, leg in placed)
        self.inputs = tuple(f"{row.name}.{place}" for row in spec.inputs for place in row.places)
        oscillators = [row.unit for row, _ in placed if isinstance(row.unit, OscillatorUnit)]
        basics = [row.unit for row, _ in placed if isinstance(row.unit, BasicUnit)]
        self._oscillators, self._n_oscillators = OscillatorGroup(oscillators, dt), len(oscillators)
        self._basics = BasicGroup(basics, dt)

        index = {name: i for i, name in enumerate((*self.neurons, *self.inputs))}
        self._connections = [  # (synapse row, target neuron, source signal) of every single connection
            (r, index[".".join(target)], index[".".join(source)])
            for r, synapse in enumerate(spec.synapses)
            for source, target in spec.connections(synapse)
        ]
        self._biases = np.array([row.bias for row, _ in placed])
        self.weights = self.weights_from(np.array([synapse.weight for synapse in spec.synapses]))

    def weights_from(self, row_weights: Array) -> Array:
        """Matrices (..., N, N + I + 1) for `step` from one weight per synapse row (..., R), the leading axes free."""
        matrix = np.zeros((*row_weights.shape[:-1], len(self.neurons), len(self.neurons) + len(self.inputs) + 1))
        for row, target, source in self._connections:
            matrix[..., target, source] += row_weights[..., row]
        matrix[..., -1] = self._biases
        return matrix

    def columns(self, population: str) -> list[int]:
        """Where the neurons of a population stand in the output, in leg order."""
        return [self.neurons.index(f"{population}.{leg}") for leg in self.spec.neuron(population).legs]

    def reset(self, rng: np.random.Generator, individuals: int) -> CircuitState:
        """A random start: oscillators quiet, with adaptation uniform between their two resting thresholds."""
        group = self._oscillators
        return self.reset_to(rng.uniform(group.stop, group.start, (individuals, self._n_oscillators)))

    def reset_to(self, adaptation: Array) -> CircuitState:
        """The start at which oscillators are quiet with this adaptation (P, oscillators) and all else is silent."""
        individuals = len(adaptation)
        signals = np.zeros((individuals, self.weights.shape[-1]))
        signals[:, -1] = 1.0
        voltage = np.zeros((individuals, len(self.neurons) - self._n_oscillators))
        return CircuitState(signals, adaptation.astype(float), np.zeros(adaptation.shape, bool), voltage)

    def step(self, state: CircuitState, inputs: Array, weights: Array | None = None) -> CircuitState:
        """Advance `substeps` circuit steps with inputs (P, I) held. `weights`: (P, N, N + I + 1) if they differ.

        The product is taken per individual, so that nobody's result depends on who else is in the batch, to the bit.
        """
        weights = self.weights if weights is None else weights
        n_osc, n = self._n_oscillators, len(self.neurons)
        before, adaptation, active, voltage = state
        signals = np.empty_like(before)
        signals[:, n:-1] = inputs
        signals[:, -1] = 1.0
        for _ in range(self.substeps):
            drive = np.matmul(weights, before[:, :, None])[:, :, 0]
            adaptation, active, signals[:, :n_osc] = self._oscillators.step(adaptation, active, drive[:, :n_osc])
            voltage, signals[:, n_osc:n] = self._basics.step(voltage, drive[:, n_osc:])
            before = signals
        return CircuitState(signals, adaptation, active, voltage)

    def outputs(self, state: CircuitState) -> Array:
        """Activity (P, N) of all neurons in [0, 1], a view."""
        return state.signals[:, : len(self.neurons)]

    def __str__(self) -> str:
        return str(self.spec)
