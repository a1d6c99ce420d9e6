"""A second process that damps the robot when the first one dies without a word, for instance by kill -9.

It says nothing as long as its standard input is open, or if the last thing it read there is `done`.
"""

import subprocess
import sys
import time
from typing import IO, Final, Self

from ncap.deploy.link import LcmLink
from ncap.deploy.messages import damping_command
from ncap.errors import UserError

SECONDS: Final = 1.0
"""How long damping is sent."""


class Guard:
    """The guard of this process on an LCM link, as a context."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ncap.deploy.guard", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # what ends us, a Ctrl-C or a closed terminal, is not for it
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():  # else it is on the network
            raise UserError("the guard process does not start; without it nothing is armed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(b"done")


def watch(url: str, parent: IO[bytes]) -> bool:
    """Wait for the parent to end; damp the robot unless it said `done`. Returns whether it was damped."""
    link = LcmLink(url)
    print("watching", flush=True)
    if parent.read() == b"done":
        return False
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        link.send(damping_command())
        time.sleep(0.002)
    return True


if __name__ == "__main__":
    watch(sys.argv[1], sys.stdin.buffer)
