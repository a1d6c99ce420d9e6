"""What is not known of a robot's motors and feet: trainings with it and without it, played across what may be.

A real motor's gains are not those that it is told, and some feet feel nothing. In one condition gains differ from one
training episode to the next. Both results are played with gains at the corners, with contact that is estimated from
joint torques, and with feet that always say that nothing touches them.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ncap.experiments.library import Library, Scale, measured
from ncap.learn.settings import Training
from ncap.report.tables import write_table
from ncap.sim.robot import find_robot
from ncap.tasks import TASKS, Task, with_gains, with_robot

TASK: Final = "flat-walk"
ROBOT: Final = "go2"
"""The robot unless another one is asked for."""
TRAININGS: Final[dict[str, dict[str, Any]]] = {
    "as it is": {},
    "gains vary": {"vary_kp": 0.3, "vary_kd": 0.5},
}
"""Settings of Training by the names in the table."""
EPOCHS: Final = 30
"""Epochs of a training, unless the scale has fewer."""
GAINS: Final = ((1.0, 1.0), (0.7, 0.5), (0.7, 1.5), (1.3, 0.5), (1.3, 1.5))
"""Factors on kp and kd."""
DEAF: Final = 1e9
"""Force that would be full contact, N, of feet that always say that nothing touches them."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, play it, and write the table of docs/reference/robots.md."""
    name, rows = scale.robot or ROBOT, []
    worlds = conditions(name)
    for condition, settings in TRAININGS.items():
        own = library.within(f"gains/{condition.replace(' ', '-')}")
        for seed, place in enumerate(own.train(trainings(name, settings, scale))):
            for world, task in worlds.items():
                found = library.evaluation(str(place), task, scale.straight)
                rows.append({"robot": name, "trained": condition, "seed": seed, "played": world} | measured(found))
    write_table(out / "gains.csv", rows)


def trainings(robot: str, settings: dict[str, Any], scale: Scale) -> list[Training]:
    """One training per seed of a condition."""
    usual = scale.ncap | {"epochs": min(EPOCHS, scale.ncap["epochs"])}
    whole = Training(task=TASK, robot=robot, **settings, **usual)
    return [replace(whole, seed=seed).filled() for seed in range(scale.seeds)]


def conditions(name: str) -> dict[str, Task]:
    """The tasks that are played: gains first, then feet."""
    robot = find_robot(name)
    usual = with_robot(TASKS[TASK], robot)
    found = {f"kp × {kp:g}, kd × {kd:g}": with_gains(usual, kp, kd) for kp, kd in GAINS}
    found["contact is estimated"] = with_robot(usual, replace(robot, foot_sensors=False))
    found["feet say nothing"] = with_robot(usual, replace(robot, foot_force_max=DEAF))
    return found
