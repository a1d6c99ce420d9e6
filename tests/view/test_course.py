import numpy as np
import pytest

from ncap.errors import UserError
from ncap.tasks import find_task
from ncap.view.course import BENDS, HALF_WIDTH, SECONDS, SPACING, Course
from ncap.view.session import Session

ALL = len(BENDS)


def course() -> Course:
    return Course(np.zeros(2), 0.0)


def drive(course: Course, *places: tuple[float, float], dt: float = 1.0) -> None:
    for place in places:
        course.step(np.array(place), dt)


def test_gates_stand_where_their_bends_lead_and_turn_with_the_start():
    built = course()
    # the first two lie straight ahead, the third 0.35 rad to the left, by hand
    np.testing.assert_allclose(built.middles[:2], [(SPACING, 0), (2 * SPACING, 0)], atol=1e-12)
    third = (SPACING * (2 + np.cos(0.35)), SPACING * np.sin(0.35))
    np.testing.assert_allclose(built.middles[2], third)
    np.testing.assert_allclose(np.linalg.norm(built.posts[:, 0] - built.posts[:, 1], axis=1), 2 * HALF_WIDTH)
    turned = Course(np.array([1.0, -2.0]), np.pi / 2)
    x, y = built.middles.T
    np.testing.assert_allclose(turned.middles, np.stack((1.0 - y, x - 2.0), axis=1))


def test_the_middle_of_a_gate_gives_a_hundred_points_a_post_half_of_them_and_past_it_nothing():
    # half way between the middle and a post: 100 - 50 / 2
    for aside, points in ((0.0, 100), (HALF_WIDTH / 2, 75), (-0.999 * HALF_WIDTH, 50), (1.001 * HALF_WIDTH, None)):
        driven = course()
        drive(driven, (SPACING - 0.5, aside), (SPACING + 0.5, aside))
        assert driven.score.points[0] == points


def test_a_gate_that_was_left_out_is_lost_and_one_passed_backwards_or_twice_does_not_count():
    driven = course()
    drive(driven, (SPACING - 0.1, 2.0), (SPACING + 0.1, 2.0))  # past the first
    assert (driven.score.next, driven.score.total) == (0, 0)
    drive(driven, (SPACING + 0.1, 0.0), (SPACING - 0.1, 0.0))  # and back through it
    assert driven.score.next == 0
    drive(driven, (SPACING - 0.1, 2.0), (2 * SPACING - 0.1, 0.0), (2 * SPACING + 0.1, 0.0))
    assert driven.score.points[:3] == (0, 100, None)
    assert (driven.score.next, driven.score.passed) == (2, 1)
    drive(driven, (SPACING - 0.1, 0.0), (SPACING + 0.1, 0.0))
    assert driven.score.total == 100


def test_a_drive_through_all_middles_has_all_points_and_the_clock_ends_any_other():
    driven = course()
    drive(driven, *driven.middles + 1e-9 * driven.directions)
    assert driven.score.over
    assert (driven.score.total, driven.score.passed) == (100 * ALL, ALL)
    assert driven.score.left == SECONDS - ALL
    late = course()
    drive(late, (0.5, 0.0), (1.0, 0.0), dt=SECONDS / 2)
    assert late.score.over
    drive(late, (SPACING + 0.1, 0.0))
    assert (late.score.total, late.score.left, late.score.next) == (0, 0.0, None)


def test_a_robot_that_steers_for_the_gates_scores_and_a_new_start_puts_it_back():
    live = Session(find_task("flat-drive"), "ncap-drive")
    live.start_course()
    assert live.controls.driven
    for _ in range(round(14.0 / live.control_dt)):
        score = live.course.score
        gap = live.course.middles[score.next] - live.arena.measured.position[0, :2]
        x, y = gap @ live.heading(), gap @ [-live.heading()[1], live.heading()[0]]
        live.change(speed=0.5, yaw_rate=float(np.clip(np.arctan2(y, x), -0.6, 0.6)))
        live.step()
    score = live.course.score
    assert score.passed == score.next >= 3  # all so far: 14 s at 0.4 m/s are 5.6 m, three gates and a half
    assert score.total > 70 * score.passed
    assert score.left == pytest.approx(SECONDS - 14.0, abs=0.02)
    best = live.best
    assert best == score.total
    live.start_course()
    assert (live.course.score.total, live.course.score.left, live.best) == (0, SECONDS, best)
    assert np.linalg.norm(live.arena.measured.position[0, :2]) < 0.05
    live.reset()
    assert live.course is None


def test_a_policy_that_cannot_be_driven_is_not_sent_on_a_course():
    live = Session(find_task("flat-walk"), "untrained")
    with pytest.raises(UserError, match=r"untrained cannot be driven along a course: choose .* ncap-drive"):
        live.start_course()
    assert live.course is None
