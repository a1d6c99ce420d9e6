"""Where episodes are played: in this process, or on a Ray cluster.

Work is cut into chunks of a fixed size. Only the mean, seeds and returns travel: a worker makes its candidates itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.learn import es
from ncap.policies.storage import Policy, from_description
from ncap.rollout import rollout
from ncap.tasks import Task

Array = NDArray[np.float64]

CHUNK: Final = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """Episodes to play: candidates of an epoch on its episode, or the mean on several episodes."""

    task: Task
    policy: dict[str, Any]
    """Description of the policy."""
    mean: Array
    seeds: tuple[int, ...]
    """Episode seeds, one per individual."""
    evolution: es.Evolution | None = None
    """How candidates are made; None: everybody is the mean."""
    seed: int = 0
    epoch: int = 0
    indices: tuple[int, ...] = ()
    """Which candidates."""
    moments: bool = False
    """Whether to return sums over observations, for a normaliser."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Played:
    """What came of a chunk."""

    returns: Array
    falls: int
    steps: int
    moments: Array | None
    """(3, 40): count, sum and sum of squares of observations."""


def play(chunk: Chunk, threads: int = 1) -> Played:
    """Play a chunk here."""
    policy: Policy = from_description(chunk.policy)
    if chunk.evolution is None:
        theta = np.tile(chunk.mean, (len(chunk.seeds), 1))
    else:
        theta = es.candidates(chunk.evolution, policy.space, chunk.mean, chunk.seed, chunk.epoch, chunk.indices)
    record = ("observation",) if chunk.moments else ()
    episodes = rollout(chunk.task, policy.bind(theta), chunk.seeds, threads=threads, record=record)
    moments = None
    if chunk.moments:
        seen = episodes.signals["observation"].reshape(-1, 40)
        seen = seen[np.isfinite(seen[:, 0])]
        moments = np.stack((np.full(40, float(len(seen))), seen.sum(axis=0), (seen**2).sum(axis=0)))
    return Played(
        returns=episodes.returns, falls=int(episodes.fell.sum()), steps=int(episodes.steps.sum()), moments=moments
    )


class Executor(Protocol):
    """Plays chunks somewhere and returns the results in their order."""

    def play(self, chunks: Sequence[Chunk]) -> list[Played]:
        """Results in the order of the chunks."""
        ...

    def close(self) -> None:
        """Release what was acquired."""
        ...


class LocalExecutor:
    """Chunks one after the other in this process, each on several threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def play(self, chunks: Sequence[Chunk]) -> list[Played]:
        """Results in the order of the chunks."""
        return [play(chunk, self.threads) for chunk in chunks]

    def close(self) -> None:
        """Nothing to release."""
