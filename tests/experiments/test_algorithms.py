from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from ncap.errors import UserError
from ncap.experiments import algorithms, performance
from ncap.experiments.curves import Curve, read_curve
from ncap.experiments.library import SCALES, Library
from ncap.learn import ppo
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import read_table
from ncap.runs import Run

TINY = replace(
    SCALES["smoke"],
    seeds=1,
    runs={},
    tasks=("flat-walk",),
    rl={name: {"epochs": 2, "environments": 4, "episode_seconds": 0.3} for name in ("ppo", "d4pg")},
)


@pytest.fixture(autouse=True)
def few_passes(monkeypatch):
    few = {kind: replace(settings, n_epochs=1, rollouts=1) for kind, settings in ppo.SETTINGS.items()}
    monkeypatch.setattr("ncap.learn.ppo.SETTINGS", few)


def library(folder):
    return Library(folder, LocalExecutor(1), 1, lambda _: None)


def test_every_algorithm_is_trained_once_and_tabulated(tmp_path, monkeypatch):
    algorithms.run(library(tmp_path), TINY, tmp_path)
    curves = read_table(tmp_path / "performance.csv")
    policies = ["mlp-d4pg", "mlp-evolution", "mlp-ppo", "ncap", "ncap-ppo"]
    # a point before each of the two epochs, and the second after one epoch of 4 episodes of 50 or 10 steps
    assert [row["policy"] for row in curves] == [policy for policy in policies for _ in range(2)]
    assert [row["steps"] for row in curves[:6]] == ["0", "40", "0", "200", "0", "40"]
    assert 150 < int(curves[7]["steps"]) <= 200  # a mutated circuit may fall before its episode ends
    assert all(float(row["cpu_seconds"]) > 0 for row in curves[1::2])
    assert [row["policy"] for row in read_table(tmp_path / "final.csv")] == policies
    assert (tmp_path / "algorithms.png").stat().st_size > 5000
    monkeypatch.setattr(Library, "_train", lambda *_: pytest.fail("it was trained again"))
    algorithms.run(library(tmp_path), TINY, tmp_path)
    assert read_table(tmp_path / "performance.csv") == curves


def test_the_runs_are_those_of_the_performance_experiment():
    theirs = {*performance.trainings(SCALES["laptop"]).values()}
    for task in algorithms.TASKS:
        for name in ("ncap", "mlp-evolution", "mlp-ppo", "mlp-d4pg"):
            assert set(SCALES["laptop"].trainings(task, name)) <= theirs


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    (training,) = TINY.trainings("flat-walk", "mlp-ppo")
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
