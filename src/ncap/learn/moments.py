"""Running mean and standard deviation of observations, for policies that normalise what they see."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMALLEST_VARIANCE: Final = 1e-4


def no_moments(size: int) -> Array:
    """(3, size) before anything was seen."""
    return np.zeros((3, size))


def moments_of(seen: Array) -> Array:
    """(3, size): count, sum and sum of squares of observations (n, size). Moments of parts add up."""
    return np.stack((np.full(seen.shape[1], float(len(seen))), seen.sum(axis=0), (seen**2).sum(axis=0)))


def mean_and_std(moments: Array) -> tuple[Array, Array] | None:
    """(mean, standard deviation), (size,) each; None before anything was seen."""
    if moments[0, 0] == 0:
        return None
    mean = moments[1] / moments[0]
    return mean, np.sqrt(np.maximum(moments[2] / moments[0] - mean**2, SMALLEST_VARIANCE))
