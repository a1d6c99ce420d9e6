"""The robot's remote: its 40 bytes, what its sticks want, when it is silent, and how it drives."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncap.deploy.messages import LOW_STATE, encode_state, remote_in
from ncap.deploy.remote import KEYS, NAMED, Remote, RemoteDriver, encode_remote, read_remote, stop_pressed
from ncap.deploy.safety import Received
from ncap.deploy.wishes import SPEEDS, STAND, YAW_RATES, Wish, check_wish, clipped
from ncap.errors import UserError
from ncap.tasks import Drive
from ncap.view.controls import RANGES
from ncap.view.session import KEY_STEP


@given(st.binary(min_size=40, max_size=40))
def test_any_40_bytes_are_silence_or_sticks_within_their_range(data):
    remote = read_remote(data)
    if remote is not None:
        assert all(-1.0 <= stick <= 1.0 for stick in remote[:4])
        check_wish(remote.wish[0])


@given(st.binary(max_size=80))
def test_any_other_length_is_silence(data):
    if len(data) != 40:
        assert read_remote(data) is None


sticks = st.floats(-1.0, 1.0, width=32)


@given(sticks, sticks, sticks, sticks, st.sets(st.sampled_from(KEYS)))
def test_what_a_remote_says_comes_out_of_its_bytes(lx, ly, rx, ry, keys):
    remote = Remote(lx, ly, rx, ry, frozenset(keys))
    assert read_remote(encode_remote(remote)) == remote


def test_the_bytes_are_where_unitree_puts_them():
    # xRockerBtnDataStruct: head[2], keys u16, then lx, rx, ry, L2, ly as f32, little endian
    data = bytearray(40)
    data[2:4] = (1 << 9 | 1 << 3 | 1 << 15).to_bytes(2, "little")  # the tenth key, the fourth, the last
    for offset, value in ((4, 0.25), (8, -0.5), (12, 0.75), (16, 9.0), (20, 1.0)):
        data[offset : offset + 4] = struct.pack("<f", value)
    assert read_remote(bytes(data)) == Remote(0.25, 1.0, -0.5, 0.75, frozenset({"B", "select", "left"}))


def test_they_travel_in_a_state_at_its_843rd_byte(a_state):
    said = encode_remote(Remote(ly=1.0))
    data = encode_state(a_state(), said)
    assert data[843:883] == said == remote_in(data)
    assert len(data) == LOW_STATE.itemsize
    assert remote_in(encode_state(a_state())) == bytes(40)


@pytest.mark.parametrize("offset", [4, 8, 12, 20])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1.01, -3e38])
def test_an_impossible_stick_makes_it_silent_with_all_its_keys(offset, value):
    data = bytearray(encode_remote(NAMED["stop"]))
    data[offset : offset + 4] = struct.pack("<f", value)
    assert read_remote(bytes(data)) is None
    assert not stop_pressed(heard(bytes(data)))


@pytest.mark.parametrize(
    ("remote", "wish"),
    [
        (Remote(), (0.0, 0.0)),
        (Remote(ly=0.1, rx=-0.1), (0.0, 0.0)),  # the dead zone
        (Remote(ly=1.0), (1.0, 0.0)),
        (Remote(ly=0.55), (0.5, 0.0)),  # half of the way from 0.1 to 1
        (Remote(ly=-1.0), (0.0, 0.0)),  # not backwards
        (Remote(rx=1.0), (0.0, -0.6)),  # to the right is a negative yaw rate
        (Remote(rx=-0.55), (0.0, 0.3)),
        (Remote(lx=1.0, ry=1.0), (0.0, 0.0)),  # the other two axes mean nothing
    ],
)
def test_the_left_stick_is_the_speed_and_the_right_one_the_turn(remote, wish):
    assert remote.wish[0] == pytest.approx(wish)


@pytest.mark.parametrize("key", KEYS)
def test_b_and_select_stop_and_no_other_key(key):
    assert stop_pressed(heard(Remote(keys=frozenset({key})))) == (key in ("B", "select"))
    assert stop_pressed(heard(Remote(keys=frozenset({key, "B"}))))


def heard(remote):
    """A state with what a remote said."""
    return Received(None, 0.0, remote if isinstance(remote, bytes) else encode_remote(remote))


@pytest.mark.parametrize("silence", [bytes(40), b"", b"\xff" * 40])
def test_a_silent_remote_stands_at_once_and_ends_the_flight_after_half_a_second(silence):
    driver, forward = RemoteDriver(), heard(Remote(ly=1.0))
    assert driver.wish(forward, 1.0) == Wish(1.0, 0.0)
    assert driver.wish(heard(silence), 1.1) == STAND
    assert driver.wish(heard(silence), 1.45) == STAND
    assert driver.ending == ""
    assert driver.wish(forward, 1.46) == Wish(1.0, 0.0)  # it was away for a moment
    assert driver.wish(heard(silence), 1.95) == STAND
    assert driver.ending == ""
    driver.wish(heard(silence), 1.97)
    assert driver.ending == "the remote is silent"


def test_a_remote_that_was_never_heard_ends_the_flight_too():
    driver = RemoteDriver()
    driver.wish(heard(None), 10.0)
    driver.wish(heard(None), 10.6)
    assert driver.ending == "the remote is silent"


def test_a_stick_that_says_the_same_for_5_seconds_stands_until_it_moves():
    driver = RemoteDriver()
    assert driver.wish(heard(Remote(ly=1.0)), 0.0).speed == 1.0
    assert driver.wish(heard(Remote(ly=1.0)), 4.9).speed == 1.0
    assert driver.wish(heard(Remote(ly=1.0)), 5.1) == STAND
    assert "move a stick" in driver.note
    assert driver.wish(heard(Remote(ly=0.99)), 5.2).speed == pytest.approx(0.89 / 0.9)
    assert driver.ending == ""
    for moment in np.arange(6.0, 60.0, 0.1):  # a remote that is put aside asks for nothing, for as long as it likes
        assert driver.wish(heard(Remote()), moment) == STAND
    assert (driver.ending, driver.note) == ("", "")


@pytest.mark.parametrize(
    ("remote", "reason"), [("silent", "switch it on"), ("stop", "stop key"), ("forward", "let it go"), ("centre", "")]
)
def test_a_flight_begins_with_a_living_remote_in_its_centre(remote, reason):
    refusal = RemoteDriver().refusal(heard(NAMED[remote]))
    assert reason in refusal
    assert bool(refusal) == bool(reason)


def test_wishes_have_the_ranges_of_training_and_of_the_live_page():
    assert (SPEEDS, YAW_RATES) == (Drive().speed, Drive().yaw_rate) == (RANGES["speed"], RANGES["yaw_rate"])
    assert set(KEY_STEP.values()) == {0.1}  # as the keys of test_keyboard.py


@pytest.mark.parametrize("wish", [(1.01, 0.0), (-0.01, 0.0), (0.5, 0.61), (0.5, -0.61), (np.nan, 0.0), (0.0, np.inf)])
def test_a_wish_beyond_its_range_is_refused_with_the_range_and_a_key_is_clipped(wish):
    with pytest.raises(UserError, match=r"in \[0, 1\] m/s|in \[-0\.6, 0\.6\] rad/s"):
        check_wish(Wish(*wish))
    if np.isfinite(wish).all():
        nearest, note = clipped(Wish(*wish))
        assert check_wish(nearest) == nearest
        assert "is the" in note
