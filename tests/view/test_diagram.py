import re

import numpy as np
import pytest

from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import KNOCKOUTS, rhythm_spec
from ncap.view.brain import silenced
from ncap.view.diagram import RADIUS, WINDOW, Diagram, brightness


@pytest.fixture(scope="module")
def diagram() -> Diagram:
    return Diagram(Circuit(rhythm_spec("released"), dt=0.03))


def test_every_neuron_and_input_has_its_own_place_in_the_window(diagram):
    centres = np.array([node.centre for node in diagram.nodes])
    assert len(centres) == 28 + 12
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=-1) + 9 * np.eye(40)
    assert apart.min() > 2 * RADIUS
    x, y, width, height = WINDOW
    assert ((centres > (x + RADIUS, y + RADIUS)) & (centres < (x + width - RADIUS, y + height - RADIUS))).all()


def test_every_connection_is_drawn_and_takes_its_light_from_its_source(diagram):
    # the released table: a wire for each non-zero entry of the compiled matrix, bias column aside
    assert len(diagram.wires) == np.count_nonzero(diagram.circuit.weights[:, :-1])
    svg = diagram.svg()
    for number, name in enumerate(diagram.names):
        outgoing = sum(wire.source == number for wire in diagram.wires)
        own = 1 if name in diagram.circuit.inputs else 2
        assert len(re.findall(rf"var\(--s{number},0\)", svg)) == outgoing + own


def test_wires_of_the_two_body_sides_mirror_each_other(diagram):
    curves = {tuple(np.round(wire.curve, 6).ravel()) for wire in diagram.wires}
    mirrored = {tuple((np.round(wire.curve, 6) * (-1, 1)).ravel()) for wire in diagram.wires}
    assert curves == mirrored


@pytest.mark.parametrize("name", list(KNOCKOUTS))
def test_a_knock_out_ghosts_what_the_table_without_it_lacks(diagram, name):
    nodes, wires = diagram.cut(*silenced(name))
    left = Circuit(rhythm_spec("released", [name]), dt=0.03)
    assert nodes.count(False) == len(left.neurons) + len(left.inputs)
    assert wires.count(False) == np.count_nonzero(left.weights[:, :-1])
    assert diagram.svg(*silenced(name)).count('class="dead"') == nodes.count(True) + wires.count(True)


def test_brightness_is_the_signals_magnitude_up_to_one():
    assert brightness(np.array([0.25, -0.5, 3.0])) == "<style>.wiring{--s0:0.25;--s1:0.50;--s2:1.00;}</style>"
