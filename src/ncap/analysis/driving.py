"""How well a robot does what it is told while the wishes change: errors of speed and yaw rate."""

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.rewards import STRIDE

Array = NDArray[np.float64]

SETTLING: Final = 1.0
"""Time after a new wish that does not count, s."""


def wish_spans(wanted: Array) -> list[slice]:
    """Control steps of every wish in wanted (T, 2)."""
    edges = [0, *(np.flatnonzero((np.diff(wanted, axis=0) != 0).any(axis=1)) + 1).tolist(), len(wanted)]
    return [slice(first, last) for first, last in pairwise(edges) if last > first]


def tracking_errors(wanted: Array, done: Array, dt: float) -> Array:
    """(N, 2) |error| of speed (m/s) and yaw rate (rad/s) in all steps of an episode that count.

    wanted, done: (T, 2) speed and yaw rate. `done` is averaged over the last STRIDE; the first SETTLING of every wish
    is left out.
    """
    window, settling = round(STRIDE / dt), round(SETTLING / dt)
    sums = np.concatenate((np.zeros((1, 2)), np.cumsum(done, axis=0)))
    ends = np.arange(1, len(done) + 1)
    begins = np.maximum(ends - window, 0)
    means = (sums[ends] - sums[begins]) / (ends - begins)[:, None]
    counts = np.zeros(len(done), bool)
    for span in wish_spans(wanted):
        counts[span.start + settling : span.stop] = True
    errors: Array = np.abs(means - wanted)[counts]
    return errors
