"""How weights transfer between bodies: who is trained from what, for how long, and what is measured where."""

from dataclasses import replace

import pytest

from ncap.experiments import transfer
from ncap.experiments.library import SCALES, Library
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import read_table
from ncap.tasks import TASKS
from ncap.trained import load


def test_an_epoch_is_ten_rollouts():
    (one,) = transfer.trainings("go1", "ncap-go2-walk", 8, replace(SCALES["laptop"], seeds=1))
    share = one.practice.episode_seconds / one.world.episode_seconds  # three episodes of 5 s of 15 s
    assert one.evolution.population * one.episodes_in(0) * share == pytest.approx(10)
    assert one.episodes_in(7) == one.episodes_in(0)
    assert (one.world.robot.name, one.start, one.epochs) == ("go1", "ncap-go2-walk", 8)


def test_every_start_is_where_it_is_said_to_be_from():
    for name, robot in transfer.STARTS.items():
        assert load(name).robot == robot


def test_every_start_is_measured_as_it_is_and_trained_only_on_other_bodies(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=0.9))
    monkeypatch.setattr(transfer, "STARTS", {"untrained": None, "ncap-go2-walk": "go2"})
    monkeypatch.setattr(transfer, "EPOCHS", (1, 2))
    scale = replace(SCALES["smoke"], robot="go2", ncap={"population": 4, "episode_seconds": 0.9})
    transfer.run(Library(tmp_path, LocalExecutor(1), 1, lambda _: None), scale, tmp_path)
    rows = read_table(tmp_path / "transfer.csv")
    assert [(row["start"], row["rollouts"]) for row in rows] == [
        ("untrained", "0"),
        ("untrained", "10"),
        ("untrained", "20"),
        ("ncap-go2-walk", "0"),
    ]
    assert (tmp_path / "transfer.png").exists()
    assert {row["robot"] for row in rows} == {"go2"}
