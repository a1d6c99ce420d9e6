"""A model of evolution on many cores: how busy they are, for small and large populations, with Ray as it is used now.

Costs are measured on this machine, the network is assumed. No cluster of several machines has been measured.
"""

import heapq
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ncap.extras import install_command
from ncap.learn.executors import CHUNK, RayExecutor, play
from ncap.learn.settings import Training

CORES = (32, 128, 512, 1024, 4096)
POPULATIONS = (16, 256, 4096, 65_536)
BANDWIDTH = 1e9
"""Of the driver's network, bytes/s."""
LATENCY = 0.2e-3
"""Of the network in one direction, s."""
NODE_CORES = 32
"""Cores of a node."""
GOOD = 0.8
"""Efficiency from which on cores count as well used."""
TOGETHER = range(1, 17)
"""Chunks in a task that are tried for the best."""
TASKS, UPDATED = 100, 256
"""Tasks, and candidates, over which a cost is measured."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What an epoch is made of."""

    chunk_seconds: float
    """CPU time of the episodes of a chunk, s."""
    test_seconds: float
    """CPU time of the test episodes, one task, s."""
    idle_seconds: float
    """Time between a worker's tasks: from sending one to its answer, less its episodes, s."""
    driver_seconds: float
    """Time that the driver spends on a task, s."""
    task_bytes: float
    """Sent and received with a task."""
    node_bytes: float = 0.0
    """Sent to every node once an epoch."""
    update_seconds: float
    """Time of the search's update per candidate, s."""


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """Where the time of an epoch goes, s. Nothing overlaps."""

    playing: float
    sending: float
    updating: float
    work: float
    """CPU time of all episodes."""
    cores: int

    @property
    def seconds(self) -> float:
        """Time of the whole epoch, s."""
        return self.playing + self.sending + self.updating

    @property
    def efficiency(self) -> float:
        """Share of the cores' time that is spent in episodes."""
        return self.work / (self.cores * self.seconds)


def playing_seconds(tasks: Sequence[float], cores: int) -> float:
    """Time until the last task ends, if every core takes the next one as soon as it is free, s."""
    busy_until = [0.0] * cores
    for seconds in tasks:
        heapq.heapreplace(busy_until, busy_until[0] + seconds)
    return max(busy_until)


def predict(
    costs: Costs, population: int, cores: int, *, episodes: int, together: int = 1, test_first: bool = False
) -> Epoch:
    """An epoch whose candidates play so many episodes each, with so many chunks in a task.

    test_first: whether the test episodes are the first task and not the last.
    """
    chunks = episodes * math.ceil(population / CHUNK)
    sizes = [min(together, chunks - first) for first in range(0, chunks, together)]
    tasks = [size * costs.chunk_seconds + costs.idle_seconds for size in sizes]
    test = [costs.test_seconds + costs.idle_seconds]
    sending = (len(tasks) + 1) * (costs.driver_seconds + costs.task_bytes / BANDWIDTH)
    return Epoch(
        playing=playing_seconds(test + tasks if test_first else tasks + test, cores),
        sending=sending + math.ceil(cores / NODE_CORES) * costs.node_bytes / BANDWIDTH,
        updating=population * costs.update_seconds,
        work=chunks * costs.chunk_seconds + costs.test_seconds,
        cores=cores,
    )


def task_seconds(executor: RayExecutor, sent: Any, answer: Any) -> tuple[float, float]:
    """(CPU time of this process per task, median time from sending a task to its answer) without any episodes, s."""
    ray = executor._ray
    remote = ray.remote(num_cpus=1)(lambda _: answer)
    ray.get([remote.remote(sent) for _ in range(TASKS)])
    started = time.process_time()
    ray.get([remote.remote(sent) for _ in range(TASKS)])
    spent = (time.process_time() - started) / TASKS
    answered = []
    for _ in range(TASKS):
        begun = time.perf_counter()
        ray.get(remote.remote(sent))
        answered.append(time.perf_counter() - begun)
    return spent, statistics.median(answered)


def measured_costs(kind: str, executor: RayExecutor) -> tuple[Costs, Costs, int]:
    """(costs, costs if nodes got search and policy once an epoch, episodes of a candidate) of a default training."""
    from benchmarks.cluster import epoch_tasks, pickled_bytes  # here, so that the test can load this file by itself

    training = Training(task="flat-walk", policy=kind, population=CHUNK)
    first, *_, test = epoch_tasks(training)
    played, tested = (min((play([one])[0] for _ in range(2)), key=lambda p: p.cpu_seconds) for one in (first, test))
    method, space = replace(training.evolution, population=UPDATED), first.policy.space
    started = time.process_time()
    method.update(space, first.search, 0, 1, np.arange(float(UPDATED)))
    updating = (time.process_time() - started) / UPDATED
    driver, answered = task_seconds(executor, [first], [played])
    costs = Costs(
        chunk_seconds=played.cpu_seconds,
        test_seconds=tested.cpu_seconds,
        idle_seconds=answered + 2 * LATENCY,
        driver_seconds=driver,
        task_bytes=pickled_bytes([first]) + pickled_bytes([played]),
        update_seconds=updating,
    )
    shared = pickled_bytes((first.search, first.policy))
    driver, answered = task_seconds(executor, first.indices, [played])
    once = replace(
        costs,
        idle_seconds=answered + 2 * LATENCY,
        driver_seconds=driver,
        task_bytes=costs.task_bytes - shared,
        node_bytes=shared,
    )
    return costs, once, training.candidate_episodes


def print_prediction(kind: str, costs: Costs, once: Costs, episodes: int) -> None:
    print(f"{kind}, default training on flat-walk, episodes per candidate: {episodes}")
    print(f"  a chunk of {CHUNK} plays {costs.chunk_seconds:.2f} CPU-s, the tests {costs.test_seconds:.2f} CPU-s")
    for name, one in (("a task", costs), ("  if nodes have search and policy", once)):
        print(
            f"  {name}: {1e3 * one.idle_seconds:.1f} ms from sending to answer without episodes,"
            f" {1e3 * one.driver_seconds:.2f} CPU-ms of the driver, {one.task_bytes:,.0f} bytes"
        )
    print(f"  update of the search: {1e6 * costs.update_seconds:.0f} CPU-µs per candidate")
    print("  population" + "".join(f"{cores:>8}" for cores in CORES) + f" cores   at least {GOOD} up to")
    for population in POPULATIONS:
        found = [predict(costs, population, cores, episodes=episodes) for cores in CORES]
        well = [str(epoch.cores) for epoch in found if epoch.efficiency >= GOOD]
        cells = "".join(f"{epoch.efficiency:8.3f}" for epoch in found)
        print(f"  {population:10}{cells}         {well[-1] if well else f'fewer than {CORES[0]}'}")
    print_changes(costs, once, episodes)


def print_changes(costs: Costs, once: Costs, episodes: int) -> None:
    """Say where the time goes with the largest population on the most cores, and what would help there."""
    population, cores = POPULATIONS[-1], CORES[-1]
    epoch = predict(costs, population, cores, episodes=episodes)
    parts = {"playing": epoch.playing, "sending tasks": epoch.sending, "updating the search": epoch.updating}
    print(
        f"  Population {population} on {cores} cores: an epoch takes {epoch.seconds:.1f} s, its episodes alone"
        f" {epoch.work / cores:.1f} s; most of it is {max(parts, key=lambda part: parts[part])} ("
        + ", ".join(f"{part} {seconds:.1f} s" for part, seconds in parts.items())
        + ")."
    )

    def efficiency(changed: Costs, *, together: int = 1, test_first: bool = False) -> float:
        return predict(
            changed, population, cores, episodes=episodes, together=together, test_first=test_first
        ).efficiency

    shared = replace(once, update_seconds=once.update_seconds / cores)
    together = max(TOGETHER, key=lambda chunks: efficiency(shared, together=chunks, test_first=True))
    changes = {
        "search and policy sent once per node": efficiency(once),
        f"also {together} chunk(s) in a task": efficiency(once, together=together),
        "also tests as the first task": efficiency(once, together=together, test_first=True),
        "also an update by all cores": efficiency(shared, together=together, test_first=True),
    }
    print(
        f"  Its efficiency of {epoch.efficiency:.2f} would become "
        + ", ".join(f"{found:.2f} ({name})" for name, found in changes.items())
        + "."
    )
    tasks = math.ceil(POPULATIONS[0] / CHUNK) * episodes + 1
    print(f"  Population {POPULATIONS[0]} has {tasks} tasks, so more cores than that are idle, whatever a task costs.")


def main() -> None:
    from benchmarks.cluster import KINDS, cluster

    print("predicted efficiency of evolution on many cores: CPU time of episodes over the time of all cores")
    print(f"  assumed: a network of {BANDWIDTH / 1e9:g} GB/s at the driver and {1e3 * LATENCY:g} ms in each direction;")
    print(f"  nodes of {NODE_CORES} cores as fast as this one; a core takes the next task as soon as it is free;")
    print("  sending, playing and updating do not overlap (they do in part, so this is the worse case)")
    try:
        import ray.cluster_utils  # noqa: F401
    except ImportError:
        print(f"  the costs of tasks are measured with Ray: {install_command('cluster')}")
        return
    with cluster((1,)) as executor:
        found = {kind: measured_costs(kind, executor) for kind in KINDS}
    for kind, (costs, once, episodes) in found.items():
        print_prediction(kind, costs, once, episodes)


if __name__ == "__main__":
    main()
