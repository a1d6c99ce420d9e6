"""The live page's instruments as small pieces of HTML: gait and numbers, footfall strip, half-centre traces."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.evaluation import STANCE_FORCE
from ncap.plan import LEGS
from ncap.view.controls import Controls
from ncap.view.course import Score
from ncap.view.reading import Reading
from ncap.view.style import (
    EXCITATORY,
    EXTENSOR,
    FLEXOR,
    FULL_FORCE,
    GAIT_COLOURS,
    INHIBITORY,
    LEG_COLOURS,
    MUTED,
    TEXT,
    spoken_gait,
)
from ncap.view.traces import PAIRS

Array = NDArray[np.float64]

SHOWN: Final = 4.0
"""Time that strips and traces show, s."""
_LEFT, _RIGHT = 26.0, 440.0
"""Where strips begin and end, in the units of their drawing."""
_SHADES: Final = 6
"""Steps of brightness of a footfall."""
KEY: Final = (
    f'<div style="color:{MUTED};font:11.5px system-ui,sans-serif;text-align:center;padding:0 8px 6px">'
    f'<span style="color:{EXCITATORY}">red excites</span> · <span style="color:{INHIBITORY}">blue inhibits</span>'
    " · hover: what it is · click: silence or heal it</div>"
)
"""What the wiring's colours mean and what can be done with it."""


def gait_and_numbers(reading: Reading, controls: Controls) -> str:
    """The gait in large letters, and frequency, speed, cost of transport and reward, or turning, below it."""
    gait, circuit, wave = reading.gait, reading.circuit_gait, reading.undulation
    label, hertz = "still" if wave is None else "undulates", 0.0 if wave is None else wave.frequency_hz
    if gait is not None:
        label, hertz = spoken_gait(gait.label, gait.frequency_hz), gait.frequency_hz
    if reading.fallen:
        label = "getting up" if reading.getting_up else "fallen"
    below = "–" if circuit is None else spoken_gait(circuit.label, circuit.frequency_hz)
    cost = "–" if reading.cost_of_transport is None else f"{reading.cost_of_transport:.2f}"
    tiles = (
        ("step frequency" if gait else "waves", f"{hertz:.{1 if gait else 2}f}", "Hz"),
        ("speed", f"{reading.speed:.2f}", f"of {controls.speed if controls.driven else controls.target_speed:.2f} m/s"),
        ("cost of transport", cost, ""),
        ("turning", f"{reading.yaw_rate:+.2f}", f"of {controls.yaw_rate:+.2f} rad/s")
        if controls.driven
        else ("reward", f"{reading.reward:.2f}", "of 1"),
    )
    colour = "#ff5f5f" if reading.fallen else GAIT_COLOURS[gait.label if gait else "trot" if wave else "none"]
    circuit_colour = GAIT_COLOURS["none" if circuit is None else circuit.label]
    small = f"font-size:11px;color:{MUTED};white-space:nowrap"
    shown = "".join(
        f'<div style="background:#1b2431;border-radius:8px;padding:6px 10px"><div style="{small}">{name}</div>'
        f'<div style="font-size:20px;font-weight:650;color:{TEXT};font-variant-numeric:tabular-nums">{value}'
        f'<span style="{small};font-weight:400"> {unit}</span></div></div>'
        for name, value, unit in tiles
    )
    return (
        '<div style="padding:10px 14px 4px;font-family:system-ui,sans-serif">'
        '<div style="display:flex;justify-content:space-between;align-items:flex-end">'
        f'<div><div style="{small}">{"the feet" if gait else "the body"}</div>'
        f'<div id="gait" style="font-size:34px;line-height:1.15;font-weight:750;color:{colour}">{escape(label)}</div>'
        "</div>"
        f'<div style="text-align:right"><div style="{small}">the circuit</div><div id="circuit-gait" '
        f'style="font-size:22px;line-height:1.4;font-weight:650;color:{circuit_colour}">{escape(below)}</div></div></div>'
        f'<div style="display:grid;grid-template-columns:1fr 1fr;gap:6px;margin-top:8px">{shown}</div>'
        f'<div style="{small};margin-top:6px">{reading.time:.1f} s since the start'
        f"{_counted(reading.falls)}</div></div>"
    )


def score_board(score: Score | None, best: int) -> str:
    """How a drive along a course goes; nothing without one."""
    if score is None:
        return ""
    gates = len(score.points)
    if score.next is None:
        word = "All gates passed!" if score.passed == gates else "The course is over."
        state = f"{word} {score.passed} of {gates} gates"
    else:
        state = f"gate {score.next + 1} of {gates} · {score.left:.0f} s left"
    last = next((points for points in reversed(score.points) if points is not None), None)
    gained = "" if last is None else f' <span style="font-size:12px;color:{MUTED}">last gate +{last}</span>'
    box = f"margin:8px 14px 0;padding:6px 10px;border-radius:8px;background:#3a3220;color:{TEXT}"
    return (
        f'<div id="course" style="{box};font-family:system-ui,sans-serif">'
        f'<div style="font-size:11px;color:{MUTED}">course · {state}</div>'
        f'<b style="font-size:20px">{score.total}</b> points{gained}'
        f'<span style="float:right;font-size:11px;color:{MUTED};line-height:28px">best {best}</span></div>'
    )


def _counted(falls: int) -> str:
    return "" if not falls else " · 1 fall" if falls == 1 else f" · {falls} falls"


def footfalls(force: Array, dt: float) -> str:
    """A strip with a bar where a foot stands, the brighter the harder it presses. force: (T, leg) N, newest last.

    Nothing for a body without feet.
    """
    if not force.shape[1]:
        return ""
    row = 21.0
    parts = []
    for leg, (name, colour) in enumerate(zip(LEGS, LEG_COLOURS, strict=True)):
        top = leg * row
        parts.append(_leg_name(name, colour, top + row / 2))
        parts.append(
            f'<rect x="{_LEFT}" y="{top + 2:.1f}" width="{_RIGHT - _LEFT}" height="{row - 4}" fill="#1b2431"/>'
        )
        pressed = force[-round(SHOWN / dt) :, leg]
        shade = np.where(pressed > STANCE_FORCE, np.ceil(_SHADES * np.clip(pressed / FULL_FORCE, 0.1, 1.0)), 0)
        edges = [0, *(np.flatnonzero(np.diff(shade)) + 1).tolist(), len(shade)]
        x = _places(len(shade), dt)
        parts += [
            f'<rect x="{x[first]:.1f}" y="{top + 2:.1f}" width="{x[end] - x[first] + 0.4:.1f}" height="{row - 4}" '
            f'fill="{colour}" fill-opacity="{0.25 + 0.75 * shade[first] / _SHADES:.2f}"/>'
            for first, end in pairwise(edges)
            if end > first and shade[first]
        ]
    return _svg("footfalls", parts, len(LEGS) * row, "Footfalls", "bright where a foot presses hard")


def half_centres(
    flexors: Array, extensors: Array, dt: float, sites: Sequence[str] = LEGS, names: Sequence[str] = PAIRS[0]
) -> str:
    """Traces of two neurons that alternate at each site, (T, site) in [0, 1], newest last: half-centres of legs."""
    row = max(15.0, 36.0 * min(1.0, len(LEGS) / len(sites)))
    parts = []
    for leg, name in enumerate(sites):
        colour = LEG_COLOURS[leg % len(LEG_COLOURS)]
        floor = (leg + 1) * row - 4
        parts.append(_leg_name(name, colour, floor - row / 2 + 2))
        parts.append(f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{floor}" y2="{floor}" stroke="#2a3646"/>')
        for values, line in ((flexors, FLEXOR), (extensors, EXTENSOR)):
            past = values[-round(SHOWN / dt) :, leg]
            x = _places(len(past), dt)
            points = " ".join(f"{a:.0f},{floor - (row - 8) * v:.1f}" for a, v in zip(x[1:], past, strict=True))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{line}" stroke-width="1.6"/>')
    one, other = (name.replace("_", " ") for name in names)
    of = "leg" if len(sites) == len(LEGS) and names == PAIRS[0] else "joint"
    key = f'<tspan fill="{FLEXOR}">{one}</tspan> and <tspan fill="{EXTENSOR}">{other}</tspan> of each {of}'
    return _svg("half-centres", parts, len(sites) * row, "Half-centres" if of == "leg" else "Muscles", key)


def nothing_to_show(policy: str) -> str:
    """A sentence that stands in the place of a circuit for a policy without one."""
    return (
        f'<div style="padding:40px 24px;color:{MUTED};text-align:center">The policy <b>{escape(policy)}</b> has no '
        "circuit to look into.<br>Choose another one, such as <b>untrained</b>.</div>"
    )


def _places(samples: int, dt: float) -> Array:
    """(T + 1,) x of the samples' edges, the newest at the right end."""
    return np.asarray(_RIGHT - (samples - np.arange(samples + 1)) * dt / SHOWN * (_RIGHT - _LEFT), float)


def _leg_name(name: str, colour: str, y: float) -> str:
    place = f'x="2" y="{y:.1f}" dominant-baseline="central"'
    return f'<text {place} fill="{colour}" font-size="12" font-weight="700">{name}</text>'


def _svg(name: str, parts: list[str], height: float, title: str, key: str) -> str:
    ticks = []
    for second in range(round(SHOWN) + 1):
        x = _RIGHT - second / SHOWN * (_RIGHT - _LEFT)
        word = "now" if second == 0 else f"−{second} s"
        anchor = "end" if second == 0 else "middle" if x > _LEFT + 10 else "start"
        ticks.append(
            f'<text x="{x:.0f}" y="{height + 33}" fill="{MUTED}" font-size="10" text-anchor="{anchor}">{word}</text>'
        )
    return (
        f'<svg id="{name}" viewBox="0 0 446 {height + 38}" style="width:100%;display:block;padding:2px 12px;'
        'font-family:system-ui,sans-serif">'
        f'<text x="2" y="13" fill="{TEXT}" font-size="12.5" font-weight="650">{title}'
        f'<tspan fill="{MUTED}" font-weight="400" font-size="11" dx="8">{key}</tspan></text>'
        f'<g transform="translate(0,21)">{"".join(parts)}</g>{"".join(ticks)}</svg>'
    )
