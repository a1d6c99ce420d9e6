"""Pushes."""

from ncap.experiments.posture import largest, survived
from ncap.tasks import TASKS
from ncap.trained import load


def test_the_largest_impulse_is_the_last_before_the_first_that_is_not_survived():
    assert largest((1.0, 2.0, 3.0, 4.0), (1.0, 0.9, 0.88, 1.0)) == 2.0  # what comes after a failure does not count
    assert largest((1.0, 2.0), (0.5, 1.0)) == 0.0
    assert largest((1.0, 2.0), (1.0, 1.0)) == 2.0


def test_a_standing_robot_survives_no_push_that_throws_it_over_and_every_one_that_hardly_moves_it():
    # 100 N s on 12.45 kg are 8 m/s: a leg of 0.3 m, pushed sideways, cannot catch that. 0.1 N s are 8 mm/s.
    shares = survived(load("zero"), TASKS["flat-walk"], (0.0, 1.0, 0.0), (0.1, 100.0), trials=3, threads=1)
    assert shares == [1.0, 0.0]


def test_nobodys_trial_depends_on_the_other_impulses():
    task, player = TASKS["flat-walk"], load("untrained")
    alone = survived(player, task, (0.0, 1.0, 0.0), (9.0,), trials=3, threads=1)
    beside = survived(player, task, (0.0, 1.0, 0.0), (3.0, 9.0), trials=3, threads=2)
    assert alone[0] == beside[1]
