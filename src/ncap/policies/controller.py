"""What every policy and controller is, and the two that need no learning: `zero` and `random`.

A policy is an immutable description; `bind` gives it weights and makes a controller, which acts for P individuals.
Shapes: observations (P, leg, senses) and actions (P, leg, joints) in [-1, 1], legs in the order of the body plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError
from ncap.params import ParamSpace

Array = NDArray[np.float64]
Command = float | Array | Mapping[str, float | Array]
"""What a brainstem says: one number c in [0, 1], or numbers (P,) by the names of inputs: {"freq.L": 0.2, "c": 0.3}."""


class Controller(Protocol):
    """P individuals in action. Holds weights, never state: state is passed in and returned."""

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> Any:
        """The state at the start of episodes with these seeds, one per individual."""
        ...

    def act(self, state: Any, observation: Array, command: Command | None = None) -> tuple[Any, Array]:
        """(next state, action). The arrays passed in are not changed. Without a command: the policy's own."""
        ...

    def signals(self, state: Any) -> dict[str, Array]:
        """What can be recorded of the state, by name, (P, …) each."""
        ...


def check_weights(theta: Array, space: ParamSpace) -> Array:
    """The weights themselves if they are (P, D), otherwise an error."""
    if theta.ndim != 2 or theta.shape[1] != space.size:
        raise UserError(f"weights have the shape (individuals, {space.size}), not {theta.shape}")
    return theta


class Policy(Protocol):
    """An immutable description of a brain, without weights."""

    @property
    def space(self) -> ParamSpace:
        """The weights that it needs."""
        ...

    @property
    def control_dt(self) -> float:
        """Control step that it acts in, s."""
        ...

    def bind(self, theta: Array) -> Controller:
        """P individuals with weights theta (P, D)."""
        ...


@dataclass(frozen=True, kw_only=True)
class ZeroPolicy:
    """Stands: every action is 0, the standing pose."""

    joints: tuple[int, int] = (4, 3)
    """Legs and joints per leg."""
    control_dt: float = 0.030

    @cached_property
    def space(self) -> ParamSpace:
        """No weights."""
        return ParamSpace(())

    def bind(self, theta: Array) -> "ZeroController":
        """That many individuals."""
        return ZeroController(self.joints)


class ZeroController:
    """Stands. Its state is None."""

    def __init__(self, joints: tuple[int, int]) -> None:
        self._joints = joints

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> None:
        """Nothing to remember."""

    def act(self, state: None, observation: Array, command: Command | None = None) -> tuple[None, Array]:
        """Action 0."""
        return None, np.zeros((len(observation), *self._joints))

    def signals(self, state: None) -> dict[str, Array]:
        """None."""
        return {}


@dataclass(frozen=True, kw_only=True)
class RandomPolicy:
    """Uniformly random actions."""

    joints: tuple[int, int] = (4, 3)
    """Legs and joints per leg."""
    control_dt: float = 0.030

    @cached_property
    def space(self) -> ParamSpace:
        """No weights."""
        return ParamSpace(())

    def bind(self, theta: Array) -> "RandomController":
        """That many individuals."""
        return RandomController(self.joints)


class RandomController:
    """Uniformly random actions, addressed by episode seed and step. Its state is (seeds, step)."""

    def __init__(self, joints: tuple[int, int]) -> None:
        self._joints = joints

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> tuple[tuple[int, ...], int]:
        """(seeds, step 0)."""
        return tuple(seeds), 0

    def act(
        self, state: tuple[tuple[int, ...], int], observation: Array, command: Command | None = None
    ) -> tuple[tuple[tuple[int, ...], int], Array]:
        """Uniform in [-1, 1]."""
        seeds, step = state
        draws = [seeding.generator(seed, "random policy", step).uniform(-1, 1, self._joints) for seed in seeds]
        return (seeds, step + 1), np.array(draws)

    def signals(self, state: tuple[tuple[int, ...], int]) -> dict[str, Array]:
        """None."""
        return {}
