"""The wiring diagram: every connection of the table is in the Graphviz text, and any table can be drawn."""

import pytest

from ncap.analysis import wiring
from ncap.circuits.animal import animal
from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import BasicUnit
from ncap.plan import chain

SWIMMER = CircuitSpec(
    (Neuron(name="head", unit=BasicUnit(), sites=("s1",)), Neuron(name="bend", unit=BasicUnit())),
    (
        Synapse(source="head", target="bend", route="tailward", weight=0.5, sign=1),
        Synapse(source="bend", target="bend", route="headward", weight=-0.25, sign=-1),
        Synapse(source="touch", target="bend", weight=0.0, sign=0),
    ),
    (Input(name="touch"),),
    plan=chain(3),
)


def test_graphviz_text_has_a_node_per_neuron_and_input_and_an_edge_per_connection():
    lines = wiring.to_dot(SWIMMER).splitlines()
    nodes = [line.split()[0] for line in lines if "shape=" in line]
    assert nodes == [
        f'"{name}"' for name in ("head.s1", "bend.s1", "bend.s2", "bend.s3", "touch.s1", "touch.s2", "touch.s3")
    ]
    edges = [line.strip() for line in lines if "->" in line]
    # head>bend tailward: s1 to s2; bend>bend headward: s2 to s1 and s3 to s2; touch>bend: each at its own segment
    assert [edge.split(" [")[0] for edge in edges] == [
        '"head.s1" -> "bend.s2"', '"bend.s2" -> "bend.s1"', '"bend.s3" -> "bend.s2"',
        '"touch.s1" -> "bend.s1"', '"touch.s2" -> "bend.s2"', '"touch.s3" -> "bend.s3"',
    ]  # fmt: skip
    assert [edges[i].split(", ")[1] for i in (0, 1, 3)] == ["arrowhead=normal", "arrowhead=tee", "arrowhead=odot"]
    assert 'label="+0.50"' in edges[0]


@pytest.mark.parametrize("spec", [animal(), SWIMMER], ids=["animal", "swimmer"])
def test_every_neuron_is_in_the_drawing(spec, tmp_path):
    wiring.draw(spec, tmp_path / "wiring.svg", "title")
    text = (tmp_path / "wiring.svg").read_text()
    for site in spec.plan.sites:
        assert f">{site}<" in text
    assert text.count(">thigh<") == (4 if spec is not SWIMMER else 0)
    assert text.count(">bend<") == (3 if spec is SWIMMER else 0)
