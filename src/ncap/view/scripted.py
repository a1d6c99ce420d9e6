"""An episode in which the wanted speed changes on schedule, to be replayed or filmed."""

from collections.abc import Sequence
from dataclasses import replace

from ncap.errors import UserError
from ncap.recording import Recording
from ncap.tasks import Task
from ncap.trained import TrainedPolicy
from ncap.view.memory import KEPT
from ncap.view.session import Session


def scripted(policy: TrainedPolicy, task: Task, speeds: Sequence[float], seconds: float, seed: int) -> Recording:
    """A recording of a policy that is wanted to have these speeds, m/s, one after the other, for equal times."""
    if not 0 < seconds <= KEPT:
        raise UserError(f"speeds are played for more than 0 s and at most {KEPT:g} s, not {seconds:g}: say --seconds")
    session = Session(task, policy, seed=seed)
    steps = round(seconds / task.control_dt)
    for step in range(steps):
        speed = speeds[step * len(speeds) // steps]
        if step == 0 or speed != session.controls.speed:
            session.change(driven=True, speed=speed)
        session.step()
    wish = ", then ".join(f"{speed:g}" for speed in speeds)
    return replace(session.recording(), title=f"{policy.name}, driven at {wish} m/s")
