"""Where episodes are played: in this process, or on a Ray cluster.

Work is cut into chunks of a fixed size. Only the search, seeds and returns travel: a worker makes its own candidates.
"""

import logging
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.evaluation import FOOTFALLS, footfall_errors
from ncap.learn.moments import moments_of
from ncap.learn.search import Method, Search
from ncap.policies.controller import Policy
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.tasks import Task

Array = NDArray[np.float64]

CHUNK: Final = 16
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


def play(chunk: Chunk, threads: int = 1) -> Played:
    """Play a chunk here. The seed of an episode says which pace of the task it has, if there are several."""
    paces = chunk.task.paces
    if not paces:
        return _play(chunk, threads)
    parts = []
    returns, errors = np.empty((2, len(chunk.seeds)))
    for number, pace in enumerate(paces):
        places = [i for i, seed in enumerate(chunk.seeds) if seed % len(paces) == number]
        if places:
            part = replace(
                chunk,
                task=chunk.task.at(pace),
                policy=replace(chunk.policy, command=pace.command),  # type: ignore[type-var]
                seeds=tuple(chunk.seeds[i] for i in places),
                indices=tuple(chunk.indices[i] for i in places) if chunk.indices else (),
            )
            parts.append(_play(part, threads))
            returns[places], errors[places] = parts[-1].returns, parts[-1].footfall_errors
    return Played(
        returns=returns,
        falls=sum(part.falls for part in parts),
        steps=sum(part.steps for part in parts),
        cpu_seconds=sum(part.cpu_seconds for part in parts),
        moments=None,
        footfall_errors=errors,
    )


def _play(chunk: Chunk, threads: int) -> Played:
    started = time.process_time()
    policy = chunk.policy
    if chunk.method is None:
        theta = np.tile(chunk.search.mean, (len(chunk.seeds), 1))
    else:
        theta = chunk.method.candidates(policy.space, chunk.search, chunk.seed, chunk.epoch, chunk.indices)
    record = (*(("observation",) if chunk.moments else ()), *(FOOTFALLS if chunk.footfalls else ()))
    episodes = rollout(chunk.task, policy.bind(theta), chunk.seeds, threads=threads, record=record)
    moments, errors = None, np.zeros(len(chunk.seeds))
    if chunk.footfalls and isinstance(policy, NCAPPolicy):
        errors = footfall_errors(policy, episodes)
    if chunk.moments:
        seen = episodes.signals["observation"]
        seen = seen.reshape(-1, seen.shape[-2] * seen.shape[-1])
        moments = moments_of(seen[np.isfinite(seen[:, 0])])
    return Played(
        returns=episodes.returns,
        falls=int(episodes.fell.sum()),
        steps=int(episodes.steps.sum()),
        cpu_seconds=time.process_time() - started,
        moments=moments,
        footfall_errors=errors,
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
            raise UserError("--cluster needs Ray: pip install 'ncap[cluster]'") from None
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
        played: list[Played] = self._ray.get([self._play.remote(chunk) for chunk in chunks])
        return played

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._ray.shutdown()
