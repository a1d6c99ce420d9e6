"""The gait measurement against patterns whose phases are known by construction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncap.analysis.gaits import (
    circular_distance,
    circular_mean,
    classify,
    footfall_error,
    measure_footfalls,
    measure_gait,
    stance_onsets,
    stride_phases,
)

DT = 0.005


def pattern(touchdowns, period=0.5, duty=0.6, seconds=10.0, jitter=None):
    """Stance (T, leg) of legs that touch down at the given phases of a period, for a share `duty` of it."""
    time = np.arange(0, seconds, DT)[:, None] + (0 if jitter is None else jitter)
    return ((time / period - np.array(touchdowns)) % 1.0 < duty).astype(float)


GAITS = [
    ("walk", (0.25, 0.75, 0.0, 0.5), 0.7),  # lateral sequence: HL, FL, HR, FR
    ("trot", (0.5, 0.0, 0.0, 0.5), 0.5),
    ("bound", (0.5, 0.5, 0.0, 0.0), 0.4),
    ("gallop", (0.5, 0.6, 0.0, 0.1), 0.4),
    ("pace", (0.0, 0.5, 0.0, 0.5), 0.5),
    ("pronk", (0.1, 0.1, 0.0, 0.0), 0.4),
    ("none", (0.25, 0.75, 0.0, 0.5), 0.4),  # a walk's sequence without a walk's duty
]


@pytest.mark.parametrize(("label", "touchdowns", "duty"), GAITS)
def test_ideal_gaits_have_their_names(label, touchdowns, duty):
    assert measure_gait(pattern(touchdowns, duty=duty), DT).label == label


def test_numbers_of_a_known_walk():
    # period 0.5 s -> 2 Hz; FL .25, FR .75, HL 0, HR .5: right after left .5, fore after hind .25,
    # FR after HL .75, FL after HR .25 - .5 = .75
    gait = measure_gait(pattern((0.25, 0.75, 0.0, 0.5), duty=0.7), DT)
    assert gait.frequency_hz == pytest.approx(2.0, abs=0.01)
    assert gait.left_right_phase == pytest.approx((0.5, 0.5), abs=0.01)
    assert gait.fore_hind_phase == pytest.approx((0.25, 0.25), abs=0.01)
    assert gait.diagonal_phase == pytest.approx((0.75, 0.75), abs=0.01)
    assert gait.duty == pytest.approx(0.7, abs=0.01)
    assert gait.concentration > 0.999


def test_legs_at_different_speeds_have_no_gait():
    stance = pattern((0.5, 0.0, 0.0, 0.5))
    stance[:, 0] = pattern((0.5,) * 4, period=0.6)[:, 0]
    assert measure_gait(stance, DT).label == "none"


def test_a_leg_that_steps_once_for_two_of_the_others_has_no_gait_although_its_phase_is_constant():
    stance = pattern((0.5, 0.0, 0.0, 0.5))
    stance[:, 0] = pattern((0.25,) * 4, period=1.0)[:, 0]
    gait = measure_gait(stance, DT)
    assert (gait.label, gait.concentration) == ("none", 0.0)


def test_legs_that_never_move_have_no_gait_and_no_frequency():
    gait = measure_gait(np.ones((500, 4)), DT)
    assert (gait.label, gait.frequency_hz, gait.duty) == ("none", 0.0, 1.0)


def test_bound_tolerance_separates_bound_from_gallop():
    left_right, half = np.array([0.04, 0.96]), np.array([0.5, 0.5])
    assert classify(left_right, half, half, 0.4) == "bound"
    assert classify(left_right, half, half, 0.4, bound_tolerance=0.025) == "gallop"


def test_sides_on_either_side_of_a_border_count_by_their_mean_if_they_agree():
    half = np.array([0.5, 0.5])
    assert classify(half, np.array([0.11, 0.08]), np.array([0.39, 0.42]), 0.6) == "pace"
    assert classify(half, np.array([0.13, 0.08]), np.array([0.37, 0.42]), 0.6) == "walk"
    assert classify(half, np.array([0.20, 0.08]), np.array([0.30, 0.42]), 0.6) == "none"


def test_onsets_are_interpolated_between_samples():
    # rises from 0 to 1 between samples 2 and 3: crosses 0.5 half-way, 0.25 after a quarter
    signal = np.array([0.0, 0, 0, 1, 1, 0, 0, 1])
    assert stance_onsets(signal, 0.1) == pytest.approx([0.25, 0.65])
    assert stance_onsets(signal, 0.1, 0.25) == pytest.approx([0.225, 0.625])


SAMPLE = 0.03


def contacts(touchdowns, stride=0.45, duty=0.6, seconds=12.0):
    """Contacts (T, leg), sampled as coarsely as an episode."""
    time = np.arange(0, seconds, SAMPLE)[:, None]
    return (time / stride - np.array(touchdowns)) % 1.0 < duty


@pytest.mark.parametrize(("label", "touchdowns", "duty"), GAITS)
def test_ideal_footfalls_have_their_names(label, touchdowns, duty):
    assert measure_footfalls(contacts(touchdowns, duty=duty), SAMPLE).label == label


def test_numbers_of_known_footfalls():
    gait = measure_footfalls(contacts((0.25, 0.75, 0.0, 0.5), duty=0.7), SAMPLE)
    assert gait.frequency_hz == pytest.approx(1 / 0.45, rel=0.01)
    assert gait.left_right_phase == pytest.approx((0.5, 0.5), abs=0.02)
    assert gait.fore_hind_phase == pytest.approx((0.25, 0.25), abs=0.02)
    assert gait.diagonal_phase == pytest.approx((0.75, 0.75), abs=0.02)
    assert gait.duty == pytest.approx(0.7, abs=0.05)
    assert gait.concentration > 0.99


def test_feet_that_bounce_keep_their_gait():
    feet = contacts((0.5, 0.0, 0.0, 0.5), duty=0.5)
    bounced = feet.copy()
    bounced[np.random.default_rng(0).random(feet.shape) < 0.15] = False  # the foot leaves the ground for a sample
    assert np.diff(bounced[:, 0]).sum() > 1.4 * np.diff(feet[:, 0]).sum()  # more touchdowns and lifts
    gait = measure_footfalls(bounced, SAMPLE)
    assert (gait.label, gait.frequency_hz) == ("trot", pytest.approx(1 / 0.45, rel=0.01))


def test_feet_that_touch_for_one_sample_have_a_gait():
    feet = np.zeros((400, 4), bool)
    feet[::7, :2] = feet[1::7, 2:] = feet[2::7, 2:] = True
    feet[1::21, :2] = True  # in some strides the fore feet touch for two samples
    gait = measure_footfalls(feet, SAMPLE)
    assert (gait.label, gait.frequency_hz) == ("pronk", pytest.approx(1 / 0.21, rel=0.01))
    assert gait.concentration > 0.95


@pytest.mark.parametrize("stride", [0.225, 0.9, 0.6], ids=["two steps for one", "one for two", "another speed"])
def test_a_foot_that_steps_at_another_rate_has_no_gait(stride):
    feet = contacts((0.5, 0.0, 0.0, 0.5), duty=0.4)
    feet[:, 0] = contacts((0.5,) * 4, stride=stride, duty=0.4)[:, 0]
    assert measure_footfalls(feet, SAMPLE).label == "none"


def test_feet_that_step_at_random_have_no_phase():
    feet = np.random.default_rng(1).normal(size=(400, 4)).cumsum(axis=0) % 8 < 4
    assert measure_footfalls(feet, SAMPLE).concentration < 0.5


def test_feet_that_stand_have_no_gait():
    gait = measure_footfalls(np.ones((400, 4), bool), SAMPLE)
    assert (gait.label, gait.frequency_hz, gait.duty) == ("none", 0.0, 1.0)


@pytest.mark.parametrize("steps", [0, 1, 40])
def test_too_few_strides_are_no_gait(steps):
    assert measure_footfalls(contacts((0.5, 0.0, 0.0, 0.5))[:steps], SAMPLE).label == "none"


def test_every_foot_that_taps_twice_in_a_stride_is_seen():
    # a trot of 0.9 s; every stance of 0.6 strides is broken by a lift of two samples
    touchdowns = np.array([0.5, 0.0, 0.0, 0.5])
    phase = (np.arange(0, 18, SAMPLE)[:, None] / 0.9 - touchdowns) % 1.0
    feet = phase < 0.6
    assert measure_footfalls(feet, SAMPLE).touchdowns_per_stride == pytest.approx(1.0, abs=0.05)
    tapping = measure_footfalls(feet & ~((phase > 0.25) & (phase < 0.32)), SAMPLE)
    assert tapping.touchdowns_per_stride == pytest.approx(2.0, abs=0.1)
    assert (tapping.label, tapping.frequency_hz) == ("trot", pytest.approx(1 / 0.9, rel=0.02))


#: (T, leg) ten stances of six samples each: active from 4 on in every 10 of 101 samples
STANCES = np.tile((np.arange(101) % 10 >= 4)[:, None], (1, 4))
FOLLOWED = np.roll(STANCES, 1, axis=0)  # every foot does what was said a sample before


def test_feet_that_do_what_was_said_a_sample_before_have_no_error():
    assert footfall_error(FOLLOWED, STANCES) == 0.0
    assert footfall_error(STANCES, STANCES) == pytest.approx(0.2)  # at once is too early at both ends of a stance
    assert footfall_error(~FOLLOWED, STANCES) == 1.0  # always wrong, but once a stance


def test_the_error_of_footfalls_by_hand():
    # of 100 pairs of samples, 40 say swing; 10 stances, of which a foot that never lifts misses one too many to allow
    stands = np.ones((101, 4), bool)
    assert footfall_error(stands, STANCES) == pytest.approx(0.4 + 9 / 10)
    one_stands = FOLLOWED.copy()
    one_stands[:, 2] = True
    assert footfall_error(one_stands, STANCES) == pytest.approx((0.4 + 9 / 10) / 4)
    taps = FOLLOWED & (np.arange(101) % 10 != 7)[:, None]  # up for a sample within every stance
    assert footfall_error(taps, STANCES) == pytest.approx(10 / 100 + 9 / 10)
    once = FOLLOWED.copy()
    once[57] = False  # one touchdown more may be due to where the time begins and ends
    assert footfall_error(once, STANCES) == pytest.approx(1 / 100)
    trembles = np.tile((np.arange(101) % 2 == 0)[:, None], (1, 4))  # 50 touchdowns count as if all were wrong
    assert footfall_error(trembles, STANCES) == pytest.approx(0.5 + 1.0)


def test_stride_phases_by_hand():
    # strides of the reference: [0, 1), [1, 3). Onset .25 is at 1/4, 2.0 at 1/2, 5 lies outside.
    assert stride_phases(np.array([0.0, 1.0, 3.0]), np.array([0.25, 2.0, 5.0])) == pytest.approx([0.25, 0.5])


def test_circular_mean_by_hand():
    # .9 and .1 average to 0, not to .5; R = cos(2 pi .1) = .809017
    mean, concentration = circular_mean(np.array([0.9, 0.1]))
    assert circular_distance(mean, 0.0) == pytest.approx(0.0, abs=1e-12)
    assert concentration == pytest.approx(0.809017, abs=1e-6)
    assert circular_mean(np.array([0.0, 0.5]))[1] == pytest.approx(0.0, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_rotating_phases_rotates_their_mean_and_keeps_their_concentration(phases, turn):
    mean, concentration = circular_mean(np.array(phases))
    turned, same = circular_mean((np.array(phases) + turn) % 1.0)
    assert 0 <= mean < 1
    assert same == pytest.approx(concentration, abs=1e-9)
    if concentration > 1e-3:
        assert circular_distance(turned, mean + turn) == pytest.approx(0.0, abs=1e-6)


def test_legs_that_step_one_after_the_other_keep_no_phase():
    # three steps of each left leg, and only then three of each right one: no right footfall in any left stride
    stance = np.zeros((200, 4))
    for step in range(3):
        stance[10 + 20 * step : 20 + 20 * step, [0, 2]] = 1.0
        stance[110 + 20 * step : 120 + 20 * step, [1, 3]] = 1.0
    gait = measure_gait(stance, 0.03)
    assert gait.label == "none"
    assert gait.concentration == 0.0
