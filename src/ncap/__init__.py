"""Neural circuit architectural priors for quadruped locomotion.

What most people need is here, and is imported when it is first used:

    import ncap

    print(ncap.load("ncap-flat-walk").evaluate("flat-walk").return_mean)
    episodes = ncap.rollout("flat-walk", "untrained", seeds=range(5), record=["foot_force"])
    ncap.train(ncap.Training(task="bumpy-walk"), "runs/mine")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from ncap.circuits.animal import animal as animal
    from ncap.circuits.circuit import Circuit as Circuit
    from ncap.circuits.spec import CircuitSpec as CircuitSpec
    from ncap.circuits.spec import Input as Input
    from ncap.circuits.spec import Neuron as Neuron
    from ncap.circuits.spec import Synapse as Synapse
    from ncap.circuits.tables import load_circuit as load_circuit
    from ncap.circuits.tables import save_circuit as save_circuit
    from ncap.circuits.units import UNITS as UNITS
    from ncap.circuits.units import BasicUnit as BasicUnit
    from ncap.circuits.units import OscillatorUnit as OscillatorUnit
    from ncap.errors import UserError as UserError
    from ncap.front import evaluate as evaluate
    from ncap.front import lesion as lesion
    from ncap.front import rhythm as rhythm
    from ncap.front import rollout as rollout
    from ncap.front import train as train
    from ncap.front import write_replay as write_replay
    from ncap.learn.settings import Training as Training
    from ncap.plan import QUADRUPED as QUADRUPED
    from ncap.plan import BodyPlan as BodyPlan
    from ncap.plan import chain as chain
    from ncap.policies.mlp import MLPPolicy as MLPPolicy
    from ncap.policies.ncap import NCAPPolicy as NCAPPolicy
    from ncap.recording import Recording as Recording
    from ncap.recording import record as record
    from ncap.rewards import RewardTerm as RewardTerm
    from ncap.sim.robot import ROBOTS as ROBOTS
    from ncap.sim.robot import Robot as Robot
    from ncap.sim.terrain import TERRAINS as TERRAINS
    from ncap.tasks import TASKS as TASKS
    from ncap.tasks import Task as Task
    from ncap.trained import TrainedPolicy as TrainedPolicy
    from ncap.trained import load as load
    from ncap.trained import untrained as untrained

_PLACES = {
    "animal": "circuits.animal",
    "BasicUnit": "circuits.units",
    "BodyPlan": "plan",
    "chain": "plan",
    "Circuit": "circuits.circuit",
    "CircuitSpec": "circuits.spec",
    "evaluate": "front",
    "Input": "circuits.spec",
    "lesion": "front",
    "load": "trained",
    "load_circuit": "circuits.tables",
    "MLPPolicy": "policies.mlp",
    "NCAPPolicy": "policies.ncap",
    "Neuron": "circuits.spec",
    "OscillatorUnit": "circuits.units",
    "QUADRUPED": "plan",
    "record": "recording",
    "Recording": "recording",
    "RewardTerm": "rewards",
    "Robot": "sim.robot",
    "ROBOTS": "sim.robot",
    "rhythm": "front",
    "rollout": "front",
    "save_circuit": "circuits.tables",
    "Synapse": "circuits.spec",
    "Task": "tasks",
    "TASKS": "tasks",
    "TERRAINS": "sim.terrain",
    "train": "front",
    "TrainedPolicy": "trained",
    "Training": "learn.settings",
    "UNITS": "circuits.units",
    "untrained": "trained",
    "UserError": "errors",
    "write_replay": "front",
}
__all__ = sorted((*_PLACES, "__version__"))


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ncap' has no attribute {name!r}")
    return getattr(import_module(f"ncap.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
