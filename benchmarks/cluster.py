"""What Ray adds to evolution: bytes and time of tasks whose episodes last one control step, here and through Ray."""

import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ncap.extras import install_command
from ncap.learn.evolution import State, epoch_chunks
from ncap.learn.executors import Chunk, Executor, LocalExecutor, RayExecutor, play
from ncap.learn.moments import no_moments
from ncap.learn.settings import Training
from ncap.policies.mlp import MLPPolicy

KINDS = ("ncap", "mlp:256x256")
CLUSTERS = {"1 worker": (1,), "2 workers": (2,), "4 workers": (4,), "two nodes, 1 worker each": (1, 1)}
"""Worker processes of every node, all on this machine."""
WARMING, REPEATS = 8, 15


def epoch_tasks(training: Training) -> list[Chunk]:
    """The tasks of the second epoch of a training: the candidates', then the test episodes'.

    In the first epoch the mean still is the untrained policy's own array, which would be pickled only once.
    """
    policy, method = training.initial_policy(), training.evolution
    search = method.start(policy.space, training.initial_weights(policy))
    search = method.update(policy.space, search, training.seed, 0, np.arange(float(method.population)))
    senses = policy.senses if isinstance(policy, MLPPolicy) else 0
    chunks, test = epoch_chunks(training, policy, State(1, search, no_moments(senses)))
    return [*chunks, test]


def pickled_bytes(thing: Any) -> int:
    """Bytes of something as it travels."""
    return len(pickle.dumps(thing, protocol=5))


@contextmanager
def cluster(nodes: Sequence[int]) -> Iterator[RayExecutor]:
    """A cluster on this machine whose nodes have so many workers each."""
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": nodes[0]})
    try:
        for workers in nodes[1:]:
            found.add_node(num_cpus=workers)
        executor = RayExecutor(found.address)
        try:
            yield executor
        finally:
            executor.close()
    finally:
        found.shutdown()


def milliseconds(executor: Executor, chunks: Sequence[Chunk]) -> float:
    """Median wall time of playing these chunks, ms."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        executor.play(chunks)
        times.append(time.perf_counter() - started)
    return 1e3 * float(np.median(times))


def print_bytes(epochs: dict[str, list[Chunk]]) -> None:
    print("bytes of a task of evolution, pickled; the search and the policy are sent with every task")
    for kind, chunks in epochs.items():
        first = chunks[0]
        sent, search, policy = (pickled_bytes(thing) for thing in ([first], first.search, first.policy))
        memory = sum(values.nbytes for values in first.search.memory.values())
        every = sum(pickled_bytes([chunk]) for chunk in chunks)
        print(f"  {kind}: {len(first.seeds)} candidates of {first.policy.space.size} weights")
        mean = first.search.mean.nbytes
        print(f"    sent {sent:,}: policy {policy:,}, search {search:,} (mean {mean:,}, memory {memory:,})")
        print(f"    back {pickled_bytes(play([first])):,}")
        print(
            f"    {len(chunks)} tasks of an epoch {every:,}; with what they share sent once {pickled_bytes(chunks):,}"
        )


def main() -> None:
    epochs = {kind: epoch_tasks(Training(task="flat-walk", policy=kind, episode_seconds=0.03)) for kind in KINDS}
    print_bytes(epochs)
    print("ms of one task, and of all tasks of an epoch, whose episodes last one control step (real ones take seconds)")
    counts = "".join(f"{kind + ', one':>18} {f'all {len(chunks)}':>8}" for kind, chunks in epochs.items())
    print(f"  {'':<26}{counts}")
    print_times("here, without Ray", LocalExecutor(threads=1), epochs)
    try:
        import ray.cluster_utils  # noqa: F401
    except ImportError:
        print(f"  the rest needs Ray: {install_command('cluster')}")
        return
    for name, nodes in CLUSTERS.items():
        with cluster(nodes) as executor:
            print_times(name, executor, epochs)


def print_times(name: str, executor: Executor, epochs: dict[str, list[Chunk]]) -> None:
    for chunks in epochs.values():
        executor.play(chunks * WARMING)
    found = [(milliseconds(executor, chunks[:1]), milliseconds(executor, chunks)) for chunks in epochs.values()]
    print(f"  {name:<26}" + "".join(f"{one:18.1f} {every:8.1f}" for one, every in found), flush=True)


if __name__ == "__main__":
    main()
