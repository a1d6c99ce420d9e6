"""Properties of the two neuron models that the paper states, each against a number derived by hand."""

import numpy as np
import pytest

from ncap.circuits.units import BasicUnit, OscillatorUnit, RectifierUnit, SumUnit
from ncap.errors import UserError
from ncap.experiments.units import respond

DT = 0.0005
UNIT = OscillatorUnit(tonic_drive=1.0)  # T_a 1.4 s, T_active 0.2 s, T_quiet 1.2 s, K_active 0.5, K_quiet 0.05
RATE = 4 / UNIT.adaptation_time


def onsets_and_ends(output):
    active = np.concatenate(([False], output > 0, [False]))
    edges = np.flatnonzero(np.diff(active.astype(int)))
    return edges[::2] * DT, edges[1::2] * DT


def respond_to(drive):
    return respond(UNIT, np.asarray(drive, float)[None], DT)[0]


def phases_at(drive):
    """(active, quiet) durations at a constant drive in [0, 1].

    Active, a falls as exp(-RATE t) from a_quiet to a_active; quiet, 1 - a falls likewise. Thresholds are linear in the
    drive between their values at 0 and at 1.
    """
    (stop0, start0), (stop1, start1) = UNIT.thresholds(0.0), UNIT.thresholds(1.0)
    stop, start = stop0 + drive * (stop1 - stop0), start0 + drive * (start1 - start0)
    return np.log(start / stop) / RATE, np.log((1 - stop) / (1 - start)) / RATE


def test_thresholds_follow_the_papers_formula():
    # T'_active = 4 * 0.2 / 1.4 = 0.571429, T'_quiet = 4 * 1.2 / 1.4 = 3.428571
    # a_active0 = (1 - e^3.428571) / (1 - e^4) = (1 - 30.832569) / (1 - 54.598150) = 0.556597
    # a_quiet0 = 0.556597 * e^0.571429 = 0.556597 * 1.770795 = 0.985619
    assert UNIT.thresholds(0.0) == pytest.approx((0.556597, 0.985619), abs=1e-5)
    # at drive 1: T' = 0.285714 and 0.171429; a_active1 = (1 - e^0.171429) / (1 - e^0.457143)
    #   = (1 - 1.186999) / (1 - 1.579554) = 0.322661; a_quiet1 = 0.322661 * e^0.285714 = 0.429373
    assert UNIT.thresholds(1.0) == pytest.approx((0.322661, 0.429373), abs=1e-5)


def test_free_period_is_the_active_plus_the_quiet_time():
    onsets, ends = onsets_and_ends(respond_to(np.zeros(round(10 / DT))))
    assert np.diff(onsets) == pytest.approx(0.2 + 1.2, abs=5 * DT)
    assert ends[0] - onsets[0] == pytest.approx(0.2, abs=3 * DT)


@pytest.mark.parametrize("drive", [0.2, 0.5, 0.8, 1.0])
def test_constant_drive_shortens_both_phases_as_the_thresholds_say(drive):
    active, quiet = phases_at(drive)
    if drive == 1.0:  # the K's are defined there: 0.5 * 0.2 and 0.05 * 1.2
        assert (active, quiet) == pytest.approx((0.1, 0.06))
    onsets, ends = onsets_and_ends(respond_to(np.full(round(6 / DT), drive)))
    assert np.diff(onsets)[2:] == pytest.approx(active + quiet, abs=5 * DT)
    assert (ends - onsets)[2:-1] == pytest.approx(active, abs=4 * DT)


def test_inhibition_silences_and_release_lets_it_fire_at_once():
    # quiet -> active asks for x >= 0, so any negative drive silences; meanwhile adaptation fills up beyond its
    # threshold, and the unit fires with the first step after the release (one step of delay)
    drive = np.where(np.arange(round(6 / DT)) < round(4 / DT), -0.01, 0.0)
    onsets, _ = onsets_and_ends(respond_to(drive))
    assert onsets[0] == pytest.approx(4.0, abs=2 * DT)


def test_strong_excitation_makes_it_tonic_and_only_above_the_tonic_drive():
    # active -> quiet asks for x <= V_tonic; adaptation then decays to 0 and the output (1 + a) / 2 to 0.5
    unit = OscillatorUnit(tonic_drive=0.9)
    drives = np.repeat([[0.95], [5.0], [0.89]], round(8 / DT), axis=1)
    above, far_above, below = respond(unit, drives, DT)
    assert above[-1] == pytest.approx(0.5, abs=1e-6)
    assert far_above[-1] == pytest.approx(0.5, abs=1e-6)  # the drive is clipped at 1, which exceeds 0.9
    assert len(onsets_and_ends(below)[0]) > 10


def test_without_the_clip_a_tonic_drive_of_3_needs_a_drive_above_3():
    unit = OscillatorUnit(tonic_drive=3.0, clip_drive=False)
    strong, stronger = respond(unit, np.repeat([[2.9], [3.1]], round(4 / DT), axis=1), DT)
    assert len(onsets_and_ends(strong)[0]) > 10
    assert stronger[-1] == pytest.approx(0.5, abs=1e-2)


@pytest.mark.parametrize("pulse_at", [0.1, 0.3, 0.6, 0.9, 1.1])
def test_a_pulse_advances_the_phase_exactly_when_adaptation_has_passed_the_pulsed_threshold(pulse_at):
    # the unit has just gone quiet with a = a_active0, so a(t) = 1 - (1 - a_active0) exp(-RATE t); a brief pulse of 0.5
    # starts the burst if a(t) has reached the threshold for 0.5. The burst then ends when a falls to a_active0, after
    # log(a(t) / a_active0) / RATE, and the next one comes T_quiet later. Otherwise the pulse does nothing.
    stop0, start0 = UNIT.thresholds(0.0)
    threshold = start0 + 0.5 * (UNIT.thresholds(1.0)[1] - start0)
    adaptation = 1 - (1 - stop0) * np.exp(-RATE * pulse_at)
    drive = np.zeros(round(4 / DT))
    drive[round(pulse_at / DT)] = 0.5
    onsets, _ = onsets_and_ends(respond_to(drive))
    if adaptation >= threshold:
        expected = [pulse_at, pulse_at + np.log(adaptation / stop0) / RATE + UNIT.quiet_time]
    else:
        expected = [UNIT.quiet_time, UNIT.quiet_time + UNIT.active_time + UNIT.quiet_time]
    assert onsets[:2] == pytest.approx(expected, abs=6 * DT)


def test_the_pulse_cases_cover_both_outcomes():
    stop0, start0 = UNIT.thresholds(0.0)
    threshold = start0 + 0.5 * (UNIT.thresholds(1.0)[1] - start0)
    reached = [1 - (1 - stop0) * np.exp(-RATE * t) >= threshold for t in (0.1, 0.3, 0.6, 0.9, 1.1)]
    assert True in reached
    assert False in reached


def test_periodic_pulses_entrain_it_between_the_shortest_possible_and_the_free_period():
    # Pulses of 0.5 start every burst at the pulsed threshold a_s at the earliest. A cycle from there lasts
    # log(a_s / a_active0) / RATE (burst) + log((1 - a_active0) / (1 - a_s)) / RATE (recovery): no faster rhythm is
    # followed one to one. A slower one than the free period comes too late: the unit has fired by itself.
    stop0, start0 = UNIT.thresholds(0.0)
    pulsed = start0 + 0.5 * (UNIT.thresholds(1.0)[1] - start0)
    shortest = np.log(pulsed / stop0) / RATE + np.log((1 - stop0) / (1 - pulsed)) / RATE
    free = UNIT.active_time + UNIT.quiet_time

    def follows(period):
        drive = np.zeros(round(30 / DT))
        drive[:: round(period / DT)] = 0.5
        onsets, _ = onsets_and_ends(respond_to(drive))
        intervals = np.diff(onsets[onsets > 15])
        return np.allclose(intervals, period, atol=2 * DT)

    assert 0.2 < shortest < 0.6
    assert [follows(period) for period in (shortest * 1.35, 0.7, 1.0, free * 0.98)] == [True] * 4
    assert [follows(period) for period in (shortest * 0.95, free * 1.05)] == [False] * 2


def test_output_falls_from_one_towards_a_half_during_a_burst():
    # y = (1 + a) / 2: a starts at a_quiet0 and ends at a_active0 = 0.5566
    output = respond_to(np.zeros(round(1.45 / DT)))
    burst = output[output > 0]
    stop0, start0 = UNIT.thresholds(0.0)
    assert (burst[0], burst[-1]) == pytest.approx(((1 + start0) / 2, (1 + stop0) / 2), abs=2e-3)


def test_basic_unit_covers_a_step_exponentially_with_time_constant_a_quarter_of_t_v():
    # v(t) = x (1 - exp(-4 t / T_v)); at t = T_v that is 0.9817 x
    unit, x = BasicUnit(voltage_time=0.2), 0.6
    output = respond(unit, np.full((1, round(1 / DT)), x), DT)[0]
    time = np.arange(len(output)) * DT  # the input acts one step late, so output[k] is k steps into the response
    assert output == pytest.approx(x * (1 - np.exp(-4 * time / 0.2)), abs=2e-3)
    assert output[round(0.2 / DT)] / x == pytest.approx(0.9817, abs=5e-3)


def test_basic_unit_clips_its_input_and_rectifies_its_output():
    strong, negative = respond(BasicUnit(), np.repeat([[7.0], [-7.0]], 2000, axis=1), DT)
    assert strong[-1] == pytest.approx(1.0)
    assert np.all(negative == 0)


def test_euler_error_halves_with_the_step():
    unit = BasicUnit(voltage_time=0.2)

    def error(dt):
        output = respond(unit, np.full((1, round(0.1 / dt) + 1), 1.0), dt)[0]
        return abs(output[-1] - (1 - np.exp(-2.0)))

    assert error(0.001) / error(0.0005) == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("field", ["adaptation_time", "active_time", "quiet_time", "active_scale", "quiet_scale"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_impossible_constants_are_refused_by_name(field, value):
    with pytest.raises(UserError, match=field):
        OscillatorUnit(**{field: value})


def without_memory(units, drive):
    return type(units[0]).group(units, DT).step((), np.array([drive]))[1][0]


def test_a_bounded_sum_is_linear_near_zero_and_approaches_its_limit():
    bounded, free = SumUnit(limit=0.1), SumUnit()
    # b tanh(x / b): 0.1 tanh(0.01) = 0.1 (0.01 - 0.01³ / 3 + …); tanh(1) = 0.76159415595; far out, b itself
    units, drive = [bounded, bounded, bounded, free], [0.001, -0.1, 7.0, 7.0]
    expected = [0.000999966668, -0.076159415595, 0.1, 7.0]
    assert without_memory(units, drive) == pytest.approx(expected, abs=1e-12)
    assert without_memory([free, free], [-3.0, 0.2]) == pytest.approx([-3.0, 0.2], abs=0)


@pytest.mark.parametrize("limit", [0.0, -0.1, float("nan"), float("inf")])
def test_an_impossible_limit_is_refused(limit):
    with pytest.raises(UserError, match="SumUnit: limit must be a positive number"):
        SumUnit(limit=limit)


def test_a_rectifier_with_a_bias_of_minus_one_is_a_gate_that_two_inputs_open_together():
    gate = RectifierUnit()
    opened = {(0.0, 1.0): 0.0, (1.0, 0.0): 0.0, (1.0, 1.0): 1.0, (0.75, 0.5): 0.25, (1.0, 1.5): 1.0}
    for (one, other), output in opened.items():
        assert without_memory([gate], [one + other - 1.0]) == [output]
