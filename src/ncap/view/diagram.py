"""The wiring of a circuit as a picture whose neurons and synapses light up.

The drawing does not change with the activity: it is an SVG whose parts take their brightness from variables --s0, --s1,
…, one per signal in the order of `signal_names`. A page that shows it sets those: some 300 bytes, many times a second.
"""

from collections.abc import Sequence
from functools import cached_property
from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.animal import cut
from ncap.circuits.circuit import Circuit, initial_numbers, number_index
from ncap.circuits.layout import SHORT_NAMES, layout, name_place
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.units import UNITS, OscillatorUnit
from ncap.view.parts import BOX, RADIUS, Node, Point, Wire, hexagon, sign_of
from ncap.view.style import EXCITATORY, INHIBITORY, LEG_COLOURS, LIT, MUTED, TEXT

Array = NDArray[np.float64]

MARGIN: Final = 0.3
"""Empty space around the drawing."""
WEAKEST: Final = 1e-3
"""Synapses with a weight below this are not drawn."""


def signal_names(spec: CircuitSpec) -> tuple[str, ...]:
    """Names of all signals that a drawing shows: the rhythm generator, neurons that read it, then sums and inputs."""
    after = [name for level in spec.after for name in level]
    reading = [f"{name}.{site}" for name in after for site in spec.sites_of(spec.neuron(name))]
    return tuple(dict.fromkeys((*Circuit(spec).neurons, *reading, *(".".join(place) for place in layout(spec)))))


class Diagram:
    """Nodes and wires of one table, with their places."""

    def __init__(self, spec: CircuitSpec, numbers: Array | None = None) -> None:
        """`numbers`: (K,) the table's numbers after training; without them, those that the table gives."""
        self.spec = spec
        self.names = signal_names(spec)
        self._numbers = initial_numbers(spec) if numbers is None or not len(numbers) else numbers

    @cached_property
    def nodes(self) -> list[Node]:
        """Neurons and inputs, in the order of the signals."""
        places = layout(self.spec)
        neurons = {row.name: row for row in self.spec.neurons}
        nodes = []
        for name in self.names:
            population, place = name.rsplit(".", 1)
            x, y = places[population, place]
            nodes.append(
                Node(
                    name=name,
                    cut=name if population in neurons else population,
                    label=SHORT_NAMES.get(population, population.split("_")[-1]),
                    centre=(x, -y),
                    kind=self._kind(population),
                    told=self._told(name, population),
                )
            )
        return nodes

    def _kind(self, population: str) -> str:
        before = {name for level in self.spec.before for name in level}
        if population in before:
            return "sum"
        if self.spec.after and population in self.spec.after[-1]:
            return "motor"
        row = next((row for row in self.spec.neurons if row.name == population), None)
        return "input" if row is None else "oscillator" if isinstance(row.unit, OscillatorUnit) else "neuron"

    def _told(self, name: str, population: str) -> str:
        sign = sign_of([weight for _, (source, _), weight in self._connections if source == name])
        row = next((row for row in self.spec.neurons if row.name == population), None)
        if row is None:
            given = next(row for row in self.spec.inputs if row.name == population)
            first = f"{name}: a {given.kind}" + (" of the brainstem" if given.kind == "command" else " of the body")
            return "\n".join(line for line in (first, sign) if line)
        units = {unit: word for word, unit in UNITS.items()}
        kind = f"{name}: neuron of type {units.get(type(row.unit), type(row.unit).__name__)}"
        return "\n".join(line for line in (kind, sign, row.role) if line)

    @cached_property
    def _connections(self) -> list[tuple[str, tuple[str, str], float]]:
        """(key of the row, (source, target), weight) of every connection that is drawn."""
        number, plan, names = number_index(self.spec), self.spec.plan, set(self.names)
        found = []
        for row in self.spec.synapses:
            for source, target in self.spec.connections(row):
                weight = float(self._numbers[number[row, plan.part_of(target[1], row.tied_by)]])
                ends = ".".join(source), ".".join(target)
                if abs(weight) >= WEAKEST and ends[0] in names:
                    found.append((row.key, ends, weight))
        return found

    @cached_property
    def wires(self) -> list[Wire]:
        """Every connection whose weight is not 0."""
        index = {name: i for i, name in enumerate(self.names)}
        routes = {row.key: row.route for row in self.spec.synapses}
        return [
            Wire(
                source=index[ends[0]],
                ends=ends,
                key=key,
                route=routes[key],
                curve=_curve(*(self.nodes[index[end]] for end in ends)),
                weight=weight,
            )
            for key, ends, weight in self._connections
        ]

    @cached_property
    def leg_names(self) -> list[tuple[str, Point, str]]:
        """(name, place, colour) of every site, to be written beside it."""
        result = []
        for i, site in enumerate(self.spec.plan.sites):
            x, y = name_place(self.spec.plan, site)
            result.append((site, (x, -y), LEG_COLOURS[i % len(LEG_COLOURS)]))
        return result

    @cached_property
    def window(self) -> tuple[float, float, float, float]:
        """x, y, width and height of the drawing."""
        corners = np.array([node.centre for node in self.nodes] + [place for _, place, _ in self.leg_names])
        reach = np.array([max(RADIUS, BOX[0]), RADIUS]) + MARGIN
        (left, top), (right, bottom) = corners.min(axis=0) - reach, corners.max(axis=0) + reach
        return float(left), float(top), float(right - left), float(bottom - top)

    def silent(self, without: Sequence[str]) -> tuple[list[bool], list[bool]]:
        """Which nodes and which wires are gone after knock-outs by the names of ncap.circuits.animal.cut."""
        left = cut(self.spec, without)
        before, wires = (
            {
                (row.key, ".".join(source), ".".join(target))
                for row in spec.synapses
                for source, target in spec.connections(row)
            }
            for spec in (self.spec, left)
        )
        neurons = {f"{row.name}.{site}" for row in left.neurons for site in left.sites_of(row)}
        # an input that reaches nothing any more, also one whose wires weigh 0 and are not drawn
        unheard = {source for _, source, _ in before} - {source for _, source, _ in wires}
        nodes = [node.name in unheard if node.kind == "input" else node.name not in neurons for node in self.nodes]
        return nodes, [(wire.key, *wire.ends) not in wires for wire in self.wires]

    def svg(self, without: Sequence[str] = (), *, on_click: str = "") -> str:
        """The drawing, with knocked-out parts pale.

        on_click: JavaScript to run when something is clicked; what silences a part is the attribute data-cut of its
        element. Without it, nothing can be clicked.
        """
        dead_nodes, dead_wires = self.silent(without)
        clicked = f'onclick="{escape(on_click)}"' if on_click else ""
        parts = [
            f'<svg class="wiring{" clickable" if on_click else ""}" xmlns="http://www.w3.org/2000/svg" {clicked} '
            f'viewBox="{" ".join(f"{value:g}" for value in self.window)}" role="img" '
            'aria-label="Wiring of the circuit">',
            f"<style>{_STYLE}</style>",
            f'<defs><radialGradient id="glow"><stop offset="0" stop-color="{LIT}" stop-opacity=".85"/>'
            f'<stop offset=".45" stop-color="{LIT}" stop-opacity=".35"/>'
            f'<stop offset="1" stop-color="{LIT}" stop-opacity="0"/></radialGradient></defs>',
        ]
        order = sorted(zip(self.wires, dead_wires, strict=True), key=lambda pair: abs(pair[0].weight))
        parts += [_wire_svg(wire, dead) for wire, dead in order]
        parts += [_node_svg(i, node, dead) for i, (node, dead) in enumerate(zip(self.nodes, dead_nodes, strict=True))]
        parts += [
            f'<text class="leg" x="{x:g}" y="{y:g}" fill="{colour}">{escape(site)}</text>'
            for site, (x, y), colour in self.leg_names
        ]
        return "".join([*parts, "</svg>"])


def brightness(signals: Array) -> str:
    """A style sheet that lights the drawing with the absolute values of these signals (S,)."""
    values = "".join(f"--s{i}:{value:.2f};" for i, value in enumerate(np.clip(np.abs(signals), 0.0, 1.0)))
    return f"<style>.wiring{{{values}}}</style>"


_STYLE: Final = (
    ".wiring{width:100%;display:block;overflow:visible;font-family:system-ui,sans-serif}"
    ".wiring .wire{fill:none;stroke-linecap:round;pointer-events:none}"
    ".wiring .hit{fill:none;stroke:transparent;stroke-width:.3;pointer-events:stroke}"
    ".wiring .glow,.wiring text{pointer-events:none}"
    ".wiring.clickable [data-cut]{cursor:pointer}"
    ".wiring.clickable [data-cut]:hover{opacity:1!important}"
    ".wiring.clickable [data-cut]:hover .rim{stroke:#fff}"
    ".wiring .dead{opacity:.16!important;stroke-dasharray:.25 .25}"
    ".wiring.clickable .dead:hover{opacity:.6!important}"
    f".wiring .label{{fill:{TEXT};text-anchor:middle;dominant-baseline:central;font-weight:600;"
    "stroke:#0b1017;stroke-width:.1;stroke-dasharray:none;paint-order:stroke}"
    f".wiring .in{{fill:{MUTED};font-weight:500}}"
    ".wiring .leg{font-size:.95px;font-weight:700;text-anchor:middle;dominant-baseline:central}"
)


def _curve(start: Node, end: Node) -> tuple[Point, Point, Point]:
    """From the rim of one node to the rim of another, bent to one side; the body's two sides mirror each other."""
    a, b = np.array(start.centre), np.array(end.centre)
    way = b - a
    bend = 0.10 if start.centre[0] * end.centre[0] < 0 or abs(way[1]) < 0.1 else 0.16
    if start.centre[0] > 0:
        bend = -bend
    aside = bend * np.array([way[1], -way[0]])
    if end.kind == "motor" and aside[0] * a[0] < 0:  # outwards, around the other half-centre
        aside = -aside
    control = (a + b) / 2 + aside
    first, last = _rim(start, control, 0.05), _rim(end, control, 0.12)
    return (first[0], first[1]), (float(control[0]), float(control[1])), (last[0], last[1])


def _rim(node: Node, towards: Array, gap: float) -> tuple[float, float]:
    centre = np.array(node.centre)
    way = towards - centre
    way = way / max(float(np.linalg.norm(way)), 1e-9)
    reach = RADIUS + gap
    if node.boxed:
        reach = min(side / max(abs(float(part)), 1e-9) for side, part in zip(BOX, way, strict=True)) + gap
    x, y = centre + reach * way
    return float(x), float(y)


def _wire_svg(wire: Wire, dead: bool) -> str:
    colour = EXCITATORY if wire.excites else INHIBITORY
    (x0, y0), (x1, y1), (x2, y2) = wire.curve
    line = f"M{x0:.2f} {y0:.2f}Q{x1:.2f} {y1:.2f} {x2:.2f} {y2:.2f}"
    head = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in wire.head)
    look = f'stroke="{colour}" stroke-width="{wire.width:.3f}"'
    light = f'style="opacity:calc(.16 + .84*var(--s{wire.source},0))"'
    fill, close = (colour, "Z") if wire.excites else ("none", "")
    return (
        f'<g {light} class="{"dead" if dead else "live"}" data-cut="{escape(wire.key)}">'
        f'<title>{escape(wire.told)}</title><path class="hit" d="{line}"/><path class="wire" d="{line}" {look}/>'
        f'<path class="end" d="{head}{close}" fill="{fill}" stroke="{colour}" '
        f'stroke-width="{0.02 if wire.excites else 0.11}"/></g>'
    )


def _node_svg(number: int, node: Node, dead: bool) -> str:
    x, y = node.centre
    label = escape(node.label)
    group = f'<g class="{"dead" if dead else "live"}" data-cut="{escape(node.cut)}"><title>{escape(node.told)}</title>'
    if node.boxed:
        across, up = BOX
        box = f'<rect x="{x - across:.2f}" y="{y - up:.2f}" width="{2 * across}" height="{2 * up}" rx=".2"'
        return (
            f'{group}{box} class="rim" fill="#151d28" stroke="#3a475a" stroke-width=".05"/>'
            f'{box} class="glow" fill="{LIT}" style="opacity:calc(.45*var(--s{number},0))"/>'
            f'<text class="label in" x="{x:g}" y="{y:g}" font-size="{node.letter_size:.2f}">{label}</text></g>'
        )
    ring = (
        f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS - 0.13:.2f}" class="glow" fill="none" stroke="#8696ad" '
        'stroke-width=".04"/>'
        if node.kind == "oscillator"
        else ""
    )
    shape = f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}"'
    if node.kind == "motor":
        corners = " ".join(f"{a:.2f},{b:.2f}" for a, b in hexagon(node.centre))
        shape = f'<polygon points="{corners}" stroke-linejoin="round"'
    size, lines = node.letter_size, node.lines
    first = y - 0.5 * size * (len(lines) - 1)
    text = "".join(
        f'<tspan x="{x:g}" y="{first + i * size:.2f}">{escape(line)}</tspan>' for i, line in enumerate(lines)
    )
    return (
        f'{group}<circle cx="{x:g}" cy="{y:g}" r="{2.1 * RADIUS:.2f}" class="glow" fill="url(#glow)" '
        f'style="opacity:var(--s{number},0)"/>'
        f'{shape} class="rim" fill="#18212e" stroke="#8696ad" stroke-width=".07"/>'
        f'{shape} class="glow" fill="{LIT}" style="opacity:calc(.85*var(--s{number},0))"/>'
        f'{ring}<text class="label" font-size="{size:.2f}">{text}</text></g>'
    )
