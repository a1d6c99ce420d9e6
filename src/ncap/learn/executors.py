"""Where episodes are played: in this process, or on a Ray cluster.

Work is cut into chunks of a fixed size. Only the search, seeds and returns travel: a worker makes its own candidates.
"""

import logging
import math
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.evaluation import FOOTFALLS, footfall_errors
from ncap.extras import missing_extra
from ncap.learn.moments import moments_of
from ncap.learn.search import Method, Search
from ncap.policies.brainstem import Brainstem
from ncap.policies.controller import Command, Policy
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.seeker import Guide, Seeker
from ncap.rollouts import rollout
from ncap.tasks import Task

Array = NDArray[np.float64]

CHUNK: Final = 16
"""Individuals in a chunk."""
TOGETHER: Final = 16
"""Chunks that are played together in one process: more would take memory and save nothing."""
ANSWER_SECONDS: Final = 10.0
"""Time in which a Ray cluster must answer, s. Ray itself would try for minutes."""
_GREETING: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How a client of HTTP/2, which Ray speaks, begins: its preface and empty settings."""
_SETTINGS: Final = 4
"""Kind of the frame with which a server answers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """Episodes to play: candidates of an epoch on one of its episodes, or the mean on several episodes."""

    task: Task
    policy: Policy
    search: Search
    seeds: tuple[int, ...]
    """Episode seeds, one per individual."""
    method: Method | None = None
    """How candidates are made; None: everybody is the mean."""
    seed: int = 0
    epoch: int = 0
    indices: tuple[int, ...] = ()
    """Which candidates."""
    moments: bool = False
    """Whether to return sums over observations, for a normaliser."""
    footfalls: bool = False
    """Whether to measure how far feet are from doing what their half-centres say."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Played:
    """Results of a chunk."""

    returns: Array
    falls: int
    steps: int
    cpu_seconds: float
    moments: Array | None
    """(3, senses): count, sum and sum of squares of observations."""
    footfall_errors: Array
    """(P,) see ncap.analysis.gaits.footfall_error; 0 where it is not measured."""

    def fitness(self, footfall_weight: float) -> Array:
        """(P,) what evolution selects by: the return, less for feet that do not follow their half-centres."""
        return self.returns - footfall_weight * self.footfall_errors


def play(chunks: Sequence[Chunk], threads: int = 1) -> list[Played]:
    """Play chunks of one task and one policy together, here. Nobody's result depends on who else plays."""
    started = time.process_time()
    task, policy = chunks[0].task, chunks[0].policy
    seeds = [seed for chunk in chunks for seed in chunk.seeds]
    wanted = {
        **dict.fromkeys(("observation",) if any(chunk.moments for chunk in chunks) else ()),
        **dict.fromkeys(FOOTFALLS if any(chunk.footfalls for chunk in chunks) else ()),
    }
    episodes = rollout(
        task,
        policy.bind(np.concatenate([_weights(chunk) for chunk in chunks])),
        seeds,
        command=_command(task, policy, seeds),
        threads=threads,
        record=tuple(wanted),
    )
    errors = np.zeros(len(seeds))
    if any(chunk.footfalls for chunk in chunks) and isinstance(policy, NCAPPolicy):
        errors = footfall_errors(policy, episodes)
    found, first, spent = [], 0, time.process_time() - started
    for chunk in chunks:
        own = slice(first, first + len(chunk.seeds))
        first = own.stop
        moments, steps = None, int(episodes.steps[own].sum())
        if chunk.moments:
            seen = episodes.signals["observation"][own][..., : task.senses[1]]
            seen = seen.reshape(-1, math.prod(task.senses))
            moments = moments_of(seen[np.isfinite(seen[:, 0])])
        found.append(
            Played(
                returns=episodes.returns[own],
                falls=int(episodes.fell[own].sum()),
                steps=steps,
                cpu_seconds=spent * steps / max(1, int(episodes.steps.sum())),
                moments=moments,
                footfall_errors=errors[own],
            )
        )
    return found


def _command(task: Task, policy: Policy, seeds: Sequence[int]) -> Command | Guide | None:
    """What the brainstem says in these episodes; None: the policy's own command."""
    if task.paces:
        return np.array([task.pace(seed).command for seed in seeds])
    if not isinstance(policy, NCAPPolicy):
        return None
    return Brainstem() if task.drive else Seeker() if task.target else None


def _weights(chunk: Chunk) -> Array:
    """(P, D) the weights of everybody in a chunk."""
    if chunk.method is None:
        return np.tile(chunk.search.mean, (len(chunk.seeds), 1))
    return chunk.method.candidates(chunk.policy.space, chunk.search, chunk.seed, chunk.epoch, chunk.indices)


class Executor(Protocol):
    """Plays chunks somewhere and returns the results in their order."""

    def play(self, chunks: Sequence[Chunk]) -> list[Played]:
        """Results in the order of the chunks."""
        ...

    def close(self) -> None:
        """Release what was acquired."""
        ...


class LocalExecutor:
    """Chunks in this process, on several threads. Those of one task and policy are played together."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def play(self, chunks: Sequence[Chunk]) -> list[Played]:
        """Results in the order of the chunks."""
        found: list[Played] = []
        for _, same in groupby(chunks, lambda chunk: (chunk.task, chunk.policy)):
            alike = list(same)
            for first in range(0, len(alike), TOGETHER):
                found += play(alike[first : first + TOGETHER], self.threads)
        return found

    def close(self) -> None:
        """Nothing to release."""


def check_answer(address: str) -> None:
    """Complain unless something that may be Ray answers at HOST:PORT or ray://HOST:PORT, within ANSWER_SECONDS."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host.strip("[]") and host.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
        raise UserError(f"a cluster is local, auto, HOST:PORT or ray://HOST:PORT, not {address!r}")
    heard: list[bytes] = []
    troubles: list[OSError] = []

    def ask() -> None:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS) as connection:
                connection.sendall(_GREETING)
                heard.append(connection.recv(9))
        except OSError as error:
            troubles.append(error)

    asking = threading.Thread(target=ask, daemon=True)  # a name that is looked up knows no time limit
    asking.start()
    asking.join(ANSWER_SECONDS)
    if troubles and not isinstance(troubles[0], TimeoutError):
        raise UserError(f"no Ray cluster at {address!r}: {troubles[0].strerror or troubles[0]}")
    if not heard:
        raise UserError(f"no Ray cluster at {address!r}: nobody has answered within {ANSWER_SECONDS:g} s")
    if heard[0][3:4] != bytes((_SETTINGS,)):
        raise UserError(f"no Ray cluster at {address!r}: something else answers there")


class RayExecutor:
    """Chunks as tasks on a Ray cluster. A task whose worker or node dies is done again, with the same result."""

    def __init__(self, address: str) -> None:
        """Join the cluster at an address, or start one on this machine with "local"."""
        try:
            import ray
        except ImportError:
            raise missing_extra("--cluster", "cluster") from None
        self._ray = ray
        options = {} if address == "local" else {"address": address}
        if address not in ("local", "auto"):
            check_answer(address)
        try:
            ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(f"no Ray cluster at {address!r}: {error}") from None
        self._play = ray.remote(num_cpus=1, max_retries=-1)(play)

    def play(self, chunks: Sequence[Chunk]) -> list[Played]:
        """Results in the order of the chunks."""
        played: list[list[Played]] = self._ray.get([self._play.remote([chunk]) for chunk in chunks])
        return [one for (one,) in played]

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._ray.shutdown()
