"""How a body moves, beside its gait: how smoothly, and how much it sways. Arrays in, numbers out."""

import numpy as np
from numpy.typing import NDArray

from ncap.rotations import pitch_of, roll_of

Array = NDArray[np.float64]


def smoothness(velocity: Array, dt: float, stride_hz: float) -> float | None:
    """Log dimensionless jerk of a velocity (T,) in m/s over strides, the mean of all whole ones; higher is smoother.

    For each stride of length S: -ln(S³ / v_peak² ∫ (d²v/dt²)² dt), which has no unit, so that strides of different
    length and speed compare (Balasubramanian et al. 2015). None without a whole stride.
    """
    if not stride_hz > 0:
        return None
    stride = 1 / stride_hz
    samples = round(stride / dt)
    strides = len(velocity) // samples if samples >= 4 else 0
    if not strides:
        return None
    jerk = np.gradient(np.gradient(velocity, dt), dt)
    found = []
    for first in range(0, strides * samples, samples):
        part = slice(first, first + samples)
        peak = np.abs(velocity[part]).max()
        effort = stride**3 * (jerk[part] ** 2).mean() * stride / max(peak, 1e-9) ** 2
        found.append(-np.log(max(effort, 1e-12)))
    return float(np.mean(found))


def action_rate(action: Array) -> float:
    """Mean |change| of actions (T, leg, joint) from one control step to the next."""
    return float(np.abs(np.diff(action, axis=0)).mean()) if len(action) > 1 else 0.0


def sway_deg(up: Array) -> tuple[float, float]:
    """(roll, pitch), root mean square in degrees, from the vertical in the trunk's frame (T, 3)."""
    roll, pitch = (float(np.rad2deg(np.sqrt(np.mean(angle(up) ** 2)))) for angle in (roll_of, pitch_of))
    return roll, pitch
