"""What learning costs: the share of physics in a training epoch, rollouts and CPU-seconds to a return of 0.90."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import mujoco.batch
import numpy as np

from benchmarks.stopwatch import timed
from ncap.experiments.curves import LEARNED
from ncap.learn.executors import Chunk, LocalExecutor, Played
from ncap.learn.settings import Training
from ncap.learn.training import train

EPOCHS = 30
"""Epochs in which a return of 0.90 must be reached."""
ROLLOUTS, CPU_SECONDS, PHYSICS_SHARE = 80, 12, 0.90
"""Targets."""


class TimedExecutor(LocalExecutor):
    """Keeps (CPU seconds, of these in physics) of every epoch's training episodes and of its test episodes."""

    def __init__(self, physics: list[float]) -> None:
        """Count with a list to which the CPU seconds of every call of the engine are added."""
        super().__init__(threads=1)
        self.physics = physics
        self.training: list[tuple[float, float]] = []
        self.tests: list[tuple[float, float]] = []

    def play(self, chunks: Sequence[Chunk]) -> list[Played]:
        """As a local executor does."""
        found: list[Played] = []
        for is_test, same in groupby(chunks, lambda chunk: chunk.method is None):
            started, stepped = time.process_time(), sum(self.physics)
            found += super().play(list(same))
            spent = time.process_time() - started, sum(self.physics) - stepped
            (self.tests if is_test else self.training).append(spent)
        return found


class LearnedError(Exception):
    """Ends a training that has reached a return of 0.90."""


def main() -> None:
    training, rows = Training(task="flat-walk", epochs=EPOCHS), list[dict[str, Any]]()

    def report(row: dict[str, Any]) -> None:
        rows.append(row)
        if row["test_return"] >= LEARNED or len(rows) == EPOCHS:
            raise LearnedError

    with tempfile.TemporaryDirectory() as folder, timed(mujoco.batch.Batch, "step") as physics:
        executor, started = TimedExecutor(physics), time.process_time()
        with suppress(LearnedError):
            train(training, Path(folder) / "run", executor=executor, report=report)
        whole = time.process_time() - started
    practice, tests = np.array(executor.training), np.array(executor.tests)
    print(f"training NCAP on flat-walk, default settings, {training.physics} physics, seed 0, one thread")
    print(f"  {len(rows)} epochs, {whole / len(rows):.2f} CPU-seconds each")
    for name, spent in (("training episodes", practice), ("test episodes, paper physics", tests)):
        seconds, stepping = spent.sum(axis=0)
        print(f"  {name:<29} {seconds / len(rows):.2f} CPU-seconds an epoch, {stepping / seconds:.2f} of it physics")
    print(f"  share of physics in an epoch {sum(physics) / whole:.2f} (target {PHYSICS_SHARE:.2f})")
    if rows[-1]["test_return"] < LEARNED:
        print(f"  {LEARNED} was not reached in {EPOCHS} epochs")
        return
    learning, testing = practice[:-1, 0].sum(), tests[:, 0].sum()  # the last test was that of the epochs before it
    print(
        f"  test return {LEARNED} after {rows[-1]['rollouts']:.0f} rollouts (target: at most {ROLLOUTS})"
        f" and {learning + testing:.1f} CPU-seconds (target: at most {CPU_SECONDS}):"
    )
    print(f"  {learning:.1f} in training episodes, {testing:.1f} in test episodes")


if __name__ == "__main__":
    main()
