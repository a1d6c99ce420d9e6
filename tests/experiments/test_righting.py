"""Random falls, and robots that get up after them."""

import numpy as np
import pytest

from ncap.experiments.righting import GROUNDS, Ground, fallen, get_up, random_fall, standing_height, stands
from ncap.sim.a1 import A1
from ncap.sim.terrain import Flat
from ncap.sim.world import World


def test_falls_begin_above_the_ground_in_every_orientation_within_the_joint_limits():
    world = World(A1, Flat())
    starts = np.array([random_fall(world, seed) for seed in range(300)])
    low, high = (limit.ravel() for limit in world.joint_limits)
    joints = starts[:, world.position_columns]
    assert ((joints >= low) & (joints <= high)).all()
    # a uniform rotation has every quaternion component with mean 0 and mean square 1/4; 300 draws of a square with
    # variance 1/16 leave a standard error of 0.014
    np.testing.assert_allclose((starts[:, 3:7] ** 2).mean(axis=0), 0.25, atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(starts[:, 3:7], axis=1), 1.0)
    # the farthest part of a leg: hip joint and thigh 0.226 m from the trunk's middle, a stretched leg of
    # 2 · 0.2 · cos(0.458) m, and the foot's radius
    assert starts[:, 2].min() > np.hypot(0.183, 0.047 + 0.085) + 0.4 * np.cos(0.458) + 0.02


def test_a_fallen_robot_does_not_stand_and_the_same_seed_falls_alike_in_any_company():
    together, diverged = fallen(GROUNDS[0], [3, 1])
    alone, _ = fallen(GROUNDS[0], [1])
    assert not diverged.any()
    np.testing.assert_array_equal(together.state(1), alone.state(0))
    assert not stands(together.measure(), standing_height()).any()
    assert np.abs(together.measure().velocity).max() < 0.3  # it lies nearly still


@pytest.mark.parametrize("contact", ["released", "default"])
def test_robots_get_up_from_the_back_and_from_a_side_within_their_torques(contact):
    found = get_up(Ground(contact=contact), [1, 17])
    assert "back" in found.lying
    assert set(found.lying) & {"left", "right"}
    assert found.stands.all()
    assert found.attempts.tolist() == [1, 1]
    assert found.largest_torque <= A1.torque_limit
    assert found.seconds.max() == pytest.approx(6.84)  # 3.9 s for the roll and 2.9 s for the rise, in steps of 30 ms
    np.testing.assert_allclose(found.height[:, -1], standing_height(), rtol=0.15)
