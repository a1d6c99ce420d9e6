"""Courses that a robot is driven along, and how policies learn to drive."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ncap.experiments.driving import RADIUS, TURNING_SPEED, Course, courses, heading_change, paths_of
from ncap.experiments.driving_training import trainings
from ncap.experiments.library import SCALES
from ncap.tasks import TASKS
from ncap.trained import load


def test_a_course_has_its_wishes_in_order_whatever_the_seed():
    course = Course(plan=((0.6, 0.5, 0.0), (0.3, 0.5, 0.4)))
    wishes = course.wishes(7, 40, 0.03)
    assert wishes[:20].tolist() == [[0.5, 0.0]] * 20
    assert wishes[20:].tolist() == [[0.5, 0.4]] * 20  # the last goes on
    assert course.length == pytest.approx(0.9)
    task = replace(TASKS["flat-drive"], drive=course, episode_seconds=0.9)
    np.testing.assert_array_equal(task.wishes(0), task.wishes(1))


def test_a_circle_turns_once_and_a_figure_of_eight_once_to_either_side():
    turned = {name: [yaw * seconds for seconds, _, yaw in course.plan] for name, course in courses().items()}
    assert turned["circle"] == pytest.approx([0.0, 2 * np.pi])
    assert turned["figure of eight"] == pytest.approx([0.0, 2 * np.pi, -2 * np.pi])
    seconds, speed, _ = courses()["circle"].plan[1]
    assert seconds * speed == pytest.approx(2 * np.pi * RADIUS)
    assert speed == TURNING_SPEED


def test_a_heading_is_followed_beyond_half_a_turn():
    course = Course(plan=((1.5, 0.4, 0.0), (9.0, 0.4, 0.5)))
    (path,) = paths_of(load("ncap-drive"), course, [0])
    assert len(path) == 350
    assert heading_change(path[:, 2]) == pytest.approx(0.5 * 9.0, abs=1.2)


def test_circuits_and_mlp_learn_to_drive_with_the_same_control_steps():
    # a circuit: 12 candidates x 5 episodes x 8 s = 267 steps, after 25 epochs twice as many; an MLP: 16 robots x
    # 20 s = 667 steps
    first, mlp = 12 * 5 * 267, 16 * 667
    found = trainings(SCALES["laptop"])
    assert {name: one.epochs for name, one in found.items()} == {
        "ncap": 25 + math.ceil((600_000 - 25 * first) / (2 * first)),
        "mlp-ppo": math.ceil(600_000 / mlp),
    }
    assert found["mlp-ppo"].world.wish_size == 3
