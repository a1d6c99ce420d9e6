"""Summaries of scores over seeds and tasks, with intervals: what Agarwal et al. (2021) ask of results in this field.

Scores are (task, run). Intervals are 95 % percentile bootstraps in which runs are drawn anew within every task
(stratified), with a fixed seed, so that the same scores give the same interval.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

RESAMPLES: Final = 4000
"""Bootstrap samples of an interval."""
LEVEL: Final = 0.95
"""Confidence level of all intervals."""


class Estimate(NamedTuple):
    """A number with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean(scores: Array) -> float:
    """Mean over tasks and runs."""
    return float(np.mean(scores))


def interquartile_mean(scores: Array) -> float:
    """Mean of the middle half of all scores: neither one lucky run nor one broken run decides."""
    return float(stats.trim_mean(scores, 0.25, axis=None))


def estimate(scores: Array, statistic: Callable[[Array], float] = mean) -> Estimate:
    """A statistic of scores (task, run), or (run,), with its stratified bootstrap interval."""
    scores = np.atleast_2d(scores)
    tasks, runs = scores.shape
    rng = np.random.default_rng(0)
    rows = np.arange(tasks)[:, None]
    drawn = [statistic(scores[rows, rng.integers(0, runs, (tasks, runs))]) for _ in range(RESAMPLES)]
    low, high = np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Estimate(statistic(scores), float(low), float(high))


def curve_band(curves: Array) -> tuple[Array, Array, Array]:
    """(mean, low, high), each (T,), of learning curves (run, T), by a bootstrap over runs."""
    drawn = np.random.default_rng(0).integers(0, len(curves), (1000, len(curves)))
    means = curves[drawn].mean(axis=1)
    low, high = np.quantile(means, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    return curves.mean(axis=0), low, high


def performance_profile(scores: Array, thresholds: Array) -> Array:
    """Share of all runs whose score is at least each threshold, (thresholds,)."""
    shares: Array = (scores.ravel()[:, None] >= thresholds).mean(axis=0)
    return shares


def probability_of_improvement(ours: Array, theirs: Array) -> float:
    """How often a run of ours beats a run of theirs on the same task, ties counting half; the mean over tasks."""
    ours, theirs = np.atleast_2d(ours), np.atleast_2d(theirs)
    difference = ours[:, :, None] - theirs[:, None, :]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def share_interval(successes: int, trials: int) -> Estimate:
    """A share with Wilson's interval, which is sensible also for 0 of n."""
    found = stats.binomtest(successes, trials).proportion_ci(LEVEL, method="wilson")
    return Estimate(successes / trials, float(found.low), float(found.high))
