"""The rhythm generator (RG) with its brainstem command (BC): 28 neurons after Danner et al. 2017.

The structure stands here once, with the released numbers. A preset other than `released` is a file of numbers for the
same rows; `default` is the result of `ncap tune-rhythm`. The whole animal around it is in animal.py.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.circuits.circuit import Circuit, CircuitState
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import Array, BasicUnit, OscillatorUnit
from ncap.errors import UserError, unknown_name
from ncap.plan import QUADRUPED

RELEASED_DT: Final = 0.030
"""Circuit step of the released numbers, s: one to a control step."""

EXTENSOR_STANCE: Final = 0.2
"""Extensor activity above which a leg counts as standing: clear of both its active level and its silence."""

NOISE_DT: Final = 0.030
"""Time between two draws of the afferents' noise, s: a control step."""
STARTS: Final = 64
"""Different starts of an episode at a command."""
RHYTHM_SETTLING: Final = 5.0
"""Time given to a random initial state to find its gait, s."""
LONGEST_STRIDE: Final = 1.0
"""An episode begins at a random moment of this time, s: at any phase of the gait."""

_FORE: Final = QUADRUPED.groups["girdle"]["fore"]
_HIND: Final = QUADRUPED.groups["girdle"]["hind"]
_BURSTING: Final = OscillatorUnit(tonic_drive=3.0, clip_drive=False)
_BASIC: Final = BasicUnit()

_NEURONS: Final = (
    Neuron(name="flexor", unit=_BURSTING, bias=0.1, role="swing of its leg; sets the rhythm"),
    Neuron(name="extensor", unit=_BASIC, bias=0.8, role="stance of its leg"),
    Neuron(name="cross_V0d", unit=_BASIC, bias=-0.1, role="left-right alternation at low speed"),
    Neuron(name="cross_V3f", unit=_BASIC, bias=-0.4, role="left-right synchrony at high speed"),
    Neuron(name="cross_V3e", unit=_BASIC, bias=0.0, role="left-right synchrony of stance"),
    Neuron(name="diag_V0d", unit=_BASIC, bias=-0.1, sites=_FORE, role="diagonal alternation: walk"),
    Neuron(name="diag_V0v", unit=_BASIC, bias=-0.1, sites=_FORE, role="diagonal synchrony: trot"),
    Neuron(name="diag_In2", unit=_BASIC, bias=-0.1, sites=_FORE, role="releases the diagonals from alternation"),
    Neuron(name="diag_V3a", unit=_BASIC, bias=-0.4, sites=_HIND, role="diagonal synchrony, ascending"),
)

COMMANDS: Final = (
    Input(name="freq", per="side", kind="command"),
    Input(name="sync", per="side", kind="command"),
)
"""Speed pathway and gait pathway of the brainstem, one of each per body side."""
AFFERENT_SUMS: Final = ("afferent_flexor", "afferent_extensor")
"""What the afferents of a leg add up to, for each of its half-centres."""
_INPUTS: Final = (*(Input(name=name) for name in AFFERENT_SUMS), *COMMANDS)


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

RELEASED: Final = CircuitSpec(_NEURONS, _SYNAPSES, _INPUTS, dt=RELEASED_DT)
"""The rhythm generator with the numbers of the authors' released code, which takes one step per control step."""

PRESETS: Final = ("default", "paper", "released")


def rhythm_spec(preset: str = "default") -> CircuitSpec:
    """The rhythm generator's table in a preset, its afferent sums as inputs."""
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    return RELEASED if preset == "released" else _respecified(preset)


def respecified(numbers: Mapping[str, Mapping[str, float]], spec: CircuitSpec = RELEASED) -> CircuitSpec:
    """A table with other numbers; rows that are not named keep theirs. The step becomes the default one.

    numbers: {"weights": {synapse key: …}, "biases": {neuron: …}, "oscillator": {field of OscillatorUnit: …}}.
    """
    weights, biases = dict(numbers["weights"]), dict(numbers["biases"])
    unit = OscillatorUnit(**numbers["oscillator"])  # type: ignore[arg-type]
    result = CircuitSpec(
        tuple(
            replace(
                row,
                bias=biases.pop(row.name, row.bias),
                unit=unit if isinstance(row.unit, OscillatorUnit) else row.unit,
            )
            for row in spec.neurons
        ),
        tuple(replace(row, weight=weights.pop(row.key, row.weight)) for row in spec.synapses),
        spec.inputs,
        spec.plan,
    )
    if weights or biases:
        raise UserError(f"the rhythm generator has no row {', '.join([*weights, *biases])}")
    return result


def released_numbers() -> dict[str, dict[str, float]]:
    """The released numbers in the form that `respecified` takes, but with a drive that is clipped, as in the paper."""
    unit = replace(_BURSTING, tonic_drive=1.0, clip_drive=True)
    fields = ("adaptation_time", "active_time", "quiet_time", "active_scale", "quiet_scale", "tonic_drive")
    return {
        "weights": {row.key: row.weight for row in _SYNAPSES if row.source not in AFFERENT_SUMS},
        "biases": {row.name: row.bias for row in _NEURONS},
        "oscillator": {name: getattr(unit, name) for name in fields},
    }


def preset_numbers(preset: str) -> dict[str, dict[str, float]]:
    """The numbers of the preset default or paper, in the form that `respecified` takes."""
    text = resources.files("ncap.circuits").joinpath(f"rhythm_{preset}.json").read_text("utf-8")
    numbers: dict[str, dict[str, float]] = json.loads(text)
    return numbers


@cache
def _respecified(preset: str) -> CircuitSpec:
    return respecified(preset_numbers(preset))


def rhythm_inputs(circuit: Circuit, command: Array) -> Array:
    """Inputs (P, I) of a core without afferents, from brainstem commands (P,) in [0, 1]."""
    inputs = np.zeros((len(command), len(circuit.inputs)))
    for i, row in enumerate(_rows_of_inputs(circuit)):
        if row is not None and row.kind == "command":
            inputs[:, i] = command if row.rest is None else row.rest
    return inputs


def afferent_columns(circuit: Circuit) -> list[int]:
    """Which inputs of a core are not commands."""
    return [i for i, row in enumerate(_rows_of_inputs(circuit)) if row is None or row.kind != "command"]


def _rows_of_inputs(circuit: Circuit) -> list[Input | None]:
    rows = {row.name: row for row in circuit.spec.inputs}
    return [rows.get(name.rsplit(".", 1)[0]) for name in circuit.inputs]


def check_command(command: float) -> float:
    """The command itself if it is a brainstem command in [0, 1], otherwise an error."""
    if not isinstance(command, int | float | np.number):
        raise UserError(f"a brainstem command is a number in [0, 1], not {command!r}")
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
    state, columns, afferents = quiet_start(circuit, adaptation), circuit.columns("extensor"), afferent_columns(circuit)
    activity = np.empty((len(command), steps, len(columns)))
    amplitude = np.broadcast_to(noise, len(command))[:, None]
    steps_per_draw = max(1, round(NOISE_DT / dt))
    changing = command.ndim > 1
    inputs = rhythm_inputs(circuit, commands[:, 0])
    drawn = inputs[:, afferents]
    for t in range(steps):
        if changing:
            inputs = rhythm_inputs(circuit, commands[:, t])
        if rng is not None and t % steps_per_draw == 0:
            drawn = amplitude * rng.uniform(-1.0, 1.0, (len(command), len(afferents)))
        inputs[:, afferents] = drawn
        state = circuit.step(state, inputs)
        activity[:, t] = circuit.outputs(state)[:, columns]
    return activity


def random_adaptation(spec: CircuitSpec, individuals: int, rng: np.random.Generator) -> Array:
    """Random initial states: adaptation (P, leg) of the quiet flexors, uniform between the resting thresholds."""
    flexor = spec.neuron("flexor")
    if not isinstance(flexor.unit, OscillatorUnit):
        raise UserError("neuron flexor: the rhythm is measured from flexors that are oscillators")
    return rng.uniform(*flexor.unit.thresholds(0.0), (individuals, len(spec.sites_of(flexor))))


def quiet_start(circuit: Circuit, adaptation: Array) -> CircuitState:
    """The start at which flexors are quiet with this adaptation (P, leg) and everything else is at rest."""
    state = circuit.reset(len(adaptation))
    number, columns = circuit.place_of("flexor")
    state.units[number][0][:, columns] = adaptation
    return state


def _choose(condition: NDArray[np.bool_], new: NDArray[Any], old: NDArray[Any]) -> NDArray[Any]:
    chosen: NDArray[Any] = np.where(condition, new, old)
    return chosen


@lru_cache(maxsize=64)
def rhythm_starts(spec: CircuitSpec, commands: tuple[float, ...]) -> CircuitState:
    """States (STARTS, …) of the rhythm in its gait, without afferents, each at a random phase of it.

    commands: of every command input of the table. The states come from random initial ones.
    """
    circuit = Circuit(spec)
    state = circuit.reset(STARTS, seeding.generator(0, "standing starts"))
    named = dict(
        zip(
            (f"{row.name}.{place}" for row in spec.inputs if row.kind == "command" for place in spec.places_of(row)),
            commands,
            strict=True,
        )
    )
    inputs = np.broadcast_to([named.get(name, 0.0) for name in circuit.inputs], (STARTS, len(circuit.inputs)))
    settled = round(RHYTHM_SETTLING / circuit.dt)
    last = settled + seeding.generator(0, "phase at the start").integers(
        round(LONGEST_STRIDE / circuit.dt), size=STARTS
    )
    for step in range(int(last.max()) + 1):
        after = circuit.step(state, inputs)
        state = after if step < settled else after.map(partial(_choose, step <= last[:, None]), state)
    return state
