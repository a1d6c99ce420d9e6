"""What every policy is, and the two that need no learning: `zero` and `random`.

Shapes: P individuals; observations (P, leg, 10) and actions (P, leg, 3) in [-1, 1], legs FL, FR, HL, HR.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap import seeding

Array = NDArray[np.float64]

LEGS_AND_JOINTS: Final = (4, 3)


class Controller(Protocol):
    """P individuals in action. Holds weights, never state: state is passed in and returned."""

    def reset(self, seeds: Sequence[int]) -> Any:
        """The state at the start of episodes with these seeds, one per individual."""
        ...

    def act(self, state: Any, observation: Array) -> tuple[Any, Array]:
        """(next state, action). The arrays passed in are not changed."""
        ...

    def signals(self, state: Any) -> dict[str, Array]:
        """What can be recorded of the state, by name, (P, …) each."""
        ...


class ZeroController:
    """Stands: every action is 0, the standing pose."""

    def reset(self, seeds: Sequence[int]) -> int:
        """The state is the number of individuals."""
        return len(seeds)

    def act(self, state: int, observation: Array) -> tuple[int, Array]:
        """Action 0."""
        return state, np.zeros((len(observation), *LEGS_AND_JOINTS))

    def signals(self, state: int) -> dict[str, Array]:
        """None."""
        return {}


class RandomController:
    """Uniformly random actions, addressed by episode seed and step."""

    def reset(self, seeds: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """The state is (seeds, step)."""
        return tuple(seeds), 0

    def act(self, state: tuple[tuple[int, ...], int], observation: Array) -> tuple[tuple[tuple[int, ...], int], Array]:
        """Uniform in [-1, 1]."""
        seeds, step = state
        draws = [seeding.generator(seed, "random policy", step).uniform(-1, 1, LEGS_AND_JOINTS) for seed in seeds]
        return (seeds, step + 1), np.array(draws)

    def signals(self, state: tuple[tuple[int, ...], int]) -> dict[str, Array]:
        """None."""
        return {}
