import cmaes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ncap.errors import UserError
from ncap.learn.ars import ARS, rank_returns, shape_returns
from ncap.learn.cma import CMA
from ncap.learn.modulators import GAIN, REFLEX, SINGLE, TOGETHER, coordinates
from ncap.learn.presets import PRESETS
from ncap.learn.search import Search, direction
from ncap.params import Block, ParamSpace
from ncap.policies.ncap import NCAPPolicy

FREE = ParamSpace([Block(name="w", initial=np.zeros(5))])
METHODS = [
    ARS(population=8, sigma=0.1),
    ARS(population=8, sigma=0.1, ranks=True),
    CMA(population=8, sigma=0.1),
]


def test_ars_by_hand():
    # returns 1, 0 | 0, 0 | 0, 0 | 0, 1: mean 0.25, standard deviation sqrt(0.1875); shaped difference of the first
    # pair 1/sqrt(0.1875) = 2.3094, of the last pair the negative, of the others 0
    method = ARS(population=8, sigma=0.2, decay=0.01)
    mean, returns = np.full(5, 2.0), np.array([1.0, 0, 0, 0, 0, 0, 0, 1])
    gain = 1 / np.sqrt(0.1875)
    step = 0.2 / 4 * gain * (direction(3, 7, 0, 5) - direction(3, 7, 3, 5))
    moved = method.update(FREE, method.start(FREE, mean), 3, 7, returns)
    assert moved.mean == pytest.approx(mean + step - 0.01 * mean)


def test_ars_candidates_are_antithetic():
    method = METHODS[0]
    everybody = method.candidates(FREE, method.start(FREE, np.ones(5)), 3, 7, range(8))
    assert everybody[0::2] + everybody[1::2] == pytest.approx(np.full((4, 5), 2.0))


def test_cma_agrees_with_the_cmaes_library_over_many_epochs():
    # the library draws its numbers one candidate after the other; here it is given ours
    class OurNumbers:
        def __init__(self):
            self.drawn = iter(direction(0, epoch, index, 5) for epoch in range(40) for index in range(8))

        def randn(self, size):
            return next(self.drawn)

    method = CMA(population=8, sigma=0.3)
    theirs = cmaes.SepCMA(mean=np.zeros(5), sigma=0.3, population_size=8)
    theirs._rng = OurNumbers()
    ours = method.start(FREE, np.zeros(5))
    slopes = np.array([1.0, 4.0, 0.2, 1.0, 9.0])
    for epoch in range(40):
        asked = [theirs.ask() for _ in range(8)]
        rows = method.candidates(FREE, ours, 0, epoch, range(8))
        assert rows == pytest.approx(np.array(asked), rel=1e-9, abs=1e-12)
        losses = (slopes * (rows - 1) ** 2).sum(axis=1)
        theirs.tell([(row, float(loss)) for row, loss in zip(asked, losses, strict=True)])
        ours = method.update(FREE, ours, 0, epoch, -losses)
    assert ours.mean == pytest.approx(theirs.mean, rel=1e-9)
    assert ours.memory["sigma"][0] == pytest.approx(theirs._sigma, rel=1e-9)


def modulated(population=8, sigma=0.3, **settings):
    return CMA(population=population, sigma=sigma, modulated=True, **settings)


def test_a_circuit_is_searched_in_its_weights_and_in_modulators_that_move_many_of_them():
    space = NCAPPolicy().space
    directions, sizes = coordinates(space, space.initial)
    # of a girdle's pattern 10 weights and 3 biases are also moved together with the other's; 2 joints have gains, for
    # all weights onto a hip start at 0
    assert directions.shape == (112 + 13 + 2, 112)
    assert np.array_equal(directions[:112], np.eye(112))
    assert np.linalg.norm(directions, axis=1) == pytest.approx(np.ones(127))
    stages = np.array([name[: 3 if name[2] == "." else 2] for name in space.names])
    assert {stage: set(sizes[:112][stages == stage]) for stage in set(stages)} == {
        "AF.": {REFLEX}, "PF.": {SINGLE}, "PF": {TOGETHER},  # the whole body shares its vestibular reflexes
    }  # fmt: skip
    for both, size in zip(directions[112:125], sizes[112:125], strict=True):
        fore, hind = (space.names[i] for i in np.flatnonzero(both))
        assert hind == fore.replace("fore", "hind")
        assert size == TOGETHER
    for gain, joint in zip(directions[125:], ("thigh", "calf"), strict=True):
        moved = [f": {joint} < " in name and stage == "PF." for name, stage in zip(space.names, stages, strict=True)]
        assert np.array_equal(gain != 0, moved)
        assert gain[moved] / space.initial[moved] == pytest.approx(np.full(8, gain[moved][0] / space.initial[moved][0]))
    assert list(sizes[125:]) == [GAIN, GAIN]


def test_the_first_candidates_are_as_wide_as_their_coordinates():
    space, method = NCAPPolicy().space, modulated(population=2000, sigma=0.01)
    free = ParamSpace([Block(name=b.name, initial=b.initial, labels=b.labels) for b in space.blocks])  # no signs
    directions, sizes = coordinates(free, space.initial)
    rows = method.candidates(free, method.start(free, space.initial), 0, 0, range(2000))
    expected = np.sqrt(((sizes[:, None] * directions) ** 2).sum(axis=0)) * 0.01
    # a standard deviation from 2000 normal numbers is known to 1 / sqrt(4000) = 1.6 %
    assert (rows - space.initial).std(axis=0) == pytest.approx(expected, rel=0.08)


def test_a_change_of_all_strides_is_found_sooner_with_modulators():
    space = NCAPPolicy().space
    pattern = np.array([name.startswith("PF.") for name in space.names])
    target = np.where(pattern, 1.8 * space.initial, space.initial)  # all strides and lifts larger

    def left(method, seed):
        """Share of the way that is left after three epochs."""
        search = method.start(space, space.initial)
        for epoch in range(3):
            rows = method.candidates(space, search, seed, epoch, range(8))
            search = method.update(space, search, seed, epoch, -((rows - target)[:, pattern] ** 2).sum(axis=1))
        return np.linalg.norm((search.mean - target)[pattern]) / np.linalg.norm((space.initial - target)[pattern])

    with_them, without = (
        np.mean([left(method, seed) for seed in range(10)])
        for method in (modulated(sigma=0.14), CMA(population=8, sigma=0.14))
    )
    assert with_them < 0.65 < 0.75 < without


def test_a_search_with_modulators_that_is_interrupted_goes_on_as_if_it_was_not():
    space, method = NCAPPolicy().space, modulated()
    search = method.start(space, space.initial)
    for epoch in range(3):
        rows = method.candidates(space, search, 5, epoch, range(8))
        search = method.update(space, search, 5, epoch, -(rows**2).sum(axis=1))
    again = Search(mean=search.mean.copy(), memory={name: values.copy() for name, values in search.memory.items()})
    assert np.array_equal(
        method.candidates(space, search, 5, 3, [6, 1]), method.candidates(space, again, 5, 3, range(8))[[6, 1]]
    )
    assert np.array_equal(search.mean, space.constrain(search.mean))


def test_cooling_shrinks_the_step_size_beside_its_adaptation():
    warm, cool = CMA(population=8, sigma=0.1), CMA(population=8, sigma=0.1, cooling=0.9)
    returns = np.arange(8.0)
    sigmas = [m.update(FREE, m.start(FREE, np.zeros(5)), 0, 0, returns).memory["sigma"][0] for m in (warm, cool)]
    assert sigmas[1] == pytest.approx(0.9 * sigmas[0])
    with pytest.raises(UserError, match=r"cooling in \(0, 1\], not 1\.1"):
        CMA(population=8, sigma=0.1, cooling=1.1)


def test_weights_held_back_by_their_signs_do_not_upset_the_step_size():
    # maximise -|w - target|^2 with 28 of 92 weights whose targets lie beyond their signs: the best there is 0
    signs = np.where(np.arange(92) < 28, 1.0, 0.0)
    low = np.where(signs > 0, 0.0, -np.inf)
    space = ParamSpace([Block(name="w", initial=np.full(92, 0.5), low=low)])
    target = np.where(signs > 0, -1.0, 1.0)
    best = space.constrain(target)
    method = CMA(population=16, sigma=0.14)
    search = method.start(space, space.initial)
    for epoch in range(400):
        rows = method.candidates(space, search, 0, epoch, range(16))
        search = method.update(space, search, 0, epoch, -((rows - target) ** 2).sum(axis=1))
    assert np.linalg.norm(search.mean - best) < 0.1
    assert search.memory["sigma"][0] < 0.05


def test_a_large_population_does_not_make_negative_variances():
    method = CMA(population=2048, sigma=0.14)
    space = ParamSpace([Block(name="w", initial=np.zeros(92))])
    search = method.start(space, space.initial)
    for epoch in range(6):
        rows = method.candidates(space, search, 0, epoch, range(2048))
        search = method.update(space, search, 0, epoch, -((rows - 1) ** 2).sum(axis=1))
    assert (search.memory["variance"] > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_candidates_are_addressed_by_seed_epoch_and_index(method):
    search = method.start(FREE, np.ones(5))
    everybody = method.candidates(FREE, search, 3, 7, range(8))
    assert np.array_equal(method.candidates(FREE, search, 3, 7, [5, 2]), everybody[[5, 2]])
    assert not np.array_equal(method.candidates(FREE, search, 3, 8, range(8)), everybody)
    assert not np.array_equal(method.candidates(FREE, search, 4, 7, range(8)), everybody)


@pytest.mark.parametrize("preset", ["default", "released"])
def test_signs_hold_for_every_candidate_and_for_the_mean(preset):
    method = PRESETS[preset]["ncap"]
    space = NCAPPolicy(command=0.2, copies=method.copies).space
    # all weights that do not start at 0 keep their sign, but for those of the posture, which are free
    kept = np.array([not name.startswith("PF: ") for name in space.names])
    excitatory, inhibitory = kept & (space.initial > 0), kept & (space.initial < 0)
    assert excitatory.sum() + inhibitory.sum() == method.copies * (2 * 10 + 2 * 8)  # in each girdle
    search = method.start(space, space.initial)
    for epoch in range(5):
        rows = method.candidates(space, search, 0, epoch, range(method.population))
        returns = np.random.default_rng(epoch).normal(size=method.population)
        search = method.update(space, search, 0, epoch, returns)
        for values in (rows, search.mean):
            assert np.all(values[..., excitatory] >= 0)
            assert np.all(values[..., inhibitory] <= 0)


@given(arrays(float, 8, elements=st.floats(-1e3, 1e3) | st.sampled_from([np.nan, np.inf, -np.inf])))
@pytest.mark.parametrize("method", METHODS)
def test_no_returns_whatsoever_make_weights_that_are_not_finite(method, returns):
    moved = method.update(FREE, method.start(FREE, np.ones(5)), 0, 0, returns)
    for values in (moved.mean, *moved.memory.values()):
        assert np.isfinite(values).all()


@pytest.mark.parametrize("method", METHODS)
def test_equal_returns_do_not_move_the_mean(method):
    assert np.array_equal(method.update(FREE, method.start(FREE, np.ones(5)), 0, 0, np.full(8, 0.7)).mean, np.ones(5))


def test_ranks_know_only_the_order():
    # from the worst: 0.1 and NaN share the places 0 and 1, so 0.5 each; 0.5 is third, 0.9 last
    assert rank_returns(np.array([0.5, np.nan, 0.1, 0.9])).tolist() == [2.0, 0.5, 0.5, 3.0]
    method, mean = METHODS[1], np.zeros(5)
    steps = [
        method.update(FREE, method.start(FREE, mean), 3, 7, np.array(returns)).mean
        for returns in ([0, 1, 2, 3, 4, 5, 6, 7], [-9, 1, 2, 3, 4, 5, 6, 1e6])
    ]
    assert np.array_equal(*steps)


def test_nan_ranks_as_the_worst():
    shaped = shape_returns(np.array([0.5, np.nan, 0.1, 0.9]))
    assert shaped[1] == shaped[2] == shaped.min()


@pytest.mark.parametrize("method", METHODS)
def test_it_climbs_a_hill(method):
    # maximise -|w - 1|^2 from w = 0: after 150 epochs the distance is a small part of what it was
    search = method.start(FREE, np.zeros(5))
    for epoch in range(150):
        rows = method.candidates(FREE, search, 0, epoch, range(8))
        search = method.update(FREE, search, 0, epoch, -((rows - 1) ** 2).sum(axis=1))
    assert np.linalg.norm(search.mean - 1) < 0.2 * np.sqrt(5)


def test_impossible_settings_are_refused():
    with pytest.raises(UserError, match=r"even population >= 2 and sigma > 0, not 3 and 0\.1"):
        ARS(population=3, sigma=0.1)
    with pytest.raises(UserError, match="population >= 4 and sigma > 0, not 16 and 0"):
        CMA(population=16, sigma=0)
