"""The compiled rhythm generator is the one of the package."""

import subprocess

import numpy as np
import pytest

from ncap.analysis.gaits import measure_gait
from ncap.circuits.animal import cut
from ncap.circuits.rhythm import EXTENSOR_STANCE, extensor_activity, random_adaptation, rhythm_spec
from ncap.circuits.units import TanhUnit
from ncap.errors import UserError
from ncap.experiments import rhythm_kernel
from ncap.experiments.rhythm_kernel import fast_gaits

COMMANDS = np.linspace(0, 1, 11)


@pytest.mark.parametrize("preset", ["default", "paper", "released"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("without", [(), ("V3",), ("homolateral",)])
def test_gaits_are_those_of_the_circuit_that_is_stepped_in_python(preset, noise, without):
    spec = cut(rhythm_spec(preset), without)
    dt = min(spec.dt, 0.005)
    start = random_adaptation(spec, len(COMMANDS), np.random.default_rng(1))

    def rng():
        return np.random.default_rng(2) if noise else None

    fast = fast_gaits(spec, COMMANDS, start, settling=2.0, seconds=3.0, dt=dt, noise=noise, rng=rng())
    activity = extensor_activity(spec, COMMANDS, start, seconds=5.0, dt=dt, noise=noise, rng=rng())
    plain = [measure_gait(one, dt, EXTENSOR_STANCE) for one in activity[:, round(2.0 / dt) :]]
    assert any(gait.frequency_hz > 0 for gait in plain)
    for ours, theirs in zip(fast, plain, strict=True):
        assert ours.label == theirs.label
        if theirs.frequency_hz == 0:
            assert ours.frequency_hz == 0
            continue
        for name in ("frequency_hz", "duty", "concentration", "left_right_phase", "fore_hind_phase", "diagonal_phase"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-9), name


def test_other_units_are_refused(monkeypatch):
    class Strange:
        groups = ((slice(0, 1), TanhUnit.group([TanhUnit()], 0.01)),)

    with pytest.raises(UserError, match="oscillators and basic units"):
        rhythm_kernel._arrays(Strange())


def test_a_machine_without_a_compiler_is_told_so(monkeypatch):
    def absent(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", absent)
    with pytest.raises(UserError, match="needs a C compiler"):
        rhythm_kernel._library.__wrapped__()


def test_a_compiler_that_fails_is_quoted(monkeypatch):
    def failing(*_, **__):
        raise subprocess.CalledProcessError(1, "cc", stderr=b"no room")

    monkeypatch.setattr(subprocess, "run", failing)
    with pytest.raises(UserError, match="no room"):
        rhythm_kernel._library.__wrapped__()
