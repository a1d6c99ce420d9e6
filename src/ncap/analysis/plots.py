"""The look of figures: colours, footfall strips, phase axes, figures in files. Arrays in, matplotlib out."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec

import matplotlib
import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.plan import LEGS

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

Array = NDArray[np.float64]

#: Okabe and Ito's colours, which stay distinct for colour-blind readers.
GAIT_COLOURS: Final = {
    "walk": "#0072B2",
    "trot": "#009E73",
    "bound": "#D55E00",
    "gallop": "#E69F00",
    "pace": "#CC79A7",
    "pronk": "#882255",
    "none": "#999999",
}
LEG_COLOURS: Final = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00")
POLICY_COLOURS: Final = {
    "ncap": "#D55E00",
    "ncap-paper": "#882255",
    "ncap-ppo": "#CC79A7",
    "mlp-evolution": "#0072B2",
    "mlp-ppo": "#56B4E9",
    "mlp-d4pg": "#009E73",
    "untrained": "#E69F00",
}
POLICY_NAMES: Final = {
    "ncap": "NCAP",
    "ncap-paper": "NCAP as in the paper",
    "ncap-ppo": "NCAP by PPO",
    "mlp-evolution": "MLP (256, 256) by evolution",
    "mlp-ppo": "MLP (64, 64) by PPO",
    "mlp-d4pg": "MLP (256, 256) by D4PG",
    "untrained": "NCAP, untrained",
}
EXCITATORY: Final = "#C8102E"
INHIBITORY: Final = "#1F5FBF"
FULL_PRESSURE: Final = 80.0
"""Foot force at which a footfall strip is darkest, N."""

_STYLE: Final = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "font.size": 9,
    "figure.titlesize": 12,
    "savefig.dpi": 150,
    "svg.fonttype": "none",
    "svg.hashsalt": "ncap",  # the same figure, the same file
    "text.parse_math": False,  # a name with dollars is a name
}


Drawing = ParamSpec("Drawing")


def styled(draw: Callable[Drawing, None]) -> Callable[Drawing, None]:
    """Decorator of every function that draws one of our figures."""

    @wraps(draw)
    def draw_in_style(*args: Drawing.args, **kwargs: Drawing.kwargs) -> None:
        with plt.rc_context(_STYLE):
            draw(*args, **kwargs)

    return draw_in_style


def figure(
    mosaic: Sequence[str], size: tuple[float, float], heights: Sequence[float]
) -> tuple[Figure, dict[str, Axes]]:
    """A figure with named axes, one string of names per row."""
    fig, axes = plt.subplot_mosaic(
        [row.split() for row in mosaic], figsize=size, height_ratios=heights, layout="constrained"
    )
    return fig, axes


def save(fig: Figure, path: Path) -> None:
    """Write the figure in the format of its suffix, making folders as needed, and close it."""
    formats = fig.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in formats:
        raise UserError(f"cannot write a figure as {path.name!r}; valid endings: {', '.join(sorted(formats))}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fig.savefig(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    finally:
        plt.close(fig)


def footfalls(axes: Axes, time: Array, activity: Array, threshold: float) -> None:
    """A strip per leg, filled while it stands: activity (T, leg) above the threshold, darker where it is stronger."""
    for leg in range(len(LEGS)):
        standing = np.concatenate(([False], activity[:, leg] > threshold, [False]))
        edges = np.flatnonzero(np.diff(standing.astype(int)))
        bars, shades = [], []
        for first, end in zip(edges[::2], edges[1::2], strict=True):
            left, right = time[first], time[min(end, len(time) - 1)]
            y = len(LEGS) - 1 - leg
            bars.append([(left, y - 0.38), (right, y - 0.38), (right, y + 0.38), (left, y + 0.38)])
            shades.append((LEG_COLOURS[leg], 0.35 + 0.65 * min(1.0, float(activity[first:end, leg].mean()))))
        axes.add_collection(PolyCollection(bars, facecolors=shades, linewidths=0))
        axes.axhline(len(LEGS) - 1 - leg, color="#DDDDDD", zorder=0, linewidth=0.6)
    axes.set_yticks(range(len(LEGS)), LEGS[::-1])
    axes.set_ylim(-0.6, len(LEGS) - 0.4)
    axes.set_xlim(time[0], time[-1])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def pressure_strips(axes: Axes, time: Array, force: Array, stance_force: float) -> None:
    """A strip per leg, filled while its foot force (T, leg) in N exceeds the stance force, darker where larger."""
    footfalls(axes, time, np.clip(force / FULL_PRESSURE, 0, 1), stance_force / FULL_PRESSURE)


def weight_circles(axes: Axes, weights: Array) -> None:
    """A circle per weight (rows, columns): red excitatory, blue inhibitory, its area the size of the weight."""
    rows, columns = np.nonzero(weights)
    values = weights[rows, columns]
    axes.scatter(
        columns,
        rows,
        s=90 * np.abs(values),
        c=[EXCITATORY if value > 0 else INHIBITORY for value in values],
        linewidths=0,
    )
    axes.set_xlim(-0.6, weights.shape[1] - 0.4)
    axes.set_ylim(weights.shape[0] - 0.4, -0.6)
    axes.grid(color="#EEEEEE", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def named_weights(axes: Axes, labels: Sequence[Sequence[str]], before: Array, after: Array) -> None:
    """Weights (rows, columns) as circles with their names, every row before training above itself after it."""
    rows, columns = labels
    weight_circles(axes, np.stack((before, after), axis=1).reshape(2 * len(rows), len(columns)))
    axes.set_yticks(range(2 * len(rows)), [f"{row} {when}" for row in rows for when in ("before", "after")])
    axes.set_xticks(range(len(columns)), columns, rotation=90 if len(columns) > 4 else 0)


def command_axis(axes: Axes, time: Array, command: Array) -> None:
    """Label a time axis with the brainstem command that rose along it."""
    ticks = np.linspace(0, 1, 11)
    axes.set_xticks(np.interp(ticks, command, time), [f"{c:.1f}" for c in ticks])
    axes.set_xlabel(f"brainstem command c, rising over {time[-1]:.0f} s")


def phase_scatter(axes: Axes, x: Array, phase: Array, colours: Sequence[str], marker: str) -> None:
    """Phases on an axis that is drawn from -0.25 to 0.75, so that 0 and 0.5 are both in the middle of something."""
    axes.scatter(x, (phase + 0.25) % 1.0 - 0.25, c=colours, s=14, marker=marker, linewidths=0, alpha=0.6)
    axes.set_ylim(-0.25, 0.75)
    axes.set_yticks((-0.25, 0, 0.25, 0.5, 0.75))
    axes.grid(axis="y", color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)


def gait_band(axes: Axes, x: Sequence[float], labels: Sequence[str], height: float, name: str) -> None:
    """A thin band of gait colours along x, at a height given as a share of the axes."""
    order = np.argsort(x)
    edges = np.array(x)[order]
    for left, right, i in zip(edges[:-1], edges[1:], order[:-1], strict=True):
        axes.axvspan(left, right, height - 0.035, height + 0.035, color=GAIT_COLOURS[labels[i]], linewidth=0)
    axes.text(0.02, height + 0.045, name, transform=axes.get_xaxis_transform(), fontsize=7, va="bottom")


def gait_legend(fig: Figure, labels: Sequence[str]) -> None:
    """One legend of gait colours for the whole figure."""
    handles: list[Any] = [
        Line2D([], [], marker="o", linestyle="", color=GAIT_COLOURS[label], label=label)
        for label in GAIT_COLOURS
        if label in labels
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def curve_band(axes: Axes, x: Array, mean: Array, low: Array, high: Array, policy: str) -> None:
    """A learning curve with its interval, in the colour of the policy."""
    colour = POLICY_COLOURS[policy]
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, mean, color=colour, linewidth=1.5, label=POLICY_NAMES[policy])


def save_both(fig: Figure, path: Path) -> None:
    """Write the figure as PNG for reading and as SVG for printing."""
    fig.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    save(fig, path)
