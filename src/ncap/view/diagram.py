"""The circuit's wiring as a picture whose neurons and synapses light up.

The drawing itself never changes: it is an SVG whose parts take their brightness from variables --s0, --s1, …, one per
neuron and input of the circuit in the circuit's order. Whoever shows it sets those, some 300 bytes, as often as wanted.
"""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.circuit import Circuit
from ncap.circuits.units import OscillatorUnit
from ncap.experiments.circuit_diagram import layout
from ncap.legs import LEGS
from ncap.view.style import EXCITATORY, INHIBITORY, LEG_COLOURS, LIT, MUTED, TEXT

Array = NDArray[np.float64]
Point = tuple[float, float]

RADIUS: Final = 0.66
BOX: Final = (0.78, 0.46)
"""Half width and half height of an input."""
WINDOW: Final = (-8.75, -4.35, 17.5, 15.5)
"""x, y, width and height of what is seen, y downwards."""
_SHORT: Final = {"flexor": "F", "extensor": "E", "afferent_flexor": "aff F", "afferent_extensor": "aff E"}


@dataclass(frozen=True, kw_only=True)
class Node:
    """A neuron or an input."""

    name: str
    population: str
    label: str
    centre: Point
    """y downwards."""
    kind: str
    """neuron, oscillator or input."""


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A single connection."""

    source: int
    """Number of the signal that it carries."""
    populations: tuple[str, str]
    route: str
    curve: tuple[Point, Point, Point]
    """A quadratic Bézier curve from rim to rim."""
    weight: float
    excites: bool

    @property
    def width(self) -> float:
        """Thicker is stronger."""
        return 0.05 + 0.075 * min(1.5, abs(self.weight))

    @property
    def head(self) -> tuple[Point, ...]:
        """A triangle where it excites, a bar where it inhibits."""
        _, control, end = (np.array(point) for point in self.curve)
        along = (end - control) / max(float(np.linalg.norm(end - control)), 1e-9)
        across = np.array([-along[1], along[0]])
        corners = [end, end - 0.34 * along + 0.15 * across, end - 0.34 * along - 0.15 * across]
        if not self.excites:
            corners = [end + 0.24 * across, end - 0.24 * across]
        return tuple((float(x), float(y)) for x, y in corners)


class Diagram:
    """Where everything stands, for one circuit."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.names = (*circuit.neurons, *circuit.inputs)

    @cached_property
    def nodes(self) -> list[Node]:
        """Neurons and inputs, in the order of the signals."""
        spec = self.circuit.spec
        places = layout(spec)
        bursting = {row.name for row in spec.neurons if isinstance(row.unit, OscillatorUnit)}
        nodes = []
        for i, name in enumerate(self.names):
            population, place = name.rsplit(".", 1)
            x, y = places[population, place]
            kind = "oscillator" if population in bursting else "neuron"
            if i >= len(self.circuit.neurons):
                kind = "input"
            label = _SHORT.get(population, population.split("_")[-1])
            nodes.append(Node(name=name, population=population, label=label, centre=(x, -y), kind=kind))
        return nodes

    @cached_property
    def wires(self) -> list[Wire]:
        """Every connection that has a weight."""
        spec, index = self.circuit.spec, {name: i for i, name in enumerate(self.names)}
        return [
            Wire(
                source=index[".".join(source)],
                populations=(source[0], target[0]),
                route=row.route,
                curve=_curve(self.nodes[index[".".join(source)]], self.nodes[index[".".join(target)]]),
                weight=row.weight,
                excites=row.sign > 0,
            )
            for row in spec.synapses
            if abs(row.weight) >= 1e-3
            for source, target in spec.connections(row)
        ]

    def cut(self, populations: frozenset[str], routes: frozenset[str]) -> tuple[list[bool], list[bool]]:
        """Which nodes and which wires a knock-out of these takes away."""
        nodes = [node.population in populations for node in self.nodes]
        wires = [bool({*wire.populations} & populations) or wire.route in routes for wire in self.wires]
        return nodes, wires

    def svg(self, populations: frozenset[str] = frozenset(), routes: frozenset[str] = frozenset()) -> str:
        """The drawing, knocked-out parts as ghosts."""
        dead_nodes, dead_wires = self.cut(populations, routes)
        parts = [
            '<svg class="wiring" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="{" ".join(f"{value:g}" for value in WINDOW)}" role="img" aria-label="Wiring of the circuit">',
            f"<style>{_STYLE}</style>",
            f'<defs><radialGradient id="glow"><stop offset="0" stop-color="{LIT}" stop-opacity=".85"/>'
            f'<stop offset=".45" stop-color="{LIT}" stop-opacity=".35"/>'
            f'<stop offset="1" stop-color="{LIT}" stop-opacity="0"/></radialGradient></defs>',
        ]
        order = sorted(zip(self.wires, dead_wires, strict=True), key=lambda pair: abs(pair[0].weight))
        parts += [_wire_svg(wire, dead) for wire, dead in order]
        parts += [_node_svg(i, node, dead) for i, (node, dead) in enumerate(zip(self.nodes, dead_nodes, strict=True))]
        for leg, colour in zip(LEGS, LEG_COLOURS, strict=True):
            x, y = 7.6 if leg.endswith("R") else -7.6, -2.45 if leg.startswith("F") else 6.75
            parts.append(f'<text class="leg" x="{x}" y="{y}" fill="{colour}">{leg}</text>')
        return "".join([*parts, "</svg>"])


def brightness(signals: Array) -> str:
    """A style sheet that lights the drawing with these signals (N + I,)."""
    values = "".join(f"--s{i}:{value:.2f};" for i, value in enumerate(np.clip(np.abs(signals), 0.0, 1.0)))
    return f"<style>.wiring{{{values}}}</style>"


_STYLE: Final = (
    ".wiring{width:100%;display:block;font-family:system-ui,sans-serif}"
    ".wiring .wire{fill:none;stroke-linecap:round}"
    ".wiring .dead{opacity:.12!important;stroke-dasharray:.25 .25}"
    f".wiring .label{{fill:{TEXT};text-anchor:middle;dominant-baseline:central;font-weight:600;"
    "stroke:#0b1017;stroke-width:.1;paint-order:stroke}"
    f".wiring .in{{fill:{MUTED};font-weight:500}}"
    ".wiring .leg{font-size:.95px;font-weight:700;text-anchor:middle}"
)


def _curve(start: Node, end: Node) -> tuple[Point, Point, Point]:
    """From the rim of one node to the rim of another, bent to one side; the body's two sides mirror each other."""
    a, b = np.array(start.centre), np.array(end.centre)
    way = b - a
    bend = 0.10 if start.centre[0] * end.centre[0] < 0 or abs(way[1]) < 0.1 else 0.16
    if start.centre[0] > 0:
        bend = -bend
    control = (a + b) / 2 + bend * np.array([way[1], -way[0]])
    first, last = _rim(start, control, 0.05), _rim(end, control, 0.12)
    return (first[0], first[1]), (float(control[0]), float(control[1])), (last[0], last[1])


def _rim(node: Node, towards: Array, gap: float) -> tuple[float, float]:
    centre = np.array(node.centre)
    way = towards - centre
    way = way / max(float(np.linalg.norm(way)), 1e-9)
    reach = RADIUS + gap
    if node.kind == "input":
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
    fill = f'fill="{colour}"' if wire.excites else 'fill="none"'
    return (
        f'<g {light} class="{"dead" if dead else "live"}"><path class="wire" d="{line}" {look}/>'
        f'<path d="{head}{"Z" if wire.excites else ""}" {fill} stroke="{colour}" '
        f'stroke-width="{0.02 if wire.excites else 0.11}"/></g>'
    )


def _node_svg(number: int, node: Node, dead: bool) -> str:
    x, y = node.centre
    label = escape(node.label)
    state = "dead" if dead else "live"
    if node.kind == "input":
        across, up = BOX
        return (
            f'<g class="{state}"><rect x="{x - across:.2f}" y="{y - up:.2f}" width="{2 * across}" height="{2 * up}" '
            f'rx=".2" fill="#151d28" stroke="#3a475a" stroke-width=".05"/>'
            f'<rect x="{x - across:.2f}" y="{y - up:.2f}" width="{2 * across}" height="{2 * up}" rx=".2" fill="{LIT}" '
            f'style="opacity:calc(.45*var(--s{number},0))"/>'
            f'<text class="label in" x="{x}" y="{y}" font-size=".5">{label}</text></g>'
        )
    ring = (
        f'<circle cx="{x}" cy="{y}" r="{RADIUS - 0.13:.2f}" fill="none" stroke="#8696ad" stroke-width=".04"/>'
        if node.kind == "oscillator"
        else ""
    )
    return (
        f'<g class="{state}"><circle cx="{x}" cy="{y}" r="{2.1 * RADIUS:.2f}" fill="url(#glow)" '
        f'style="opacity:var(--s{number},0)"/>'
        f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="#18212e" stroke="#8696ad" stroke-width=".07"/>'
        f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{LIT}" style="opacity:calc(.85*var(--s{number},0))"/>'
        f'{ring}<text class="label" x="{x}" y="{y}" font-size="{0.72 if len(label) == 1 else 0.5}">{label}</text></g>'
    )
