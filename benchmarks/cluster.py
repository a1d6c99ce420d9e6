"""What Ray adds to an epoch of evolution: the time of epochs whose episodes last one control step, with and without."""

import time
from dataclasses import replace

import numpy as np

from ncap.learn.executors import Executor, LocalExecutor, RayExecutor
from ncap.learn.train import State, Training, epoch_chunks

EPOCHS = 30


def epoch_ms(executor: Executor, training: Training) -> float:
    """Median time of an epoch's episodes, after the first few."""
    policy = training.initial_policy()
    initial = policy.space.initial
    state = State(0, training.evolution.start(initial), initial, 0.0, np.zeros((3, 40)))
    times = []
    for epoch in range(EPOCHS):
        started = time.perf_counter()
        executor.play(epoch_chunks(training, policy, replace(state, epoch=epoch)))
        times.append(time.perf_counter() - started)
    return 1e3 * float(np.median(times[5:]))


def main() -> None:
    print("an epoch whose episodes last one control step (a real one of 16 candidates takes seconds), median ms")
    local = LocalExecutor(threads=1)
    ray = RayExecutor("local")
    try:
        for words in ("ncap", "mlp"):
            training = Training(task="flat-walk", policy=words, episode_seconds=0.03)
            here, there = epoch_ms(local, training), epoch_ms(ray, training)
            tasks = -(-training.evolution.population // 16) + 1
            print(f"  {words:<5} {tasks} tasks: here {here:.0f}, with Ray {there:.0f}: it adds {there - here:.0f}")
    finally:
        ray.close()


if __name__ == "__main__":
    main()
