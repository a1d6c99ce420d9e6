"""What `ncap` and `python -m ncap` start: the command line, with a Ctrl-C that never shows a traceback."""

import os
import signal
import sys
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130
"""Exit code of a program that was stopped by Ctrl-C."""


def main() -> None:
    """Run the command line. While it is being loaded, and at its very end, Ctrl-C ends the process at once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from ncap.cli import main as run

    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    try:
        run()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not within an import, where libraries turn it into errors of their own."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _unraisable(found: "sys.UnraisableHookArgs") -> None:
    """End the process if Ctrl-C came where nothing can be raised, in a destructor for instance."""
    if found.exc_type is KeyboardInterrupt:
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(found)


if __name__ == "__main__":
    main()
