"""The comparison of optimisers."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.experiments import evolution
from ncap.experiments.evaluation import find_controller
from ncap.experiments.evolution import Curve, play
from ncap.learn.best import TEST_SEEDS
from ncap.rollout import rollout
from ncap.tasks import TASKS


def test_the_mark_is_reached_when_the_test_return_is_first_at_it():
    curve = Curve(rollouts=[0, 16, 32, 48], returns=[0.7, 0.9, 0.8, 0.95])
    assert curve.rollouts_to_mark == 16
    assert Curve(rollouts=[0, 16], returns=[0.7, 0.89]).rollouts_to_mark == np.inf


def test_a_condition_starts_from_the_untrained_circuit_and_is_not_done_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(evolution, "ROLLOUTS", 4)
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=0.6))
    monkeypatch.setitem(
        evolution.CONDITIONS, "tiny", {"preset": "default", "population": 4, "episodes": 2, "training_seconds": 0.3}
    )
    curve = play(tmp_path, "tiny", 0, threads=1)
    controller, _ = find_controller("untrained", "flat-walk", len(TEST_SEEDS))
    assert curve.rollouts == [0, 4]  # 8 episodes of half the length
    untrained = rollout(TASKS["flat-walk"], controller, TEST_SEEDS).returns.mean()
    assert curve.returns[0] == pytest.approx(untrained, abs=1e-12)
    assert curve.returns[1] != curve.returns[0]
    monkeypatch.setattr(evolution, "go_on", lambda *_: pytest.fail("it was done again"))
    assert play(tmp_path, "tiny", 0, threads=1) == curve
