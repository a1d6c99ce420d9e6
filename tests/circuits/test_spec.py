from dataclasses import replace

import pytest

from ncap.circuits.rhythm import KNOCKOUTS, RELEASED, rhythm_spec
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import BasicUnit
from ncap.errors import UserError
from ncap.legs import FORE, HIND

A = Neuron(name="A", unit=BasicUnit(), bias=0.0)
FORE_ONLY = Neuron(name="fore_only", unit=BasicUnit(), bias=0.0, legs=FORE)
HIND_ONLY = Neuron(name="hind_only", unit=BasicUnit(), bias=0.0, legs=HIND)
TOUCH = Input(name="touch", per="leg")
SELF = Synapse(source="A", target="A", route="cross", weight=-1.0, sign=-1)


def build(*synapses, neurons=(A, FORE_ONLY, HIND_ONLY)):
    return CircuitSpec(neurons, synapses, (TOUCH,))


@pytest.mark.parametrize(
    ("synapse", "complaint"),
    [
        (replace(SELF, source="B"), "synapse B>A cross: unknown source 'B'; valid: A, fore_only, hind_only, touch"),
        (
            replace(SELF, target="touch"),
            "synapse A>touch cross: unknown target 'touch'; valid: A, fore_only, hind_only",
        ),
        (replace(SELF, route="up"), "synapse A>A up: unknown route 'up'; valid: same, cross, side-down"),
        (replace(SELF, weight=0.5), r"synapse A>A cross: declared inhibitory \(weight <= 0\), but its weight is 0.5"),
        (replace(SELF, weight=float("nan")), "synapse A>A cross: .* nan"),
        (replace(SELF, source="touch"), "synapse touch>A cross: an input reaches only its own leg"),
        (replace(SELF, target="hind_only", source="fore_only"), "synapse fore_only>hind_only cross: .* no legs that"),
    ],
)
def test_a_wrong_synapse_is_named_with_what_is_valid(synapse, complaint):
    with pytest.raises(UserError, match=complaint):
        build(synapse)


def test_rows_that_appear_twice_are_named():
    with pytest.raises(UserError, match="synapse A>A cross: the row appears 2 times"):
        build(SELF, replace(SELF, weight=-0.5))
    with pytest.raises(UserError, match="neuron A: its name appears 2 times"):
        build(neurons=(A, A))


@pytest.mark.parametrize(
    ("legs", "complaint"),
    [(("FL", "ML"), "neuron A: leg 'ML' does not exist"), ((), "non-empty"), (("FL", "FL"), "repet")],
)
def test_legs_that_do_not_exist_are_named(legs, complaint):
    with pytest.raises(UserError, match=complaint):
        build(neurons=(replace(A, legs=legs),))


def test_a_route_joins_only_legs_that_have_both_neurons():
    down = Synapse(source="fore_only", target="hind_only", route="diag-down", weight=1.0, sign=1)
    assert list(build(down).connections(down)) == [
        (("fore_only", "FL"), ("hind_only", "HR")),
        (("fore_only", "FR"), ("hind_only", "HL")),
    ]


def test_the_rhythm_generator_has_28_neurons_and_28_rows():
    assert sum(len(neuron.legs) for neuron in RELEASED.neurons) == 28
    assert len(RELEASED.synapses) == 28


def test_a_knock_out_is_the_same_table_without_some_rows():
    cut = rhythm_spec("released", ["V0v"])
    assert {n.name for n in RELEASED.neurons} - {n.name for n in cut.neurons} == {"diag_V0v"}
    lost = {s.key for s in RELEASED.synapses} - {s.key for s in cut.synapses}
    assert lost == {"flexor>diag_V0v same", "diag_V0v>flexor diag-down", "sync>diag_V0v same"}
    assert set(cut.synapses) < set(RELEASED.synapses)
    pathways = rhythm_spec("released", ["homolateral"])
    assert len(pathways.neurons) == 9
    assert len(RELEASED.synapses) - len(pathways.synapses) == 3


@pytest.mark.parametrize("name", KNOCKOUTS)
def test_every_knock_out_name_removes_something(name):
    assert len(rhythm_spec("released", [name]).synapses) < len(RELEASED.synapses)


def test_printing_a_circuit_prints_its_table():
    lines = str(RELEASED).splitlines()
    assert sum(line.startswith("diag_V0d ") for line in lines) == 2  # a neuron row and a synapse row
    for synapse in RELEASED.synapses:
        assert any(line.split()[:3] == [synapse.source, synapse.target, synapse.route] for line in lines)
