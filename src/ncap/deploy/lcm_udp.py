"""LCM over UDP multicast, in the part that a robot's messages need: small messages, read within their bounds.

A small message is one datagram: the magic number, a sequence number, the channel's name with a zero byte, the payload
(https://lcm-proj.github.io/lcm/content/udp-multicast-protocol.html). Everything else that comes is counted and dropped,
whatever it holds. LCM's own library ends the process when a datagram's channel name has no end, and so is not used.
"""

import ipaddress
import os
import re
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Self

from ncap.deploy.messages import MalformedMessage
from ncap.errors import UserError

SMALL: Final = 0x4C433032
"""Magic number of a message in one datagram, "LC02"."""
FRAGMENT: Final = 0x4C433033
"""Magic number of a part of a longer message, "LC03"."""
LONGEST_CHANNEL: Final = 63
"""Longest name of a channel, bytes."""
LONGEST_DATAGRAM: Final = 65_499
"""Longest small message, bytes."""
RECEIVE_BUFFER: Final = 2**20
"""Bytes that the system is asked to keep for a busy receiver. A full buffer refuses the newest datagrams."""
OWN: Final = 1024
"""Messages from here that are recognised when multicast brings them back, about two seconds of commands."""
FLOOD: Final = 0.010
"""Time after which a flood of messages no longer keeps a caller waiting, s."""
_HEADER: Final = struct.Struct(">II")
_ADDRESS: Final = re.compile(
    r"(?:lcm|udpm)://(?P<group>[^:?/]*)(:(?P<port>[0-9]{1,9}))?(\?ttl=(?P<ttl>[0-9]{1,9}))?", re.ASCII
)


class Address(NamedTuple):
    """Where an LCM network is. A time-to-live of 0 keeps what is sent on this host."""

    group: str = "239.255.76.67"
    port: int = 7667
    ttl: int = 0

    @property
    def url(self) -> str:
        """The address as LCM writes it."""
        return f"udpm://{self.group}:{self.port}?ttl={self.ttl}"


def find_address(link: str) -> Address:
    """The address in lcm://, lcm://GROUP:PORT or lcm://GROUP:PORT?ttl=1; LCM's own udpm://… is understood as well."""
    match = _ADDRESS.fullmatch(link)
    if match is None:
        raise UserError(
            f"unknown link {link[:60]!r}; valid: lcm://, lcm://GROUP:PORT?ttl=1, dds://INTERFACE, go1://, sdk, twin"
        )
    usual = Address()
    group, port, ttl = match["group"] or usual.group, int(match["port"] or usual.port), int(match["ttl"] or usual.ttl)
    try:
        multicast = ipaddress.IPv4Address(group).is_multicast
    except ValueError:
        multicast = False
    if not multicast:
        raise UserError(f"{group[:60]!r} is no multicast group: those are 224.0.0.0 to 239.255.255.255")
    if not 0 < port < 2**16:
        raise UserError(f"port {port} does not exist: ports are 1 to 65535")
    if not 0 <= ttl < 2**8:
        raise UserError(f"a time-to-live is 0 to 255, not {ttl}")
    return Address(group, port, ttl)


def encode_message(number: int, channel: str, payload: bytes) -> bytes:
    """The datagram of a small message; number is the sender's count of messages."""
    datagram = _HEADER.pack(SMALL, number % 2**32) + channel.encode("ascii") + b"\0" + payload
    if not 0 < len(channel) <= LONGEST_CHANNEL or len(datagram) > LONGEST_DATAGRAM:
        raise ValueError(f"a message of {len(payload)} bytes on channel {channel!r} is no small message")
    return datagram


def decode_message(datagram: bytes) -> tuple[str, bytes]:
    """(channel, payload) of a small message. Anything else is a MalformedMessage, also a part of a longer one."""
    if len(datagram) < _HEADER.size + 2:
        raise MalformedMessage(f"{len(datagram)} bytes are too few for LCM")
    magic, _ = _HEADER.unpack_from(datagram)
    if magic == FRAGMENT:
        raise MalformedMessage("part of a longer message")
    if magic != SMALL:
        raise MalformedMessage(f"magic number {magic:#x}")
    end = datagram.find(b"\0", _HEADER.size, _HEADER.size + LONGEST_CHANNEL + 1)
    channel = datagram[_HEADER.size : max(end, 0)]
    if not channel or not channel.isascii():
        raise MalformedMessage("no name of a channel")
    return channel.decode("ascii"), datagram[end + 1 :]


class LcmEnd:
    """One end of an LCM network: calls a function for messages of a channel, and waits by the clock.

    It hears what others send, not what it sent itself. A function may raise MalformedMessage.
    """

    def __init__(self, url: str, channel: str, hear: Callable[[bytes], None]) -> None:
        self._address = find_address(url)
        self._hear = {channel: hear}
        self.malformed = 0
        """Datagrams that were dropped because they are no LCM messages, or none that could be understood."""
        self._sent: set[bytes] = set()
        self._order: deque[bytes] = deque()
        self._number = int.from_bytes(os.urandom(4), "big")  # so that equal messages of two senders differ
        try:
            self._receiver, self._sender = _open_receiver(self._address), _open_sender(self._address)
        except OSError as error:
            raise UserError(
                f"cannot open LCM at {url} ({error.strerror}): is there a network with multicast?"
            ) from None

    def also_hear(self, channel: str, hear: Callable[[bytes], None]) -> None:
        """Call a function for every message of another channel, too."""
        self._hear[channel] = hear

    def wait_until(self, moment: float) -> None:
        """Handle messages until a moment of time.monotonic, s, including those that have come by then."""
        while True:
            left = moment - time.monotonic()
            ready = self.wait_for_one(moment)
            if left <= 0.0 and (not ready or left < -FLOOD):
                return

    def wait_for_one(self, moment: float) -> bool:
        """Handle the next datagram, if one comes before a moment of time.monotonic, s. Returns whether one came."""
        ready, _, _ = select.select([self._receiver], [], [], max(moment - time.monotonic(), 0.0))
        if not ready:
            return False
        try:
            datagram = self._receiver.recv(2**16, socket.MSG_DONTWAIT)
        except BlockingIOError:  # the system found the datagram damaged, and dropped it
            return False
        self.handle(datagram)
        return True

    def handle(self, datagram: bytes) -> None:
        """Give a datagram's payload to the function of its channel, or count the datagram as malformed."""
        try:
            channel, payload = decode_message(datagram)
            if channel in self._hear and datagram not in self._sent:
                self._hear[channel](payload)
        except MalformedMessage:
            self.malformed += 1

    def publish(self, channel: str, data: bytes) -> None:
        """Send a message on a channel."""
        datagram = encode_message(self._number, channel, data)
        self._number += 1
        if channel in self._hear:
            self._remember(datagram)
        self._sender.sendto(datagram, self._address[:2])

    def _remember(self, datagram: bytes) -> None:
        self._sent.add(datagram)
        self._order.append(datagram)
        if len(self._order) > OWN:
            self._sent.discard(self._order.popleft())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the network."""
        self._receiver.close()
        self._sender.close()


def _open_receiver(address: Address) -> socket.socket:
    """A socket in the group. Bound to the group's address, it hears nothing that is sent to this host directly."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform != "linux":  # which shares a multicast port by SO_REUSEADDR alone
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        receiver.bind(address[:2])
        membership = struct.pack("4s4s", socket.inet_aton(address.group), socket.inet_aton("0.0.0.0"))
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError:
        receiver.close()
        raise
    return receiver


def _open_sender(address: Address) -> socket.socket:
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, address.ttl)
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    return sender
