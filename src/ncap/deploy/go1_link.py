"""The link to a Go1: UDP, spoken by Unitree's own module `unitree-legged-sdk` (3.8), which is imported when needed.

Its datagrams are compressed and their checksum is encrypted inside that module, so there is nothing of them here. The
module is one socket: it hears neither other commanders nor what it drops, so `rivals` and `malformed` stay 0. A Go1
answers only to a computer that commands it: therefore this link makes its motors limp, if it may, until commands come.
"""

import importlib
import re
import time
from typing import Any, Final, NamedTuple

from ncap.deploy.messages import LOW_LEVEL, MOTOR_ON, Command, state_from_sdk, theirs
from ncap.deploy.safety import Received
from ncap.errors import UserError
from ncap.extras import missing_extra

MODULE: Final = "unitree_legged_sdk.robot_interface"
LARGEST_PORT: Final = 65_535
_ADDRESS: Final = re.compile(
    r"go1://((?P<host>[0-9]{1,3}(\.[0-9]{1,3}){3})(:(?P<port>[0-9]{1,5}))?)?(\?local=(?P<local>[0-9]{1,5}))?", re.ASCII
)
_WAITING: Final = 32
"""Datagrams that are read at a time: more than come between two looks, so that the newest is among them."""


class Go1Address(NamedTuple):
    """Where a Go1's low-level controller is."""

    host: str = "192.168.123.10"
    port: int = 8007
    local: int = 8080
    """Port of this computer to which it answers."""

    @property
    def url(self) -> str:
        """The address as one word."""
        return f"go1://{self.host}:{self.port}?local={self.local}"


def find_go1_address(link: str) -> Go1Address:
    """The address in go1://, go1://HOST:PORT or go1://HOST:PORT?local=PORT; what is left out is Unitree's."""
    match = _ADDRESS.fullmatch(link)
    if match is None:
        raise UserError(f"unknown link {link[:60]!r}; valid: go1://, go1://HOST:PORT, go1://HOST:PORT?local=PORT")
    usual = Go1Address()
    found = Go1Address(
        match["host"] or usual.host, int(match["port"] or usual.port), int(match["local"] or usual.local)
    )
    if any(int(part) > 255 for part in found.host.split(".")):
        raise UserError(f"{found.host} is no address of a robot: four numbers up to 255")
    if not (0 < found.port <= LARGEST_PORT and 0 < found.local <= LARGEST_PORT):
        raise UserError(f"a port is a number from 1 to {LARGEST_PORT}, not {found.port} or {found.local}")
    return found


def import_module() -> Any:
    """Unitree's module; a UserError where it is not installed."""
    try:
        return importlib.import_module(MODULE)
    except ImportError:
        raise missing_extra("a go1:// link", "go1") from None


class Go1Link:
    """A Go1 behind Unitree's module."""

    def __init__(self, url: str, *, limp: bool = False) -> None:
        """limp: tell the motors to do nothing until the first command, so that the robot answers."""
        address, module = find_go1_address(url), import_module()
        self.name, self.malformed, self.rivals = address.url, 0, 0
        self._udp = module.UDP(LOW_LEVEL, address.local, address.host, address.port)
        self._command, self._state = module.LowCmd(), module.LowState()
        self._udp.InitCmdData(self._command)  # all motors at stop values, without gains
        self._greets = limp
        self._newest: Received | None = None

    def now(self) -> float:
        """The monotonic clock, s."""
        return time.monotonic()

    def wait_until(self, moment: float) -> None:
        """Sleep until a moment of the monotonic clock, s, and read what has come. The same tick is no new state."""
        if self._greets:
            self._udp.SetSend(self._command)
            self._udp.Send()
        time.sleep(max(0.0, moment - time.monotonic()))
        for _ in range(_WAITING):
            if self._udp.Recv() <= 0:
                break
        self._udp.GetRecv(self._state)
        tick = int(self._state.tick)
        if tick and (self._newest is None or tick != self._newest.state.tick):
            remote = bytes(self._state.wirelessRemote)
            self._newest = Received(state_from_sdk(self._state), time.monotonic(), remote)

    def newest(self) -> Received | None:
        """The last state with a new tick."""
        return self._newest

    def send(self, command: Command) -> None:
        """Send one command."""
        self._greets = False
        numbers = zip(*(theirs(part).tolist() for part in command), strict=True)
        for motor, (position, kp, kd) in zip(self._command.motorCmd, numbers, strict=False):
            motor.mode, motor.q, motor.Kp, motor.Kd = MOTOR_ON, position, kp, kd
            motor.dq = motor.tau = 0.0
        self._udp.SetSend(self._command)
        if self._udp.Send() < 0:
            raise OSError(f"nothing can be sent to {self.name}: is the cable plugged in?")

    def close(self) -> None:
        """Close the socket, which the module does when nobody holds it."""
        del self._udp


def is_go1(link: str) -> bool:
    """Whether a link's name is that of a Go1."""
    return link.startswith("go1:")
