"""One control step of a policy as an ONNX graph.

An MLP maps observations to actions. A circuit also takes its commands and everything that it remembers as one row of
numbers, `CircuitState.flat`, and gives the next one; its own steps within the control step are unrolled.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.circuit import Stage
from ncap.circuits.units import BasicGroup, OscillatorGroup, RectifierGroup, SumGroup, TanhGroup
from ncap.errors import UserError
from ncap.export.graph import Graph
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

Array = NDArray[np.float64]
Parts = list[str]
"""What units remember, a value each."""

_ACTIVATIONS: Final = {"relu": "Relu", "tanh": "Tanh"}


def mlp_step(graph: Graph, policy: MLPPolicy, theta: Array) -> None:
    """Inputs: observation and, where wishes change, wish. Output: action."""
    felt = graph.input("observation", policy.senses)
    if policy.wishes:
        felt = graph.join(felt, graph.input("wish", policy.wishes))
    acting = policy.bind(theta[None])
    values = graph.apply("Mul", graph.apply("Sub", felt, acting.mean), acting.scale)
    for i, (weights, bias) in enumerate(acting.layers):
        values = graph.linear(values, weights[0].T, bias[0])
        if i < len(acting.layers) - 1:
            values = graph.apply(_ACTIVATIONS[policy.activation], values)
    bounded = graph.apply("Tanh", values) if policy.output == "tanh" else graph.limit(values, -1.0, 1.0)
    graph.output("action", bounded, prod(policy.joints))


def circuit_step(graph: Graph, policy: NCAPPolicy, theta: Array) -> None:
    """Inputs: observation, command, state. Outputs: action, next_state."""
    system, (own, posture) = policy.system, policy.felt
    weights = system.weights_from(policy.numbers(theta[None]))
    seen = graph.input("observation", len(own) + len(posture))
    felt = graph.columns(seen, own)
    senses = [graph.apply("Max", graph.apply("Neg", felt), 0.0), graph.apply("Max", felt, 0.0)]
    if len(posture):
        senses.append(graph.columns(seen, posture))
    board = graph.join(*senses)
    width = system.n_senses
    if system.commands:
        board = graph.join(board, graph.input("command", len(system.commands)))
        width += len(system.commands)
    for (_, stage), (numbers, biases) in zip(system.before, weights.before, strict=True):
        board, width = _with_stage(graph, stage, numbers[0], biases[0], board, width)
    size = policy.bind(theta[None]).reset([0]).flat().shape[1]
    before = graph.input("state", size)
    core = system.circuit.weights if weights.core is None else weights.core[0]
    outputs, after = _core_step(graph, policy, core, before, graph.columns(board, system.core_inputs), size)
    board, width = graph.join(board, outputs), width + len(system.circuit.neurons)
    for (_, stage), (numbers, biases) in zip(system.after, weights.after, strict=True):
        board, width = _with_stage(graph, stage, numbers[0], biases[0], board, width)
    plan = policy.circuit.plan
    motors = [f"{joint}.{site}" for site in plan.sites for joint in plan.joints]
    chosen = np.zeros((width, len(motors)))
    for column, (motor, sign) in enumerate(zip(motors, policy.mirrored.ravel(), strict=True)):
        if motor in system.index:  # a joint without a motor neuron stays at 0
            chosen[system.index[motor], column] = sign
    graph.output("action", graph.linear(board, chosen), len(motors))
    graph.output("next_state", after, size)


def _with_stage(graph: Graph, stage: Stage, weights: Array, biases: Array, board: str, width: int) -> tuple[str, int]:
    """The board (batch, width) with the neurons of a stage behind it, and its new width.

    weights: (site, neuron, source). What is not on the board yet is 0, as for the stage itself.
    """
    sites, neurons, sources = weights.shape
    matrix = np.zeros((width, sites, neurons))
    for site in range(sites):
        for source in range(sources):
            if 0 <= stage.arriving[site, source] < width:
                matrix[stage.arriving[site, source], site] += weights[site, :, source]
    drive = graph.linear(board, matrix.reshape(width, -1), biases.ravel())
    groups = [(_everywhere(columns, sites, neurons), group) for columns, group in stage.groups]
    parts = [_unit_step(graph, group, [], graph.columns(drive, columns), sites)[1] for columns, group in groups]
    order = np.argsort(np.concatenate([columns for columns, _ in groups]))
    return graph.join(board, graph.columns(graph.join(*parts), order)), width + sites * neurons


def _everywhere(columns: Sequence[int], sites: int, neurons: int) -> NDArray[np.int64]:
    """Columns of a site as columns of all sites in a row."""
    places: NDArray[np.int64] = np.arange(sites)[:, None] * neurons + np.array(columns)
    return places.ravel()


def _core_step(graph: Graph, policy: NCAPPolicy, weights: Array, state: str, inputs: str, size: int) -> tuple[str, str]:
    """(outputs of the core, its next state) after a control step with inputs that are held; weights (N, N + I + 1)."""
    circuit = policy.core
    signals, activity = weights.shape[1], ""
    carried, one = graph.columns(state, range(signals)), graph.columns(state, [signals - 1])
    memories: list[Parts] = []
    place = signals
    for columns, group in circuit.groups:
        units = columns.stop - columns.start
        memories.append([])
        for _ in group.start(1, None):
            memories[-1].append(graph.columns(state, range(place, place + units)))
            place += units
    if place != size:
        raise UserError("this circuit remembers more than its units do, and cannot be exported")
    for _ in range(circuit.substeps):
        drive, outputs = graph.linear(carried, weights.T), []
        for i, (columns, group) in enumerate(circuit.groups):
            memories[i], output = _unit_step(
                graph, group, memories[i], graph.columns(drive, range(columns.start, columns.stop)), 1
            )
            outputs.append(output)
        activity = graph.join(*outputs)
        carried = graph.join(activity, inputs, one)
    after = graph.join(carried, *(part for memory in memories for part in memory))
    return activity, after


def _unit_step(graph: Graph, group: Any, memory: Parts, drive: str, repeats: int) -> tuple[Parts, str]:
    """(what units remember, their output) after a step with this drive; stages have a group once for every site."""
    if type(group) not in _UNITS:
        raise UserError(f"neurons of the type {type(group).__name__} cannot be exported to ONNX")
    return _UNITS[type(group)](graph, group, memory, drive, repeats)


def _basic(graph: Graph, group: BasicGroup, memory: Parts, drive: str, repeats: int) -> tuple[Parts, str]:
    towards = graph.apply("Mul", graph.limit(drive, -1.0, 1.0), group.rate)
    voltage = graph.apply("Div", graph.apply("Add", memory[0], towards), 1.0 + group.rate)
    return [voltage], graph.apply("Max", voltage, 0.0)


def _oscillator(graph: Graph, group: OscillatorGroup, memory: Parts, drive: str, repeats: int) -> tuple[Parts, str]:
    before, active = memory[0], graph.apply("Greater", memory[1], 0.5)
    grows = graph.apply("Add", graph.apply("Where", active, 0.0, group.rate), before)
    adaptation = graph.apply("Div", grows, 1.0 + group.rate)
    excited = graph.limit(drive, 0.0, 1.0)
    stop, start = (
        graph.apply("Add", graph.apply("Mul", excited, slope), base)
        for slope, base in zip(group.slope, group.base, strict=True)
    )
    stay = graph.apply("Greater", adaptation, stop)
    if np.isfinite(group.tonic_drive).any():
        stay = graph.apply("Or", stay, graph.apply("Greater", drive, group.tonic_drive))
    begin = graph.apply(
        "And", graph.apply("GreaterOrEqual", adaptation, start), graph.apply("GreaterOrEqual", drive, 0.0)
    )
    bursts = graph.apply("Or", graph.apply("And", active, stay), graph.apply("And", graph.apply("Not", active), begin))
    output = graph.apply("Where", bursts, graph.apply("Add", graph.apply("Mul", adaptation, 0.5), 0.5), 0.0)
    return [adaptation, graph.apply("Where", bursts, 1.0, 0.0)], output


def _sum(graph: Graph, group: SumGroup, memory: Parts, drive: str, repeats: int) -> tuple[Parts, str]:
    if not group.bounded.any():
        return [], drive
    limit, bounded = np.tile(group.limit, repeats), np.tile(group.bounded, repeats)
    limited = graph.apply("Mul", graph.apply("Tanh", graph.apply("Div", drive, limit)), limit)
    return [], limited if bounded.all() else graph.apply("Where", bounded, limited, drive)


def _rectifier(graph: Graph, group: RectifierGroup, memory: Parts, drive: str, repeats: int) -> tuple[Parts, str]:
    return [], graph.limit(drive, 0.0, 1.0)


def _tanh(graph: Graph, group: TanhGroup, memory: Parts, drive: str, repeats: int) -> tuple[Parts, str]:
    return [], graph.apply("Tanh", drive)


_UNITS: Final[dict[type[Any], Callable[[Graph, Any, Parts, str, int], tuple[Parts, str]]]] = {
    BasicGroup: _basic,
    OscillatorGroup: _oscillator,
    SumGroup: _sum,
    RectifierGroup: _rectifier,
    TanhGroup: _tanh,
}
"""A step of the units of every type of ncap.circuits.units."""
