"""Signals of the operating system that end a flight: Ctrl-C, a closed terminal, a polite kill."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from ncap.deploy.loop import Deployment

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a polite kill, a closed terminal."""


@contextmanager
def stopped_by_signals(deployment: Deployment) -> Iterator[None]:
    """Ctrl-C, a closed terminal and a polite kill ask the deployment to stop instead of ending the process."""

    def stop(number: int, _: FrameType | None) -> None:
        deployment.stop(once=number == signal.SIGHUP)

    before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
