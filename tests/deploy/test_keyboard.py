"""Keys of a terminal: a pseudo-terminal stands in for the one of a person."""

import os
import select
import subprocess
import sys
import termios
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncap.deploy.flight import PHASES, read_log
from ncap.deploy.keyboard import HINT, KeyboardDriver, Terminal
from ncap.deploy.wishes import STAND, Wish, check_wish
from ncap.errors import UserError


class Person:
    """Somebody at a terminal, and the driver who reads it."""

    def __init__(self, begin=STAND):
        self.hand, self.end = os.openpty()
        self.before = termios.tcgetattr(self.end)
        self.terminal = Terminal(self.end)
        self.driver = KeyboardDriver(self.terminal, begin)

    def types(self, keys):
        """What is wanted after these keys."""
        os.write(self.hand, keys if isinstance(keys, bytes) else keys.encode())
        return self.driver.wish(None, 0.0)

    def hangs_up(self):
        os.close(self.hand)
        self.hand = None

    def __enter__(self):
        self.terminal.__enter__()
        return self

    def __exit__(self, *failure):
        self.terminal.__exit__(*failure)
        if self.hand is not None:
            assert termios.tcgetattr(self.end) == self.before
            os.close(self.hand)
        os.close(self.end)


@pytest.mark.parametrize(
    ("keys", "wish"),
    [
        ("i", (0.1, 0.0)),
        ("iiiI", (0.4, 0.0)),
        ("iiik", (0.2, 0.0)),
        ("j", (0.0, 0.1)),
        ("lL", (0.0, -0.2)),
        ("ijjk", (0.0, 0.2)),
        ("\x1b[A\x1b[A\x1b[B\x1b[A", (0.2, 0.0)),  # arrows up and down
        ("\x1b[D\x1b[D\x1b[C", (0.0, 0.1)),  # left and right
        ("\x1bOA\x1bOD", (0.1, 0.1)),  # the same in a terminal's other mode
        ("iij ", (0.0, 0.0)),
        ("ii i", (0.1, 0.0)),
        ("x?\tié\x1b\x1bi", (0.2, 0.0)),  # unknown keys
        ("\x13\x1a\x1ci", (0.1, 0.0)),  # Ctrl-S, Ctrl-Z and Ctrl-Backslash are keys without a meaning
    ],
)
def test_keys_change_what_is_wanted(keys, wish):
    with Person() as person:
        assert person.types(keys) == pytest.approx(wish, abs=1e-9)
        assert (person.driver.ending, person.driver.finished) == ("", False)


def test_nothing_typed_changes_nothing_and_does_not_wait():
    with Person(Wish(0.3, 0.1)) as person:
        started = time.monotonic()
        assert {person.driver.wish(None, 0.0) for _ in range(1000)} == {Wish(0.3, 0.1)}
        assert time.monotonic() - started < 1.0


def test_an_arrow_that_arrives_in_pieces_is_an_arrow():
    with Person() as person:
        assert [person.types(piece).speed for piece in ("\x1b", "[", "A", "i")] == [0.0, 0.0, 0.1, 0.2]


def test_keys_beyond_the_range_are_clipped_and_said():
    with Person() as person:
        assert person.types("i" * 14) == Wish(1.0, 0.0)
        assert "1 m/s is the most" in person.driver.note
        assert person.types("k") == Wish(0.9, 0.0)
        assert person.driver.note == ""
        assert person.types("l" * 8) == Wish(0.9, -0.6)
        assert "-0.6 rad/s is the sharpest" in person.driver.note


def test_an_unknown_key_is_answered_by_one_line():
    with Person() as person:
        person.types("x")
        assert person.driver.note == HINT
        assert "\n" not in HINT


def test_q_ends_the_flight_as_it_should():
    with Person(Wish(0.3, 0.1)) as person:
        assert person.types("q") == STAND
        assert (person.driver.finished, person.driver.ending) == (True, "")


@given(st.binary(min_size=1, max_size=200))
def test_whatever_is_typed_is_a_wish_within_the_ranges(keys):
    with Person() as person:
        for byte in keys.replace(b"\x03", b""):  # but Ctrl-C
            check_wish(person.types(bytes([byte])))
        assert person.driver.ending == ""


def test_a_terminal_that_hangs_up_ends_the_flight():
    with Person(Wish(0.3, 0.0)) as person:
        person.hangs_up()
        assert person.driver.wish(None, 0.0) == STAND
        assert person.driver.ending == "its terminal is gone"


def test_the_terminal_is_as_before_after_an_exception():
    person = Person()

    def fail():
        with person:  # which looks whether the settings are those of before
            assert not termios.tcgetattr(person.end)[3] & (termios.ECHO | termios.ICANON)
            raise KeyError

    with pytest.raises(KeyError):
        fail()


def test_what_is_no_terminal_is_refused(monkeypatch):
    with open(os.devnull) as nothing, pytest.raises(UserError, match="keys need a terminal"):
        Terminal(nothing.fileno())
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="keys need a terminal"):
        Terminal()


FLIGHT = """
import fcntl, os, sys, termios
from ncap.cli import main
from ncap.deploy import link, loop
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # its own terminal, so that a hang-up is a signal, too
usual = loop.Schedule.__init__.__kwdefaults__
usual.update(calibration=0.2, low=0.6, stand=0.8, hold=0.1, halt=0.3, sit=0.5, damping=0.2)
link.time.sleep = lambda _: None
main(["deploy", "ncap-drive", "--link", "twin", "--arm", "--drive", "keyboard", "--speed", "0.3", "--out", "flight"])
"""


def read_until(hand, words, seconds=60.0):
    """What a terminal shows up to these words."""
    said, until = b"", time.monotonic() + seconds
    while words not in said:
        assert select.select([hand], [], [], until - time.monotonic())[0], said.decode()
        said += os.read(hand, 4096)
    return said


@pytest.mark.parametrize("end", ["q", "Ctrl-C", "hang up"])
def test_a_flight_in_a_terminal_ends_by_a_key_by_ctrl_c_and_by_the_loss_of_the_terminal(tmp_path, end):
    hand, terminal = os.openpty()
    before = termios.tcgetattr(terminal)
    process = subprocess.Popen(
        [sys.executable, "-c", FLIGHT], stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path
    )
    said = read_until(hand, b"phase policy")
    if end == "hang up":
        os.close(terminal)
        os.close(hand)
    else:
        os.write(hand, {"q": b"q", "Ctrl-C": b"\x03"}[end])
        said += read_until(hand, b"flight: flight")
    code = process.wait(30)
    phases = read_log(tmp_path / "flight")[1]["phase"]
    order = [PHASES[phases[0]]] + [PHASES[b] for a, b in pairwise(phases) if a != b]
    assert order == ["low", "stand", "hold", "policy", "stop", "halt", "sit", "damping"]
    assert code == (0 if end == "q" else 130)
    if end != "hang up":
        assert b"wanted 0.30 m/s" in said
        assert termios.tcgetattr(terminal) == before
        os.close(terminal)
        os.close(hand)
