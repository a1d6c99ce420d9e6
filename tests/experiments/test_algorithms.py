from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from ncap.errors import UserError
from ncap.experiments import algorithms, performance
from ncap.experiments.algorithms import CONDITIONS
from ncap.experiments.curves import Curve, mean_curve, read_curve
from ncap.experiments.library import SCALES, Library
from ncap.learn import ppo
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import read_table
from ncap.runs import Run

TINY = replace(
    SCALES["smoke"],
    seeds=1,
    tasks=("flat-walk",),
    rl={name: {"epochs": 2, "environments": 4, "episode_seconds": 0.3} for name in ("ppo", "d4pg")},
)


@pytest.fixture(autouse=True)
def few_passes(monkeypatch):
    few = {kind: replace(settings, n_epochs=1, rollouts=1) for kind, settings in ppo.SETTINGS.items()}
    monkeypatch.setattr("ncap.learn.ppo.SETTINGS", few)


def library(folder):
    return Library(folder, LocalExecutor(1), 1, lambda _: None)


def test_every_condition_is_trained_once_and_tabulated(tmp_path, monkeypatch):
    algorithms.run(library(tmp_path), TINY, tmp_path)
    rows = {row["condition"]: row for row in read_table(tmp_path / "algorithms.csv")}
    assert list(rows) == list(CONDITIONS)
    # the last row of progress stands before the last epoch: one epoch of 4 episodes of 50 or 10 steps
    evolved, *others = (float(row["steps"]) for row in rows.values())
    assert others == [200, 40, 40, 40]
    assert 150 < evolved <= 200  # a mutated circuit may fall before its episode ends
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


def curve(*returns):
    """A run with 10 rollouts, 100 steps and 1 CPU-second an epoch."""
    epochs = np.arange(len(returns))
    return Curve(rollouts=10.0 * epochs, steps=100.0 * epochs, cpu_seconds=1.0 * epochs, returns=np.array(returns))


def test_a_task_is_learned_when_the_test_return_is_first_at_0_9():
    found = curve(0.5, 0.9, 0.8, 0.95)
    assert [found.until_learned(spent) for spent in ("rollouts", "steps", "cpu_seconds")] == [10, 100, 1]
    assert curve(0.5, 0.89).until_learned("steps") == np.inf


def test_the_mean_curve_is_as_long_as_the_shortest_run(monkeypatch):
    runs = {"a": curve(0.1, 0.2, 0.3), "b": replace(curve(0.5, 0.7), steps=np.array([0.0, 300.0]))}
    monkeypatch.setattr("ncap.experiments.curves.read_curve", runs.get)
    steps, returns = mean_curve(["a", "b"])
    assert steps.tolist() == [0, 200]
    assert returns.tolist() == [[0.1, 0.2], [0.5, 0.7]]
