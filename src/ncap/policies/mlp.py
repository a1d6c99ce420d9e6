"""A plain multilayer perceptron on all 40 observations and all 12 joints, for comparison."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError, unknown_name
from ncap.params import Block, ParamSpace

Array = NDArray[np.float64]

INPUTS, OUTPUTS = 40, 12
ACTIVATIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
}
"""Of the hidden layers: ReLU under evolution and D4PG, tanh under PPO."""


@dataclass(frozen=True, kw_only=True)
class MLPPolicy:
    """Hidden layers and a tanh at the end. Observations are normalised by a mean and a standard deviation."""

    hidden: tuple[int, ...] = (256, 256)
    mean: tuple[float, ...] = (0.0,) * INPUTS
    std: tuple[float, ...] = (1.0,) * INPUTS
    activation: str = "relu"
    """Of the hidden layers: relu or tanh."""

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise unknown_name("activation", self.activation, ACTIVATIONS)
        if any(size < 1 for size in self.hidden):
            raise UserError(f"hidden layers need at least one unit each, not {self.hidden}")

    @cached_property
    def space(self) -> ParamSpace:
        """79,372 weights for (256, 256); evolution starts from zero."""
        sizes = (INPUTS, *self.hidden, OUTPUTS)
        blocks = []
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            blocks += [
                Block(name=f"layer{i}", initial=np.zeros((fan_out, fan_in))),
                Block(name=f"layer{i}.bias", initial=np.zeros(fan_out)),
            ]
        return ParamSpace(blocks)

    def bind(self, theta: Array) -> "MLPController":
        """P individuals with weights theta (P, D)."""
        return MLPController(self, theta)


class MLPController:
    """P individuals in action. Without state."""

    def __init__(self, policy: MLPPolicy, theta: Array) -> None:
        self.mean, self.scale = np.array(policy.mean), 1.0 / np.array(policy.std)
        self.activate = ACTIVATIONS[policy.activation]
        weights = list(policy.space.unpack(theta).values())
        self.layers = list(zip(weights[0::2], weights[1::2], strict=True))

    def reset(self, seeds: Sequence[int]) -> None:
        """Nothing to remember."""

    def act(self, state: None, observation: Array) -> tuple[None, Array]:
        """(None, action (P, leg, 3)) from observations (P, leg, 10)."""
        values = (observation.reshape(len(observation), INPUTS) - self.mean) * self.scale
        for i, (weight, bias) in enumerate(self.layers):
            values = np.matmul(weight, values[..., None])[..., 0] + bias
            values = np.tanh(values) if i == len(self.layers) - 1 else self.activate(values)
        return None, values.reshape(len(observation), 4, 3)

    def signals(self, state: None) -> dict[str, Array]:
        """None."""
        return {}
