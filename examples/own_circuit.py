"""Build your own circuit and see its rhythm: eight neurons that trot.

A flexor in every leg bursts by itself and silences the extensor of its leg; flexors of neighbouring legs inhibit each
other. Nothing else is needed for a trot. Run it with `python examples/own_circuit.py`, then change a row.
"""

from pathlib import Path

import numpy as np
import tyro

from ncap.analysis import plots
from ncap.analysis.gaits import measure_gait
from ncap.circuits.circuit import Circuit
from ncap.circuits.spec import CircuitSpec, Neuron, Synapse
from ncap.circuits.units import BasicUnit, OscillatorUnit

HALF_CENTRES = CircuitSpec(
    neurons=(
        Neuron(name="flexor", unit=OscillatorUnit(active_time=0.25, quiet_time=0.35, adaptation_time=0.8), bias=0.1),
        Neuron(name="extensor", unit=BasicUnit(), bias=0.9),
    ),
    synapses=(
        Synapse(source="flexor", target="extensor", route="same", weight=-1.5, sign=-1),
        Synapse(source="flexor", target="flexor", route="cross", weight=-0.8, sign=-1),
        Synapse(source="flexor", target="flexor", route="side-down", weight=-0.8, sign=-1),
        Synapse(source="flexor", target="flexor", route="side-up", weight=-0.8, sign=-1),
    ),
)


def main(seconds: float = 12.0, out: Path = Path("own_circuit.png"), seed: int = 0) -> None:
    """Run the circuit from a random start, name its gait, and draw its predicted footfalls."""
    print(HALF_CENTRES, end="\n\n")
    circuit, dt = Circuit(HALF_CENTRES, dt=0.0025), 0.0025
    state = circuit.reset(np.random.default_rng(seed), 1)
    stance = np.empty((round(seconds / dt), 4))
    for row in stance:
        state = circuit.step(state, np.zeros((1, 0)))
        row[:] = circuit.outputs(state)[0, circuit.columns("extensor")]
    settled = stance[len(stance) // 2 :]
    gait = measure_gait(settled, dt, 0.2)
    print(f"gait: {gait.label}, {gait.frequency_hz:.2f} Hz, duty {gait.duty:.2f}, R {gait.concentration:.2f}")
    fig, axes = plots.figure(["footfalls"], size=(8, 2.2), heights=(1,))
    plots.footfalls(axes["footfalls"], np.arange(len(settled)) * dt, settled, 0.2)
    axes["footfalls"].set_xlabel("time (s)")
    plots.save(fig, out)
    print(f"figure: {out}")


if __name__ == "__main__":
    tyro.cli(main)
