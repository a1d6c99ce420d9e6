"""What learning costs: the share of physics in a training epoch, rollouts and CPU-seconds to a return of 0.90."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ncap.bench import closed_loop_rate, raw_rate, walking_targets
from ncap.experiments.curves import LEARNED
from ncap.learn.executors import Chunk, LocalExecutor, Played
from ncap.learn.settings import Training
from ncap.learn.training import train
from ncap.runs import read_progress
from ncap.tasks import TASKS


class TimedExecutor(LocalExecutor):
    """Counts the CPU time spent in episodes."""

    seconds = 0.0

    def play(self, chunks: Sequence[Chunk]) -> list[Played]:
        """As a local executor does."""
        started = time.process_time()
        played = super().play(chunks)
        self.seconds += time.process_time() - started
        return played


def main() -> None:
    task, individuals, steps = TASKS["flat-walk"], 16, 100
    targets = walking_targets(task, individuals, steps)
    policy = Training(task="flat-walk").initial_policy()
    raw = max(raw_rate(task, targets) for _ in range(3))
    loop = max(closed_loop_rate(task, policy, individuals, steps) for _ in range(3))

    with tempfile.TemporaryDirectory() as folder:
        training = Training(task="flat-walk", epochs=15)
        run, executor = Path(folder) / "run", TimedExecutor(threads=1)
        spent: list[float] = []
        started = time.process_time()
        train(training, run, executor=executor, report=lambda _: spent.append(time.process_time() - started))
        rows = read_progress(run)
    in_episodes = executor.seconds / (time.process_time() - started)
    print("training NCAP on flat-walk, default settings, seed 0, one thread")
    print(f"  share of an epoch spent in episodes {in_episodes:.3f}, of an episode in physics {loop / raw:.3f}")
    print(f"  share of physics in an epoch: {in_episodes * loop / raw:.2f} (target 0.90)")
    reached = [i for i, row in enumerate(rows) if row["test_return"] >= LEARNED]
    if not reached:
        print(f"  {LEARNED} was not reached in {training.epochs} epochs")
        return
    print(
        f"  test return {LEARNED} after {rows[reached[0]]['rollouts']:.0f} rollouts"
        f" and {spent[reached[0]]:.0f} CPU-seconds, test episodes included (target: 150 rollouts)"
    )


if __name__ == "__main__":
    main()
