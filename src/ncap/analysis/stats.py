"""Summaries of scores over seeds and tasks, with intervals: what Agarwal et al. (2021) ask of results in this field.

Scores are (task, run). Intervals are 95 % percentile bootstraps in which runs are drawn anew within every task
(stratified), with a fixed seed, so that the same scores give the same interval.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

RESAMPLES: Final = 4000
"""Bootstrap samples of an interval."""
LEVEL: Final = 0.95
"""Confidence level of all intervals."""
POWER: Final = 0.8
"""Share of experiments that should find a difference that is there."""
MOST_SEEDS: Final = 1000
"""Runs beyond which nobody goes."""


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
    return estimate_ragged(list(np.atleast_2d(scores)), statistic)


def estimate_ragged(scores: Sequence[Array], statistic: Callable[[Array], float] = mean) -> Estimate:
    """The same of scores (run,) for every task, whose runs may differ in number; the statistic gets all in one row."""
    drawn = [statistic(np.concatenate(sample)) for sample in _resamples(scores)]
    return _interval(statistic(np.concatenate(scores)), drawn)


def _resamples(scores: Sequence[Array]) -> Iterator[list[Array]]:
    rng = np.random.default_rng(0)
    for _ in range(RESAMPLES):
        yield [runs[rng.integers(0, len(runs), len(runs))] for runs in scores]


def _interval(value: float, drawn: Sequence[float]) -> Estimate:
    low, high = np.quantile(drawn, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Estimate(value, float(low), float(high))


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


def improvement(pairs: Sequence[tuple[Array, Array]]) -> Estimate:
    """How often a run of ours beats a run of theirs on the same task, ties counting half; the mean over tasks.

    pairs: (ours, theirs) for every task, (run,) each.
    """

    def share(ours: Array, theirs: Array) -> float:
        gap = ours[:, None] - theirs[None, :]
        return float(((gap > 0) + 0.5 * (gap == 0)).mean())

    return _compare(pairs, share)


def difference(pairs: Sequence[tuple[Array, Array]]) -> Estimate:
    """The mean of ours minus the mean of theirs on the same task; the mean over tasks. pairs: as in `improvement`."""
    return _compare(pairs, lambda ours, theirs: float(ours.mean() - theirs.mean()))


def _compare(pairs: Sequence[tuple[Array, Array]], statistic: Callable[[Array, Array], float]) -> Estimate:
    def over_tasks(runs: Sequence[Array]) -> float:
        return float(np.mean([statistic(*pair) for pair in zip(runs[: len(pairs)], runs[len(pairs) :], strict=True)]))

    flat = [ours for ours, _ in pairs] + [theirs for _, theirs in pairs]
    return _interval(over_tasks(flat), [over_tasks(sample) for sample in _resamples(flat)])


def share_interval(successes: int, trials: int) -> Estimate:
    """A share with Wilson's interval, which is sensible also for 0 of n."""
    found = stats.binomtest(successes, trials).proportion_ci(LEVEL, method="wilson")
    return Estimate(successes / trials, float(found.low), float(found.high))


def seeds_needed(ours: Array, theirs: Array) -> float:
    """Runs of each kind with which a t test finds a difference as large as that of these runs in four of five tries.

    At a level of 5 %, for runs (run,) of either kind that spread as these do; inf if more than MOST_SEEDS are needed.
    """
    spread = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / 2)
    effect = abs(ours.mean() - theirs.mean()) / max(float(spread), 1e-9)
    for runs in range(2, MOST_SEEDS + 1):
        freedom, shift = 2 * runs - 2, effect * np.sqrt(runs / 2)
        if stats.nct.sf(stats.t.ppf((1 + LEVEL) / 2, freedom), freedom, min(shift, 30.0)) >= POWER:
            return runs
    return np.inf
