"""The comparison of optimisers."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.evaluation import evaluate
from ncap.experiments import evolution, mlp_evolution
from ncap.experiments.curves import Curve
from ncap.experiments.evolution import play, trainings
from ncap.experiments.library import SCALES, Library
from ncap.learn.best import TEST_SEEDS
from ncap.learn.executors import LocalExecutor
from ncap.learn.settings import Training
from ncap.report.tables import read_table
from ncap.trained import load

TINY = replace(SCALES["smoke"], seeds=1, rollouts=4, ncap={"episode_seconds": 0.6})


@pytest.fixture(autouse=True)
def tiny_condition(monkeypatch):
    monkeypatch.setattr(evolution, "CONDITIONS", {"tiny, 2 × 0.3 s": {"population": 4, "episodes": 2}})


def library(folder):
    return Library(folder, LocalExecutor(1), 1, lambda _: None)


def test_a_condition_starts_from_the_untrained_circuit_and_is_not_done_twice(tmp_path, monkeypatch):
    (curve,) = play(library(tmp_path), "tiny, 2 × 0.3 s", TINY)
    assert curve.rollouts.tolist() == [0, 8]  # 8 episodes of the tests' length
    (training,) = trainings("tiny, 2 × 0.3 s", TINY)
    untrained = evaluate(load("untrained"), training.world, TEST_SEEDS).return_mean
    assert curve.returns[0] == pytest.approx(untrained, abs=1e-12)
    assert curve.returns[1] != curve.returns[0]
    monkeypatch.setattr(Library, "_train", lambda *_: pytest.fail("it was done again"))
    (again,) = play(library(tmp_path), "tiny, 2 × 0.3 s", TINY)
    assert again.returns.tolist() == curve.returns.tolist()


def test_the_table_says_never_where_the_task_was_not_learned(tmp_path):
    evolution.run(library(tmp_path), TINY, tmp_path)
    (row,) = read_table(tmp_path / "evolution.csv")
    assert (row["condition"], row["rollouts_to_0.9"], row["median"]) == ("tiny, 2 × 0.3 s", "never", "inf")
    assert (tmp_path / "evolution.png").stat().st_size > 5000


def test_runs_of_different_optimisers_do_not_meet_in_one_folder(tmp_path, monkeypatch):
    monkeypatch.undo()
    places = {
        library(tmp_path).within(f"evolution/{name}").place(one)
        for name in evolution.CONDITIONS
        for one in trainings(name, SCALES["laptop"])
    }
    assert len(places) == 5 * 3
    one = trainings("neuromodulators", SCALES["laptop"])[0]
    assert (one.epochs, one.episodes, one.training_seconds) == (96 // 8 + 1, 3, 5.0)


def test_settings_of_mlps_are_given_their_steps_and_begin_with_what_zero_weights_do(tmp_path, monkeypatch):
    scale = replace(SCALES["smoke"], seeds=1, tasks=("flat-walk",), test_seconds=0.6, mlp_steps=160)
    plan = (("flat-walk", "mlp:4x4", "32 candidates"), ("flat-walk", "mlp:4x4", "32 candidates, no normaliser"))
    small = {name: mlp_evolution.CONDITIONS[name] | {"population": 4} for _, _, name in plan}
    monkeypatch.setattr(mlp_evolution, "CONDITIONS", small)
    monkeypatch.setattr(mlp_evolution, "PLAN", plan)
    mlp_evolution.run(library(tmp_path), scale, tmp_path)
    rows = read_table(tmp_path / "mlp-evolution.csv")
    assert [row["condition"] for row in rows] == [name for _, _, name in plan]
    # before the last test two epochs of 4 times 20 steps, and one
    assert [float(row["steps"]) for row in rows] == [160, 80]
    assert {row["steps_to_0.9"] for row in rows} == {"never"}
    raw = load(tmp_path / "mlp-evolution/32-candidates,-no-normaliser/runs/flat-walk-mlp-4x4-0").policy
    usual = load(tmp_path / "mlp-evolution/32-candidates/runs/flat-walk-mlp-4x4-0").policy
    assert raw.mean == ()
    assert usual.hidden == raw.hidden == (4, 4)
    curves = read_table(tmp_path / "mlp-evolution-curves.csv")
    tested = ["32 candidates"] * 3 + ["32 candidates, no normaliser"] * 2  # before every epoch
    assert [row["condition"] for row in curves] == tested
    monkeypatch.setattr(mlp_evolution, "play", lambda *_: pytest.fail("it was trained again"))
    mlp_evolution.run(library(tmp_path / "elsewhere"), scale, tmp_path)
    assert read_table(tmp_path / "mlp-evolution.csv") == rows


def test_the_default_of_an_mlp_is_what_training_does_with_one():
    scale = replace(SCALES["laptop"], seeds=1)
    (one,) = mlp_evolution.trainings("flat-walk", "mlp:64x64", mlp_evolution.DEFAULT, scale)
    usual = Training(task="flat-walk", policy="mlp:64x64", epochs=one.epochs)
    assert replace(one, episode_seconds=None) == usual.filled()
    (whole,) = mlp_evolution.trainings("flat-walk", "mlp:64x64", "32 candidates", scale)
    assert (whole.training_seconds, whole.population) == (15.0, one.population)


def test_a_plateau_is_where_the_running_mean_of_five_tests_is_within_a_hundredth_of_its_best():
    returns = np.array([0.5] * 4 + [0.9] * 8 + [0.905])
    ones = np.ones(len(returns))
    curve = Curve(rollouts=ones, steps=ones, cpu_seconds=ones, returns=returns)
    assert mlp_evolution.plateau(curve) == 8  # the mean of tests 4 to 8 is the first of 0.9
