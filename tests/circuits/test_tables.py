"""Circuit tables as files: what is saved is what is loaded, and what is wrong with a file is named in a sentence."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncap import cli
from ncap.circuits.animal import animal, cut, find_circuit
from ncap.circuits.rhythm import PRESETS
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.tables import circuit_from, describe_circuit, load_circuit, save_circuit
from ncap.circuits.units import BasicUnit, OscillatorUnit, RectifierUnit, SumUnit, TanhUnit
from ncap.errors import UserError
from ncap.plan import QUADRUPED, chain

SMALL = CircuitSpec(
    (Neuron(name="A", unit=BasicUnit()), Neuron(name="B", unit=OscillatorUnit(), sites=("FL",))),
    (Synapse(source="A", target="A", route="cross", weight=-1.0, sign=-1),),
    (Input(name="c", per="side", kind="command"),),
)


@pytest.mark.parametrize("spec", [*map(animal, PRESETS), cut(animal(), ["V0v", "flexor.FL"]), SMALL])
def test_a_table_is_the_same_after_saving_and_loading(spec, tmp_path):
    save_circuit(spec, tmp_path / "table.json")
    assert load_circuit(tmp_path / "table.json") == spec
    assert find_circuit(str(tmp_path / "table.json")) == spec


def change(part, row, column, value):
    """The description of SMALL with one entry changed; None for the value: without that entry."""
    data = json.loads(json.dumps(describe_circuit(SMALL)))
    here = data if part is None else data[part][row]
    if value is None:
        del here[column]
    else:
        here[column] = value
    return data


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (
            ("synapses", 0, "delay", 3),
            r"row 1 of synapses \(A>A\): unknown entry 'delay'; valid: source, target, route",
        ),
        (("synapses", 0, "source", "Z"), "synapse Z>A cross: unknown source 'Z'; valid: A, B, c"),
        (("synapses", 0, "target", "Z"), "synapse A>Z cross: unknown target 'Z'; valid: A, B"),
        (("synapses", 0, "sign", 1), r"synapse A>A cross: declared excitatory \(weight >= 0\), but its weight is -1.0"),
        (("synapses", 0, "sign", 2), r"row 1 of synapses \(A>A\): sign is 2; valid: 1, -1, 0"),
        (("synapses", 0, "weight", math.nan), r"row 1 of synapses \(A>A\): weight is nan, which is not finite"),
        (("synapses", 0, "weight", "much"), r"row 1 of synapses \(A>A\): weight is 'much': a number is needed"),
        (("synapses", 0, "weight", None), r"row 1 of synapses \(A>A\): weight is missing"),
        (("neurons", 0, "unit", None), r"row 1 of neurons \(A\): unit is missing"),
        (("neurons", 0, "bias", True), r"row 1 of neurons \(A\): bias is True: a number is needed"),
        (
            ("neurons", 0, "unit", {"type": "quartz"}),
            r"row 1 of neurons \(A\): unknown neuron type 'quartz'; valid: basic",
        ),
        (
            ("neurons", 0, "unit", {"type": "basic", "tau": 1}),
            r"row 1 of neurons \(A\): unit: unknown entry 'tau'; valid: voltage_time",
        ),
        (
            ("neurons", 0, "unit", {"type": "basic", "voltage_time": -1}),
            r"row 1 of neurons \(A\): unit: BasicUnit: voltage_time must be a positive number, not -1",
        ),
        (
            ("neurons", 0, "unit", {"type": "sum", "limit": 0}),
            r"row 1 of neurons \(A\): unit: SumUnit: limit must be a positive number, not 0",
        ),
        (("neurons", 1, "sites", ["XX"]), "neuron B: site 'XX' does not exist; valid: FL, FR, HL, HR"),
        (("inputs", 0, "kind", "wish"), r"row 1 of inputs \(c\): kind is 'wish'; valid: sense, command"),
        (
            ("inputs", 0, "per", "wheel"),
            "input c: unknown division of the body 'wheel'; valid: body, side, girdle, site",
        ),
        ((None, 0, "plan", "centipede"), "unknown body plan 'centipede'; valid: quadruped, chain-N"),
        ((None, 0, "plan", "chain-3"), "site 'FL' does not exist; valid: s1, s2, s3"),
        ((None, 0, "dt", -1), "a circuit needs a step dt > 0 s, not -1"),
        ((None, 0, "synapses", None), "the table has no entry 'synapses'"),
        ((None, 0, "neurons", "none"), "neurons is a list of rows, not str"),
        ((None, 0, "ncap_circuit", 99), "ncap_circuit is 99, but this version reads 1"),
        ((None, 0, "extra", 1), "unknown entry of a circuit table 'extra'"),
    ],
)
def test_whatever_is_wrong_with_a_table_is_named(changed, complaint, tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(change(*changed)))
    with pytest.raises(UserError, match=complaint) as error:
        load_circuit(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        load_circuit(path)
    path.write_text("[1, 2]")
    with pytest.raises(UserError, match="this is no circuit table"):
        load_circuit(path)
    with pytest.raises(UserError, match="does not exist"):
        load_circuit(tmp_path / "absent.json")
    with pytest.raises(UserError, match="unknown circuit 'gpt'; valid: default, drive, paper, released"):
        find_circuit("gpt")


numbers = st.floats(0.001, 10)
units = st.one_of(
    st.builds(BasicUnit, voltage_time=numbers),
    st.builds(OscillatorUnit, adaptation_time=st.floats(0.5, 10), active_time=numbers, clip_drive=st.booleans()),
    st.builds(SumUnit, limit=st.none() | numbers),
    st.just(RectifierUnit()),
    st.just(TanhUnit()),
)


@st.composite
def tables(draw):
    """Tables whose synapses lead from neurons, or an input, to neurons with a memory."""
    plan = draw(st.sampled_from([QUADRUPED, chain(1), chain(5)]))
    some = st.lists(st.sampled_from(plan.sites), min_size=1, unique=True).map(tuple)
    found = draw(st.lists(units, min_size=1, max_size=4))
    neurons = tuple(
        Neuron(
            name=f"n{i}",
            unit=unit,
            bias=draw(st.floats(-3, 3)),
            sites=draw(st.none() | some),
            trainable=draw(st.booleans()),
            tied_by=draw(st.sampled_from(plan.divisions)),
            role=draw(st.text(max_size=9)),
        )
        for i, unit in enumerate(found)
    )
    sense = Input(name="sense")
    synapses = tuple(
        Synapse(source="sense", target=row.name, weight=sign * draw(numbers), sign=sign, trainable=draw(st.booleans()))
        for row in neurons
        for sign in draw(st.lists(st.sampled_from([1, -1, 0]), max_size=1))
    )
    rest = draw(st.none() | st.floats(0, 1))
    command = Input(name="c", per=draw(st.sampled_from(plan.divisions)), kind="command", rest=rest)
    return CircuitSpec(neurons, synapses, (sense, command), plan, draw(numbers))


@given(tables())
@settings(max_examples=60, deadline=None)
def test_any_table_survives_its_description(spec):
    assert circuit_from(json.loads(json.dumps(describe_circuit(spec)))) == spec


def test_the_command_saves_what_it_would_print_and_every_table_has_a_rhythm(tmp_path, capsys):
    path = tmp_path / "my.json"
    cli.main(["circuit", "--without", "V0v", "--save", str(path)])
    assert load_circuit(path) == cut(animal(), ["V0v"])
    capsys.readouterr()
    cli.main(["circuit", "--circuit", str(path)])
    assert capsys.readouterr().out == f"{cut(animal(), ['V0v'])}\n"
    found = []
    for words in (["--circuit", str(path)], ["--without", "V0v"]):
        cli.main(["rhythm", *words, "--commands", "0.2", "--states", "2", "--json"])
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert list(found[0][0]) == [
        "command", "gait", "share", "frequency_hz", "left_right_phase", "fore_hind_phase", "diagonal_phase", "duty",
        "concentration",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["circuit", "--save", "my.txt"], "a circuit table is a .json file, not 'my.txt'"),
        (["circuit", "--circuit", "my.json"], "my.json does not exist"),
        (["rhythm", "--without", "extensor.FL"], "a gait is that of the extensors of FL FR HL HR"),
        (["rhythm", "--without", "V9"], "unknown knock-out 'V9'; valid: V0, V0d"),
    ],
)
def test_wrong_words_are_one_line(words, complaint, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
