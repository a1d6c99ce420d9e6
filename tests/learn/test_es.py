import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ncap.errors import UserError
from ncap.learn.es import PRESETS, Evolution, candidates, direction, shape_returns, update
from ncap.params import Block, ParamSpace
from ncap.policies.ncap import NCAPPolicy

SETTINGS = Evolution(pairs=4, sigma=0.1, rate=0.2, decay=0.01)
FREE = ParamSpace([Block(name="w", initial=np.zeros(5))])


def test_update_by_hand():
    # returns 1, 0 | 0, 0 | 0, 0 | 0, 1: mean 0.25, standard deviation sqrt(0.1875); shaped difference of the first
    # pair 1/sqrt(0.1875) = 2.3094, of the last pair the negative, of the others 0
    mean, returns = np.full(5, 2.0), np.array([1.0, 0, 0, 0, 0, 0, 0, 1])
    gain = 1 / np.sqrt(0.1875)
    step = 0.2 / 4 * gain * (direction(3, 7, 0, 5) - direction(3, 7, 3, 5))
    assert update(SETTINGS, FREE, mean, 3, 7, returns) == pytest.approx(mean + step - 0.01 * mean)


def test_candidates_are_antithetic_and_addressed_by_index():
    mean = np.ones(5)
    everybody = candidates(SETTINGS, FREE, mean, 3, 7, range(8))
    assert everybody[0::2] + everybody[1::2] == pytest.approx(np.full((4, 5), 2.0))
    assert np.array_equal(candidates(SETTINGS, FREE, mean, 3, 7, [5, 2]), everybody[[5, 2]])
    assert not np.array_equal(candidates(SETTINGS, FREE, mean, 3, 8, range(8)), everybody)


def test_signs_hold_for_every_candidate_and_for_the_mean():
    space = NCAPPolicy(command=0.2, copies=8).space
    settings = PRESETS["released"]["ncap"]
    mean = space.initial
    for epoch in range(5):
        rows = candidates(settings, space, mean, 0, epoch, range(settings.candidates))
        mean = update(settings, space, mean, 0, epoch, np.random.default_rng(epoch).normal(size=settings.candidates))
        assert np.all(rows * space.signs >= 0)
        assert np.all(mean * space.signs >= 0)


@given(arrays(float, 8, elements=st.floats(-1e3, 1e3) | st.sampled_from([np.nan, np.inf, -np.inf])))
@pytest.mark.parametrize("shaping", ["zscore", "rank"])
def test_no_returns_whatsoever_make_weights_that_are_not_finite(shaping, returns):
    settings = Evolution(pairs=4, sigma=0.1, rate=0.2, shaping=shaping)
    assert np.isfinite(update(settings, FREE, np.ones(5), 0, 0, returns)).all()


def test_equal_returns_do_not_move_the_mean():
    assert np.array_equal(
        update(Evolution(pairs=4, sigma=1, rate=1), FREE, np.ones(5), 0, 0, np.full(8, 0.7)), np.ones(5)
    )


def test_nan_ranks_as_the_worst():
    shaped = shape_returns(np.array([0.5, np.nan, 0.1, 0.9]), "zscore")
    assert shaped[1] == shaped[2] == shaped.min()


def test_rank_shaping_shares_places_among_equals():
    # places 0, 1.5, 1.5, 3 of 3 -> 0, .5, .5, 1; mean .5, standard deviation sqrt(.125)
    assert shape_returns(np.array([1.0, 5.0, 5.0, 9.0]), "rank") == pytest.approx(np.array([-1, 0, 0, 1]) * np.sqrt(2))


def test_it_climbs_a_hill():
    # maximise -|w - 1|^2 from w = 0: after 150 epochs the distance is a small part of what it was
    settings = Evolution(pairs=8, sigma=0.1, rate=0.1)
    mean = np.zeros(5)
    for epoch in range(150):
        rows = candidates(settings, FREE, mean, 0, epoch, range(settings.candidates))
        mean = update(settings, FREE, mean, 0, epoch, -((rows - 1) ** 2).sum(axis=1))
    assert np.linalg.norm(mean - 1) < 0.2 * np.sqrt(5)


def test_impossible_settings_are_refused():
    with pytest.raises(UserError, match="pairs >= 1 and sigma > 0"):
        Evolution(pairs=0, sigma=0.1, rate=0.1)
