"""A Go2's messages are CDR of Unitree's IDL: sizes, places, order of legs, signs, checksum over the C struct."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ncap.deploy.dds_messages import (
    COMMAND,
    HEADER,
    STATE,
    decode_command,
    decode_state,
    encode_command,
    encode_state,
    remote_in,
)
from ncap.deploy.messages import Command, MalformedMessage, State, checksum, damping_command

FLOATS = arrays(np.float64, (4, 3), elements=st.floats(-1e6, 1e6, width=32))
OURS = np.array([[10.0, 11, 12], [20, 21, 22], [30, 31, 32], [40, 41, 42]])
THEIRS = [20, 21, 22, 10, 11, 12, 40, 41, 42, 30, 31, 32]
GOOD_COMMAND = encode_command(Command(OURS, 2 * OURS, 3 * OURS))
# Unitree's SDK packs the C struct with these formats of Python's struct module before it takes the checksum
C_COMMAND = "<4B4IH2x" + 20 * "B3x5f3I" + "4B" + "55Bx2I"
C_STATE = "<4B4IH2x" + "13fb3x" + 20 * "B3x7fb3x3I" + "4BiH4b15H" + "8hI41B3xf2b2x2f4h2I"


def offsets(layout, *names):
    return [layout.places[name][0].cdr for name in names]


def test_places_are_those_that_cdr_gives_the_idl():
    # worked out from the IDL by hand: every number at a multiple of its own size, structs without padding at the end
    assert (STATE.size, COMMAND.size) == (1176, 808)
    assert offsets(COMMAND, "head", "level_flag", "sn", "bandwidth") == [0, 2, 4, 20]
    motors = COMMAND.places
    assert [place.cdr for place in motors["motor_cmd.mode"]] == [22, *(20 + 36 * i for i in range(1, 20))]
    assert [place.cdr for place in motors["motor_cmd.q"]] == [24 + 36 * i for i in range(20)]
    assert offsets(COMMAND, "motor_cmd.kp", "motor_cmd.kd", "motor_cmd.reserve") == [36, 40, 44]
    assert offsets(COMMAND, "bms_cmd.off", "wireless_remote", "led", "fan", "gpio") == [740, 744, 784, 796, 798]
    assert offsets(COMMAND, "reserve", "crc") == [800, 804]
    imu = ("quaternion", "gyroscope", "accelerometer", "rpy", "temperature")
    assert offsets(STATE, *(f"imu_state.{name}" for name in imu)) == [24, 40, 52, 64, 76]
    motors = STATE.places
    assert [place.cdr for place in motors["motor_state.mode"]] == [77, *(76 + 48 * i for i in range(1, 20))]
    assert [place.cdr for place in motors["motor_state.q"]] == [80 + 48 * i for i in range(20)]
    assert offsets(STATE, "motor_state.tau_est", "motor_state.temperature", "motor_state.lost") == [92, 108, 112]


def test_the_c_struct_has_the_size_and_places_of_unitrees_own_packing():
    assert (COMMAND.struct_size, STATE.struct_size) == (struct.calcsize(C_COMMAND), struct.calcsize(C_STATE))
    # read back by Unitree's format, the numbers are where they belong
    c = np.append(np.frombuffer(GOOD_COMMAND, np.uint8, offset=4), np.uint8(0))[COMMAND._source].tobytes()
    values = struct.unpack(C_COMMAND, c)
    assert values[:3] == (0xFE, 0xEF, 0xFF)
    assert values[9:15] == (0x01, 20.0, 0.0, 0.0, 40.0, 60.0)  # the first motor, behind 4 + 4 + 1 numbers
    assert values[-1] == checksum(c) == struct.unpack_from("<I", GOOD_COMMAND, 4 + 804)[0]


def test_a_command_has_unitrees_constants_and_order():
    assert len(GOOD_COMMAND) == 4 + 808
    assert GOOD_COMMAND[:7] == bytes([0, 1, 0, 0, 0xFE, 0xEF, 0xFF])
    motors = [struct.unpack_from("<fffff", GOOD_COMMAND, 4 + 24 + 36 * i) for i in range(20)]
    assert [motor[0] for motor in motors[:12]] == THEIRS
    assert [motor[3] for motor in motors[:12]] == [2 * value for value in THEIRS]
    assert [motor[4] for motor in motors[:12]] == [3 * value for value in THEIRS]
    assert {motor[1:3] for motor in motors[:12]} == {(0.0, 0.0)}
    stop = struct.unpack("<f", struct.pack("<f", 2.146e9))[0]
    assert set(motors[12:]) == {(stop, 16_000.0, 0.0, 0.0, 0.0)}
    modes = [GOOD_COMMAND[4 + (22 if i == 0 else 20 + 36 * i)] for i in range(20)]
    assert modes == 12 * [0x01] + 8 * [0x00]


def test_damping_brakes_every_joint_and_holds_none():
    for motor in range(12):
        q, dq, tau, kp, kd = struct.unpack_from("<fffff", encode_command(damping_command()), 28 + 36 * motor)
        assert q == pytest.approx(2.146e9)
        assert (dq, tau, kp) == (0.0, 0.0, 0.0)
        assert kd > 0


def test_a_state_has_the_robots_order_and_torque_keeps_its_sign(a_state):
    state = a_state(joint_position=OURS, torque=-OURS, temperature=OURS, foot_force=np.array([1.0, 2, 3, 4]))
    data = encode_state(state, bytes(range(40)))
    assert len(data) == 4 + 1176
    assert [struct.unpack_from("<f", data, 84 + 48 * i)[0] for i in range(12)] == THEIRS
    assert [struct.unpack_from("<f", data, 96 + 48 * i)[0] for i in range(12)] == [-value for value in THEIRS]
    assert [data[112 + 48 * i] for i in range(12)] == THEIRS
    # behind 20 motors the battery: 4 bytes, i32, u16, 4 bytes, 15 u16 = 44 bytes from 1036; then the feet
    assert struct.unpack_from("<4h", data, 4 + 1080) == (2, 1, 4, 3)
    assert struct.unpack_from("<I", data, 4 + 1096) == (1000,)
    assert remote_in(data) == bytes(range(40))


@pytest.mark.parametrize(
    ("turned", "rpy"),
    [((1, 0, 0), (0.4, 0, 0)), ((0, 1, 0), (0, 0.4, 0)), ((0, 0, 1), (0, 0, 0.4))],
)
def test_roll_pitch_and_yaw_are_the_quaternions(a_state, turned, rpy):
    quaternion = np.array([np.cos(0.2), *(np.sin(0.2) * np.array(turned))])
    data = encode_state(a_state(quaternion=quaternion))
    assert struct.unpack_from("<3f", data, 4 + 64) == pytest.approx(rpy, abs=1e-6)


@given(FLOATS, FLOATS, FLOATS)
def test_a_command_survives_its_message(position, kp, kd):
    read = decode_command(encode_command(Command(position, kp, kd)))
    for sent, received in zip((position, kp, kd), read, strict=True):
        np.testing.assert_array_equal(received, sent)


@given(FLOATS, FLOATS, FLOATS, st.integers(0, 2**32 - 1))
def test_a_state_survives_its_message(position, velocity, torque, tick):
    state = State(
        tick, np.array([1.0, 0.0, 0.0, 0.0]), np.ones(3), np.ones(3), position, velocity, torque,
        np.arange(12.0).reshape(4, 3), np.array([1.0, -2.0, 300.0, 4.0]),
    )  # fmt: skip
    for sent, received in zip(state, decode_state(encode_state(state)), strict=True):
        np.testing.assert_array_equal(received, sent)


def padding(layout):
    """Bytes of a CDR message that belong to no number, which the checksum of the C struct cannot see."""
    used = {
        place.cdr + i for places in layout.places.values() for place in places for i in range(int(place.format[-1]))
    }
    return set(range(layout.size)) - used


@given(st.data())
def test_a_single_wrong_bit_of_any_number_is_seen(data):
    good, layout, decode = data.draw(
        st.sampled_from([(GOOD_COMMAND, COMMAND, decode_command), (HEADER + bytes(1176), STATE, decode_state)])
    )
    if layout is STATE:
        blank = np.zeros(1176, np.uint8)
        good = HEADER + blank[:-4].tobytes() + struct.pack("<I", layout.checksum(blank))
    decode(good)
    byte = data.draw(st.sampled_from(sorted(set(range(layout.size)) - padding(layout))))
    bad = bytearray(good)
    bad[4 + byte] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(MalformedMessage, match="checksum"):
        decode(bytes(bad))


@given(st.binary(max_size=1300) | st.binary(min_size=1180, max_size=1180) | st.binary(min_size=812, max_size=812))
def test_any_other_bytes_are_malformed_and_nothing_else(data):
    for decode in (decode_state, decode_command, lambda data: decode_state(data[:-4] + bytes(4), unsigned=True)):
        try:
            decode(data)
        except MalformedMessage:
            continue
        assert decode is not decode_state  # a forged checksum of 32 bits does not come by chance
        assert decode is not decode_command


def test_a_missing_checksum_is_taken_from_a_simulator_only(a_state):
    data = encode_state(a_state())[:-4] + bytes(4)
    with pytest.raises(MalformedMessage, match="checksum"):
        decode_state(data)
    assert decode_state(data, unsigned=True).tick == 1000
    with pytest.raises(MalformedMessage, match="checksum"):  # a wrong one is not
        decode_state(data[:-1] + b"\x01", unsigned=True)


def test_high_level_commands_are_refused():
    bad = np.frombuffer(GOOD_COMMAND, np.uint8, offset=4).copy()
    bad[2] = 0xEE
    bad[804:] = np.frombuffer(struct.pack("<I", COMMAND.checksum(bad)), np.uint8)
    with pytest.raises(MalformedMessage, match="no low-level command"):
        decode_command(HEADER + bad.tobytes())
