from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from ncap.errors import UserError
from ncap.experiments import algorithms, performance
from ncap.experiments.algorithms import CONDITIONS, Curve, read_curve
from ncap.experiments.library import SCALES, Library
from ncap.experiments.tables import read_table
from ncap.learn import ppo
from ncap.learn.executors import LocalExecutor
from ncap.runs import Run

TINY = replace(
    SCALES["smoke"],
    seeds=1,
    tasks=("flat-walk",),
    rl={name: {"epochs": 2, "environments": 4, "episode_seconds": 0.3} for name in ("ppo", "d4pg")},
)


@pytest.fixture(autouse=True)
def few_passes(monkeypatch):
    few = {kind: replace(settings, passes=1, rollouts=1) for kind, settings in ppo.SETTINGS.items()}
    monkeypatch.setattr("ncap.learn.ppo.SETTINGS", few)


def library(folder):
    return Library(folder, LocalExecutor(1), 1, lambda _: None)


def test_every_condition_is_trained_once_and_tabulated(tmp_path, monkeypatch):
    algorithms.run(library(tmp_path), TINY, tmp_path)
    rows = {row["condition"]: row for row in read_table(tmp_path / "algorithms.csv")}
    assert list(rows) == list(CONDITIONS)
    # the last row of progress stands before the last epoch: one epoch of 4 episodes of 50 or 10 steps
    assert [float(row["steps"]) for row in rows.values()] == [200, 200, 40, 40, 40]
    assert all(float(row["cpu_seconds"]) > 0 for row in rows.values())
    assert (tmp_path / "algorithms.png").stat().st_size > 5000
    monkeypatch.setattr(Library, "_train", lambda *_: pytest.fail("it was trained again"))
    algorithms.run(library(tmp_path), TINY, tmp_path)


def test_runs_of_evolution_are_those_of_the_performance_experiment():
    theirs = performance.trainings(SCALES["laptop"])
    for task in algorithms.TASKS:
        for name in ("evolution, NCAP", "evolution, MLP"):
            assert set(SCALES["laptop"].trainings(task, **CONDITIONS[name])) <= set(theirs)


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    (training,) = TINY.trainings("flat-walk", "mlp", "ppo")
    expected = read_curve(library(tmp_path / "unbroken").train([training])[0])
    save = Run.append_progress

    def interrupt(run, row):
        save(run, row)
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "append_progress", interrupt)
    with pytest.raises(KeyboardInterrupt):
        library(tmp_path / "broken").train([training])
    monkeypatch.setattr(Run, "append_progress", save)
    with pytest.raises(UserError, match="begun with other settings"):
        library(tmp_path / "broken").train([replace(training, epochs=3)])
    found = read_curve(library(tmp_path / "broken").train([training])[0])
    assert np.array_equal(found.returns, expected.returns)


def test_the_mark_is_reached_when_the_test_return_is_first_at_it():
    curve = Curve(
        steps=np.array([0.0, 10, 20, 30]),
        cpu_seconds=np.array([0.0, 1, 2, 3]),
        returns=np.array([0.5, 0.9, 0.8, 0.95]),
    )
    assert (curve.first("steps"), curve.first("cpu_seconds")) == (10, 1)
    assert Curve(steps=np.zeros(1), cpu_seconds=np.zeros(1), returns=np.array([0.89])).first("steps") == np.inf
