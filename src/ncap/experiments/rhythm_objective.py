"""What the search for a rhythm asks of its numbers: named losses, each at least 0, whose sum is minimised.

The gait of every command, from random initial states, with and without noise, at half the circuit step; a frequency
that rises evenly, and that afferents cannot raise much further; what knock-outs do.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis.gaits import MIN_CONCENTRATION, Gait, circular_distance
from ncap.circuits.animal import cut
from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import RHYTHM_SETTLING, random_adaptation, respecified, rhythm_inputs
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.units import OscillatorUnit
from ncap.experiments.rhythm_kernel import fast_gaits

Array = NDArray[np.float64]
Numbers = dict[str, dict[str, float]]
"""Weights, biases and the oscillator's numbers by name: see ncap.circuits.rhythm.respecified."""

IDEAL_PHASES: Final = {  # (left-right, fore after hind)
    "walk": (0.5, 0.25),
    "trot": (0.5, 0.5),
    "bound": (0.0, 0.5),
}

COMMANDS: Final = tuple(c / 100 for c in range(0, 101, 5))
"""Brainstem commands at which the objective asks for a gait; below, those of its other terms."""
ROUGH_COMMANDS: Final = (*COMMANDS[::2], 0.25, 0.75, 0.85)
ROUGH_DT: Final = 0.010
"""Circuit step of rough stages, s."""
NOISY_COMMANDS: Final = (0.0, 0.1, 0.2, 0.25, 0.4, 0.7, 0.85)
FINE_COMMANDS: Final = (0.0, 0.05, 0.15, 0.25, 0.4, 0.7, 0.85)
KNOCKOUT_COMMANDS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SLOW_COMMANDS: Final = (0.0, 0.1, 0.2, 0.45, 0.6)
"""Walks and trots, which V3 is not needed for."""
SLOWEST_HZ, FASTEST_HZ = 1.15, 3.25
"""Stride frequency wanted at the commands 0 and 1; in between it should rise evenly."""
FREQUENCY_BAND: Final = 0.2
"""Distance from the wanted frequency that costs nothing, Hz."""
RESTING: Final = 0.2
"""Time in which extensors and interneurons come to rest while flexors are silent, s."""
HEADROOM: Final = 1.08
"""Frequency of an oscillator at full drive over that of the circuit at the command 1, at most: what afferents could
add to the fastest rhythm."""
AFFERENT_NOISE: Final = 0.1
"""Amplitude of white noise on all afferents."""


def wanted_gait(command: float) -> str | None:
    """The gait that the paper's claim asks for at a brainstem command; None between the gaits' ranges."""
    if command <= 0.25:
        return "walk"
    if 0.40 <= command <= 0.70:
        return "trot"
    return "bound" if command >= 0.85 else None


def run(
    spec: CircuitSpec, commands: Array, rng: np.random.Generator, noise: float = 0.0, dt: float | None = None
) -> list[Gait]:
    """The gaits of a rhythm generator at commands (P,), each from a random initial state. dt: circuit step, s."""
    return fast_gaits(
        spec,
        commands,
        random_adaptation(spec, len(commands), rng),
        settling=RHYTHM_SETTLING,
        seconds=RHYTHM_SETTLING,
        dt=spec.dt if dt is None else dt,
        noise=noise,
        rng=rng if noise else None,
    )


def irregularity(gait: Gait, wanted: float) -> float:
    """How far the concentration R of a gait is below the wanted one, 0 … 1; steeper close to it."""
    lacking = max(0.0, wanted - gait.concentration)
    return 0.5 * min(1.0, 4 * lacking) + 0.5 * lacking / wanted


def gait_loss(gait: Gait, wanted: str | None, tolerance: float, regularity: float) -> float:
    """How far a gait is from the wanted one, 0 … 4.5: its label, its phases beyond a tolerance, its concentration."""
    irregular = irregularity(gait, regularity)
    if wanted is None or gait.frequency_hz == 0:
        return irregular if wanted is None else 4.5
    left_right, fore_hind = IDEAL_PHASES[wanted]
    left_right_tolerance = min(tolerance, 0.02) if wanted == "bound" else tolerance
    errors = (
        circular_distance(np.array(gait.left_right_phase), left_right).max() - left_right_tolerance,
        circular_distance(np.array(gait.fore_hind_phase), fore_hind).max() - tolerance,
    )
    return 1.5 * (gait.label != wanted) + irregular + sum(_beyond(float(error)) for error in errors)


def _beyond(error: float) -> float:
    """The cost of a phase this far beyond its tolerance, 0 … 0.75: steep at first, for the last hundredth counts."""
    return min(0.25, 25 * max(0.0, error)) + max(0.0, error)


def intact_losses(spec: CircuitSpec, states: int, rng: np.random.Generator) -> dict[str, float]:
    """Gaits with and without noise, the rise of the frequency, and what full drive would add to it."""
    gaits = run(spec, np.repeat(COMMANDS, states), rng)
    wanted = np.repeat([wanted_gait(c) for c in COMMANDS], states)
    losses = [gait_loss(gait, label, 0.075, 0.97) for gait, label in zip(gaits, wanted, strict=True)]
    by_command = np.array(losses).reshape(len(COMMANDS), states).mean(1)
    frequency = np.array([gait.frequency_hz for gait in gaits]).reshape(len(COMMANDS), states).mean(1)
    falls = np.clip(0.01 - np.diff(frequency), 0, None).sum()
    noisy = np.repeat(NOISY_COMMANDS, max(1, states // 2))
    shaken = run(spec, noisy, rng, noise=AFFERENT_NOISE)
    return {
        "gaits": float(4 * by_command.mean() + by_command.max()),
        "noise": float(np.mean([gait_loss(g, wanted_gait(c), 0.10, 0.86) for g, c in zip(shaken, noisy, strict=True)])),
        "frequency": _off_frequency(COMMANDS, frequency) + float(5 * falls),
        "headroom": _headroom(spec, frequency[-1]),
    }


def _off_frequency(commands: Sequence[float], frequency: Array) -> float:
    """Mean distance of frequencies from the band around the wanted ones, in eighths of a Hz."""
    off = np.abs(frequency - np.interp(commands, (0, 1), (SLOWEST_HZ, FASTEST_HZ)))
    return 8 * float(np.clip(off - FREQUENCY_BAND, 0, None).mean())


def _headroom(spec: CircuitSpec, fastest_hz: float) -> float:
    """How much more than HEADROOM afferents could add to the fastest rhythm of a circuit, times five."""
    return 5 * float(max(0.0, full_drive_hz(spec) / max(fastest_hz, 0.1) - HEADROOM))


def full_drive_hz(spec: CircuitSpec) -> float:
    """Frequency of the flexors' oscillator at its largest drive, Hz."""
    unit = spec.neuron("flexor").unit
    assert isinstance(unit, OscillatorUnit)
    return 1 / (unit.active_time * unit.active_scale + unit.quiet_time * unit.quiet_scale)


def fine_step_loss(spec: CircuitSpec, states: int, rng: np.random.Generator) -> float:
    """The same gaits at half the circuit step."""
    commands = np.repeat(FINE_COMMANDS, max(1, states // 2))
    gaits = run(spec, commands, rng, dt=spec.dt / 2)
    return float(np.mean([gait_loss(g, wanted_gait(c), 0.085, 0.95) for g, c in zip(gaits, commands, strict=True)]))


def knockout_losses(
    spec: CircuitSpec, states: int, rng: np.random.Generator, commands: Sequence[float] = KNOCKOUT_COMMANDS
) -> dict[str, float]:
    """Danner's predictions: without V0 left-right synchrony, without V0v no trot, without V3 still walk and trot.

    And without the diagonal V0d no walk, without homolateral connections no fore-hind alternation at speed. commands:
    those at which V0 and V0v are cut.
    """

    def without(name: str, commands: Sequence[float], loss: Callable[[Gait, float], float]) -> float:
        said = np.repeat(commands, max(1, states // 2))
        gaits = run(cut(spec, [name]), said, rng)
        return float(np.mean([loss(gait, c) for gait, c in zip(gaits, said, strict=True)]))

    def asynchrony(gait: Gait, _: float) -> float:
        if gait.frequency_hz == 0:
            return 1.0
        distance = circular_distance(np.array(gait.left_right_phase), 0.0).max()
        return float(np.clip(5 * (distance - 0.02), 0, 1) + np.clip(0.95 - gait.concentration, 0, 1))

    def trot_likeness(gait: Gait, _: float) -> float:
        if gait.label != "trot":
            return 0.0
        return 1.0 + 5 * float(0.1 - circular_distance(np.array(gait.diagonal_phase), 0.0).max())

    def alternation(gait: Gait, _: float) -> float:
        regular = gait.concentration >= MIN_CONCENTRATION
        return float(regular and (circular_distance(np.array(gait.fore_hind_phase), 0.0) >= 0.25).all())

    return {
        "without V0": without("V0", commands, asynchrony),
        "without V0v": without("V0v", commands, trot_likeness),
        "without V3": without("V3", SLOW_COMMANDS, lambda gait, c: gait_loss(gait, wanted_gait(c), 0.12, 0.9)),
        "without diag_V0d": 0.3 * without("diag_V0d", (0.0, 0.1, 0.2), lambda gait, _: float(gait.label == "walk")),
        "without homolateral": 0.3 * without("homolateral", (0.9, 1.0), alternation),
    }


def silence(spec: CircuitSpec) -> float:
    """How far below 0 the drive of a flexor is at the command 0 while none is active: then it would never burst."""
    circuit = Circuit(spec)
    state, inputs = circuit.reset(1), rhythm_inputs(circuit, np.zeros(1))
    number, columns = circuit.place_of("flexor")
    for _ in range(round(RESTING / circuit.dt)):
        state.units[number][0][:, columns] = 0.0
        state = circuit.step(state, inputs)
    drive = (circuit.weights @ state.signals[0])[circuit.columns("flexor")]
    return float(max(0.0, -drive.min()))


def rough_losses(spec: CircuitSpec, states: int, rng: np.random.Generator) -> dict[str, float]:
    """Gaits and frequencies alone, at fewer commands and in coarse circuit steps."""
    gaits = run(spec, np.repeat(ROUGH_COMMANDS, states), rng, dt=ROUGH_DT)
    wanted = np.repeat([wanted_gait(c) for c in ROUGH_COMMANDS], states)
    frequency = np.array([gait.frequency_hz for gait in gaits]).reshape(-1, states).mean(1)
    return {
        "gaits": 4 * float(np.mean([gait_loss(g, label, 0.075, 0.97) for g, label in zip(gaits, wanted, strict=True)])),
        "frequency": _off_frequency(ROUGH_COMMANDS, frequency),
        "headroom": _headroom(spec, frequency[ROUGH_COMMANDS.index(1.0)]),
    }


def objective(numbers: Numbers, states: int, entropy: tuple[int, ...], care: str = "thorough") -> dict[str, float]:
    """Named terms, each at least 0, whose sum the search minimises. Initial states and noise come from the entropy."""
    spec, rng = respecified(numbers), np.random.default_rng(entropy)
    if care == "rough":
        return rough_losses(spec, states, rng)
    terms = intact_losses(spec, states, rng)
    terms["half step"] = fine_step_loss(spec, states, rng)
    if care == "usual":
        return terms | knockout_losses(spec, states, rng, KNOCKOUT_COMMANDS)
    terms |= knockout_losses(spec, states, rng, COMMANDS)
    return terms | {"silent without V0": 5 * silence(cut(spec, ["V0"]))}
