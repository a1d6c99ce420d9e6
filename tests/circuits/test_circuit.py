from dataclasses import replace

import numpy as np
import pytest

from ncap.analysis.gaits import stance_onsets
from ncap.circuits.animal import cut
from ncap.circuits.circuit import Circuit, initial_numbers
from ncap.circuits.rhythm import (
    EXTENSOR_STANCE,
    RELEASED,
    extensor_activity,
    quiet_start,
    random_adaptation,
    rhythm_inputs,
    rhythm_spec,
)
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import BasicUnit, OscillatorUnit
from ncap.errors import UserError
from ncap.plan import chain


def plain_loop(spec, adaptation, inputs, dt):
    """One individual, one neuron at a time, straight from the paper's equations: {neuron: outputs over time}."""
    places = [(neuron, site) for neuron in spec.neurons for site in spec.sites_of(neuron)]
    names = [f"{neuron.name}.{site}" for neuron, site in places]
    incoming = {name: [] for name in names}
    for synapse in spec.synapses:
        for source, target in spec.connections(synapse):
            incoming[".".join(target)].append((".".join(source), synapse.weight))
    delayed = {}
    v = dict.fromkeys(names, 0.0)
    a = dict(zip([n for n in names if n.startswith("flexor")], adaptation, strict=True))
    active = dict.fromkeys(a, False)
    history = []
    for row in inputs:
        y = {}
        for (neuron, _), name in zip(places, names, strict=True):
            x = neuron.bias + sum(weight * delayed.get(source, 0.0) for source, weight in incoming[name])
            unit = neuron.unit
            if isinstance(unit, BasicUnit):
                rate = 4 * dt / unit.voltage_time
                v[name] = (v[name] + rate * min(1.0, max(-1.0, x))) / (1 + rate)
                y[name] = min(1.0, max(0.0, v[name]))
                continue
            if unit.clip_drive:
                x = min(1.0, max(-1.0, x))
            z = min(1.0, max(0.0, x))
            (stop0, start0), (stop1, start1) = unit.thresholds(0.0), unit.thresholds(1.0)
            rate = 4 * dt / unit.adaptation_time
            a[name] = (a[name] + rate * (0.0 if active[name] else 1.0)) / (1 + rate)
            if active[name] and a[name] <= stop0 + z * (stop1 - stop0) and x <= unit.tonic_drive:
                active[name] = False
            elif not active[name] and a[name] >= start0 + z * (start1 - start0) and x >= 0:
                active[name] = True
            y[name] = (1 + a[name]) / 2 if active[name] else 0.0
        delayed = y | row
        history.append(y)
    return {name: np.array([y[name] for y in history]) for name in names}


@pytest.mark.parametrize("preset", ["default", "released"])
def test_compiled_circuit_agrees_with_a_plain_loop_over_neurons(preset):
    spec, rng = rhythm_spec(preset), np.random.default_rng(1)
    circuit = Circuit(spec, dt=0.01)
    inputs = rng.uniform(0, 0.6, (400, 1, 12))
    start = random_adaptation(spec, 1, rng)
    state, outputs = quiet_start(circuit, start), []
    for row in inputs:
        state = circuit.step(state, row)
        outputs.append(circuit.outputs(state)[0])
    named = [dict(zip(circuit.inputs, row[0], strict=True)) for row in inputs]
    expected = plain_loop(spec, start[0], named, 0.01)
    for i, name in enumerate(circuit.neurons):
        assert np.array(outputs)[:, i] == pytest.approx(expected[name], abs=1e-12), name


def test_released_preset_reproduces_every_reference_trace(reference_traces):
    short = {"flx": "flexor", "ext": "extensor", "diagd": "diag", "diaga": "diag"}
    longer = {"v0d": "V0d", "v0v": "V0v", "v3f": "V3f", "v3e": "V3e", "v3a": "V3a", "in2": "In2"}

    def ours(name):  # "cross_v0d_FL" -> "cross_V0d.FL", "aff_flx_FL" -> "afferent_flexor.FL"
        *parts, place = name.split("_")
        parts = [longer.get(part, short.get(part, part)) for part in parts]
        return "_".join(parts).replace("aff_", "afferent_") + f".{place}"

    data = reference_traces
    for case in range(int(data["ncases"])):
        circuit = Circuit(RELEASED, dt=float(data[f"case{case}_dt_ms"]) / 1000)
        columns = [circuit.neurons.index(ours(str(name))) for name in data["units"]]
        entries = [circuit.inputs.index(ours(str(name))) for name in data["inputs"]]
        assert [circuit.neurons[i] for i in range(4)] == [ours(str(name)) for name in data["oscillators"]]
        state = quiet_start(circuit, data[f"case{case}_a0"][None])
        for row, values in zip(data[f"case{case}_inputs"], data[f"case{case}_values"], strict=True):
            inputs = np.empty((1, 12))
            inputs[0, entries] = row
            state = circuit.step(state, inputs)
            assert circuit.outputs(state)[0, columns] == pytest.approx(values, abs=1e-12), f"case {case}"


def only(state, individual):
    """The state of one individual of many."""
    return state.map(lambda part: part[individual : individual + 1])


def advance(circuit, state, inputs, steps=200, weights=None):
    for _ in range(steps):
        state = circuit.step(state, inputs, weights)
    return state


def test_nobodys_result_depends_on_who_else_is_in_the_batch_to_the_bit():
    circuit, rng = Circuit(rhythm_spec(), dt=0.005), np.random.default_rng(2)
    start, inputs = circuit.reset(37, rng), rng.uniform(0, 1, (37, 12))
    crowd = advance(circuit, start, inputs).flat()
    for i in (0, 17, 36):
        alone = advance(circuit, only(start, i), inputs[i : i + 1])
        assert np.array_equal(alone.flat()[0], crowd[i])


def test_weights_per_individual_act_as_separate_circuits():
    spec, rng = rhythm_spec(), np.random.default_rng(3)
    circuit = Circuit(spec, dt=0.005)
    numbers = initial_numbers(spec) * rng.uniform(0.5, 1.5, (3, len(spec.entries)))
    start, inputs = circuit.reset(3, rng), rhythm_inputs(circuit, np.full(3, 0.4))
    together = advance(circuit, start, inputs, weights=circuit.weights_from(numbers))
    for i in range(3):
        own = {entry.row: number for entry, number in zip(spec.entries, numbers[i], strict=True)}
        rewritten = replace(
            spec,
            neurons=tuple(replace(row, bias=own[row]) for row in spec.neurons),
            synapses=tuple(replace(row, weight=own[row]) for row in spec.synapses),
        )
        alone = advance(Circuit(rewritten, dt=0.005), only(start, i), inputs[i : i + 1])
        assert circuit.outputs(together)[i] == pytest.approx(circuit.outputs(alone)[0], abs=1e-12)


def test_step_changes_nothing_that_was_passed_in():
    circuit = Circuit(rhythm_spec(), dt=0.005, substeps=6)
    state, inputs = circuit.reset(5, np.random.default_rng(4)), rhythm_inputs(circuit, np.full(5, 0.5))
    before = state.flat(), inputs.copy()
    circuit.step(circuit.step(state, inputs), inputs)
    assert np.array_equal(state.flat(), before[0])
    assert np.array_equal(inputs, before[1])


def test_six_substeps_are_six_steps_with_the_input_held():
    spec = rhythm_spec()
    fine, control = Circuit(spec, dt=0.005), Circuit(spec, dt=0.005, substeps=6)
    start, inputs = fine.reset(4, np.random.default_rng(5)), rhythm_inputs(fine, np.linspace(0, 1, 4))
    assert np.array_equal(advance(fine, start, inputs, 600).signals, advance(control, start, inputs, 100).signals)


def test_the_result_converges_as_the_step_gets_finer():
    # backward Euler and a delay of one step are both first order: the settled trot's period approaches its limit, and
    # each halving about halves the distance to it
    spec, rng = rhythm_spec(), np.random.default_rng(6)
    start, command = random_adaptation(spec, 1, rng), np.array([0.5])

    def period(dt):
        stance = extensor_activity(spec, command, start, seconds=12.0, dt=dt)[0, :, 0]
        onsets = stance_onsets(stance, dt, EXTENSOR_STANCE)
        onsets = onsets[onsets > 5.0]
        return (onsets[-1] - onsets[0]) / (len(onsets) - 1)

    limit = period(0.00025)
    distances = [abs(period(dt) - limit) for dt in (0.008, 0.004, 0.002, 0.001)]
    assert distances == sorted(distances, reverse=True)
    assert distances[3] < 0.25 * distances[0]


def test_random_starts_lie_between_the_resting_thresholds():
    circuit = Circuit(rhythm_spec(), dt=0.005)
    unit = rhythm_spec().neuron("flexor").unit
    assert isinstance(unit, OscillatorUnit)
    low, high = unit.thresholds(0.0)
    adaptation, active = circuit.state_of(circuit.reset(2000, np.random.default_rng(7)), "flexor")
    assert not active.any()
    assert adaptation.min() >= low
    assert adaptation.max() <= high
    assert adaptation.mean() == pytest.approx((low + high) / 2, abs=0.02 * (high - low))


@pytest.mark.parametrize(("dt", "substeps"), [(0.0, 1), (float("nan"), 1), (0.01, 0)])
def test_impossible_steps_are_refused(dt, substeps):
    with pytest.raises(UserError, match="dt > 0"):
        Circuit(RELEASED, dt=dt, substeps=substeps)


def test_a_table_on_a_chain_of_segments_agrees_with_a_plain_loop():
    # a swimmer's core: bursting neurons that hand their activity to the tail, and basic ones that hold their own back
    spec = CircuitSpec(
        (
            Neuron(name="flexor", unit=OscillatorUnit(), bias=0.2),
            Neuron(name="holding", unit=BasicUnit(voltage_time=0.1), bias=-0.1, sites=("s1", "s2")),
        ),
        (
            Synapse(source="flexor", target="flexor", route="tailward", weight=0.4, sign=1),
            Synapse(source="flexor", target="holding", weight=0.9, sign=1),
            Synapse(source="holding", target="flexor", route="headward", weight=-0.3, sign=-1),
            Synapse(source="stretch", target="holding", weight=0.5, sign=1),
            Synapse(source="drive", target="flexor", weight=0.6, sign=1),
        ),
        (Input(name="stretch"), Input(name="drive", per="body", kind="command")),
        plan=chain(3),
    )
    circuit, rng = Circuit(spec, dt=0.01), np.random.default_rng(8)
    assert circuit.neurons == ("flexor.s1", "flexor.s2", "flexor.s3", "holding.s1", "holding.s2")
    assert circuit.inputs == ("stretch.s1", "stretch.s2", "stretch.s3", "drive.body")
    inputs, start = rng.uniform(0, 0.8, (500, 1, 4)), random_adaptation(spec, 1, rng)
    state, outputs = quiet_start(circuit, start), []
    for row in inputs:
        state = circuit.step(state, row)
        outputs.append(circuit.outputs(state)[0])
    expected = plain_loop(spec, start[0], [dict(zip(circuit.inputs, row[0], strict=True)) for row in inputs], 0.01)
    assert np.array(outputs) == pytest.approx(np.stack([expected[name] for name in circuit.neurons], axis=1), abs=1e-12)
    assert (np.ptp(outputs, axis=0) > 0.1).all()  # every neuron took part


def test_a_state_is_carried_over_to_another_table_by_names():
    whole, rng = Circuit(rhythm_spec(), dt=0.005), np.random.default_rng(9)
    cut_spec = cut(rhythm_spec(), ["V0v", "flexor.FL"])
    smaller = Circuit(cut_spec, dt=0.005)
    state = advance(whole, whole.reset(2, rng), rhythm_inputs(whole, np.full(2, 0.4)), 100)
    carried = smaller.adopt(state, whole)
    for name in smaller.neurons:
        assert np.array_equal(
            carried.signals[:, smaller.neurons.index(name)], state.signals[:, whole.neurons.index(name)]
        )
    for part, theirs in zip(smaller.state_of(carried, "flexor"), whole.state_of(state, "flexor"), strict=True):
        assert np.array_equal(part, theirs[:, 1:])  # all but FL
