"""Footfalls and circuit as pixels, for videos. Drawn at twice the size and reduced, so that edges are smooth."""

from functools import cache
from pathlib import Path
from typing import Final

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ncap.evaluation import STANCE_FORCE
from ncap.plan import LEGS
from ncap.recording import Recording
from ncap.view.diagram import Diagram
from ncap.view.parts import BOX, RADIUS, hexagon
from ncap.view.style import (
    BACKGROUND,
    EXCITATORY,
    EXTENSOR,
    FLEXOR,
    FULL_FORCE,
    INHIBITORY,
    LEG_COLOURS,
    LIT,
    MUTED,
    TEXT,
    rgb,
)
from ncap.view.traces import traces_of

Array = NDArray[np.float64]
Picture = Image.Image

SHOWN: Final = 3.0
"""Time that the strip shows, s."""
_FINE: Final = 2
"""Factor by which everything is drawn larger."""
_PART: Final = 30.0
"""Time that is drawn at once, s."""
_LONGEST_WORD: Final = 40
"""Characters of a name that are written."""
_MARGIN: Final = 34
"""Space at the left of the strip for the legs' names, pixels."""


@cache
def font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    """The font that comes with matplotlib, so that every machine writes alike."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name, size)


def mixed(colour: str, ground: str, share: float) -> tuple[int, int, int]:
    """A colour laid over another with an opacity in [0, 1]."""
    red, green, blue = (round(g + (c - g) * share) for c, g in zip(rgb(colour), rgb(ground), strict=True))
    return red, green, blue


class StripPainter:
    """Footfalls and traces of the half-centres, which scroll: a part of the episode is drawn and cut into pictures."""

    def __init__(self, recording: Recording, width: int, height: int) -> None:
        self.width, self.height, self._dt = width, height, recording.control_dt
        self._recording = recording
        self._per_second = (width - _MARGIN - 8) / SHOWN
        self._legs, self._traces = LEGS if recording.foot_force.shape[1] else (), traces_of(recording)
        sites = self._traces.sites if self._traces.pair else ()
        self._row = height / (2.7 if recording.neuron_names else 1.2) / len(LEGS)
        self._trace_row = (height - len(self._legs) * self._row - 22) / max(1, len(sites))
        self._part_steps = max(1, round(_PART / self._dt))
        self._part = -1
        self._paint(0)

    def _paint(self, part: int) -> None:
        """Draw a part of the episode, and as much before it as a picture shows."""
        self._part, self._first = part, part * self._part_steps
        begin = max(0, self._first - round(SHOWN / self._dt) - 1)
        end = min(len(self._recording.foot_force), self._first + self._part_steps)
        length = round(((end - self._first) * self._dt + SHOWN) * self._per_second) + 1
        self._long = Image.new("RGB", (length * _FINE, self.height * _FINE), BACKGROUND)
        self._draw = ImageDraw.Draw(self._long)
        self._names = Image.new("RGB", (_MARGIN, self.height), BACKGROUND)
        for leg in range(len(self._legs)):
            self._paint_feet(leg, begin, end)
        for site in range(len(self._traces.sites) if self._traces.pair else 0):
            self._paint_traces(site, begin, end)
        self._long = self._long.reduce(_FINE)

    def _x(self, step: float) -> float:
        """Place of a step's beginning in the long picture, which starts SHOWN seconds before its first step."""
        return (SHOWN + (step - self._first) * self._dt) * self._per_second * _FINE

    def _paint_feet(self, leg: int, begin: int, end: int) -> None:
        top, bottom = leg * self._row * _FINE, ((leg + 1) * self._row - 4) * _FINE
        self._draw.rectangle((0, top, self._long.width, bottom), fill="#1b2431")
        force = self._recording.foot_force[:, leg]
        for step in (begin + np.flatnonzero(force[begin:end] > STANCE_FORCE)).tolist():
            shade = mixed(LEG_COLOURS[leg], "#1b2431", 0.25 + 0.75 * min(1.0, force[step] / FULL_FORCE))
            self._draw.rectangle((self._x(step), top, self._x(step + 1), bottom), fill=shade)
        self._write_name(leg, (leg + 0.5) * self._row - 2)

    def _paint_traces(self, leg: int, begin: int, end: int) -> None:
        floor = len(self._legs) * self._row + 10 + (leg + 1) * self._trace_row - 4
        self._draw.line((0, floor * _FINE, self._long.width, floor * _FINE), fill="#2a3646", width=_FINE)
        for name, colour in zip(self._traces.pair, (FLEXOR, EXTENSOR), strict=True):
            found = self._traces.values.get(f"{name}.{self._traces.sites[leg]}")
            if found is not None:
                values = np.clip(found[begin:end], -1.0, 1.0)
                heights = (floor - (self._trace_row - 8) * values) * _FINE
                points = [(self._x(begin + step + 1), y) for step, y in enumerate(heights)]
                self._draw.line(points, fill=colour, width=3, joint="curve")
        self._write_name(leg, floor - self._trace_row / 2 + 2)

    def _write_name(self, leg: int, y: float) -> None:
        pen = ImageDraw.Draw(self._names)
        name, colour = self._traces.sites[leg], LEG_COLOURS[leg % len(LEG_COLOURS)]
        pen.text((2, y), name, fill=colour, font=font(12, bold=True), anchor="lm")

    def picture(self, step: int) -> Picture:
        """The strip of (width, height) pixels after this step, the present at the right edge."""
        if step // self._part_steps != self._part:
            self._paint(step // self._part_steps)
        result = Image.new("RGB", (self.width, self.height), BACKGROUND)
        right = round((SHOWN + (step + 1 - self._first) * self._dt) * self._per_second)
        window = round(SHOWN * self._per_second)
        result.paste(self._long.crop((right - window, 0, right, self.height)), (_MARGIN, 0))
        result.paste(self._names, (0, 0))
        pen = ImageDraw.Draw(result)
        for second in range(round(SHOWN) + 1):
            x = _MARGIN + window - second * self._per_second
            word, anchor = (f"−{second} s", "ms") if second else ("now", "rs")
            pen.text((max(x, _MARGIN + 12), self.height - 1), word, fill=MUTED, font=font(10), anchor=anchor)
        return result


class WiringPainter:
    """The wiring, lit by the activity of its neurons."""

    def __init__(self, diagram: Diagram, width: int) -> None:
        self.diagram = diagram
        self._left, self._top, across, down = diagram.window
        self._scale = width * _FINE / across
        self.size = (width, round(width * down / across))
        share = np.linspace(0.0, 1.0, 14)[:, None]
        self._lines = []
        for wire in diagram.wires:
            start, control, end = (np.array(point) for point in wire.curve)
            curve = (1 - share) ** 2 * start + 2 * share * (1 - share) * control + share**2 * end
            self._lines.append((wire, self._pixels(curve), self._pixels(np.array(wire.head))))

    def _pixels(self, points: Array) -> list[tuple[float, float]]:
        return [((x - self._left) * self._scale, (y - self._top) * self._scale) for x, y in points]

    def picture(self, signals: Array) -> Picture:
        """The wiring with these signals (S,), in the order of the diagram's names."""
        large = Image.new("RGB", (self.size[0] * _FINE, self.size[1] * _FINE), BACKGROUND)
        pen = ImageDraw.Draw(large)
        levels = np.clip(np.abs(signals), 0.0, 1.0)
        for wire, line, head in sorted(self._lines, key=lambda row: levels[row[0].source]):
            colour = EXCITATORY if wire.excites else INHIBITORY
            shade = mixed(colour, BACKGROUND, 0.16 + 0.84 * levels[wire.source])
            pen.line(line, fill=shade, width=max(2, round(wire.width * self._scale)), joint="curve")
            if wire.excites:
                pen.polygon(head, fill=shade)
            else:
                pen.line(head, fill=shade, width=max(3, round(0.11 * self._scale)))
        for number, level in enumerate(levels):
            self._paint_node(pen, number, float(level))
        for site, place, colour in self.diagram.leg_names:
            self._write(pen, place, site, 0.95, colour, bold=True)
        return large.reduce(_FINE)

    def _paint_node(self, pen: ImageDraw.ImageDraw, number: int, level: float) -> None:
        node = self.diagram.nodes[number]
        x, y = node.centre
        if node.boxed:
            corners = self._pixels(np.array([(x - BOX[0], y - BOX[1]), (x + BOX[0], y + BOX[1])]))
            pen.rounded_rectangle(corners, 0.2 * self._scale, fill="#151d28", outline="#3a475a", width=_FINE)
            self._write(pen, node.centre, node.label, node.letter_size, MUTED)
            return
        (cx, cy), radius = self._pixels(np.array([node.centre]))[0], RADIUS * self._scale
        lit = mixed(LIT, "#18212e", 0.9 * level)
        if node.kind == "motor":
            pen.polygon(self._pixels(np.array(hexagon(node.centre))), fill=lit, outline="#8696ad", width=_FINE + 1)
        else:
            pen.circle((cx, cy), radius, fill=lit, outline="#8696ad", width=_FINE + 1)
        if node.kind == "oscillator":
            pen.circle((cx, cy), radius - 0.13 * self._scale, outline="#8696ad", width=_FINE)
        ink = TEXT if level < 0.5 else "#10161f"
        size, lines = node.letter_size, node.lines
        for i, line in enumerate(lines):
            self._write(pen, (x, y + size * (i - 0.5 * (len(lines) - 1))), line, size, ink, bold=True)

    def _write(
        self, pen: ImageDraw.ImageDraw, at: tuple[float, float], word: str, size: float, colour: str, bold: bool = False
    ) -> None:
        place = self._pixels(np.array([at]))[0]
        pen.text(
            place, word[:_LONGEST_WORD], fill=colour, font=font(max(6, round(size * self._scale)), bold), anchor="mm"
        )
