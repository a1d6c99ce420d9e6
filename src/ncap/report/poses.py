"""Robots as strips of stick figures, seen from the right: a row of poses says more about a walk than a number."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from ncap.analysis.plots import LEG_COLOURS
from ncap.sim.skeleton import leg_lines
from ncap.sim.world import World

Array = NDArray[np.float64]

POSES: Final = 6
EVERY: Final = 0.12
"""Time between two poses, s."""
APART: Final = 0.62
"""Distance between two poses in the drawing, m."""


def draw_poses(axes: Axes, world: World, motion: tuple[Array, Array, Array], dt: float) -> None:
    """Draw the first poses of a motion: position (T, 3), quaternion (T, 4) and joints (T, leg, 3)."""
    step = max(1, round(EVERY / dt))
    for i, (position, quaternion, joints) in enumerate(list(zip(*motion, strict=True))[::step][:POSES]):
        if not np.isfinite(position).all():
            break  # it had fallen
        legs = leg_lines(world, position, quaternion, joints)
        hips = legs[:, 1]
        for leg in np.argsort(-legs[:, 1, 1]).tolist():  # the right ones, which are nearer, over the left ones
            x, _, z = legs[leg, 1:].T
            axes.plot(x + i * APART, z, color=LEG_COLOURS[leg], linewidth=2.4, solid_capstyle="round")
        ends = hips[[hips[:, 0].argmin(), hips[:, 0].argmax()]]
        axes.plot(ends[:, 0] + i * APART, ends[:, 2], color="#444444", linewidth=6, solid_capstyle="round", zorder=1)
    axes.axhline(0.0, color="#999999", linewidth=1)
    axes.set(aspect="equal", xlim=(-0.4, (POSES - 1) * APART + 0.4), ylim=(-0.03, 0.42))
    axes.set_axis_off()
