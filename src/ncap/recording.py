"""One episode kept to be looked at: a replay draws it, a robot's flight recorder writes it.

Shapes: T control steps, N neurons; legs FL, FR, HL, HR; SI units. The simulator is imported only where an episode is
played or a task looked up, because the machine beside a robot has none.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.policies.policy import Controller
from ncap.policies.storage import read_tensors, write_tensors

if TYPE_CHECKING:
    from ncap.tasks import Task

Array = NDArray[np.float64]

_SIGNALS = ("position", "quaternion", "joint_position", "foot_force", "velocity", "action")


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """What the robot did, step by step."""

    title: str
    """What a reader should know: policy and task."""
    task: str
    """Name of the task, whose ground is drawn."""
    seed: int
    """Episode seed, which determines the ground."""
    control_dt: float
    """s between two rows."""
    position: Array
    """(T, 3) of the trunk."""
    quaternion: Array
    """(T, 4) of the trunk, w x y z."""
    joint_position: Array
    """(T, leg, 3) hip, thigh, calf."""
    foot_force: Array
    """(T, leg) N."""
    velocity: Array
    """(T, 3) of the trunk in its own frame."""
    action: Array
    """(T, leg, 3) in [-1, 1]."""
    neurons: Array
    """(T, N) activity in [0, 1]; N = 0 for a policy without neurons."""
    neuron_names: tuple[str, ...] = ()
    """As in a circuit: flexor.FL, …"""

    def save(self, path: Path) -> None:
        """Write it as one file."""
        about = {name: getattr(self, name) for name in ("title", "task", "seed", "control_dt", "neuron_names")}
        write_tensors(path, {name: getattr(self, name) for name in (*_SIGNALS, "neurons")}, {"recording": about})

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read what `save` wrote; anything else is refused with the reason."""
        from ncap.tasks import find_task

        tensors, description = read_tensors(path)
        about = description.get("recording")
        if about is None:
            raise UserError(f"{path} holds no recording")
        find_task(about["task"])
        values: dict[str, Any] = about | tensors | {"neuron_names": tuple(about["neuron_names"])}
        return cls(**values)


def record(task: "Task", controller: Controller, seed: int, title: str) -> Recording:
    """Play one episode with the first individual of a controller, up to a fall or to its end."""
    from ncap.rollout import rollout

    names = tuple(getattr(getattr(controller, "circuit", None), "neurons", ()))
    episode = rollout(task, controller, [seed], record=(*_SIGNALS, *(("neurons",) if names else ())))
    lived = int(episode.steps[0])
    kept: dict[str, Any] = {name: values[0, :lived] for name, values in episode.signals.items()}
    kept.setdefault("neurons", np.zeros((lived, 0)))
    return Recording(title=title, task=task.name, seed=seed, control_dt=task.control_dt, neuron_names=names, **kept)
