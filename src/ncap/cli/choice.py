"""The words by which every command chooses who plays and where, written once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from ncap.cli.app import Words
from ncap.cli.terminal import names_in

if TYPE_CHECKING:
    from ncap.tasks import Task
    from ncap.trained import TrainedPolicy


@dataclass(frozen=True, kw_only=True)
class Brain:
    """How the circuit of a policy differs from what its file says."""

    circuit: str | None = None
    """Another circuit table: default, drive, paper, released; of swimmers swimmer, swimmer-turning, swimmer-unshared;
    or a file that `ncap circuit --save` wrote."""
    without: Words = ()
    """Knock out pathways (V0, V0d, V0v, V3, diagonal, homolateral, afferents; of swimmers proprioception, rhythm,
    turning), populations, single neurons (flexor.FL) or synapses ("cross_V0d>flexor cross")."""
    command: float | None = None
    """Brainstem command in [0, 1]; by default the policy's own."""

    def find(self, policy: str) -> "TrainedPolicy":
        """The policy of that name, changed as asked."""
        from ncap.trained import load

        return self.change(load(policy))

    def change(self, policy: "TrainedPolicy") -> "TrainedPolicy":
        """A policy, changed as asked."""
        from ncap.trained import changed

        return changed(policy, circuit=self.circuit, without=names_in(self.without), command=self.command)


@dataclass(frozen=True, kw_only=True)
class Body:
    """In which task and with which robot a policy plays."""

    task: str | None = None
    """flat-walk, flat-run, bumpy-walk, bumpy-run, rough-walk, flat-speeds, flat-drive, bumpy-drive, swim, navigate, or
    a Python file that registers a task; by default the task that the policy was trained for."""
    robot: str | None = None
    """a1, go1, go2 (with -turning for hips that go far enough for drive tasks), a data sheet (.json), or a Python file
    that registers a robot; by default the policy's own."""
    links: int | None = None
    """Links of a swimmer, 3 to 13; by default the policy's own, or 6."""

    def find(self, policy: "TrainedPolicy") -> "Task":
        """The task for a policy."""
        from ncap.evaluation import task_for
        from ncap.tasks import robot_name

        return task_for(policy, self.task, robot_name(self.robot, self.links))


def chosen(policy: str, brain: Brain, body: Body) -> "tuple[TrainedPolicy, Task]":
    """(the policy of that name on its body, changed as asked, its task)."""
    from ncap.trained import load

    found = load(policy)
    task = body.find(found)
    return brain.change(found.on(task)).on(task), task


BrainWords = Annotated[Brain, tyro.conf.OmitArgPrefixes]
BodyWords = Annotated[Body, tyro.conf.OmitArgPrefixes]
