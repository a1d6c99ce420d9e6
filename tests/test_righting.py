"""Getting up: how a robot lies, poses and their mirror images, and the order of rolls and rises."""

import numpy as np
import pytest

from ncap.deploy.safety import Limits
from ncap.righting import ATTEMPTS, CROUCH, ROLL, GettingUp, lying_on, mirrored, rise, roll, within
from ncap.rotations import rotation_of
from ncap.sim.a1 import A1
from ncap.sim.terrain import Flat
from ncap.sim.world import World

DT = 0.03
UP = {"belly": (0, 0, 1), "back": (0, 0, -1), "left": (0, -1, 0), "right": (0, 1, 0)}


def turned(degrees: float, axis: int) -> np.ndarray:
    """The vertical in the frame of a trunk that was turned from its feet about x (0) or y (1)."""
    half = np.deg2rad(degrees) / 2
    quaternion = np.array([np.cos(half), 0.0, 0.0, 0.0])
    quaternion[1 + axis] = np.sin(half)
    return rotation_of(quaternion[None])[0, 2]


@pytest.mark.parametrize(
    ("degrees", "part"),
    # a positive turn about x, forwards, lifts the left side, so that the right one is below
    [
        (0, "belly"),
        (44, "belly"),
        (46, "right"),
        (134, "right"),
        (136, "back"),
        (180, "back"),
        (-90, "left"),
        (-40, "belly"),
    ],
)
def test_the_roll_says_on_what_a_robot_lies(degrees, part):
    assert lying_on(turned(degrees, 0)) == part


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_robot_rolls_over_the_side_that_is_lower(side):
    push = roll(np.array(UP[side]))[1].goal
    # legs over the back have thighs beyond a right angle: those of the other side push first
    lower, upper = ([0, 2], [1, 3]) if side == "left" else ([1, 3], [0, 2])
    assert (push[upper, 1] > np.pi / 2).all()
    assert (push[lower, 1] < np.pi / 2).all()


def test_the_mirror_image_of_the_mirror_image_is_the_pose_and_left_and_right_moves_are_mirror_images():
    for left, right in zip(roll(np.array(UP["left"])), roll(np.array(UP["right"])), strict=True):
        np.testing.assert_array_equal(mirrored(left.goal), right.goal)
        np.testing.assert_array_equal(mirrored(right.goal), left.goal)
        assert (left.ramp, left.hold) == (right.ramp, right.hold)


def test_all_poses_are_inside_the_joint_limits_of_the_model_and_of_the_safety_layer():
    low, high = World(A1, Flat()).joint_limits
    assert within(low, high)
    limits = Limits()
    shape = A1.mid.shape
    assert within(np.broadcast_to(limits.position_low, shape), np.broadcast_to(limits.position_high, shape))
    assert not within(A1.low, A1.high)  # of which the circuit's ranges are a small part


def followed(robot: GettingUp, up, joints=None, dt: float = DT) -> tuple[list[np.ndarray], list[str]]:
    """Targets and the names of moves of a robot that stays as it is, or is where its targets are."""
    targets, moves = [], []
    for _ in range(10_000):
        target = robot.step(np.array(up, float), robot.target if joints is None else joints, dt)
        if robot.state != "moving":
            return targets, moves
        targets.append(target)
        if moves[-1:] != [robot.move]:
            moves.append(robot.move)
    raise AssertionError("it never ends")


def test_from_the_belly_it_crouches_and_rises_in_one_attempt():
    robot = GettingUp(CROUCH, A1.mid)
    targets, moves = followed(robot, UP["belly"])
    assert moves == ["crouch", "stand"]
    assert (robot.state, robot.attempt) == ("done", 1)
    np.testing.assert_allclose(targets[-1], A1.mid)
    seconds = sum(move.ramp + move.hold for move in rise(A1.mid))
    assert len(targets) * DT == pytest.approx(seconds, abs=2 * DT)


def test_one_that_never_gets_off_its_back_gives_up_after_some_attempts_and_stays_where_it_is():
    robot = GettingUp(CROUCH, A1.mid)
    targets, moves = followed(robot, UP["back"])
    assert moves == [pose.name for pose in ROLL] * ATTEMPTS
    assert (robot.state, robot.attempt) == ("given up", ATTEMPTS)
    np.testing.assert_array_equal(robot.step(np.array(UP["belly"]), A1.mid, DT), targets[-1])


def test_a_roll_and_the_rise_after_it_are_one_attempt_and_a_rise_that_fails_is_one():
    robot = GettingUp(CROUCH, A1.mid)
    seen = []
    for up in ("back", "belly", "left", "belly"):  # at every look; the first rise ends on the left side
        robot.step(np.array(UP[up], float), A1.mid, DT)
        seen.append((robot.attempt, robot.move))
        while robot._left:
            robot.step(np.zeros(3), A1.mid, DT)  # in between nobody looks
    assert seen == [(1, ROLL[0].name), (1, "crouch"), (2, ROLL[0].name), (2, "crouch")]
    robot.step(np.array(UP["belly"], float), A1.mid, DT)
    assert robot.state == "done"


def test_legs_that_did_not_get_there_are_no_stand():
    robot = GettingUp(CROUCH, A1.mid, attempts=1)
    followed(robot, UP["belly"], joints=CROUCH)
    assert robot.state == "given up"


def test_without_a_standing_pose_it_ends_on_its_belly_and_does_nothing_if_it_lies_there():
    robot = GettingUp(CROUCH, None)
    assert followed(robot, UP["belly"]) == ([], [])
    assert (robot.state, robot.attempt) == ("done", 0)


@pytest.mark.parametrize("dt", [0.002, 0.03])
def test_targets_never_jump_and_stay_between_begin_and_poses(dt):
    begin = np.tile([0.7, 4.1, -1.0], (4, 1))
    targets, _ = followed(GettingUp(begin, A1.mid, attempts=1), UP["right"], dt=dt)
    path = np.array([begin, *targets])
    # a smooth step is at most 1.5 times as fast as an even one; the longest way is a thigh's from 4.1 to 1.2 rad
    assert np.abs(np.diff(path, axis=0)).max() <= 1.5 * 2.9 / 0.4 * dt * 1.01
    poses = np.array([begin, *(move.goal for move in roll(np.array(UP["right"])))])
    assert (path >= poses.min(axis=0) - 1e-12).all()
    assert (path <= poses.max(axis=0) + 1e-12).all()
