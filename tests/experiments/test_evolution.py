"""The comparison of optimisers."""

import numpy as np
import pytest

from ncap.experiments import evolution
from ncap.experiments.evaluation import find_controller
from ncap.experiments.evolution import Curve, play
from ncap.rollout import rollout
from ncap.tasks import TASKS


def test_the_mark_is_reached_when_the_test_return_is_first_at_it():
    curve = Curve(rollouts=[0, 16, 32, 48], returns=[0.7, 0.9, 0.8, 0.95])
    assert curve.rollouts_to_mark == 16
    assert Curve(rollouts=[0, 16], returns=[0.7, 0.89]).rollouts_to_mark == np.inf


def test_full_cma_es_starts_from_the_untrained_circuit_and_is_not_done_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(evolution, "ROLLOUTS", 4)
    monkeypatch.setattr(evolution, "TEST_SEEDS", (7,))
    monkeypatch.setitem(evolution.FULL_CMA, "population", 4)
    monkeypatch.setitem(evolution.CONDITIONS, "tiny", evolution.FULL_CMA)
    curve = play(tmp_path, "tiny", 0, threads=1)
    controller, _ = find_controller("untrained", "flat-walk", 1)
    assert curve.rollouts == [0, 4]
    assert curve.returns[0] == pytest.approx(rollout(TASKS["flat-walk"], controller, [7]).returns[0], abs=1e-12)
    assert curve.returns[1] != curve.returns[0]
    monkeypatch.setattr(evolution, "_full_cma_run", lambda *_: pytest.fail("it was done again"))
    assert play(tmp_path, "tiny", 0, threads=1) == curve
