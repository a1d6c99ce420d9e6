"""A plain multilayer perceptron from all observations to all joints, for comparison."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError, unknown_name
from ncap.params import Block, ParamSpace
from ncap.policies.controller import (
    LEGS_AND_JOINTS,
    LEGS_AND_SENSES,
    Command,
    check_observation,
    check_weights,
    finite,
)

Array = NDArray[np.float64]

ACTIVATIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
}
"""Activation functions of hidden layers: ReLU under evolution and D4PG, tanh under PPO."""
OUTPUTS: Final[dict[str, Callable[[Array], Array]]] = {
    "tanh": np.tanh,
    "clip": lambda x: np.minimum(np.maximum(x, -1.0), 1.0),
}
"""What keeps actions in [-1, 1]."""
MOST_WEIGHTS: Final = 10_000_000
"""More are refused before anything is allocated."""


@dataclass(frozen=True, kw_only=True)
class MLPPolicy:
    """Hidden layers, then a tanh or a clip. Observations are normalised by a mean and a standard deviation."""

    hidden: tuple[int, ...] = (256, 256)
    mean: tuple[float, ...] = ()
    """Mean of every observation; empty: 0."""
    std: tuple[float, ...] = ()
    """Standard deviation of every observation; empty: 1."""
    activation: str = "relu"
    """Activation function of the hidden layers: relu or tanh."""
    output: str = "tanh"
    """What keeps actions in [-1, 1]: tanh, or clip as of stable-baselines3's PPO."""
    senses: int = math.prod(LEGS_AND_SENSES)
    """Observations, of all legs together."""
    wishes: int = 0
    """Numbers more that say what is wanted, where wishes change: the command "wish" (P, wishes)."""
    joints: tuple[int, int] = LEGS_AND_JOINTS
    """Legs and joints per leg."""
    control_dt: float = 0.030
    """Control step, s."""

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise unknown_name("activation", self.activation, ACTIVATIONS)
        if self.output not in OUTPUTS:
            raise unknown_name("output", self.output, OUTPUTS)
        if any(size < 1 for size in self.hidden):
            raise UserError(f"hidden layers need at least one unit each, not {self.hidden}")
        sizes = (self.inputs, *self.hidden, math.prod(self.joints))
        weights = sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes))
        if min(sizes) < 1 or weights > MOST_WEIGHTS:
            raise UserError(f"an MLP may have up to {MOST_WEIGHTS:,} weights, not {weights:,}")
        if not (math.isfinite(self.control_dt) and self.control_dt > 0):
            raise UserError(f"the control step must be a positive number of seconds, not {self.control_dt}")
        if not all(math.isfinite(value) for value in (*self.mean, *self.std)) or 0.0 in self.std:
            raise UserError("mean and standard deviation of the observations must be finite, the latter not 0")
        for name in ("mean", "std"):
            if len(getattr(self, name)) not in (0, self.inputs):
                raise UserError(
                    f"{name} needs {self.inputs} numbers, one per observation, not {len(getattr(self, name))}"
                )

    @property
    def inputs(self) -> int:
        """Everything that it hears."""
        return self.senses + self.wishes

    @cached_property
    def space(self) -> ParamSpace:
        """79,372 weights for (256, 256); evolution starts from zero."""
        sizes = (self.inputs, *self.hidden, math.prod(self.joints))
        blocks = []
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            blocks += [
                Block(name=f"layer{i}", initial=np.zeros((fan_out, fan_in))),
                Block(name=f"layer{i}.bias", initial=np.zeros(fan_out)),
            ]
        return ParamSpace(blocks)

    def bind(self, theta: Array) -> "MLPController":
        """P individuals with weights theta (P, D)."""
        return MLPController(self, check_weights(theta, self.space))


class MLPController:
    """P individuals in action. Without state."""

    def __init__(self, policy: MLPPolicy, theta: Array) -> None:
        self.mean = np.array(policy.mean or (0.0,) * policy.inputs)
        self.scale = 1.0 / np.array(policy.std or (1.0,) * policy.inputs)
        self._senses, self._wishes = policy.senses, policy.wishes
        self._joints, self._individuals = policy.joints, len(theta)
        self.activate, self.finish = ACTIVATIONS[policy.activation], OUTPUTS[policy.output]
        weights = list(policy.space.unpack(theta).values())
        self.layers = list(zip(weights[0::2], weights[1::2], strict=True))

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> None:
        """The state, which is None: nothing is remembered."""

    def act(self, state: None, observation: Array, command: Command | None = None) -> tuple[None, Array]:
        """(None, action (P, leg, joint)) from observations (P, leg, sense). Commands other than "wish" mean nothing."""
        felt = check_observation(observation, self._senses, self._individuals)
        if self._wishes:
            felt = np.concatenate((felt, self._wish(command, len(felt))), axis=1)
        values = (felt - self.mean) * self.scale
        for i, (weight, bias) in enumerate(self.layers):
            values = np.matmul(weight, values[..., None])[..., 0] + bias
            values = self.finish(values) if i == len(self.layers) - 1 else self.activate(values)
        return None, values.reshape(len(felt), *self._joints)

    def _wish(self, command: Command | None, individuals: int) -> Array:
        wish = finite(command.get("wish", ()) if isinstance(command, Mapping) else (), "a wish")
        if wish.shape != (individuals, self._wishes):
            raise UserError(f"this MLP drives: it needs the command wish, numbers {(individuals, self._wishes)}")
        return wish

    def signals(self, state: None) -> dict[str, Array]:
        """No signals."""
        return {}
