"""What the learners with gradients share: normalised networks, their export to a policy file, their state as arrays."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ncap.learn.moments import mean_and_std, moments_of, no_moments
from ncap.policies.mlp import MLPPolicy

Array = NDArray[np.float64]

ACTIVATIONS: Final[dict[str, type[nn.Module]]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch use one thread within this context, and as many as before after it.

    Our networks are small, and the result must not depend on the machine's cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Normaliser(nn.Module):
    """Subtracts a mean and divides by a standard deviation; it learns them from moments, not by gradient."""

    mean: Tensor
    std: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("std", torch.ones(size))
        self.moments = no_moments(size)
        """Count, sum and sum of squares of all that was seen."""

    def see(self, observations: NDArray[np.float32]) -> None:
        """Count observations (n, size) in; they act from the next `refresh` on."""
        self.moments += moments_of(observations.astype(np.float64))

    def refresh(self) -> None:
        """Take mean and standard deviation from the moments. Once an epoch, as under evolution."""
        if (found := mean_and_std(self.moments)) is not None:
            self.mean.copy_(torch.from_numpy(found[0]))
            self.std.copy_(torch.from_numpy(found[1]))

    def forward(self, observation: Tensor) -> Tensor:
        """(B, size) of mean 0 and standard deviation 1."""
        return (observation - self.mean) / self.std


def layers(sizes: Sequence[int], activation: str) -> nn.Sequential:
    """Linear layers with an activation between them, none at the end."""
    parts: list[nn.Module] = []
    for fan_in, fan_out in pairwise(sizes):
        parts += [nn.Linear(fan_in, fan_out), ACTIVATIONS[activation]()]
    return nn.Sequential(*parts[:-1])


def linear_layers(network: nn.Sequential) -> list[nn.Linear]:
    """The layers that have weights."""
    return [part for part in network if isinstance(part, nn.Linear)]


def exported(policy: MLPPolicy, normaliser: Normaliser, network: nn.Sequential) -> tuple[MLPPolicy, Array]:
    """(policy, weights (D,)) that act as tanh(network(normaliser(observation))) does, without torch."""
    trained = replace(policy, mean=tuple(normaliser.mean.tolist()), std=tuple(normaliser.std.tolist()))
    parts = [as_array(values).ravel() for layer in linear_layers(network) for values in (layer.weight, layer.bias)]
    return trained, np.concatenate(parts)


def as_array(values: Tensor) -> Array:
    """A copy in float64, which holds every float32 exactly."""
    return values.detach().numpy().astype(np.float64)


def tensors_of(module: nn.Module, optimisers: Iterable[torch.optim.Optimizer]) -> dict[str, Array]:
    """Weights and buffers by name, and the optimisers' states, for a checkpoint."""
    kept = {f"net.{name}": as_array(values) for name, values in module.state_dict().items()}
    for i, optimiser in enumerate(optimisers):
        for number, state in optimiser.state_dict()["state"].items():
            kept |= {f"opt{i}.{number}.{name}": as_array(values) for name, values in state.items()}
    return kept


def load_tensors(module: nn.Module, optimisers: Iterable[torch.optim.Optimizer], kept: dict[str, Array]) -> None:
    """The inverse of `tensors_of`."""
    module.load_state_dict({name: torch.from_numpy(kept[f"net.{name}"]) for name in module.state_dict()})
    for i, optimiser in enumerate(optimisers):
        state: dict[int, dict[str, Tensor]] = {}
        for key, values in kept.items():
            place, *rest = key.split(".")
            if place == f"opt{i}":
                number, name = rest
                state.setdefault(int(number), {})[name] = torch.from_numpy(values.astype(np.float32))
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
