"""What Ray adds to evolution: the time of one task whose episodes last one control step, here and through Ray."""

import time

import numpy as np

from ncap.errors import UserError
from ncap.learn.evolution import State, epoch_chunks
from ncap.learn.executors import Chunk, Executor, LocalExecutor, RayExecutor
from ncap.learn.moments import no_moments
from ncap.learn.settings import Training
from ncap.policies.mlp import MLPPolicy

REPEATS = 40


def milliseconds(executor: Executor, chunk: Chunk) -> float:
    """Median time of a chunk, after some for warming up."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        executor.play([chunk])
        times.append(time.perf_counter() - started)
    return 1e3 * float(np.median(times[10:]))


def main() -> None:
    print("one task of 16 candidates whose episodes last one control step, median ms (real episodes take seconds)")
    local = LocalExecutor(threads=1)
    try:
        ray = RayExecutor("local")
    except UserError as missing:
        print(f"  {missing}")
        return
    try:
        for words in ("ncap", "mlp"):
            training = Training(task="flat-walk", policy=words, episode_seconds=0.03)
            policy = training.initial_policy()
            senses = policy.senses if isinstance(policy, MLPPolicy) else 0
            state = State(0, training.evolution.start(policy.space.initial), no_moments(senses))
            chunks, _ = epoch_chunks(training, policy, state)
            here, there = milliseconds(local, chunks[0]), milliseconds(ray, chunks[0])
            print(f"  {words}: here {here:.0f}, with Ray {there:.0f}; an epoch has {len(chunks) + 1} tasks")
    finally:
        ray.close()


if __name__ == "__main__":
    main()
