"""Where the robot of the live page plays: a task and a robot by their names, as the controls change them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ncap.errors import UserError
from ncap.evaluation import task_for
from ncap.sim.bodies import find_body
from ncap.sim.robot import ROBOTS
from ncap.sim.terrain import Bumpy, Flat, Terrain, Water
from ncap.tasks import TASKS, Task, find_task, with_robot
from ncap.trained import TrainedPolicy, load, shipped_policies
from ncap.view.controls import RANGES, Controls

EDGE: Final = 1.5
"""Distance from the end of a height field at which the robot starts again, m."""


def found_task(known: Task, task: str, robot: str | None, policy: TrainedPolicy) -> Task:
    """The task of that name with a robot; `known` is meant by its own names. None: the robot that suits the policy."""
    found = known if task == known.name else find_task(task)
    if robot is None:
        try:
            return task_for(policy, found)
        except UserError:  # which has nothing to do with the robot
            return found
    if robot == found.robot.name:
        return found
    return with_robot(found, known.robot if robot == known.robot.name else find_body(robot))


def misfit(policy: TrainedPolicy, task: Task) -> str | None:
    """Why a policy cannot play a task on its robot; None if it can."""
    try:
        task_for(policy, task, task.robot.name)
        controller = policy.on(task).controller(1)
        _, action = controller.act(controller.reset([0]), np.zeros((1, *task.senses)))
    except UserError as error:
        return str(error)
    if action.shape[1:] != task.joints:
        return f"{policy.name} moves joints {action.shape[1:]}, but robot {task.robot.name} has {task.joints}"
    return None


def fitting(task: Task, known: Iterable[TrainedPolicy] = ()) -> TrainedPolicy:
    """A policy that can play a task: a known or shipped one that was trained for it, or else any that can."""
    shipped = [load(name) for name in shipped_policies()]
    known = tuple(known)
    trained = (one for one in (*known, *shipped) if one.task == task.name)
    for policy in (*trained, *known, load("untrained"), load("zero"), *shipped):
        if misfit(policy, task) is None:
            return policy
    raise UserError(f"no policy that is shipped fits task {task.name} on robot {task.robot.name}")


def players_in(
    task: Task, policy: TrainedPolicy, ghost: TrainedPolicy | None, known: Iterable[TrainedPolicy]
) -> tuple[TrainedPolicy, bool, list[str]]:
    """(who moves the robot in another task, whether there is a ghost that can stay, sentences about what changes)."""
    news = []
    if reason := misfit(policy, task):
        policy = fitting(task, known)
        news.append(f"{reason}. {policy.name} moves the robot now.")
    reason = None if ghost is None else misfit(ghost, task)
    if reason:
        news.append(f"The ghost has left: {reason}.")
    return policy, ghost is not None and not reason, news


def as_set(base: Task, original: Controls, now: Controls) -> Task:
    """The task as the controls set it. original: the controls when the task was begun."""
    return replace(
        base,
        target_speed=now.target_speed,
        paces=(),
        drive=None,
        terrain=_terrain(base, original, now.bumpiness),
        friction=(now.friction, now.friction),
        variation=replace(base.variation, trunk_mass_scale=now.trunk_mass_scale, kp=now.kp, kd=now.kd),
    )


def _terrain(base: Task, original: Controls, bumpiness: float) -> Terrain:
    if bumpiness == original.bumpiness or isinstance(base.terrain, Water):
        return base.terrain
    if bumpiness == 0.0:
        return Flat()
    bumps = base.terrain if isinstance(base.terrain, Bumpy) else Bumpy()
    return replace(bumps, bumpiness=bumpiness)


def numbers_of(task: Task) -> dict[str, Any]:
    """The controls of a world as a task has them."""
    given = task.variation
    gains = task.robot.gains(given.kp, given.kd)
    return {
        "task": task.name,
        "robot": task.robot.name,
        "target_speed": task.target_speed,
        "bumpiness": task.terrain.bumpiness if isinstance(task.terrain, Bumpy) else 0.0,
        "friction": 1.0,
        "trunk_mass_scale": given.trunk_mass_scale,
        "kp": gains.stiffness,
        "kd": gains.damping,
    }


def ranges_around(controls: Controls) -> dict[str, tuple[float, float]]:
    """Bounds of the controls that are numbers, wide enough for these."""
    values: Mapping[str, float | None] = {name: getattr(controls, name) for name in RANGES}
    return {
        name: (low, high) if (value := values[name]) is None else (min(low, value), max(high, value))
        for name, (low, high) in RANGES.items()
    }


def at_the_edge(task: Task, x: float, y: float) -> bool:
    """Whether a robot at x, y, m, has come so far that the bumps, and in the end the world, would end under it."""
    grid = task.terrain.grid
    return grid is not None and not (EDGE - grid.behind < x < grid.ahead - EDGE and abs(y) < grid.aside - EDGE)


def offered_tasks(*more: str) -> Sequence[str]:
    """Tasks to choose from: those given, and all that have a name."""
    return tuple(dict.fromkeys((*more, *TASKS)))


def offered_robots(*more: str) -> Sequence[str]:
    """Robots to choose from: those given, and all that have a name."""
    return tuple(dict.fromkeys((*more, *ROBOTS)))
