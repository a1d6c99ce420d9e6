"""Walks of Go1 and Go2: what is trained from what, and that no seed is chosen by the episodes that are reported."""

from dataclasses import replace

import pytest

from ncap.experiments import walks
from ncap.experiments.library import SCALES, Library
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import read_table
from ncap.tasks import TASKS


def test_bumps_begin_from_the_walk_on_the_plane_with_small_mutations_and_twice_the_episodes(tmp_path):
    usual = SCALES["laptop"]
    plane = walks.training("go1", "flat-walk", 2, None, usual)
    bumps = walks.training("go1", "bumpy-walk", 2, tmp_path, usual)
    assert (plane.start, plane.epochs, plane.seed, plane.world.robot.name) == (None, 60, 2, "go1")
    assert (bumps.start, bumps.epochs, bumps.seed, bumps.sigma) == (str(tmp_path), 30, 2, 0.1)
    assert bumps.episodes_in(0) == 2 * plane.episodes_in(0)


def test_every_run_has_a_row_and_is_chosen_by_other_episodes_than_those_in_it(tmp_path, monkeypatch):
    played = []

    class Watched(Library):
        def evaluation(self, policy, task, episodes, *, first=0):
            played.append((task.robot.name, task.name, range(first, first + episodes)))
            return super().evaluation(policy, task, episodes, first=first)

        def within(self, name):
            return Watched(self.folder / name, self.executor, self.threads, self.say)

    for task in ("flat-walk", "bumpy-walk"):
        monkeypatch.setitem(TASKS, task, replace(TASKS[task], episode_seconds=0.9))
    monkeypatch.setattr(walks, "ROBOTS", ("go2",))
    scale = replace(SCALES["smoke"], trials=1, ncap={"epochs": 1, "population": 4, "episode_seconds": 0.9})
    walks.run(Watched(tmp_path, LocalExecutor(1), 1, lambda _: None), scale, tmp_path)
    rows = read_table(tmp_path / "walks.csv")
    assert [(row["robot"], row["task"], row["seed"]) for row in rows] == [
        ("go2", "bumpy-walk", "0"),
        ("go2", "flat-walk", "0"),
    ]
    assert [(robot, task, len(seeds)) for robot, task, seeds in played] == [
        ("go2", "flat-walk", 2),
        ("go2", "flat-walk", 1),
        ("go2", "bumpy-walk", 2),
        ("go2", "bumpy-walk", 1),
    ]
    most = max(scale.trials for scale in SCALES.values())
    assert walks.CHOOSING + 2 * most <= walks.REPORTED
    assert all(seeds[0] in (walks.CHOOSING, walks.REPORTED) for _, _, seeds in played)


@pytest.mark.parametrize("first", [0, 7])
def test_an_evaluation_is_of_the_seeds_that_were_asked_for(tmp_path, monkeypatch, first):
    asked = []
    monkeypatch.setattr("ncap.experiments.library.evaluate", lambda *a, **k: asked.append(list(a[2])) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Library(tmp_path, LocalExecutor(1), 1, lambda _: None).evaluation(
            "zero", walks.training("go1", "flat-walk", 0, None, SCALES["smoke"]).world, 3, first=first
        )
    assert asked == [[first, first + 1, first + 2]]
