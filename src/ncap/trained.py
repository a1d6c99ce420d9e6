"""Policies with their weights: what files hold, and what commands and functions pass around. One place finds them.

A policy file is safetensors with a description and a checksum inside; reading one never runs code from it. Nothing here
needs the simulator until a policy is evaluated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.animal import find_circuit
from ncap.circuits.swimmer import usual_circuit
from ncap.errors import UserError
from ncap.files import decode_value, read_tensors, shown, write_tensors
from ncap.policies.controller import Controller, RandomPolicy, ZeroPolicy
from ncap.policies.description import AnyPolicy, describe, policy_from
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.stable_baselines import ENDING, read_model

if TYPE_CHECKING:
    from ncap.evaluation import Evaluation
    from ncap.tasks import Task

Array = NDArray[np.float64]

BUILT_IN: Final = ("zero", "random", "untrained")
"""Policies that need no file: one that stands, one that acts at random, and the circuit before training."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedPolicy:
    """A policy, its weights, and what is known about it."""

    policy: AnyPolicy
    theta: Array
    """(D,) the weights."""
    about: dict[str, Any] = field(default_factory=dict)
    """JSON data: the task and robot that it was trained for, its training, its test return."""
    name: str = "policy"
    """What tables and titles call it."""

    def __post_init__(self) -> None:
        if self.theta.shape != (self.policy.space.size,):
            raise UserError(f"{self.name}: {self.policy.space.size} weights are needed, not {self.theta.shape}")
        if not np.isfinite(self.theta).all():
            raise UserError(f"{self.name}: some weights are not finite")

    @property
    def parameters(self) -> int:
        """How many weights it has."""
        return self.policy.space.size

    @property
    def task(self) -> str | None:
        """The task that it was trained for; None for a policy that was not trained."""
        return self.about.get("task")

    @property
    def robot(self) -> str | None:
        """The robot that it was trained for; None for a policy that was not trained."""
        return self.about.get("robot")

    def controller(self, individuals: int) -> Controller:
        """That many individuals with these weights, ready to act."""
        return self.policy.bind(np.tile(self.theta, (individuals, 1)))

    def evaluate(
        self, task: "str | Task | None" = None, seeds: Sequence[int] = range(5), *, threads: int = 1
    ) -> "Evaluation":
        """Play one episode per seed of a task, by default the one it was trained for, and summarise."""
        from ncap.evaluation import evaluate, task_for

        world = task_for(self, task)
        return evaluate(self.on(world), world, seeds, threads=threads)

    def on(self, task: "Task") -> "TrainedPolicy":
        """The same policy for the body of a task: itself if it fits already; one that never can is refused.

        A circuit goes onto another body of the same kind, as a swimmer of another length, with the weights that both
        have. The circuit before training becomes the body's own.
        """
        policy, plan = self.policy, task.robot.plan
        if isinstance(policy, ZeroPolicy | RandomPolicy):
            return self if policy.joints == task.joints else replace(self, policy=replace(policy, joints=task.joints))
        if isinstance(policy, MLPPolicy):
            if (policy.senses, policy.joints) == (math.prod(task.senses), task.joints):
                return self
        elif policy.circuit.plan == plan:
            return self
        elif policy.circuit.plan.kind == plan.kind:
            moved, theta = policy.with_circuit(policy.circuit.on(plan), self.theta)
            return replace(self, policy=moved, theta=theta)
        elif self.task is None and np.array_equal(self.theta, policy.space.initial):
            own = NCAPPolicy(command=task.command, circuit=find_circuit(usual_circuit(plan, task.steered)).on(plan))
            return replace(self, policy=own, theta=own.space.initial)
        raise UserError(f"{self.name} does not fit {task.robot.name}, the body of {task.name}: it was made for another")

    def with_command(self, command: float) -> "TrainedPolicy":
        """The same policy at another brainstem command."""
        policy = replace(self._circuit_policy("a command"), command=command)
        return replace(self, policy=policy, about=self.about | {"command": command})

    def with_circuit(self, name: str) -> "TrainedPolicy":
        """The same policy with the table of a preset or a file; weights of rows that both have are kept."""
        policy, theta = self._circuit_policy("a circuit").with_circuit(find_circuit(name), self.theta)
        return replace(self, policy=policy, theta=theta)

    def without(self, names: Sequence[str]) -> "TrainedPolicy":
        """The same policy after knock-outs: pathways such as V0v, populations, single neurons or synapses."""
        if not names:
            return self
        policy, theta = self._circuit_policy("a knock-out").without(names, self.theta)
        return replace(self, policy=policy, theta=theta, name=f"{self.name} without {', '.join(names)}")

    def _circuit_policy(self, wish: str) -> NCAPPolicy:
        if not isinstance(self.policy, NCAPPolicy):
            raise UserError(f"{self.name} has no circuit, so {wish} means nothing to it")
        return self.policy

    def save(self, path: str | Path) -> None:
        """Write it so that the file is complete or not there at all."""
        write_tensors(Path(path), {"theta": self.theta}, {"policy": describe(self.policy), "about": self.about})


def untrained(policy: AnyPolicy, name: str = "untrained") -> TrainedPolicy:
    """A policy with the weights that it has before training."""
    return TrainedPolicy(policy=policy, theta=policy.space.initial, name=name)


def read_policy(path: Path) -> TrainedPolicy:
    """The policy in a file: ours, or one of stable-baselines3 (.zip)."""
    if path.suffix == ENDING:
        mlp, weights = read_model(path)
        return TrainedPolicy(policy=mlp, theta=weights, name=str(path))
    tensors, description = read_tensors(path)
    if "policy" not in description or "theta" not in tensors:
        raise UserError(f"{path} holds no policy")
    try:
        policy = policy_from(description["policy"])
        theta = tensors["theta"].astype(np.float64)
        return TrainedPolicy(policy=policy, theta=theta, about=_about(description), name=str(path))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _about(description: dict[str, Any]) -> dict[str, Any]:
    """What a file says about its policy; files of the first version name the task within the training only."""
    about: dict[str, Any] = decode_value(dict[str, Any], description.get("about", {}), "about")
    for name in ("task", "robot"):
        if name in about:
            decode_value(str, about[name], f"about: its {name}")
    training = about.get("training")
    if "task" not in about and isinstance(training, dict) and isinstance(training.get("task"), str):
        about["task"] = training["task"]
    return about


def shipped_policies() -> dict[str, Path]:
    """Trained policies that come with the package, by name."""
    folder = Path(__file__).parent / "policies" / "shipped"
    return {path.stem: path for path in sorted(folder.glob("*.safetensors"))}


def load(name: str | Path) -> TrainedPolicy:
    """A policy by its name: built in (zero, random, untrained), shipped, a run directory (its best one) or a file.

    A file is ours, or the model.zip of a policy that stable-baselines3 has trained on our environments.
    """
    name = str(name)
    if name == "zero":
        return untrained(ZeroPolicy(), name)
    if name == "random":
        return untrained(RandomPolicy(), name)
    if name == "untrained":
        return untrained(NCAPPolicy(), name)
    shipped = shipped_policies()
    path = shipped.get(name, Path(name))
    if not _exists(path):
        raise UserError(f"unknown policy {shown(name)}; valid: {', '.join((*BUILT_IN, *shipped))}, a run, a file")
    return replace(read_policy(path / "best.safetensors" if path.is_dir() else path), name=name)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def find_policy(
    name: str | Path, *, circuit: str | None = None, without: Sequence[str] = (), command: float | None = None
) -> TrainedPolicy:
    """A policy by its name, with another table, after knock-outs, at another command: what commands ask for."""
    return changed(load(name), circuit=circuit, without=without, command=command)


def changed(
    found: TrainedPolicy, *, circuit: str | None = None, without: Sequence[str] = (), command: float | None = None
) -> TrainedPolicy:
    """A policy with another table, after knock-outs, at another command."""
    if circuit is not None:
        found = found.with_circuit(circuit)
    if command is not None:
        found = found.with_command(command)
    return found.without(without)
