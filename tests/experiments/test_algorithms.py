from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from ncap import tasks
from ncap.errors import UserError
from ncap.experiments import algorithms
from ncap.experiments.algorithms import CONDITIONS, figure, play, training_for
from ncap.learn import ppo


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    for name in algorithms.TASKS:
        monkeypatch.setitem(tasks.TASKS, name, replace(tasks.TASKS[name], episode_seconds=0.3))
    few = {kind: replace(settings, passes=1, rollouts=1) for kind, settings in ppo.SETTINGS.items()}
    monkeypatch.setattr("ncap.learn.ppo.SETTINGS", few)


def test_every_condition_gets_the_steps_it_was_promised(monkeypatch):
    monkeypatch.undo()
    # 16 episodes of 500 steps are an epoch, 64 for the MLP under evolution; the last row shows all epochs before it
    for name in CONDITIONS:
        epochs = training_for("flat-walk", name, 0, 480_000).epochs
        assert epochs == (16 if name == "evolution, MLP" else 61)


@pytest.mark.parametrize("name", ["evolution, NCAP", "PPO, NCAP", "D4PG, MLP"])
def test_a_run_is_done_once_and_read_again(tmp_path, name):
    first = play(tmp_path, "flat-walk", name, 0, steps=320, threads=1)
    assert first.steps.tolist() == [0, 160, 320]
    assert first.cpu_seconds[0] == 0
    assert (np.diff(first.cpu_seconds) > 0).all()
    again = play(tmp_path, "flat-walk", name, 0, steps=320, threads=1)
    assert np.array_equal(again.returns, first.returns)
    assert np.array_equal(again.cpu_seconds, first.cpu_seconds)
    with pytest.raises(UserError, match="begun with other settings"):
        play(tmp_path, "flat-walk", name, 0, steps=640, threads=1)


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    expected = play(tmp_path / "unbroken", "flat-walk", "PPO, MLP", 0, steps=320, threads=1)
    save = algorithms.Run.append_progress

    def interrupt(run, row):
        save(run, row)
        if row["epoch"] == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("ncap.runs.Run.append_progress", interrupt)
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path / "broken", "flat-walk", "PPO, MLP", 0, steps=320, threads=1)
    monkeypatch.setattr("ncap.runs.Run.append_progress", save)
    found = play(tmp_path / "broken", "flat-walk", "PPO, MLP", 0, steps=320, threads=1)
    assert np.array_equal(found.returns, expected.returns)


def test_the_figure_is_drawn(tmp_path):
    curve = algorithms.Curve(steps=np.arange(3.0), cpu_seconds=np.arange(3.0), returns=np.array([0.5, 0.6, 0.7]))
    figure({(task, name): [curve] for task in algorithms.TASKS for name in CONDITIONS}, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
