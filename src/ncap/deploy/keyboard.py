"""Keys of a terminal as a driver of a robot. A terminal is read without waiting, once per tick of the control loop."""

import os
import re
import select
import sys
import termios
from contextlib import suppress
from typing import Any, Final, Self

from ncap.deploy.safety import Received
from ncap.deploy.wishes import STAND, Wish, clipped
from ncap.errors import UserError

STEP: Final = 0.1
"""What a press of a key changes, m/s or rad/s."""
CHANGES: Final = {
    "i": (STEP, 0.0),
    "k": (-STEP, 0.0),
    "j": (0.0, STEP),
    "l": (0.0, -STEP),
    "\x1b[A": (STEP, 0.0),
    "\x1b[B": (-STEP, 0.0),
    "\x1b[D": (0.0, STEP),
    "\x1b[C": (0.0, -STEP),
}
"""Change of speed (m/s) and yaw rate (rad/s) by a key; the last four are the arrows up, down, left and right."""
HINT: Final = "keys: I and K or arrows speed, J and L or arrows turn, space stands, Q ends"
MOST_BYTES: Final = 256
"""Bytes that are read at a time: a flood of keys must not hold up the loop."""
_KEY: Final = re.compile(r"\x1b[\[O][A-D]|[^\x1b]|\x1b(?!\Z|[\[O]\Z)")
"""An arrow, another character, or an escape that begins no arrow. What may still become an arrow is left over."""


class Terminal:
    """A terminal that gives keys one by one, without echo and without waiting, as long as it is entered.

    Ctrl-C still interrupts. Ctrl-S, Ctrl-Z and Ctrl-Backslash are keys like others meanwhile: they would leave the
    robot without a commander. The former settings come back at the end, whatever the end is.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        """Use the terminal of standard input, or that of a file descriptor. Whatever is no terminal is refused."""
        try:
            self._file = sys.stdin.fileno() if descriptor is None else descriptor
            usable = os.isatty(self._file)
        except (AttributeError, OSError, ValueError):  # closed, or replaced by something that is no file
            usable = False
        if not usable:
            raise UserError("keys need a terminal, and standard input is none: start it in one, or leave out --drive")
        with suppress(OSError):  # a terminal that controls no process group has no foreground
            if os.tcgetpgrp(self._file) != os.getpgrp():
                raise UserError("keys reach only a program in the foreground of its terminal: start it without &")
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._file)
        settings = termios.tcgetattr(self._file)
        settings[0] &= ~termios.IXON
        settings[3] &= ~(termios.ICANON | termios.ECHO)
        never = bytes([os.fpathconf(self._file, "PC_VDISABLE")])
        for character, value in (
            (termios.VMIN, 0), (termios.VTIME, 0), (termios.VSUSP, never), (termios.VQUIT, never),
        ):  # fmt: skip
            settings[6][character] = value
        termios.tcsetattr(self._file, termios.TCSANOW, settings)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(termios.error, OSError):  # it may be gone
            termios.tcflush(self._file, termios.TCIFLUSH)
            termios.tcsetattr(self._file, termios.TCSANOW, self._before)

    def read(self) -> bytes | None:
        """What was typed since the last call; None from a terminal that is gone."""
        try:
            if not select.select([self._file], [], [], 0.0)[0]:
                return b""
            return os.read(self._file, MOST_BYTES) or None  # something to read, and nothing there: it hung up
        except (OSError, ValueError):
            return None


class KeyboardDriver:
    """Drives by the keys of a terminal. A terminal that is gone ends the flight."""

    at_terminal = True

    def __init__(self, terminal: Terminal, begin: Wish = STAND) -> None:
        self._terminal, self._wish, self._typed = terminal, begin, ""
        self.ending, self.note, self.finished = "", "", False

    def refusal(self, _: Received) -> str:
        """Why a flight cannot begin: nothing."""
        return ""

    def wish(self, _: Received, now: float) -> Wish:
        """What the keys want so far."""
        typed = self._terminal.read()
        if typed is None:
            self.ending = self.note = "its terminal is gone"
            self._wish = STAND
        elif typed:
            self._typed += typed.decode("latin-1")
            while key := _KEY.match(self._typed):
                self._typed = self._typed[key.end() :]
                self._press(key[0].lower() if len(key[0]) == 1 else key[0].replace("O", "["))
        return self._wish

    def _press(self, key: str) -> None:
        self.note = ""
        if key == " ":
            self._wish = STAND
        elif key == "q":
            self.finished, self._wish = True, STAND
        elif key in CHANGES:
            changes = zip(self._wish, CHANGES[key], strict=True)
            self._wish, self.note = clipped(Wish(*(round(value + change, 6) for value, change in changes)))
        else:
            self.note = HINT
