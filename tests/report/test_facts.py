import numpy as np
import pytest

from ncap.learn.settings import Training
from ncap.report.facts import training_command
from ncap.sim.skeleton import leg_lines
from ncap.tasks import TASKS, build


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (Training(task="bumpy-run", seed=3), "ncap train bumpy-run --seed 3"),
        (
            Training(task="flat-walk", epochs=20, without=("V0v", "cross_V0d.FL"), sigma=0.2),
            "ncap train flat-walk --without V0v cross_V0d.FL --seed 0 --epochs 20 --sigma 0.2",
        ),
        (Training(task="flat-walk", algorithm="ppo"), "ncap train flat-walk --algorithm ppo --seed 0"),
        (Training(task="flat-walk", policy="mlp:64x64"), "ncap train flat-walk --policy mlp:64x64 --seed 0"),
    ],
)
def test_the_command_on_a_page_has_the_settings_that_are_not_the_usual_ones(training, words):
    assert training_command(training.filled()) == words


def test_legs_of_a_standing_robot_are_where_its_sheet_says():
    task = TASKS["flat-walk"]
    world = build(task)
    legs = leg_lines(world, np.array([5.0, -2.0, 0.3]), np.array([1.0, 0, 0, 0]), task.robot.mid)
    feet, thighs = legs[:, -1], legs[:, -4]  # trunk, hip, thigh, calf, foot, and the middle of its geom
    # thigh 0.4 rad and calf -1.2 rad, 0.2 m each, in the fore legs; thigh 0.7 rad in the hind legs
    drops = [0.2 * np.cos(thigh) + 0.2 * np.cos(thigh - 1.2) for thigh in (0.4, 0.4, 0.7, 0.7)]
    np.testing.assert_allclose(thighs[:, 2] - feet[:, 2], drops, atol=0.01)
    assert (np.abs(legs[:, 0, :2]) < 1e-9).all()  # they begin at the trunk, which is drawn over 0
    assert (feet[[0, 2], 1] > 0).all()  # left ones
