from dataclasses import replace

import pytest

from ncap.circuits.animal import AFFERENT_LIMIT, CIRCUITS, PATHWAYS, animal, cut, knock_outs, leads
from ncap.circuits.rhythm import PRESETS, RELEASED, preset_numbers, respecified, rhythm_spec
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import BasicUnit, SumUnit
from ncap.errors import UserError
from ncap.plan import QUADRUPED

GIRDLES = QUADRUPED.groups["girdle"]
A = Neuron(name="A", unit=BasicUnit())
FORE_ONLY = Neuron(name="fore_only", unit=BasicUnit(), sites=GIRDLES["fore"])
HIND_ONLY = Neuron(name="hind_only", unit=BasicUnit(), sites=GIRDLES["hind"])
TOUCH = Input(name="touch")
BALANCE = Input(name="balance", per="side")
POSTURE = {"roll", "roll rate", "pitch", "pitch rate"}
SELF = Synapse(source="A", target="A", route="cross", weight=-1.0, sign=-1)


def build(*synapses, neurons=(A, FORE_ONLY, HIND_ONLY)):
    return CircuitSpec(neurons, synapses, (TOUCH, BALANCE))


@pytest.mark.parametrize(
    ("synapse", "complaint"),
    [
        (
            replace(SELF, source="B"),
            "synapse B>A cross: unknown source 'B'; valid: A, fore_only, hind_only, touch, balance",
        ),
        (
            replace(SELF, target="touch"),
            "synapse A>touch cross: unknown target 'touch'; valid: A, fore_only, hind_only",
        ),
        (replace(SELF, route="up"), "synapse A>A up: unknown route 'up'; valid: same, cross, side-down"),
        (replace(SELF, weight=0.5), r"synapse A>A cross: declared inhibitory \(weight <= 0\), but its weight is 0.5"),
        (replace(SELF, weight=float("nan")), "synapse A>A cross: .* nan"),
        (replace(SELF, tied_by="half"), "synapse A>A cross: unknown tied_by 'half'; valid: body, side, girdle, site"),
        (replace(SELF, source="balance"), "synapse balance>A cross: an input per side reaches its own part only"),
        (
            replace(SELF, target="hind_only", source="fore_only"),
            "synapse fore_only>hind_only cross: .* are in no sites that",
        ),
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
    ("sites", "complaint"),
    [(("FL", "ML"), "neuron A: site 'ML' does not exist"), ((), "non-empty"), (("FL", "FL"), "repet")],
)
def test_sites_that_do_not_exist_are_named(sites, complaint):
    with pytest.raises(UserError, match=complaint):
        build(neurons=(replace(A, sites=sites),))


def test_a_route_joins_only_legs_that_have_both_neurons():
    down = Synapse(source="fore_only", target="hind_only", route="diag-down", weight=1.0, sign=1)
    assert list(build(down).connections(down)) == [
        (("fore_only", "FL"), ("hind_only", "HR")),
        (("fore_only", "FR"), ("hind_only", "HL")),
    ]


def test_the_rhythm_generator_has_28_neurons_and_28_rows():
    assert sum(len(RELEASED.sites_of(neuron)) for neuron in RELEASED.neurons) == 28
    assert len(RELEASED.synapses) == 28


def test_a_knock_out_is_the_same_table_without_some_rows():
    knocked_out = cut(RELEASED, ["V0v"])
    assert {n.name for n in RELEASED.neurons} - {n.name for n in knocked_out.neurons} == {"diag_V0v"}
    lost = {s.key for s in RELEASED.synapses} - {s.key for s in knocked_out.synapses}
    assert lost == {"flexor>diag_V0v same", "diag_V0v>flexor diag-down", "sync>diag_V0v same"}
    assert set(knocked_out.synapses) < set(RELEASED.synapses)
    pathways = cut(RELEASED, ["homolateral"])
    assert len(pathways.neurons) == 9
    assert len(RELEASED.synapses) - len(pathways.synapses) == 3


@pytest.mark.parametrize("preset", CIRCUITS)
@pytest.mark.parametrize("name", PATHWAYS)
def test_every_knock_out_name_removes_something_or_is_not_in_the_table(name, preset):
    whole = animal(preset)
    if preset not in {"vestibular": ("default", "drive"), "turning": ("drive",)}.get(name, CIRCUITS):
        assert name not in knock_outs(whole)
        with pytest.raises(UserError, match=f"unknown knock-out '{name}'; valid: V0, "):
            cut(whole, [name])
    else:
        assert name in knock_outs(whole)
        assert len(cut(whole, [name]).synapses) < len(whole.synapses)


def test_without_vestibular_nothing_hears_the_posture_and_everything_else_is_as_before():
    whole, without = animal(), cut(animal(), ["vestibular"])
    assert without.synapses == tuple(row for row in whole.synapses if row.source not in POSTURE)
    assert (without.neurons, without.inputs) == (whole.neurons, whole.inputs)


def test_a_single_neuron_and_a_single_synapse_can_be_cut():
    single = cut(RELEASED, ["flexor.FL"])
    assert single.sites_of(single.neuron("flexor")) == ("FR", "HL", "HR")
    assert len(single.synapses) == len(RELEASED.synapses)  # every row still joins other sites
    key = "cross_V0d>flexor cross"
    assert {row.key for row in RELEASED.synapses} - {row.key for row in cut(RELEASED, [key]).synapses} == {key}
    with pytest.raises(UserError, match="unknown knock-out 'V9'; valid: V0, V0d, V0v, V3, diagonal"):
        cut(RELEASED, ["V9"])


def test_neurons_without_memory_cannot_form_a_circle_nor_hear_the_core_they_drive():
    first, second = (Neuron(name=name, unit=SumUnit()) for name in ("first", "second"))
    ring = [Synapse(source=a, target=b, weight=1.0, sign=1) for a, b in (("first", "second"), ("second", "first"))]
    with pytest.raises(UserError, match="neuron first: neurons without memory drive each other in a circle"):
        CircuitSpec((first, second), tuple(ring)).after  # noqa: B018
    heard = [Synapse(source=a, target=b, weight=1.0, sign=1) for a, b in (("A", "first"), ("first", "A"))]
    with pytest.raises(UserError, match="synapse A>first same: first has no memory and drives neurons that have one"):
        CircuitSpec((A, first), tuple(heard))


@pytest.mark.parametrize("preset", PRESETS)
def test_the_rhythm_of_the_animal_is_the_rhythm_generator(preset):
    late = ["late_flexor", "late_extensor"] if preset == "default" else []  # they have a memory too, and only listen
    assert animal(preset).rhythm().without(late) == rhythm_spec(preset)
    assert rhythm_spec("released") == RELEASED


def trained_numbers(spec):
    return sum(entry.row.trainable for entry in spec.entries)


def test_the_default_animal_is_the_papers_with_bounded_afferents_late_thighs_fast_pools_hips_and_a_sense_of_posture():
    default, paper = animal(), animal("paper")
    assert [trained_numbers(animal(preset)) for preset in PRESETS] == [112, 92, 92]
    halves = ("flexor", "extensor")
    between = {f"{kind}{half}" for half in halves for kind in ("late_", "fast_", "fast_late_")}
    assert {row.name for row in default.neurons} - {row.name for row in paper.neurons} == between | {"hip"}
    assert {row.name for row in default.inputs} - {row.name for row in paper.inputs} == POSTURE
    more = {row.key: row for row in default.synapses if row.key not in {row.key for row in paper.synapses}}
    # a late neuron hears its half-centre and drives the thigh, in the half-centre's place; each pool hears one of the
    # two and the speed pathway, and drives what that drives
    recruited = {
        f"{source}>{target} same"
        for half in halves
        for source, target in (
            (half, f"late_{half}"), (f"late_{half}", "thigh"),
            (half, f"fast_{half}"), ("freq", f"fast_{half}"), (f"fast_{half}", "calf"), (f"fast_{half}", "hip"),
            (f"late_{half}", f"fast_late_{half}"), ("freq", f"fast_late_{half}"), (f"fast_late_{half}", "thigh"),
        )
    }  # fmt: skip
    assert {row.key for row in paper.synapses} - {row.key for row in default.synapses} == {
        f"{half}>thigh same" for half in halves
    }
    # hips answer a roll, knees a roll and a pitch; the whole body shares these weights, and no sign is prescribed
    reflexes = {f"{sense}>calf same" for sense in POSTURE} | {"roll>hip same", "roll rate>hip same"}
    assert set(more) == recruited | reflexes
    assert {(more[key].tied_by, more[key].sign, more[key].trainable) for key in reflexes} == {("body", 0, True)}
    limits = {"default": AFFERENT_LIMIT, "paper": None, "released": None}
    for preset, limit in limits.items():
        sums = [row.unit for row in animal(preset).neurons if row.name.startswith("afferent")]
        assert sums == [SumUnit(limit=limit)] * 2
    assert 0 < AFFERENT_LIMIT < 0.1  # of a drive that is clipped at 1


def test_numbers_of_the_presets_are_those_of_their_files():
    for preset in ("default", "paper"):
        assert rhythm_spec(preset) == respecified(preset_numbers(preset))
    assert preset_numbers("default") != preset_numbers("paper")
    assert preset_numbers("paper")["weights"]["cross_V0d>flexor cross"] == -2.3138  # as in the first version
    with pytest.raises(UserError, match="unknown preset 'tuned'; valid: default, paper, released"):
        animal("tuned")


def unbounded(spec, *names):
    """The table whose sums of these names have no limit."""
    return replace(
        spec, neurons=tuple(replace(row, unit=SumUnit()) if row.name in names else row for row in spec.neurons)
    )


def test_the_rhythm_leads_where_all_afferent_sums_are_bounded_and_every_leg_has_an_extensor():
    assert [leads(animal(preset)) for preset in PRESETS] == [True, False, False]
    assert not leads(unbounded(animal(), "afferent_flexor"))  # one is not enough
    assert not leads(unbounded(animal(), "afferent_flexor", "afferent_extensor"))
    assert leads(cut(animal(), ["V0v", "fast_flexor", "afferent_extensor"]))
    assert not leads(cut(animal(), ["extensor.HL"]))
    assert not leads(cut(animal(), ["extensor"]))
    assert not leads(rhythm_spec())  # nothing sums its afferents


@pytest.mark.parametrize("spec", [RELEASED, animal()], ids=["rhythm generator", "animal"])
def test_printing_a_circuit_prints_its_table(spec):
    lines = str(spec).splitlines()
    assert sum(line.startswith("diag_V0d ") for line in lines) == 2  # a neuron row and a synapse row
    for synapse in spec.synapses:
        start = f"{synapse.source} {synapse.target} {synapse.route}"
        assert any(" ".join(line.split()).startswith(start) for line in lines)
