"""The last seconds of the live page as a recording, from which a replay is made."""

from collections.abc import Sequence

import numpy as np

from ncap.circuits.circuit import Circuit
from ncap.errors import UserError
from ncap.recording import Recording
from ncap.tasks import Task
from ncap.view.brain import Brain
from ncap.view.memory import Moment


def filmed(moments: Sequence[Moment], brain: Brain, task: Task, seed: int) -> Recording:
    """What happened in these moments. The circuit is drawn whole: what was knocked out meanwhile is dark."""
    if len(moments) < 2:
        raise UserError("nothing has happened yet that could be replayed: let the robot walk for a second")
    signals = np.array([moment.signals for moment in moments])
    neurons = Circuit(brain.table).neurons if brain.table is not None else ()
    split = len(neurons)
    if brain.names[:split] != neurons:
        raise ValueError("signals of a circuit begin with its rhythm generator")
    without = f" without {', '.join(brain.without)}" if brain.without else ""
    return Recording(
        title=f"{brain.name}{without} on {task.name}, live",
        task=task.name,
        seed=seed,
        control_dt=task.control_dt,
        position=np.array([moment.position for moment in moments]),
        quaternion=np.array([moment.quaternion for moment in moments]),
        joint_position=np.array([moment.joint_position for moment in moments]),
        foot_force=np.array([moment.foot_force for moment in moments]),
        velocity=np.array([moment.velocity for moment in moments]),
        action=np.array([moment.action for moment in moments]),
        neurons=signals[:, :split],
        neuron_names=neurons,
        signals=signals[:, split:],
        signal_names=brain.names[split:],
        robot=task.robot,
        terrain=task.terrain,
        target_speed=task.target_speed,
        circuit=brain.table,
        numbers=brain.numbers,
    )
