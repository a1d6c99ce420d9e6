"""Poses and gains of robots: every change stays possible, changes only what it says, and is measured."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.experiments import bodies
from ncap.experiments.library import SCALES, Library
from ncap.learn.executors import LocalExecutor
from ncap.report.tables import read_table
from ncap.sim.go import GO1
from ncap.sim.robot import find_robot
from ncap.tasks import TASKS


@pytest.mark.parametrize("name", bodies.ROBOTS)
def test_a_change_is_what_it_says_and_stays_within_the_joints(name):
    robot = find_robot(name)
    found = dict(bodies.variants(robot))
    assert found["as it is"] is robot
    assert (found["kp × 1, kd × 0.5"].kp, found["kp × 1, kd × 0.5"].kd) == (robot.kp, robot.kd / 2)
    assert found["hind thighs 0.1 rad back"].mid - robot.mid == pytest.approx(
        np.array([[0, 0, 0], [0, 0, 0], [0, 0.1, 0], [0, 0.1, 0]])
    )
    wider = found["thighs reach 1.2 times as far"]
    assert (wider.high - wider.mid)[:, 1] == pytest.approx(1.2 * (robot.high - robot.mid)[:, 1])
    assert (wider.mid == robot.mid).all()


def test_a_change_beyond_a_joint_is_cut_at_its_end():
    # front thighs of a Go1 reach back to -0.663 rad; 0.1 rad further forward than -0.6 is beyond
    near = replace(GO1, position_min=((-0.15, -0.6, -2.1),) * 4)
    moved = dict(bodies.variants(near))["front thighs 0.1 rad forward"]
    assert moved.low[:, 1] == pytest.approx([-0.663, -0.663, -0.6, -0.6])


def test_the_table_has_a_row_for_every_change_of_the_robot_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=3.0))
    scale = replace(SCALES["smoke"], robot="go2")
    bodies.run(Library(tmp_path, LocalExecutor(1), 1, lambda _: None), scale, tmp_path)
    rows = read_table(tmp_path / "bodies.csv")
    assert [row["change"] for row in rows] == [change for change, _ in bodies.variants(find_robot("go2"))]
    assert {row["robot"] for row in rows} == {"go2"}
    assert float(rows[0]["return"]) > 0.7  # it walks
    assert all(row["falls"] == "0" for row in rows[:1])


def test_a_robot_that_is_asked_for_is_trained():
    scale = replace(SCALES["smoke"], robot="go1")
    assert {one.world.robot.name for one in scale.trainings("flat-walk", "ncap")} == {"go1"}
    assert {one.world.robot.name for one in SCALES["smoke"].trainings("flat-walk", "ncap")} == {"a1"}
