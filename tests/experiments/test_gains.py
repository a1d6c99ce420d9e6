"""Gains that vary and feet that are not felt: what is played is what is said, and trainings differ in that alone."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.experiments import gains
from ncap.experiments.library import SCALES, Library
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import read_table
from ncap.rollouts import Arena
from ncap.sim.go import GO2
from ncap.tasks import TASKS, build, drawn_variation


def test_corners_are_factors_on_the_robots_own_gains():
    corner = gains.conditions("go2")["kp × 0.7, kd × 1.5"]
    model = build(corner).variant(drawn_variation(corner, 3))
    assert model.actuator_gainprm[:, 0] == pytest.approx(np.full(12, 0.7 * GO2.kp))
    assert model.actuator_biasprm[:, 2] == pytest.approx(np.full(12, -1.5 * GO2.kd))


def test_feet_that_say_nothing_report_no_contact_on_the_ground():
    arena = Arena(replace(gains.conditions("go2")["feet say nothing"], start_noise=0.0), 1)
    arena.start(np.arange(1), [0])
    for _ in range(20):
        arena.step(np.arange(1), np.zeros((1, 4, 3)))
    assert (arena.measured.foot_force > 10).all()
    assert arena.observation()[..., 9] == pytest.approx(-np.ones((1, 4)), abs=1e-5)


def test_trainings_differ_in_what_their_condition_says():
    scale = replace(SCALES["laptop"], seeds=1)
    found = {name: gains.trainings("go2", settings, scale)[0] for name, settings in gains.TRAININGS.items()}
    usual, varied = found["as it is"].practice, found["gains vary"].practice
    assert replace(varied, kp_factor=(1.0, 1.0), kd_factor=(1.0, 1.0)) == usual
    assert (varied.kp_factor, varied.kd_factor) == (pytest.approx((0.7, 1.3)), (0.5, 1.5))


def test_the_table_has_a_row_for_every_training_and_what_it_is_played_in(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=0.9))
    monkeypatch.setattr(gains, "TRAININGS", {"gains vary": gains.TRAININGS["gains vary"]})
    settings = {"epochs": 1, "population": 4, "episodes": 1, "episode_seconds": 0.9}
    scale = replace(SCALES["smoke"], ncap=settings)
    gains.run(Library(tmp_path, LocalExecutor(1), 1, lambda _: None), scale, tmp_path)
    rows = read_table(tmp_path / "gains.csv")
    assert [row["played"] for row in rows] == list(gains.conditions("go2"))
    assert {row["robot"] for row in rows} == {"go2"}
