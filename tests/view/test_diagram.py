import re

import numpy as np
import pytest

from ncap.circuits.animal import PATHWAYS, POSTURE, animal, cut
from ncap.circuits.circuit import Circuit
from ncap.circuits.layout import layout
from ncap.circuits.rhythm import rhythm_spec
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import BasicUnit
from ncap.plan import LEGS, chain
from ncap.recording import numbers_in_use
from ncap.trained import load
from ncap.view.diagram import Diagram, brightness
from ncap.view.parts import RADIUS


@pytest.fixture(scope="module")
def diagram() -> Diagram:
    return Diagram(animal("released"))


@pytest.mark.parametrize(("preset", "more"), [("released", 0), ("default", 8 + 16 + 4 + 16)])
def test_every_neuron_and_input_has_its_own_place_in_the_window(preset, more):
    # 28 neurons of the rhythm generator, two motor neurons and two sums for each leg, freq and sync for each side; by
    # default two late neurons, four fast pools, a hip and four senses of the posture for each leg
    diagram = Diagram(animal(preset))
    centres = np.array([node.centre for node in diagram.nodes])
    assert len(centres) == 28 + 8 + 8 + 4 + more
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=-1) + 9 * np.eye(len(centres))
    assert apart.min() > 2 * RADIUS - 0.2  # boxes are flatter than neurons
    x, y, width, height = diagram.window
    assert ((centres > (x + RADIUS, y + RADIUS)) & (centres < (x + width - RADIUS, y + height - RADIUS))).all()


def test_the_rhythm_generator_alone_has_its_afferent_sums_as_boxes_too():
    alone = Diagram(rhythm_spec())
    assert len(alone.nodes) == 28 + 12
    assert {node.label for node in alone.nodes if node.boxed} == {"aff F", "aff E", "freq", "sync"}


def test_a_circuit_that_nobody_here_knows_is_laid_out_without_overlap():
    neurons = tuple(Neuron(name=name, unit=BasicUnit()) for name in ("a", "b", "c", "d", "e"))
    rows = (
        Synapse(source="tone", target="a", weight=1.0, sign=1),
        *(Synapse(source="a", target=name, route="tailward", weight=-0.5, sign=-1) for name in "bcde"),
    )
    spec = CircuitSpec(neurons, rows, (Input(name="tone", per="body", kind="command"),), plan=chain(3))
    places = np.array(list(layout(spec).values()))
    assert len(places) == 5 * 3 + 1
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + 9 * np.eye(len(places))
    assert apart.min() > 2 * RADIUS
    assert len(Diagram(spec).wires) == 3 + 4 * 2  # the tail's last segment sends nothing tailward


def test_every_connection_is_drawn_and_takes_its_light_from_its_source(diagram):
    # a wire for each non-zero entry of the compiled matrix, bias column aside; and F and E of each leg drive 2 motors
    core = Circuit(animal("released"))
    assert len(diagram.wires) == np.count_nonzero(core.weights[:, :-1]) + 4 * 2 * 2
    svg = diagram.svg()
    for number, node in enumerate(diagram.nodes):
        outgoing = sum(wire.source == number for wire in diagram.wires)
        assert len(re.findall(rf"var\(--s{number},0\)", svg)) == outgoing + (1 if node.boxed else 2)


def test_wires_of_the_two_body_sides_mirror_each_other(diagram):
    curves = {tuple(np.round(wire.curve, 6).ravel()) for wire in diagram.wires}
    mirrored = {tuple((np.round(wire.curve, 6) * (-1, 1)).ravel()) for wire in diagram.wires}
    assert curves == mirrored


def test_wires_to_motor_neurons_keep_clear_of_the_other_half_centre(diagram):
    centres = {node.name: np.array(node.centre) for node in diagram.nodes}
    share = np.linspace(0, 1, 50)[:, None]
    for wire in diagram.wires:
        source, target = wire.ends
        if target.split(".")[0] in ("thigh", "calf"):
            a, b, c = (np.array(point) for point in wire.curve)
            line = (1 - share) ** 2 * a + 2 * share * (1 - share) * b + share**2 * c
            other = "extensor" if source.startswith("flexor") else "flexor"
            gap = np.linalg.norm(line - centres[f"{other}.{source[-2:]}"], axis=1).min()
            assert gap > RADIUS, wire.ends


KNOCK_OUTS = [*([name] for name in PATHWAYS if name != "turning"), ["flexor.FL"], ["V0d", "flexor>cross_V3f same"]]


@pytest.mark.parametrize(
    ("preset", "names"),
    [("default", names) for names in KNOCK_OUTS]
    + [("drive", ["turning"])]
    + [("released", names) for names in KNOCK_OUTS if names != ["vestibular"]],
)
def test_a_knock_out_ghosts_what_the_table_without_it_lacks(preset, names):
    diagram, left = Diagram(animal(preset)), cut(animal(preset), names)
    nodes, wires = diagram.silent(names)
    neurons = {f"{row.name}.{site}" for row in left.neurons for site in left.sites_of(row)}
    heard = {row.source for row in left.synapses}
    commands = {f"{name}.{side}" for name in heard & {"freq", "sync"} for side in "LR"}  # without V0, sync reaches none
    posture = {f"{name}.{leg}" for name in heard & set(POSTURE) for leg in LEGS}
    alive = {node.name for node, dead in zip(diagram.nodes, nodes, strict=True) if not dead}
    assert alive == neurons | commands | posture | {f"{name}.body" for name in heard & {"stop"}}
    drawn = {".".join(place) for place in layout(left)}
    kept = sum(".".join(source) in drawn for row in left.synapses if row.weight for source, _ in left.connections(row))
    assert wires.count(False) == kept
    assert diagram.svg(names).count('class="dead"') == nodes.count(True) + wires.count(True)


def test_a_command_that_reaches_nothing_any_more_is_a_ghost(diagram):
    nodes, _ = diagram.silent(["freq"])
    assert {node.name for node, dead in zip(diagram.nodes, nodes, strict=True) if dead} == {"freq.L", "freq.R"}


def test_hovering_tells_name_type_sign_and_role(diagram):
    told = {node.name: node.told for node in diagram.nodes}
    lines = "cross_V0d.FL: neuron of type basic", "inhibitory", "left-right alternation at low speed"
    assert told["cross_V0d.FL"].splitlines() == list(lines)
    assert told["flexor.HR"].splitlines()[:2] == [
        "flexor.HR: neuron of type oscillator",
        "excites some, inhibits others",  # V0d and others; its extensor
    ]
    assert told["thigh.FL"].splitlines() == ["thigh.FL: neuron of type tanh", "moves the thigh"]
    assert told["sync.L"].splitlines() == ["sync.L: a command of the brainstem", "inhibitory"]
    wire = next(wire for wire in diagram.wires if wire.key == "cross_V0d>flexor cross")
    assert wire.told.splitlines() == ["cross_V0d.FL → flexor.FR", "route cross, weight -1.500, inhibitory"]
    assert diagram.svg().count("<title>") == len(diagram.nodes) + len(diagram.wires)


def test_only_a_clickable_drawing_names_what_a_click_silences(diagram):
    assert "onclick" not in diagram.svg()
    svg = diagram.svg(on_click="go('it')")
    assert 'onclick="go(&#x27;it&#x27;)"' in svg
    cuts = set(re.findall(r'data-cut="([^"]*)"', svg))
    assert {"cross_V0d.FL", "cross_V0d&gt;flexor cross", "thigh.HR", "afferent_flexor.FL", "freq"} < cuts


def test_trained_weights_are_drawn_instead_of_the_tables_own():
    trained = load("ncap-flat-walk")
    drawn = Diagram(trained.policy.circuit, numbers_in_use(trained))
    weights = dict(zip(trained.policy.space.names, trained.policy.space.compress(trained.theta[None])[0], strict=True))
    seen = {wire.ends: wire.weight for wire in drawn.wires}
    hind = next(value for name, value in weights.items() if "PF.hind" in name and "calf" in name and "flexor" in name)
    assert seen["flexor.HL", "calf.HL"] == seen["flexor.HR", "calf.HR"] == hind
    assert hind != -0.2


def test_brightness_is_the_signals_magnitude_up_to_one():
    assert brightness(np.array([0.25, -0.5, 3.0])) == "<style>.wiring{--s0:0.25;--s1:0.50;--s2:1.00;}</style>"
