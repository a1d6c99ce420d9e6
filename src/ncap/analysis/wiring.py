"""The wiring diagram of a circuit table: a picture in the manner of the paper's figure, and Graphviz text.

Seen from above, head at the top. Red with an arrowhead is excitatory, blue with a bar inhibitory, grey free
to become either; a thicker line is a stronger synapse. Where everything stands says ncap.circuits.layout.
"""

from pathlib import Path
from typing import Any, Final

from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from ncap.analysis import plots
from ncap.circuits.layout import SHORT_NAMES, Place, layout, name_place
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.units import OscillatorUnit

FREE: Final = "#777777"
"""Colour of a synapse whose sign is free."""
WEAKEST_DRAWN: Final = 1e-3
"""Synapses that are weaker than this are left out."""
_RADIUS: Final = 0.5
_LINES: Final = {
    1: (plots.EXCITATORY, "-|>,head_length=5,head_width=2.6"),
    -1: (plots.INHIBITORY, "-[,widthB=5,lengthB=0.1"),
    0: (FREE, "-|>,head_length=5,head_width=2.6"),
}
"""Colour and arrow of a synapse by its sign."""
_HEADS: Final = {1: "normal", -1: "tee", 0: "odot"}
_LEGEND: Final = "red, arrow: excitatory     blue, bar: inhibitory     double ring: oscillator     head at the top"


def to_dot(spec: CircuitSpec) -> str:
    """The circuit as a Graphviz graph, one node per neuron and input, one edge per connection."""
    lines = ["digraph circuit {", "  node [fontname=Helvetica];"]
    for neuron in spec.neurons:
        shape = "doublecircle" if isinstance(neuron.unit, OscillatorUnit) else "circle"
        lines += [f"  {_quoted(neuron.name, site)} [shape={shape}];" for site in spec.sites_of(neuron)]
    for row in spec.inputs:
        lines += [f"  {_quoted(row.name, place)} [shape=box];" for place in spec.places_of(row)]
    for synapse in spec.synapses:
        style = f'color="{_LINES[synapse.sign][0]}", arrowhead={_HEADS[synapse.sign]}, label="{synapse.weight:+.2f}"'
        lines += [f"  {_quoted(*a)} -> {_quoted(*b)} [{style}];" for a, b in spec.connections(synapse)]
    return "\n".join([*lines, "}"])


def _quoted(name: str, place: str) -> str:
    """A node's name as Graphviz reads it, whatever characters it has."""
    escaped = f"{name}.{place}".replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@plots.styled
def draw(spec: CircuitSpec, path: Path, title: str) -> None:
    """Draw the circuit into a file whose ending names the format (svg, png, pdf)."""
    places = layout(spec)
    names: dict[str, Place] = {site: name_place(spec.plan, site) for site in spec.plan.sites}
    across, upward = zip(*places.values(), *names.values(), strict=True)
    width, low, high = max(abs(x) for x in across) + 1.3, min(upward) - 1.7, max(upward) + 0.7
    left = -width if min(across) < 0 else -1.0
    fig, named = plots.figure(["wiring"], size=(0.62 * (width - left), 0.6 * (high - low)), heights=(1,))
    axes = named["wiring"]
    for synapse in spec.synapses:
        for source, target in spec.connections(synapse):
            if abs(synapse.weight) >= WEAKEST_DRAWN and source in places and target in places:
                _draw_connection(axes, places[source], places[target], synapse.weight, synapse.sign)
    for neuron in spec.neurons:
        for site in spec.sites_of(neuron):
            _draw_neuron(axes, places[neuron.name, site], neuron.name, isinstance(neuron.unit, OscillatorUnit))
    for row in spec.inputs:
        for place in spec.places_of(row):
            if (row.name, place) in places:
                _draw_input(axes, places[row.name, place], row.name.replace("_", "\n"))
    for site, (x, y) in names.items():
        axes.text(x, y, site, ha="center", va="center", fontsize=15, weight="bold", color="#444444")
    if left < -1.0:  # there are two sides
        axes.axvline(0, color="#CCCCCC", linestyle=(0, (6, 6)), linewidth=0.8, zorder=0)
    axes.text((width + left) / 2, low + 0.3, _LEGEND, ha="center", fontsize=9)
    axes.set_title(title, fontsize=12)
    axes.set(xlim=(left, width), ylim=(low, high), aspect="equal")
    axes.axis("off")
    plots.save(fig, path)


def _draw_connection(axes: Any, start: Place, end: Place, weight: float, sign: int) -> None:
    bend = 0.10 if start[0] * end[0] < 0 or abs(start[1] - end[1]) < 0.1 else 0.16
    colour, head = _LINES[sign]
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle=f"arc3,rad={bend if start[0] > 0 else -bend}",  # the two sides mirror each other
            arrowstyle=head,
            color=colour,
            linewidth=0.5 + 1.6 * min(1.5, abs(weight)),
            alpha=0.75,
            shrinkA=20,
            shrinkB=25,
            zorder=1,
        )
    )


def _draw_neuron(axes: Any, centre: Place, name: str, bursts: bool) -> None:
    axes.add_patch(Circle(centre, _RADIUS, facecolor="white", edgecolor="#222222", linewidth=1.4, zorder=2))
    if bursts:
        axes.add_patch(Circle(centre, _RADIUS * 0.84, facecolor="none", edgecolor="#222222", linewidth=0.8, zorder=3))
    short = {name: text.replace(" ", "\n") for name, text in SHORT_NAMES.items()}
    label = short.get(name, name.split("_")[-1])
    size = 12 if len(label) == 1 else 8.5 if len(label) < 7 else 6
    axes.text(*centre, label, ha="center", va="center", fontsize=size, linespacing=0.9, zorder=4)


def _draw_input(axes: Any, centre: Place, label: str) -> None:
    width, height = 1.5, 0.86
    corner = (centre[0] - width / 2, centre[1] - height / 2)
    axes.add_patch(
        FancyBboxPatch(
            corner, width, height, boxstyle="round,pad=0.02", facecolor="#F3F3F3", edgecolor="#888888", zorder=2
        )
    )
    axes.text(*centre, label, ha="center", va="center", fontsize=7.5, zorder=4)
