"""The rhythm generator compiled with the machine's C compiler, for searches that run it millions of times.

It is the circuit of ncap.circuits.circuit with oscillators and basic units only, several times as fast; a test holds
the two against each other.
"""

import ctypes
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis.gaits import Gait, gait_of_onsets
from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import EXTENSOR_STANCE, NOISE_DT, afferent_columns, rhythm_inputs
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.units import BasicGroup, OscillatorGroup
from ncap.errors import UserError

Array = NDArray[np.float64]

LANES: Final = 8
"""Individuals that the kernel steps side by side; as in the C file."""
MOST_ONSETS: Final = 128
"""Strides of a leg that are kept."""


class _Circuit(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int) for name in ("neurons", "oscillators", "signals")),
        *(
            (name, ctypes.c_void_p)
            for name in ("first", "source", "weight", "rate", "stop", "start", "stop_slope", "start_slope", "tonic")
        ),
    ]


@cache
def _library() -> Any:
    source = resources.files("ncap.experiments").joinpath("rhythm_kernel.c").read_text("utf-8")
    with TemporaryDirectory() as folder:
        built = Path(folder) / "kernel.so"
        command = ["cc", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-x", "c", "-", "-o"]
        try:
            subprocess.run([*command, str(built)], input=source.encode(), check=True, capture_output=True)
        except FileNotFoundError:
            raise UserError("the search for a rhythm needs a C compiler (cc), and there is none here") from None
        except subprocess.CalledProcessError as error:
            raise UserError(f"the C compiler could not build the rhythm's kernel: {error.stderr.decode()}") from None
        return ctypes.CDLL(str(built))


def fast_gaits(
    spec: CircuitSpec,
    commands: Array,
    adaptation: Array,
    *,
    settling: float,
    seconds: float,
    dt: float,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
) -> list[Gait]:
    """The gaits of a rhythm generator's extensors at commands (P,), from a start (P, leg) of its quiet flexors.

    They are measured for some seconds after others of settling; dt: circuit step, s. noise: amplitude of uniform white
    noise on all afferents, drawn from `rng` as by ncap.circuits.rhythm.extensor_activity.
    """
    circuit = Circuit(spec, dt=dt)
    individuals, steps = len(commands), round((settling + seconds) / dt)
    padded = -individuals % LANES
    afferents = np.array(afferent_columns(circuit), np.int32)
    steps_per_draw = max(1, round(NOISE_DT / dt))
    drawn, n_noisy = np.zeros(0), 0
    if rng is not None:
        draws = -(-steps // steps_per_draw)
        drawn = noise * rng.uniform(-1.0, 1.0, (draws, individuals, len(afferents)))
        drawn, n_noisy = np.pad(drawn, ((0, 0), (0, padded), (0, 0))), len(afferents)
    inputs = np.pad(rhythm_inputs(circuit, commands), ((0, padded), (0, 0)))
    start = np.pad(adaptation, ((0, padded), (0, 0)))
    arrays = _arrays(circuit)
    described = _Circuit(
        len(circuit.neurons), len(arrays["stop"]), circuit.weights.shape[1], *(a.ctypes.data for a in arrays.values())
    )
    extensors = np.array(circuit.columns("extensor"), np.int32)
    legs = len(extensors)
    onsets = np.zeros((individuals + padded, legs, MOST_ONSETS))
    counts, stance = (np.zeros((individuals + padded, legs), np.int32) for _ in range(2))
    _library().run_rhythm(
        ctypes.byref(described),
        *(ctypes.c_int(number) for number in (individuals + padded, steps, round(settling / dt))),
        *(_pointer(array) for array in (inputs, drawn, afferents)),
        *(ctypes.c_int(number) for number in (n_noisy, steps_per_draw)),
        *(_pointer(array) for array in (start, extensors)),
        ctypes.c_int(legs),
        ctypes.c_double(EXTENSOR_STANCE),
        ctypes.c_int(MOST_ONSETS),
        *(_pointer(array) for array in (onsets, counts, stance)),
    )
    return [_gait(onsets[i], counts[i], stance[i], dt) for i in range(individuals)]


def _gait(onsets: Array, counts: NDArray[np.int32], stance: NDArray[np.int32], dt: float) -> Gait:
    """The gait from onsets (leg, most) in steps, their counts (leg,), and steps in stance (leg,) between them."""
    times: Sequence[Array] = [row[:count] for row, count in zip(onsets, counts, strict=True)]
    duties = [
        in_stance / max(1.0, np.ceil(row[-1]) - np.ceil(row[0])) if len(row) > 1 else 0.0
        for row, in_stance in zip(times, stance, strict=True)
    ]
    return gait_of_onsets([row * dt for row in times], float(np.mean(duties)))


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _arrays(circuit: Circuit) -> dict[str, NDArray[Any]]:
    """What the kernel needs of a circuit, in the order of its struct."""
    groups = [group for _, group in circuit.groups]
    if len(groups) != 2 or not isinstance(groups[0], OscillatorGroup) or not isinstance(groups[1], BasicGroup):
        raise UserError("the search for a rhythm takes circuits of oscillators and basic units, in this order")
    oscillators, basics = groups[0], groups[1]
    target, source = np.nonzero(circuit.weights)
    return {
        "first": np.searchsorted(target, np.arange(len(circuit.neurons) + 1)).astype(np.int32),
        "source": source.astype(np.int32),
        "weight": circuit.weights[target, source],
        "rate": np.concatenate((oscillators.rate, basics.rate)),
        "stop": oscillators.base[0].copy(),
        "start": oscillators.base[1].copy(),
        "stop_slope": oscillators.slope[0].copy(),
        "start_slope": oscillators.slope[1].copy(),
        "tonic": oscillators.tonic_drive,
    }
