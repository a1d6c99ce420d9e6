"""Summaries of scores against hand-computed cases."""

import numpy as np
import pytest

from ncap.analysis.stats import (
    curve_band,
    estimate,
    improvement,
    interquartile_mean,
    performance_profile,
    seeds_needed,
    share_interval,
)


def test_interquartile_mean_drops_the_lowest_and_the_highest_quarter():
    # 8 scores: two are dropped at either end, (2 + 3 + 4 + 5) / 4 is left
    assert interquartile_mean(np.array([[0.0, 1, 2, 3], [4, 5, 6, 100]])) == 3.5


def test_an_interval_contains_its_value_and_shrinks_to_it_for_equal_runs():
    scores = np.random.default_rng(1).normal(0.8, 0.1, (2, 10))
    found = estimate(scores)
    assert found.low < found.value < found.high
    # the mean of n runs, drawn within tasks of variance v, has the standard error sqrt(v / n); ±1.96 of them are 95 %
    standard_error = np.sqrt(scores.var(axis=1).mean() / scores.size)
    assert found.high - found.low == pytest.approx(2 * 1.96 * standard_error, rel=0.1)
    assert tuple(estimate(np.full((2, 5), 0.7))) == pytest.approx((0.7, 0.7, 0.7))


def test_runs_are_drawn_within_their_task():
    # tasks at 0 and 1 with no spread inside: a stratified mean is always 0.5; drawing across tasks would spread it
    found = estimate(np.array([[0.0] * 5, [1.0] * 5]))
    assert found == (0.5, 0.5, 0.5)


def test_a_band_of_equal_curves_has_no_width():
    curve = np.array([0.5, 0.7, 0.9])
    for part in curve_band(np.tile(curve, (4, 1))):
        np.testing.assert_allclose(part, curve)


def test_performance_profile_counts_runs_at_or_above():
    found = performance_profile(np.array([[0.2, 0.5], [0.9, 1.0]]), np.array([0.0, 0.5, 0.95]))
    np.testing.assert_array_equal(found, [1.0, 0.75, 0.25])


def test_probability_of_improvement_by_hand():
    # task 1: 3 > 1, 3 > 2, 2 > 1, 2 = 2 -> 3.5 of 4; task 2: never -> 0 of 4
    pairs = [(np.array([3.0, 2.0]), np.array([1.0, 2.0])), (np.array([0.0, 0.0]), np.array([5.0, 6.0]))]
    found = improvement(pairs)
    assert found.value == pytest.approx((3.5 + 0) / 8)
    # drawn anew, task 1 is between 2.0 of 4 (2 against 2 only) and all; task 2 stays 0
    assert 0.25 <= found.low < found.value < found.high <= 0.5


def test_wilsons_interval_of_no_success_in_ten():
    # (0 + z²/2n ± z sqrt(z²/4n²)) / (1 + z²/n) with z = 1.96, n = 10: from 0 to z² / (n + z²) = 3.8416 / 13.8416
    found = share_interval(0, 10)
    assert found.low == pytest.approx(0.0, abs=1e-12)
    assert found.high == pytest.approx(3.8416 / 13.8416, abs=1e-3)


@pytest.mark.parametrize(("effect", "seeds"), [(1.0, 17), (0.8, 26), (0.5, 64)])
def test_seeds_needed_are_those_of_cohens_table(effect, seeds):
    """Cohen (1988), table 2.4.1: n for a power of .80 at a two-sided 5 % by the difference over the deviation."""
    runs = np.sqrt(0.5) * np.array([-1.0, 1.0])  # a variance of 1
    assert seeds_needed(runs + effect, runs) == seeds
    assert seeds_needed(runs, runs + effect) == seeds


def test_no_number_of_seeds_finds_a_difference_that_is_not_there():
    assert seeds_needed(np.array([0.9, 1.0]), np.array([0.9, 1.0])) == np.inf
