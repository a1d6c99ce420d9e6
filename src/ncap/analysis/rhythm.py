"""The gait of a circuit without a body: what its rhythm generator does by itself at a command."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ncap import seeding
from ncap.analysis.gaits import Gait, measure_gait
from ncap.circuits.circuit import Circuit, CircuitState
from ncap.circuits.rhythm import EXTENSOR_STANCE, RHYTHM_SETTLING
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.units import Array

STATES: Final = 16
"""Random initial states from which the rhythm is run."""
SECONDS: Final = 6.0
"""Time in which its gait is measured, s."""


def rhythm_gaits(spec: CircuitSpec, commands: Mapping[str, float], weights: Array | None = None) -> list[Gait]:
    """The gait of the extensors from each of some random initial states, without afferents.

    commands: values of the table's command inputs by name, such as "freq.L". weights: (N, N + I + 1) of the core, if
    they are not the table's own.
    """
    circuit = Circuit(spec)
    state = circuit.reset(STATES, seeding.generator(0, "rhythm states"))
    inputs = np.broadcast_to([commands.get(name, 0.0) for name in circuit.inputs], (STATES, len(circuit.inputs)))
    stance = settled_stance(circuit, state, inputs, RHYTHM_SETTLING, SECONDS, weights)
    return [measure_gait(one, circuit.dt, EXTENSOR_STANCE) for one in stance]


def settled_stance(
    circuit: Circuit,
    state: CircuitState,
    inputs: Array,
    settling: float,
    seconds: float,
    weights: Array | None = None,
) -> Array:
    """Activity (P, T, leg) of the extensors for some seconds, after others in which the rhythm finds its gait.

    inputs: (P, I) of the core, held. weights: as for `Circuit.step`.
    """
    columns = circuit.columns("extensor")
    for _ in range(round(settling / circuit.dt)):
        state = circuit.step(state, inputs, weights)
    stance = np.empty((len(inputs), round(seconds / circuit.dt), len(columns)))
    for t in range(stance.shape[1]):
        state = circuit.step(state, inputs, weights)
        stance[:, t] = circuit.outputs(state)[:, columns]
    return stance
