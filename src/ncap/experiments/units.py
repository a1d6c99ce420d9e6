"""How the two neuron models respond to constant, pulse and periodic input (the paper's figure "Architecture Units")."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.circuits.circuit import Circuit
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import BasicUnit, OscillatorUnit
from ncap.experiments.library import Library, Scale
from ncap.plan import chain

Array = NDArray[np.float64]

DT: Final = 0.001
"""Circuit step of the figure, s."""
EXAMPLES: Final[dict[str, BasicUnit | OscillatorUnit]] = {
    "Basic": BasicUnit(voltage_time=0.4),
    "Oscillator": OscillatorUnit(),
}


def run(library: Library, scale: Scale, out: Path) -> None:
    """Draw the figure."""
    for suffix in (".svg", ".png"):
        figure(out / f"units{suffix}")


def respond(unit: BasicUnit | OscillatorUnit, drive: Array, dt: float = DT) -> Array:
    """Output (P, T) of single units without bias to drives (P, T), started from rest (oscillators: just gone quiet)."""
    spec = CircuitSpec(
        (Neuron(name="unit", unit=unit),),
        (Synapse(source="drive", target="unit", weight=1.0, sign=1),),
        (Input(name="drive"),),
        plan=chain(1),
    )
    circuit = Circuit(spec, dt=dt)
    state = circuit.reset(len(drive))
    output = np.empty_like(drive)
    for t in range(drive.shape[1]):
        state = circuit.step(state, drive[:, t, None])
        output[:, t] = circuit.outputs(state)[:, 0]
    return output


def example_drives(seconds: float = 9.0) -> tuple[Array, dict[str, Array]]:
    """(time (T,), inputs of the figure by name, (T,) each)."""
    time = np.arange(0, seconds, DT)
    staircase = np.select([time < 3, time < 6], [0.0, 0.4], 0.8)
    pulses = np.where((time % 3.7 > 2.4) & (time % 3.7 < 2.6), 0.8, 0.0)
    periodic = np.where(time % 1.1 < 0.3, 0.6, 0.0)
    extremes = np.select([time < 3, time < 6], [0.2, -0.6], 1.0)
    return time, {
        "constant: 0, 0.4, 0.8": staircase,
        "pulses": pulses,
        "periodic, 1.1 s": periodic,
        "weak, inhibited, strongly excited": extremes,
    }


@plots.styled
def figure(path: Path) -> None:
    """One column per unit, one row per input: input in grey, output in colour."""
    time, drives = example_drives()
    rows = [f"Basic{i} Oscillator{i}" for i in range(len(drives))]
    fig, axes = plots.figure(rows, size=(11, 8), heights=(1,) * len(rows))
    fig.suptitle("Responses of the neuron models to constant, pulse and periodic input")
    for unit_name, unit in EXAMPLES.items():
        outputs = respond(unit, np.stack(list(drives.values())))
        for i, (name, drive) in enumerate(drives.items()):
            here = axes[f"{unit_name}{i}"]
            here.fill_between(time, drive, step="post", color="#CFCFCF", linewidth=0, label="input")
            here.plot(time, outputs[i], color=plots.LEG_COLOURS[0 if unit_name == "Basic" else 2], label="output")
            here.set(title=f"{unit_name}: {name}", ylim=(-0.7, 1.1), xlim=(0, time[-1]), yticks=(-0.5, 0, 0.5, 1))
            here.axhline(0, color="#BBBBBB", linewidth=0.6, zorder=0)
            if i == len(drives) - 1:
                here.set_xlabel("time (s)")
    axes["Basic0"].legend(loc="upper left", frameon=False, ncols=2)
    plots.save(fig, path)
