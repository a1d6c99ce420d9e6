"""The Go2's motion service, which drives the robot until it is released: questions to it, and a twin's answers.

Questions and answers are samples of Unitree's Request_ and Response_ on two topics of the service "motion_switcher".
While a mode is active, the robot's own controller commands the motors, and nobody else should.
"""

import json
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ncap.deploy.dds_messages import HEADER
from ncap.deploy.link import Link
from ncap.deploy.messages import MalformedMessage
from ncap.errors import UserError
from ncap.righting import lying_on

if TYPE_CHECKING:
    from ncap.deploy.dds_end import DdsEnd, Sample

REQUEST_TOPIC: Final = "rt/api/motion_switcher/request"
RESPONSE_TOPIC: Final = "rt/api/motion_switcher/response"
CHECK_MODE: Final = 1001
"""Which mode is active? The answer is JSON with its name; an empty one is none."""
SELECT_MODE: Final = 1002
"""Let a mode begin; the parameter is JSON with its name."""
RELEASE_MODE: Final = 1003
"""Let no mode be active: all motors go limp."""
BUSY: Final = 7002
"""Code of an answer: the switcher does something else just now."""
WRONG_NAME: Final = 7004
"""Code of an answer: there is no such mode, or it is active already."""
MODES: Final = ("normal", "ai", "advanced", "mcf")
"""Modes that a twin knows, by the names that firmwares have for them."""
ANSWER: Final = 3.0
"""Time within which the service must answer, s."""
AGAIN: Final = 0.3
"""Time without an answer after which the question is asked again, s."""
RELEASE: Final = 8.0
"""Time within which a mode must end after its release, s; Unitree's examples wait up to 5."""
RELEASE_DT: Final = 0.5
"""Time between a release and the question whether a mode still is active, s."""
FOLDED: Final = -2.0
"""Mean angle of the knees of a robot on its belly, rad; one that stands on its feet has them further open."""
FIRST_STATE: Final = 2.0
"""Time to wait for a state of the robot, s."""
LONGEST: Final = 4096
"""Longest text that is read, bytes."""
_REQUEST: Final = struct.Struct("<qqqi?3x")
_RESPONSE: Final = struct.Struct("<qqi")
_LENGTH: Final = struct.Struct("<I")


class Question(NamedTuple):
    """A request to the service."""

    number: int
    """Chosen by who asks; the answer has the same."""
    call: int
    """One of CHECK_MODE, SELECT_MODE and RELEASE_MODE."""
    parameter: str = ""


class Answer(NamedTuple):
    """A response of the service."""

    number: int
    call: int
    code: int
    """0 if it was done."""
    data: str = ""


def encode_question(question: Question) -> bytes:
    """The Request_ of a question."""
    return HEADER + _REQUEST.pack(question.number, question.call, 0, 0, False) + _text(question.parameter)


def decode_question(data: bytes) -> Question:
    """The question in a Request_; anything else is a MalformedMessage."""
    (number, call, _, _, _), text = _split(data, _REQUEST)
    return Question(number, call, text)


def encode_answer(answer: Answer) -> bytes:
    """The Response_ of an answer."""
    return HEADER + _RESPONSE.pack(answer.number, answer.call, answer.code) + _text(answer.data)


def decode_answer(data: bytes) -> Answer:
    """The answer in a Response_; anything else is a MalformedMessage."""
    (number, call, code), text = _split(data, _RESPONSE)
    return Answer(number, call, code, text)


def _text(text: str) -> bytes:
    """A CDR string with its zero byte, filled up to four bytes, and an empty sequence of bytes."""
    body = text.encode() + b"\0"
    return _LENGTH.pack(len(body)) + body + bytes(-len(body) % 4) + _LENGTH.pack(0)


def _split(data: bytes, head: struct.Struct) -> tuple[tuple[int, ...], str]:
    """(numbers of the head, the text behind them)."""
    begin = len(HEADER) + head.size
    if data[:2] != HEADER[:2] or len(data) < begin + _LENGTH.size:
        raise MalformedMessage("no message of the motion service")
    (length,) = _LENGTH.unpack_from(data, begin)
    body = data[begin + _LENGTH.size :][:length]
    if not 0 < length <= LONGEST or len(body) != length or body[-1]:
        raise MalformedMessage("a text without an end")
    try:
        return head.unpack_from(data, len(HEADER)), body[:-1].decode()
    except UnicodeDecodeError:
        raise MalformedMessage("a text that is none") from None


def mode_in(text: str) -> str:
    """The name of a mode in JSON like {"name": "normal"}; a MalformedMessage if there is none."""
    try:
        name = json.loads(text)["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise MalformedMessage("no name of a mode") from None
    if not isinstance(name, str):
        raise MalformedMessage("a mode whose name is no text")
    return name


class MotionService:
    """The commander's side: asks which mode is active, releases it, and gives the robot back."""

    def __init__(self, end: "DdsEnd") -> None:
        self._end = end
        self._number = int.from_bytes(os.urandom(4), "big")
        self._answer: Answer | None = None
        end.hear(RESPONSE_TOPIC, self._hear)
        end.announce(REQUEST_TOPIC)

    def _hear(self, sample: "Sample") -> None:
        answer = decode_answer(sample.data)
        if answer.number == self._number:
            self._answer = answer

    def _ask(self, call: int, parameter: str = "") -> Answer | None:
        """The answer to a question; None if there was none. It is asked again, because a first one may find nobody."""
        self._number, self._answer = self._number + 1, None
        end = time.monotonic() + ANSWER
        while self._answer is None and time.monotonic() < end:
            self._end.publish(REQUEST_TOPIC, encode_question(Question(self._number, call, parameter)))
            again = time.monotonic() + AGAIN
            while self._answer is None and time.monotonic() < again:
                self._end.wait_for_some(again)
        return self._answer

    def mode(self) -> str | None:
        """The name of the active mode, empty if none is; None if the service does not answer."""
        answer = self._ask(CHECK_MODE)
        if answer is None or answer.code:
            return None
        with suppress(MalformedMessage):
            return mode_in(answer.data)
        return None

    def release(self) -> None:
        """Let no mode be active. A UserError if one still is after some seconds."""
        end = time.monotonic() + RELEASE
        while (name := self.mode()) != "":
            if time.monotonic() > end:
                raise UserError(
                    f"the robot's own controller {name or 'which is not known'!r} stays active: switch it off in"
                    " Unitree's app; no command was sent"
                )
            self._ask(RELEASE_MODE)
            self._end.wait_until(time.monotonic() + RELEASE_DT)

    def select(self, mode: str) -> bool:
        """Give the robot back to one of its modes. Returns whether the service took it."""
        answer = self._ask(SELECT_MODE, json.dumps({"name": mode}))
        return answer is not None and answer.code == 0


def check_legs_folded(link: Link) -> None:
    """Refuse to release a robot that stands on its feet: with limp motors it would fall."""
    end = link.now() + FIRST_STATE
    while (received := link.newest()) is None and link.now() < end:
        link.wait_until(link.now() + 0.01)
    if received is None:
        raise UserError(f"no state came from the robot on {link.name} within {FIRST_STATE:g} s")
    if lying_on(received.state.up) == "belly" and not received.state.joint_position[:, -1].mean() < FOLDED:
        raise UserError("the robot stands: let it lie down first, because releasing its controller makes it limp")


class TwinMotionService:
    """A twin's side: answers as the robot's switcher does."""

    def __init__(self, end: "DdsEnd", mode: str = "", *, releases: bool = True) -> None:
        """mode: the active one, empty if none is. releases: whether it can be released."""
        self.mode, self._releases, self._end = mode, releases, end
        end.hear(REQUEST_TOPIC, self._hear)
        end.announce(RESPONSE_TOPIC)

    def _hear(self, sample: "Sample") -> None:
        question = decode_question(sample.data)
        code, data = self._reply(question)
        self._end.publish(RESPONSE_TOPIC, encode_answer(Answer(question.number, question.call, code, data)))

    def _reply(self, question: Question) -> tuple[int, str]:
        """(code, data) of the answer to a question."""
        if question.call == CHECK_MODE:
            return 0, json.dumps({"form": "0", "name": self.mode})
        if question.call == RELEASE_MODE:
            if self._releases:
                self.mode = ""
            return (0 if self._releases else BUSY), ""
        if question.call == SELECT_MODE:
            name = mode_in(question.parameter)
            if name in MODES and name != self.mode:
                self.mode = name
                return 0, ""
        return WRONG_NAME, ""

    def guarded(self, send: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """A function that passes on commands only while no mode is active."""

        def pass_on(data: bytes) -> None:
            if not self.mode:
                send(data)

        return pass_on
