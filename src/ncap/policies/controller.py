"""What every policy and controller is, and the two that need no learning: `zero` and `random`.

A policy is an immutable description; `bind` gives it weights and makes a controller, which acts for P individuals.
Shapes: observations (P, leg, senses) and actions (P, leg, joints) in [-1, 1], legs in the order of the body plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.circuits.animal import JOINTS, POSTURE, SENSES
from ncap.errors import UserError
from ncap.params import ParamSpace
from ncap.plan import LEGS

Array = NDArray[np.float64]

LEGS_AND_JOINTS: Final = (len(LEGS), len(JOINTS))
"""Shape of a quadruped's actions."""
LEGS_AND_SENSES: Final = (len(LEGS), len(SENSES))
"""Shape of a quadruped's observations without the posture of its trunk."""
Command = float | Array | Mapping[str, float | Array]
"""What a brainstem says: one number c in [0, 1], or numbers (P,) by the names of inputs: {"freq.L": 0.2, "c": 0.3}."""


MOST_INDIVIDUALS: Final = 10_000
"""More are refused before anything is allocated."""


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


def numbers(values: object, what: str) -> Array:
    """Values as an array of float64, if they are numbers; `what` begins the sentence about anything else."""
    try:
        found = np.asarray(values)
    except ValueError:  # lists of different lengths
        found = np.empty(0, object)
    if found.dtype.kind not in "buif":
        shown = repr(values[:40]) if isinstance(values, str) else type(values).__name__
        raise UserError(f"{what} is made of numbers, not of {shown}")
    return found.astype(np.float64, copy=False)


def finite(values: object, what: str) -> Array:
    """Values as an array of float64, if they are finite numbers."""
    found = numbers(values, what)
    if not np.isfinite(found).all():
        raise UserError(f"{what} has numbers that are not finite")
    return found


def check_seeds(seeds: object) -> tuple[int, ...]:
    """The seeds of episodes, if there is at least one and all are whole numbers from 0 on."""
    try:
        found = tuple(index(seed) for seed in seeds[: MOST_INDIVIDUALS + 1])  # type: ignore[index]
    except (TypeError, KeyError):
        kind = type(seeds).__name__
        raise UserError(f"seeds are whole numbers in a list, tuple, range or array, not in this {kind}") from None
    if not found:
        raise UserError("at least one episode is needed: seeds is empty")
    if len(found) > MOST_INDIVIDUALS:
        raise UserError(f"up to {MOST_INDIVIDUALS:,} episodes are played at once: seeds has more")
    for seed in found:
        if seed < 0:
            raise UserError(f"a seed is a number from 0 on, not {seed}")
    return found


def check_weights(theta: object, space: ParamSpace) -> Array:
    """The weights in float64 if they are finite numbers (P, D), otherwise an error."""
    found = finite(theta, "a set of weights")
    if found.ndim != 2 or found.shape[1] != space.size or not len(found):
        raise UserError(f"weights have the shape (individuals, {space.size}), not {found.shape}")
    return found


def check_observation(observation: object, senses: int, individuals: int, posture: int = 0) -> Array:
    """Observations (P, senses + posture), all legs in a row, from finite numbers (P, leg, sense); otherwise an error.

    senses, posture: how many of each all legs have. The posture stands after what a leg feels itself. One that is not
    asked for is left out, and one that is missing is that of a level trunk at rest, 0.
    """
    found = finite(observation, "an observation")
    legs, rest = divmod(senses, len(SENSES))
    offered = len(found) * legs * (len(SENSES) + len(POSTURE)) if found.ndim and not rest else 0
    if offered and found.size == offered and not posture:
        found = found.reshape(len(found), legs, -1)[:, :, : len(SENSES)]
    elif offered and found.size == len(found) * senses and posture:
        level = np.zeros((len(found), legs, len(POSTURE)))
        found = np.concatenate((found.reshape(len(found), legs, -1), level), axis=2)
    wanted = senses + posture
    if not found.ndim or found.size != len(found) * wanted:
        seen = found.size // max(1, len(found)) if found.ndim else 1
        also = f", or {wanted} with the posture of the trunk" if posture else ""
        raise UserError(f"an observation has {senses} numbers{also}, not {seen}")
    if individuals not in (1, len(found)):
        raise UserError(f"there are weights for {individuals} individuals, but observations of {len(found)}")
    return found.reshape(len(found), wanted)


def check_state(state: object, kind: type, individuals: int) -> None:
    """Complain about a state that no `reset` has returned, or that belongs to another number of individuals."""
    if not isinstance(state, kind):
        raise UserError(f"call reset before act: a state is what it returns, not {type(state).__name__}")
    found = len(state[0])  # type: ignore[index]
    if found != individuals:
        raise UserError(f"the state is that of {found} individuals, but there are observations of {individuals}")


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

    joints: tuple[int, int] = LEGS_AND_JOINTS
    """Legs and joints per leg."""
    control_dt: float = 0.030

    @cached_property
    def space(self) -> ParamSpace:
        """No weights."""
        return ParamSpace(())

    def bind(self, theta: Array) -> "ZeroController":
        """That many individuals."""
        check_weights(theta, self.space)
        return ZeroController(self.joints)


class ZeroController:
    """Stands. Its state is None."""

    def __init__(self, joints: tuple[int, int]) -> None:
        self._joints = joints

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> None:
        """The state, which is None: nothing is remembered."""

    def act(self, state: None, observation: Array, command: Command | None = None) -> tuple[None, Array]:
        """Action 0."""
        return None, np.zeros((len(np.atleast_1d(finite(observation, "an observation"))), *self._joints))

    def signals(self, state: None) -> dict[str, Array]:
        """No signals."""
        return {}


@dataclass(frozen=True, kw_only=True)
class RandomPolicy:
    """Uniformly random actions."""

    joints: tuple[int, int] = LEGS_AND_JOINTS
    """Legs and joints per leg."""
    control_dt: float = 0.030

    @cached_property
    def space(self) -> ParamSpace:
        """No weights."""
        return ParamSpace(())

    def bind(self, theta: Array) -> "RandomController":
        """That many individuals."""
        check_weights(theta, self.space)
        return RandomController(self.joints)


class RandomController:
    """Uniformly random actions, addressed by episode seed and step. Its state is (seeds, step)."""

    def __init__(self, joints: tuple[int, int]) -> None:
        self._joints = joints

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> tuple[tuple[int, ...], int]:
        """(seeds, step 0)."""
        return check_seeds(seeds), 0

    def act(
        self, state: tuple[tuple[int, ...], int], observation: Array, command: Command | None = None
    ) -> tuple[tuple[tuple[int, ...], int], Array]:
        """Uniform in [-1, 1]."""
        check_state(state, tuple, len(np.atleast_1d(finite(observation, "an observation"))))
        seeds, step = state
        draws = [seeding.generator(seed, "random policy", step).uniform(-1, 1, self._joints) for seed in seeds]
        return (seeds, step + 1), np.array(draws)

    def signals(self, state: tuple[tuple[int, ...], int]) -> dict[str, Array]:
        """No signals."""
        return {}
