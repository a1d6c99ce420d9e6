"""Bodies: how the untrained circuit walks on each robot with its data sheet, and with a pose, range or gain changed.

The paper has one robot. A pose and gains that suit a robot are those around which nothing changes much.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.evaluation import Evaluation, evaluate
from ncap.experiments.library import Library, Scale
from ncap.report.tables import write_table
from ncap.sim.robot import Robot, find_robot, leg_rows
from ncap.tasks import TASKS, with_robot
from ncap.trained import load

Array = NDArray[np.float64]

ROBOTS: Final = ("a1", "go1", "go2")
"""Robots that are measured unless one is asked for."""
TASK: Final = "flat-walk"
GAINS: Final = ((0.6, 0.6), (0.8, 0.8), (1.2, 1.2), (1.6, 1.6), (1.0, 0.5), (1.0, 0.75), (1.0, 1.5), (1.0, 2.5))
"""Factors on kp and kd."""
POSES: Final = {
    "front thighs 0.1 rad forward": (-0.1, 0.0, 0.0),
    "front thighs 0.1 rad back": (0.1, 0.0, 0.0),
    "hind thighs 0.1 rad forward": (0.0, -0.1, 0.0),
    "hind thighs 0.1 rad back": (0.0, 0.1, 0.0),
    "knees 0.2 rad straighter": (-0.1, -0.1, 0.2),
    "knees 0.2 rad more bent": (0.1, 0.1, -0.2),
    "knees 0.5 rad more bent": (0.25, 0.25, -0.5),
}
"""Changes of the standing pose, front thighs, hind thighs and calves, rad; the ranges move with it."""
REACHES: Final = {
    "thighs reach 0.8 times as far": (0.8, 1.0),
    "thighs reach 1.2 times as far": (1.2, 1.0),
    "calves reach 0.75 times as far": (1.0, 0.75),
    "calves reach 1.25 times as far": (1.0, 1.25),
}
"""Factors on the distance from the standing pose to its ends, of thighs and calves."""
_LEAST: Final = 0.05
"""Distance that is left between the standing pose and the ends of a joint, rad."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Measure the robot that was asked for, or all, and write the table."""
    rows = []
    for name in (scale.robot,) if scale.robot else ROBOTS:
        for change, robot in variants(find_robot(name)):
            library.say(f"{robot.name}, {change}")
            task = with_robot(TASKS[TASK], robot)
            found = evaluate(load("untrained"), task, range(scale.episodes), threads=library.threads)
            rows.append(_row(robot, change, found))
    write_table(out / "bodies.csv", rows)


def variants(robot: Robot) -> Iterator[tuple[str, Robot]]:
    """(what is changed, robot): first the robot as it is, then with other gains, poses and ranges.

    Poses and ranges stay within the joints of the machine, where they are known.
    """
    yield "as it is", robot
    for kp, kd in GAINS:
        yield f"kp × {kp:g}, kd × {kd:g}", replace(robot, kp=kp * robot.kp, kd=kd * robot.kd)
    for name, (front, hind, calf) in POSES.items():
        moved = np.array([[0.0, front if row < len(robot.mid) // 2 else hind, calf] for row in range(len(robot.mid))])
        yield name, _reaching(robot, robot.low + moved, robot.mid + moved, robot.high + moved)
    for name, (thigh, calf) in REACHES.items():
        factor = np.array([1.0, thigh, calf])
        low, high = (robot.mid + factor * (end - robot.mid) for end in (robot.low, robot.high))
        yield name, _reaching(robot, low, robot.mid, high)


def _reaching(robot: Robot, low: Array, mid: Array, high: Array) -> Robot:
    """The robot with other three-point ranges (leg, 3), rad, cut where its joints end."""
    ends = (
        np.full(mid.shape, -np.inf) if robot.joint_min is None else np.array(robot.joint_min),
        np.full(mid.shape, np.inf) if robot.joint_max is None else np.array(robot.joint_max),
    )
    mid = np.clip(mid, ends[0] + _LEAST, ends[1] - _LEAST)
    low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    return replace(robot, position_min=leg_rows(low), position_mid=leg_rows(mid), position_max=leg_rows(high))


def _row(robot: Robot, change: str, found: Evaluation) -> dict[str, object]:
    gait = found.walk
    return {
        "robot": robot.name,
        "change": change,
        "kp": robot.kp,
        "kd": robot.kd,
        "episodes": found.episodes,
        "return": found.return_mean,
        "worst": min(found.returns),
        "falls": found.falls,
        "speed": found.speed_mean,
        "cost_of_transport": found.cost_of_transport,
        "commanded_share": gait.commanded_share,
        "roll_rms_deg": found.roll_rms_deg,
        "pitch_rms_deg": found.pitch_rms_deg,
    }
