import numpy as np
import pytest

from ncap.analysis.motion import action_rate, smoothness, sway_deg


def test_the_smoothness_of_a_sine_is_its_closed_form():
    # v = 1 + a sin(2πft): over a stride S = 1/f the integral of (d²v/dt²)² is a² (2πf)⁴ S / 2, so the dimensionless
    # jerk is S³ / (1 + a)² times that: a² (2π)⁴ / (2 (1 + a)²), whatever f is
    for f in (1.0, 2.5):
        for a in (0.1, 0.4):
            time = np.arange(0, 10, 0.001)
            found = smoothness(1 + a * np.sin(2 * np.pi * f * time), 0.001, f)
            assert found == pytest.approx(-np.log(a**2 * (2 * np.pi) ** 4 / (2 * (1 + a) ** 2)), abs=0.02)


def test_a_jolt_in_every_stride_is_less_smooth_and_nothing_to_measure_is_none():
    time = np.arange(0, 10, 0.01)
    calm = 1 + 0.1 * np.sin(2 * np.pi * time)
    jolted = calm + 0.1 * (time % 1.0 < 0.02)
    assert smoothness(jolted, 0.01, 1.0) < smoothness(calm, 0.01, 1.0) - 2
    assert smoothness(calm, 0.01, 0.0) is None
    assert smoothness(calm[:50], 0.01, 1.0) is None


def test_action_rate_and_sway_by_hand():
    action = np.zeros((3, 4, 3))
    action[1, 0, 0] = 1.2  # up and down again: 2.4 over 2 changes of 12 joints
    assert action_rate(action) == pytest.approx(0.1)
    angle = np.deg2rad(10.0)
    up = np.array([[0.0, np.sin(angle), np.cos(angle)], [0.0, -np.sin(angle), np.cos(angle)]])
    assert sway_deg(up) == pytest.approx((10.0, 0.0))
