"""Memory of a training process over an hour: `python -m benchmarks memory` (only by name, as it takes that long)."""

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.deploy import resident_bytes
from ncap.learn.settings import Training
from ncap.learn.training import train

SECONDS, EVERY = 3600, 300
TASK = "bumpy-walk"


class EnoughError(Exception):
    """Ends the training."""


def main() -> None:
    started, shown = time.monotonic(), 0

    def report(row: dict[str, Any]) -> None:
        nonlocal shown
        passed = time.monotonic() - started
        if passed >= shown * EVERY:
            shown += 1
            print(f"  {passed / 60:5.1f} min  epoch {row['epoch']:5}  {resident_bytes() / 2**20:6.1f} MB", flush=True)
        if passed >= SECONDS:
            raise EnoughError

    print(f"resident memory of a training of NCAP on {TASK} by ARS, short episodes, one thread")
    with tempfile.TemporaryDirectory() as folder:
        try:
            # short episodes, so that there are many epochs; ARS, whose epochs all have as many episodes
            settings = {"preset": "ars", "epochs": 100_000, "training_seconds": 1.5, "episode_seconds": 3.0}
            train(Training(task=TASK, **settings), Path(folder) / "run", report=report)
        except EnoughError:
            pass


if __name__ == "__main__":
    main()
