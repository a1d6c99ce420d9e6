"""Build your own circuit: eight neurons that trot, first by themselves, then in a body.

A flexor in every leg bursts by itself and silences the extensor of its leg; flexors of neighbouring legs inhibit each
other. Nothing else is needed for a trot. Two motor neurons per leg make it walk. Run it with
`python examples/own_circuit.py`, then change a row.
"""

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import tyro

import ncap

HALF_CENTRES = ncap.CircuitSpec(
    neurons=(
        ncap.Neuron(
            name="flexor",
            unit=ncap.OscillatorUnit(active_time=0.25, quiet_time=0.35, adaptation_time=0.8),
            bias=0.1,
            role="swing",
        ),
        ncap.Neuron(name="extensor", unit=ncap.BasicUnit(), bias=0.9, role="stance"),
    ),
    synapses=(
        ncap.Synapse(source="flexor", target="extensor", weight=-1.5, sign=-1),
        ncap.Synapse(source="flexor", target="flexor", route="cross", weight=-0.8, sign=-1),
        ncap.Synapse(source="flexor", target="flexor", route="side-down", weight=-0.8, sign=-1),
        ncap.Synapse(source="flexor", target="flexor", route="side-up", weight=-0.8, sign=-1),
    ),
)
PAPER = ncap.animal("paper")
BODY = replace(  # the paper's motor neurons, with their trainable weights, read our half-centres
    HALF_CENTRES,
    neurons=(*HALF_CENTRES.neurons, PAPER.neuron("thigh"), PAPER.neuron("calf")),
    synapses=(*HALF_CENTRES.synapses, *(row for row in PAPER.synapses if row.target in ("thigh", "calf"))),
)


def main(seed: int = 0, episodes: int = 3, out: Path = Path("own_circuit")) -> None:
    """Name the circuit's gait, draw its footfalls, walk with it, and save it for `--circuit`."""
    print(BODY, end="\n\n")
    alone = ncap.rhythm(HALF_CENTRES, seed=seed)
    print(f"gait: {alone.gait.label}, {alone.gait.frequency_hz:.2f} Hz, R {alone.gait.concentration:.2f}")
    fig, axes = plt.subplots(figsize=(8, 2.2), layout="constrained")
    alone.draw(axes)
    out.mkdir(parents=True, exist_ok=True)
    fig.savefig(out / "footfalls.png")
    walker = ncap.untrained(ncap.NCAPPolicy(circuit=BODY))
    found = walker.evaluate("flat-walk", range(episodes))
    print(f"in a body, untrained, {walker.parameters} weights: {found.speed_mean:.2f} m/s, {found.falls} falls")
    ncap.save_circuit(BODY, out / "circuit.json")
    print(f"train it: ncap train flat-walk --circuit {out / 'circuit.json'}")


if __name__ == "__main__":
    tyro.cli(main)
