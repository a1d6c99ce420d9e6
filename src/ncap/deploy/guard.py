"""A second process that damps the robot when the first one dies at once, for instance by kill -9.

It listens on its standard input. It sends damping only if that stream ends after the first process wrote that it sends
commands, and before it wrote that the robot is damped.
"""

import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from typing import IO, Final, Self

from ncap.deploy.dds_link import DdsLink, is_dds
from ncap.deploy.go1_link import Go1Link, find_go1_address, import_module, is_go1
from ncap.deploy.link import LcmLink, Link
from ncap.deploy.messages import damping_command
from ncap.errors import UserError

SECONDS: Final = 1.0
"""Time for which damping is sent, s."""
SEND_DT: Final = 0.002
"""Time between two damping commands, s."""
PATIENCE: Final = 5.0
"""Time that a guard process is given to end by itself, s."""
_ENGAGED: Final = b"engaged\n"
_DONE: Final = b"done\n"


class Guard:
    """A context in which a guard process watches this one and damps the robot on a network if this one dies."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ncap.deploy.guard", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C or a closed terminal ends this process, but must not end the guard
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():  # it prints a line when it is on the network
            self.__exit__()
            raise UserError("the guard process does not start; without it nothing is armed")

    @property
    def alive(self) -> bool:
        """Whether the guard process runs."""
        return self._process.poll() is None

    def engage(self) -> None:
        """Say that commands are sent from now on: if this process dies, the robot must be damped."""
        self._tell(_ENGAGED)

    def release(self) -> None:
        """Say that the robot is damped: nothing needs to be sent any more."""
        self._tell(_DONE)

    def _tell(self, word: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # of a guard that died, which `alive` says
            self._process.stdin.write(word)
            self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(SECONDS + PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def watch(url: str, parent: IO[bytes]) -> bool:
    """Wait until the parent's stream ends; damp the robot if the parent left it undamped. Returns whether it did."""
    with ExitStack() as stack:
        link = None if is_go1(url) else _open(url, stack)
        if link is None:  # its port is the parent's as long as that lives
            find_go1_address(url)
            import_module()
        print("watching", flush=True)
        said = parent.read()
        if _ENGAGED not in said or _DONE in said:
            return False
        link = link or _open(url, stack)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with suppress(OSError):  # a network that is down may come back
                link.send(damping_command())
            time.sleep(SEND_DT)
    return True


def _open(url: str, stack: ExitStack) -> Link:
    """The link to a robot on a network, which is closed at the end."""
    link: Link = DdsLink(url) if is_dds(url) else Go1Link(url) if is_go1(url) else LcmLink(url)
    stack.callback(link.close)
    return link


if __name__ == "__main__":
    watch(sys.argv[1], sys.stdin.buffer)
