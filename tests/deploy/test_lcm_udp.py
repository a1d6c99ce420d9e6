"""Our own reader and writer of LCM's small messages: LCM's library is the independent peer, and noise the enemy."""

import random
import socket
import struct
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncap.deploy.lcm_udp import FRAGMENT, OWN, SMALL, Address, LcmEnd, decode_message, encode_message, find_address
from ncap.deploy.link import LcmLink
from ncap.deploy.messages import (
    COMMAND_CHANNEL,
    STATE_CHANNEL,
    MalformedMessage,
    damping_command,
    decode_command,
    decode_state,
    encode_command,
    encode_state,
)
from ncap.errors import UserError

KILLER = struct.pack(">II", 0x4C433032, 1)
"""Ends a process that reads it with LCM's library."""


def url_of(port: int) -> str:
    return f"udpm://239.255.76.67:{port}?ttl=0"


@pytest.fixture
def end(multicast, lcm_port):
    """An end that keeps what it hears on the channel TEST."""
    heard: list[bytes] = []
    with LcmEnd(url_of(lcm_port), "TEST", heard.append) as end:
        end.heard = heard
        yield end


def listen(end, count, seconds=1.0):
    """Wait until so many messages were heard, but not for ever."""
    deadline = time.monotonic() + seconds
    while len(end.heard) < count and time.monotonic() < deadline:
        end.wait_for_one(deadline)


def test_a_small_message_has_the_documented_bytes():
    # magic and sequence number in network order, the name with its zero byte, the payload
    assert encode_message(258, "AB", b"xyz") == b"LC02" + bytes([0, 0, 1, 2]) + b"AB\0xyz"
    assert decode_message(b"LC02" + bytes(4) + b"AB\0xyz") == ("AB", b"xyz")
    assert encode_message(2**32 + 7, "A", b"")[4:8] == bytes([0, 0, 0, 7])


@given(st.integers(0, 2**33), st.from_regex(r"[!-~]{1,63}", fullmatch=True), st.binary(max_size=2000))
def test_a_message_survives_its_datagram(number, channel, payload):
    assert decode_message(encode_message(number, channel, payload)) == (channel, payload)


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"LC02",
        KILLER,
        KILLER + b"\0",  # a channel without a name
        KILLER + b"\0payload",
        KILLER + b"a name without an end",
        KILLER + b"n" * 64 + b"\0",  # LCM's names have at most 63 letters
        KILLER + "ä".encode() + b"\0",
        struct.pack(">IIIIHH", FRAGMENT, 1, 2**31, 2**31, 0, 65_535) + b"TEST\0",
        struct.pack(">II", SMALL + 5, 1) + b"TEST\0x",
        bytes(65_000),
    ],
)
def test_anything_else_is_malformed(datagram):
    with pytest.raises(MalformedMessage):
        decode_message(datagram)


def test_messages_that_are_not_small_are_never_written():
    for channel, payload in (("", b""), ("n" * 64, b""), ("TEST", bytes(65_500))):
        with pytest.raises(ValueError, match="no small message"):
            encode_message(0, channel, payload)


def mutants(originals, count, seed):
    """That many datagrams: random ones of any length, and good ones that were cut, joined, filled up or flipped."""
    draw = random.Random(seed)
    for _ in range(count):
        kind, good = draw.randrange(8), draw.choice(originals)
        at = draw.randrange(len(good))
        if kind == 0:
            yield draw.randbytes(draw.choice((draw.randrange(12), draw.randrange(1500))))
        elif kind == 1:
            yield good[:at]
        elif kind == 2:
            yield good + draw.randbytes(draw.randrange(1, 40))
        elif kind == 3:
            yield good[:at] + draw.randbytes(1) + good[at + 1 :]
        elif kind == 4:
            flipped = bytearray(good)
            for _ in range(draw.randrange(1, 20)):
                flipped[draw.randrange(len(good))] ^= 1 << draw.randrange(8)
            yield bytes(flipped)
        elif kind == 5:
            yield good[:at] + draw.choice(originals)[at:]
        elif kind == 6:  # a header of either kind, then anything
            yield struct.pack(">I", draw.choice((SMALL, FRAGMENT))) + draw.randbytes(draw.randrange(60))
        else:  # the right header and channel, then anything
            yield good[: good.index(0, 8) + 1] + draw.randbytes(draw.randrange(1000))


def fuzz(end, count, seed, a_state):
    """Send mutants through an end that decodes states and commands. Returns (heard states, heard commands)."""
    states, commands = [], []
    end.also_hear(STATE_CHANNEL, lambda data: states.append(decode_state(data)))
    end.also_hear(COMMAND_CHANNEL, lambda data: commands.append(decode_command(data)))
    originals = [
        encode_message(77, STATE_CHANNEL, encode_state(a_state())),
        encode_message(78, COMMAND_CHANNEL, encode_command(damping_command())),
        encode_message(79, "OTHER", bytes(300)),
    ]
    for datagram in mutants(originals, count, seed):
        end.handle(datagram)
    return states, commands


def test_a_hundred_thousand_random_and_mutated_datagrams_are_nothing_but_counted(multicast, lcm_port, a_state):
    with LcmEnd(url_of(lcm_port), "TEST", lambda _: None) as end:
        states, commands = fuzz(end, 100_000, 20, a_state)
    # most mutants hurt the header, the name, the length or the checksum; the others are on channels that nobody hears,
    # or have only their sequence number changed, or bytes that Unitree's checksum leaves out and nobody reads
    assert end.malformed > 60_000
    assert states
    assert commands
    for state in states:
        for read, sent in zip(state, a_state(), strict=True):
            np.testing.assert_allclose(read, sent, atol=1e-6)
    for command in commands:
        assert command.is_damping


@pytest.mark.usefixtures("lcm_network")
@pytest.mark.parametrize("size", [0, 1, 730, 891, 60_000])
def test_lcms_library_hears_us_and_we_hear_it(end, lcm_port, size):
    import lcm

    other, heard, payload = lcm.LCM(url_of(lcm_port)), [], bytes(i % 251 for i in range(size))
    other.subscribe("TEST", lambda channel, data: heard.append((channel, data)))
    end.publish("TEST", payload)
    other.handle_timeout(1000)
    assert heard == [("TEST", payload)]
    other.publish("OTHER", b"not for us")
    other.publish("TEST", payload)
    listen(end, 1)
    assert end.heard == [payload]


@pytest.mark.usefixtures("lcm_network")
def test_long_messages_of_lcms_library_are_dropped_and_counted_and_the_next_one_is_heard(end, lcm_port):
    import lcm

    other = lcm.LCM(url_of(lcm_port))
    other.publish("TEST", bytes(150_000))  # three parts of at most 65,487 bytes
    other.publish("TEST", b"short")
    listen(end, 1)
    assert (end.heard, end.malformed) == ([b"short"], 3)


def test_an_end_does_not_hear_itself_but_hears_the_same_message_from_another(end, lcm_port):
    with LcmEnd(url_of(lcm_port), "TEST", lambda _: None) as other:
        for _ in range(3):
            end.publish("TEST", b"same")
            end.wait_until(time.monotonic() + 0.01)
        assert end.heard == []
        other.publish("TEST", b"same")
        listen(end, 1)
    assert end.heard == [b"same"]


def test_what_an_end_remembers_of_its_own_messages_is_bounded(end):
    for _ in range(OWN + 50):
        end.publish("TEST", b"x")
    assert len(end._sent) == len(end._order) == OWN


def test_noise_on_the_network_does_not_disturb_what_is_heard(multicast, lcm_port, a_state):
    link, draw = LcmLink(url_of(lcm_port)), random.Random(3)
    state = encode_state(a_state(tick=5))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise, LcmEnd(url_of(lcm_port), "X", print) as robot:
        noise.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        for i in range(500):
            noise.sendto(KILLER if i % 5 == 0 else draw.randbytes(draw.randrange(1500)), ("239.255.76.67", lcm_port))
            if i % 50 == 0:
                robot.publish(STATE_CHANNEL, state)
                link.wait_until(link.now() + 0.002)
        link.wait_until(link.now() + 0.05)
    assert link.newest().state.tick == 5
    assert link.malformed == 500
    link.close()


def test_datagrams_that_are_sent_to_this_host_directly_are_not_heard(end, lcm_port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(encode_message(0, "TEST", b"forged"), ("127.0.0.1", lcm_port))
    end.wait_until(time.monotonic() + 0.05)
    assert end.heard == []


def test_a_flood_does_not_keep_a_caller_waiting(end, lcm_port):
    # 100 datagrams lie in the buffer, each takes 1 ms or more: the caller gets its turn about 10 ms late all the same,
    # which on a busy machine is seen by the datagrams that are left, not by the clock
    handled = []

    def slow(message):
        handled.append(message)
        time.sleep(0.001)

    end.also_hear("SLOW", slow)
    with LcmEnd(url_of(lcm_port), "X", print) as other:
        for _ in range(100):
            other.publish("SLOW", b"")
    end.wait_until(time.monotonic() + 0.002)
    assert len(handled) < 50


def test_addresses_are_multicast_groups_with_a_port():
    assert find_address("lcm://") == Address("239.255.76.67", 7667, 0)
    assert find_address("lcm://?ttl=1") == Address("239.255.76.67", 7667, 1)
    assert find_address("lcm://239.1.2.3:7700?ttl=1").url == "udpm://239.1.2.3:7700?ttl=1"
    assert find_address("udpm://239.1.2.3:7700?ttl=1") == Address("239.1.2.3", 7700, 1)


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("lcm://239.255.76.67:0", "port 0 does not exist: ports are 1 to 65535"),
        ("lcm://239.255.76.67:65536", "port 65536 does not exist"),
        ("lcm://239.255.76.67:7667?ttl=256", "a time-to-live is 0 to 255, not 256"),
        ("lcm://127.0.0.1:7667", "'127.0.0.1' is no multicast group: those are 224.0.0.0 to 239.255.255.255"),
        ("lcm://robot:7667", "'robot' is no multicast group"),
        ("lcm://röbot", "'röbot' is no multicast group"),
        ("lcm://239.255.76.٦٧:7667", "is no multicast group"),
        ("lcm://239.255.76.67:٧٦٦٧", "unknown link"),
        ("lcm://239.255.76.67:-1", "unknown link"),
        ("lcm://239.255.76.67:" + "9" * 5000, "unknown link"),
        ("lcm://239.255.76.67\0:7667", "is no multicast group"),
        ("lcm://[ff02::1]:7667", "unknown link"),
        ("lcm://239.255.76.67:7667/", "unknown link"),
        ("lcm://239.255.76.67:7667?ttl=1&recv_buf_size=1", "unknown link"),
        ("", "unknown link ''; valid: lcm://"),
    ],
)
def test_other_addresses_are_refused_by_a_sentence(link, complaint):
    with pytest.raises(UserError) as refused:
        find_address(link)
    assert complaint in str(refused.value)
    assert len(str(refused.value)) < 160


def test_a_host_without_multicast_is_a_plain_error(monkeypatch):
    def refuse(*_):
        raise OSError(19, "No such device")

    monkeypatch.setattr("ncap.deploy.lcm_udp._open_receiver", refuse)
    with pytest.raises(UserError, match=r"cannot open LCM at udpm.*No such device.*is there a network with multicast"):
        LcmLink()
