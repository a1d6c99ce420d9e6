"""The experiment about the swimmer: what is trained, and that its tables and figure agree with each other."""

from dataclasses import replace

import pytest

from ncap.experiments import swimmer
from ncap.experiments.library import SCALES, Library
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import read_table
from ncap.tasks import TASKS


def test_circuits_are_given_60_rollouts_and_mlps_half_a_million_steps():
    given = swimmer.trainings(SCALES["laptop"])
    for name in ("ncap", "ncap-unshared"):
        one = given[name]
        share = one.practice.episode_seconds / one.world.episode_seconds
        # until the last test: that of the last epoch is before its candidates play
        played = sum(one.evolution.population * one.episodes_in(epoch) * share for epoch in range(one.all_epochs - 1))
        assert 55 < played <= 60
    for name, robots in (("mlp-ppo", 16), ("mlp-evolution", 32)):
        assert given[name].all_epochs * robots * 1000 == pytest.approx(500_000, rel=0.05)


def test_tables_have_a_row_per_run_and_length_and_the_figure_is_drawn_from_them(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "swim", replace(TASKS["swim"], episode_seconds=0.9))
    monkeypatch.setattr(swimmer, "CONTENDERS", {"ncap": swimmer.CONTENDERS["ncap"]})
    monkeypatch.setattr(swimmer, "MOST", 4)
    scale = replace(SCALES["smoke"], seeds=2, ncap={"episode_seconds": 0.9})
    swimmer.run(Library(tmp_path, LocalExecutor(1), 1, lambda _: None), scale, tmp_path)
    runs, curves, lengths = (read_table(tmp_path / name) for name in (swimmer.RUNS, swimmer.CURVES, swimmer.LENGTHS))
    assert [(row["policy"], row["seed"], row["weights"]) for row in runs] == [("ncap", "0", "4"), ("ncap", "1", "4")]
    assert [row["seed"] for row in curves] == ["0", "0", "1", "1"]
    assert [(row["weights"], row["links"]) for row in lengths] == [
        (name, links) for name in ("untrained", "seed 0", "seed 1") for links in ("3", "4")
    ]
    (tmp_path / "swimmer.png").unlink()
    swimmer.draw(tmp_path)
    assert (tmp_path / "swimmer.png").stat().st_size > 10_000
    assert (tmp_path / "swimmer.svg").exists()
