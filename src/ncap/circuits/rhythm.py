"""The rhythm generator (RG) with its brainstem command (BC): 28 neurons after Danner et al. 2017.

The structure stands here once, with the released numbers. A preset other than `released` is a file of numbers for the
same rows; `default` is the result of `ncap tune-rhythm`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from typing import Final

import numpy as np

from ncap import seeding
from ncap.circuits.circuit import Circuit, CircuitState
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import Array, BasicUnit, OscillatorUnit
from ncap.errors import UserError, unknown_name
from ncap.legs import FORE, HIND, LEGS

CIRCUIT_DT: Final = 0.0025
"""Circuit step of the default preset, s: twelve to a control step."""

EXTENSOR_STANCE: Final = 0.2
"""Extensor activity above which a leg counts as standing: clear of both its active level and its silence."""

STARTS: Final = 64
"""Different starts of an episode at a command."""
SETTLING: Final = 5.0
"""s given to a random initial state to find its gait."""
WAITING: Final = 2.0
"""s in which a moment without a swinging leg is looked for."""

_BURSTING: Final = OscillatorUnit(tonic_drive=3.0, clip_drive=False)
_BASIC: Final = BasicUnit()

_NEURONS: Final = (
    Neuron(name="flexor", unit=_BURSTING, bias=0.1),
    Neuron(name="extensor", unit=_BASIC, bias=0.8),
    Neuron(name="cross_V0d", unit=_BASIC, bias=-0.1),
    Neuron(name="cross_V3f", unit=_BASIC, bias=-0.4),
    Neuron(name="cross_V3e", unit=_BASIC, bias=0.0),
    Neuron(name="diag_V0d", unit=_BASIC, bias=-0.1, legs=FORE),
    Neuron(name="diag_V0v", unit=_BASIC, bias=-0.1, legs=FORE),
    Neuron(name="diag_In2", unit=_BASIC, bias=-0.1, legs=FORE),
    Neuron(name="diag_V3a", unit=_BASIC, bias=-0.4, legs=HIND),
)

_INPUTS: Final = (
    Input(name="afferent_flexor", per="leg"),
    Input(name="afferent_extensor", per="leg"),
    Input(name="freq", per="side"),
    Input(name="sync", per="side"),
)


def _excites(source: str, target: str, route: str, weight: float) -> Synapse:
    return Synapse(source=source, target=target, route=route, weight=weight, sign=1)


def _inhibits(source: str, target: str, route: str, weight: float) -> Synapse:
    return Synapse(source=source, target=target, route=route, weight=weight, sign=-1)


_SYNAPSES: Final = (
    # half-centres of one leg: the flexor dominates
    _inhibits("flexor", "extensor", "same", -1.0),
    _inhibits("extensor", "flexor", "same", -0.1),
    # left and right: V0d alternates them at low speed, V3 synchronises them at high speed
    _excites("flexor", "cross_V0d", "same", 1.0),
    _excites("flexor", "cross_V3f", "same", 1.0),
    _excites("extensor", "cross_V3e", "same", 1.0),
    _inhibits("cross_V0d", "flexor", "cross", -1.5),
    _excites("cross_V3f", "flexor", "cross", 0.3),
    _excites("cross_V3e", "extensor", "cross", 0.05),
    # fore and hind of one side alternate
    _excites("extensor", "flexor", "side-down", 0.1),
    _inhibits("flexor", "flexor", "side-down", -0.1),
    _excites("extensor", "flexor", "side-up", 0.1),
    # diagonals: V0d alternates them (walk), V0v and V3a synchronise them (trot)
    _excites("flexor", "diag_V0d", "same", 1.0),
    _excites("flexor", "diag_V0v", "same", 1.0),
    _excites("cross_V3f", "diag_In2", "same", 1.0),
    _inhibits("diag_In2", "diag_V0d", "same", -0.2),
    _inhibits("diag_V0d", "flexor", "diag-down", -0.8),
    _excites("diag_V0v", "flexor", "diag-down", 0.2),
    _excites("flexor", "diag_V3a", "same", 1.0),
    _excites("diag_V3a", "flexor", "diag-up", 0.2),
    _excites("diag_V3a", "diag_In2", "diag-up", 0.8),
    # brainstem command: speed pathway and gait pathway
    _excites("freq", "flexor", "same", 1.0),
    _excites("freq", "cross_V3f", "same", 1.0),
    _excites("freq", "diag_V3a", "same", 0.8),
    _inhibits("sync", "cross_V0d", "same", -0.8),
    _inhibits("sync", "diag_V0d", "same", -0.5),
    _inhibits("sync", "diag_V0v", "same", -0.5),
    # afferent feedback
    _excites("afferent_flexor", "flexor", "same", 1.0),
    _excites("afferent_extensor", "extensor", "same", 1.0),
)

RELEASED: Final = CircuitSpec(_NEURONS, _SYNAPSES, _INPUTS)
"""The table with the numbers of the authors' released code, which takes one step of 30 ms per control step."""

PRESETS: Final = ("default", "released")

#: What can be knocked out by name, beside single populations: (populations, routes).
KNOCKOUTS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "V0": (("cross_V0d", "diag_V0d", "diag_V0v"), ()),
    "V0d": (("cross_V0d", "diag_V0d"), ()),
    "V0v": (("diag_V0v",), ()),
    "V3": (("cross_V3f", "cross_V3e", "diag_V3a"), ()),
    "diagonal": (("diag_V0d", "diag_V0v", "diag_In2", "diag_V3a"), ()),
    "homolateral": ((), ("side-down", "side-up")),
    **{row.name: ((row.name,), ()) for row in _NEURONS if row.name not in ("flexor", "extensor")},
}


def rhythm_spec(preset: str = "default", without: Iterable[str] = ()) -> CircuitSpec:
    """The rhythm generator's table in a preset, after the named knock-outs."""
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    spec = RELEASED if preset == "released" else _default_spec()
    populations: set[str] = set()
    routes: set[str] = set()
    for name in without:
        if name not in KNOCKOUTS:
            raise unknown_name("knock-out", name, KNOCKOUTS)
        populations.update(KNOCKOUTS[name][0])
        routes.update(KNOCKOUTS[name][1])
    return spec.without(populations, routes)


def rhythm_dt(preset: str) -> float:
    """The circuit step, s, that a preset is meant for."""
    return 0.030 if preset == "released" else CIRCUIT_DT


def respecified(numbers: Mapping[str, Mapping[str, float]]) -> CircuitSpec:
    """The rhythm generator with other numbers; rows that are not named keep the released one.

    numbers: {"weights": {synapse key: …}, "biases": {neuron: …}, "oscillator": {field of OscillatorUnit: …}}.
    """
    weights, biases = dict(numbers["weights"]), dict(numbers["biases"])
    unit = OscillatorUnit(**numbers["oscillator"])  # type: ignore[arg-type]
    spec = CircuitSpec(
        tuple(
            replace(
                row,
                bias=biases.pop(row.name, row.bias),
                unit=unit if isinstance(row.unit, OscillatorUnit) else row.unit,
            )
            for row in _NEURONS
        ),
        tuple(replace(row, weight=weights.pop(row.key, row.weight)) for row in _SYNAPSES),
        _INPUTS,
    )
    if weights or biases:
        raise UserError(f"the rhythm generator has no row {', '.join([*weights, *biases])}")
    return spec


@cache
def _default_spec() -> CircuitSpec:
    return respecified(json.loads(resources.files("ncap.circuits").joinpath("rhythm_default.json").read_text("utf-8")))


def rhythm_inputs(
    command: Array, flexor_afferents: Array | float = 0.0, extensor_afferents: Array | float = 0.0
) -> Array:
    """Inputs (P, 12) of the rhythm generator from the brainstem command (P,) in [0, 1] and afferents (P, leg)."""
    inputs = np.empty((len(command), 2 * len(LEGS) + 4))
    inputs[:, 0:4] = flexor_afferents
    inputs[:, 4:8] = extensor_afferents
    inputs[:, 8:] = command[:, None]
    return inputs


def check_command(command: float) -> float:
    """The command itself if it is a brainstem command in [0, 1], otherwise an error."""
    if not 0.0 <= command <= 1.0:
        raise UserError(f"brainstem command {command:g} is outside [0, 1]")
    return command


def extensor_activity(
    spec: CircuitSpec,
    command: Array,
    adaptation: Array,
    *,
    seconds: float,
    dt: float,
    noise: Array | float = 0.0,
    rng: np.random.Generator | None = None,
) -> Array:
    """Run the rhythm generator without a body and return its extensors, the predicted stance, as (P, T, leg).

    command: (P,) constant, or (P, T) one value per circuit step of dt seconds. adaptation: (P, leg) of the flexors at
    the start. noise: amplitude, also per individual (P,), of uniform white noise on all afferents, drawn from `rng`
    anew every control step of 30 ms.
    """
    circuit = Circuit(spec, dt=dt)
    steps = round(seconds / dt)
    commands = np.broadcast_to(command[:, None] if command.ndim == 1 else command, (len(command), steps))
    state, columns = circuit.reset_to(adaptation), circuit.columns("extensor")
    activity = np.empty((len(command), steps, len(LEGS)))
    amplitude = np.broadcast_to(noise, len(command))[:, None]
    steps_per_draw = max(1, round(0.030 / dt))
    inputs = rhythm_inputs(commands[:, 0])
    for t in range(steps):
        inputs[:, 8:] = commands[:, t, None]
        if rng is not None and t % steps_per_draw == 0:
            inputs[:, :8] = amplitude * rng.uniform(-1.0, 1.0, (len(command), 8))
        state = circuit.step(state, inputs)
        activity[:, t] = circuit.outputs(state)[:, columns]
    return activity


def random_adaptation(spec: CircuitSpec, individuals: int, rng: np.random.Generator) -> Array:
    """Random initial states: adaptation (P, leg) of the quiet flexors, uniform between the resting thresholds."""
    unit = spec.neuron("flexor").unit
    assert isinstance(unit, OscillatorUnit)
    return rng.uniform(*unit.thresholds(0.0), (individuals, len(LEGS)))


@lru_cache(maxsize=64)
def standing_starts(preset: str, command: float) -> CircuitState:
    """States (STARTS, …) of the rhythm in its gait, without afferents, at moments in which all legs stand.

    They come from random initial states. A rhythm that always swings some leg is taken as it is in the end.
    """
    circuit = Circuit(rhythm_spec(preset), dt=rhythm_dt(preset))
    state = circuit.reset(seeding.generator(0, "standing starts"), STARTS)
    inputs = rhythm_inputs(np.full(STARTS, command))
    for _ in range(round(SETTLING / circuit.dt)):
        state = circuit.step(state, inputs)
    for _ in range(round(WAITING / circuit.dt)):
        swinging = state.active.any(axis=1, keepdims=True)
        if not swinging.any():
            break
        after = circuit.step(state, inputs)
        state = CircuitState(*(np.where(swinging, new, old) for new, old in zip(after, state, strict=True)))
    return state
