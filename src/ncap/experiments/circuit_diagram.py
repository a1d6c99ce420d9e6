"""The wiring diagram of a circuit: a picture in the manner of the paper's figure, and Graphviz text.

Seen from above, the animal's head at the top and its legs at the corners. Red with an arrowhead is excitatory,
blue with a bar inhibitory; a thicker line is a stronger synapse. Neurons of the rhythm generator have their places
below; those of another circuit are laid out in rows.
"""

from pathlib import Path
from typing import Any, Final

from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from ncap.analysis import plots
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.units import OscillatorUnit
from ncap.legs import LEGS

#: Where the neurons and inputs of a right leg stand: (distance from the midline, height above the leg's row).
_PLACES: Final[dict[str, tuple[float, float]]] = {
    "flexor": (5.0, 0.9),
    "extensor": (5.0, -0.9),
    "cross_V0d": (1.6, 2.5),
    "cross_V3f": (1.6, 0.9),
    "cross_V3e": (1.6, -0.9),
    "diag_V0d": (3.4, -2.9),
    "diag_V0v": (1.6, -2.9),
    "diag_In2": (3.4, -4.4),
    "diag_V3a": (3.4, 3.4),
    "afferent_flexor": (7.6, 0.9),
    "afferent_extensor": (7.6, -0.9),
    "freq": (7.6, -3.9),
    "sync": (7.6, -5.3),
}
_ROWS: Final = {"F": 0.0, "H": -9.2}
_RADIUS: Final = 0.5


def to_dot(spec: CircuitSpec) -> str:
    """The circuit as a Graphviz graph, one node per neuron and input, one edge per connection."""
    lines = ["digraph circuit {", "  node [fontname=Helvetica];"]
    for neuron in spec.neurons:
        shape = "doublecircle" if isinstance(neuron.unit, OscillatorUnit) else "circle"
        lines += [f'  "{neuron.name}.{leg}" [shape={shape}];' for leg in neuron.legs]
    for row in spec.inputs:
        lines += [f'  "{row.name}.{place}" [shape=box];' for place in row.places]
    for synapse in spec.synapses:
        colour, head = (plots.EXCITATORY, "normal") if synapse.sign > 0 else (plots.INHIBITORY, "tee")
        style = f'color="{colour}", arrowhead={head}, label="{synapse.weight:+.2f}"'
        lines += [f'  "{".".join(a)}" -> "{".".join(b)}" [{style}];' for a, b in spec.connections(synapse)]
    return "\n".join([*lines, "}"])


@plots.styled
def draw(spec: CircuitSpec, path: Path, title: str) -> None:
    """Draw the circuit into a file whose ending names the format (svg, png, pdf)."""
    fig, named = plots.figure(["wiring"], size=(11, 9.6), heights=(1,))
    axes = named["wiring"]
    places = layout(spec)
    for synapse in spec.synapses:
        for source, target in spec.connections(synapse):
            _draw_connection(axes, places[source], places[target], synapse.weight, synapse.sign)
    for neuron in spec.neurons:
        for leg in neuron.legs:
            bursts = isinstance(neuron.unit, OscillatorUnit)
            _draw_neuron(axes, places[neuron.name, leg], neuron.name.split("_")[-1], bursts)
    for row in spec.inputs:
        for place in row.places:
            _draw_input(axes, places[row.name, place], row.name.replace("_", "\n"))
    for leg in LEGS:
        across = -5.0 if leg.endswith("L") else 5.0
        axes.text(
            across, _ROWS[leg[0]] + 2.1, leg, ha="center", va="center", fontsize=15, weight="bold", color="#444444"
        )
    axes.axvline(0, color="#CCCCCC", linestyle=(0, (6, 6)), linewidth=0.8, zorder=0)
    axes.text(
        0, -12.3, "red, arrow: excitatory     blue, bar: inhibitory     double ring: oscillator     head at the top",
        ha="center", fontsize=9,
    )  # fmt: skip
    axes.set_title(title, fontsize=12)
    axes.set(xlim=(-8.7, 8.7), ylim=(-12.7, 3.9), aspect="equal")
    axes.axis("off")
    plots.save(fig, path)


def layout(spec: CircuitSpec) -> dict[tuple[str, str], tuple[float, float]]:
    """Where everything stands: {(name, leg or side): (x, y)}."""
    rows = {row.name: row.legs for row in spec.neurons} | {row.name: row.places for row in spec.inputs}
    others = [name for name in rows if name not in _PLACES]
    places = dict(_PLACES) | {name: (1.6 + 1.7 * (i % 4), 1.5 - 1.7 * (i // 4)) for i, name in enumerate(others)}
    result = {}
    for name, where in rows.items():
        for place in where:
            across, above = places[name]
            height = _ROWS[place[0]] if len(place) == 2 else _ROWS["F"]
            result[name, place] = ((-across if place.endswith("L") else across), height + above)
    return result


def _draw_connection(axes: Any, start: Any, end: Any, weight: float, sign: int) -> None:
    if abs(weight) < 1e-3:
        return
    bend = 0.10 if start[0] * end[0] < 0 or abs(start[1] - end[1]) < 0.1 else 0.16
    colour, head = (plots.EXCITATORY, "-|>,head_length=5,head_width=2.6")
    if sign < 0:
        colour, head = (plots.INHIBITORY, "-[,widthB=5,lengthB=0.1")
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle=f"arc3,rad={bend if start[0] > 0 else -bend}",  # the two sides mirror each other,
            arrowstyle=head,
            color=colour,
            linewidth=0.5 + 1.6 * min(1.5, abs(weight)),
            alpha=0.75,
            shrinkA=20,
            shrinkB=25,
            zorder=1,
        )
    )


def _draw_neuron(axes: Any, centre: tuple[float, float], label: str, bursts: bool) -> None:
    axes.add_patch(Circle(centre, _RADIUS, facecolor="white", edgecolor="#222222", linewidth=1.4, zorder=2))
    if bursts:
        axes.add_patch(Circle(centre, _RADIUS * 0.84, facecolor="none", edgecolor="#222222", linewidth=0.8, zorder=3))
    short = {"flexor": "F", "extensor": "E"}.get(label, label)
    axes.text(*centre, short, ha="center", va="center", fontsize=12 if len(short) == 1 else 8.5, zorder=4)


def _draw_input(axes: Any, centre: tuple[float, float], label: str) -> None:
    width, height = 1.5, 0.86
    corner = (centre[0] - width / 2, centre[1] - height / 2)
    axes.add_patch(
        FancyBboxPatch(
            corner, width, height, boxstyle="round,pad=0.02", facecolor="#F3F3F3", edgecolor="#888888", zorder=2
        )
    )
    axes.text(*centre, label, ha="center", va="center", fontsize=7.5, zorder=4)
