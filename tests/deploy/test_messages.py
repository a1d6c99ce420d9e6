"""The packed messages are those of SDK v3.3.1: sizes, offsets, order of legs, signs, checksum."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ncap.deploy.messages import (
    LOW_COMMAND,
    LOW_STATE,
    Command,
    MalformedMessage,
    checksum,
    command_for_sdk,
    damping_command,
    decode_command,
    decode_state,
    encode_command,
    encode_state,
)

FLOATS = arrays(np.float64, (4, 3), elements=st.floats(-1e6, 1e6, width=32))


def crc_bit_by_bit(bits: str) -> int:
    """CRC-32/MPEG-2 from its definition: shift, and subtract the polynomial whenever a 1 falls out."""
    register = 0xFFFFFFFF
    for bit in bits:
        out = (register >> 31) ^ int(bit)
        register = (register << 1) & 0xFFFFFFFF ^ (0x04C11DB7 if out else 0)
    return register


def words_highest_bit_first(data: bytes, words: int) -> str:
    return "".join(f"{word:032b}" for word in struct.unpack_from(f"<{words}I", data))


def test_sizes_and_offsets_are_those_of_the_headers():
    assert LOW_STATE.itemsize == 891
    assert LOW_COMMAND.itemsize == 730
    offsets = {name: LOW_STATE.fields[name][1] for name in LOW_STATE.names}
    assert {name: offsets[name] for name in ("imu", "motorState", "footForce", "footForceEst", "tick")} == {
        "imu": 10, "motorState": 63, "footForce": 823, "footForceEst": 831, "tick": 839,
    }  # fmt: skip
    assert [offsets[name] for name in ("wirelessRemote", "reserve", "crc")] == [843, 883, 887]
    offsets = {name: LOW_COMMAND.fields[name][1] for name in LOW_COMMAND.names}
    assert [offsets[n] for n in ("motorCmd", "led", "wirelessRemote", "reserve", "crc")] == [10, 670, 682, 722, 726]


def test_the_definition_in_this_test_gives_the_catalogued_check_value():
    assert crc_bit_by_bit("".join(f"{byte:08b}" for byte in b"123456789")) == 0x0376E6E7


@given(st.binary(min_size=730, max_size=730) | st.binary(min_size=891, max_size=891))
def test_the_checksum_is_the_defined_one_over_all_words_but_the_last(data):
    assert checksum(data) == crc_bit_by_bit(words_highest_bit_first(data, len(data) // 4 - 1))


@given(FLOATS, FLOATS, FLOATS)
def test_a_command_survives_its_message(position, kp, kd):
    read = decode_command(encode_command(Command(position, kp, kd)))
    for sent, received in zip((position, kp, kd), read, strict=True):
        np.testing.assert_array_equal(received, sent)


@given(FLOATS, FLOATS, FLOATS, st.integers(0, 2**32 - 1))
def test_a_state_survives_its_message(position, velocity, torque, tick):
    from ncap.deploy.messages import State

    state = State(
        tick, np.array([1.0, 0.5, 0.25, 0.0]), np.ones(3), np.ones(3), position, velocity, torque,
        np.arange(12.0).reshape(4, 3), np.array([1.0, -2.0, 300.0, 4.0]),
    )  # fmt: skip
    for sent, received in zip(state, decode_state(encode_state(state)), strict=True):
        np.testing.assert_array_equal(received, sent)


def test_motor_zero_is_the_front_right_hip_and_torque_changes_its_sign(a_state):
    # ours: FL, FR, HL, HR; Unitree's motors: FR 0-2, FL 3-5, RR 6-8, RL 9-11; 38 bytes each from 63, q at 1, tau at 13
    ours = np.array([[10.0, 11, 12], [20, 21, 22], [30, 31, 32], [40, 41, 42]])
    data = encode_state(a_state(joint_position=ours, torque=ours, foot_force=np.array([1.0, 2, 3, 4])))
    q = [struct.unpack_from("<f", data, 63 + 38 * motor + 1)[0] for motor in range(12)]
    torque = [struct.unpack_from("<f", data, 63 + 38 * motor + 13)[0] for motor in range(12)]
    assert q == [20, 21, 22, 10, 11, 12, 40, 41, 42, 30, 31, 32]
    assert torque == [-value for value in q]
    assert struct.unpack_from("<4h", data, 823) == (2, 1, 4, 3)
    command = encode_command(Command(ours, 2 * ours, 3 * ours))
    assert struct.unpack_from("<Bfffff", command, 10) == (0x0A, 20.0, 0.0, 0.0, 40.0, 60.0)
    assert set(command[10 + 12 * 33 : 670]) == {0}  # motors 12 to 19 are off


def test_the_sdk_module_gets_q_kp_dq_kd_tau_of_every_motor():
    ours = np.array([[10.0, 11, 12], [20, 21, 22], [30, 31, 32], [40, 41, 42]])
    numbers = command_for_sdk(Command(ours, 2 * ours, 3 * ours))
    assert numbers.shape == (60,)
    assert numbers[:10].tolist() == [20, 40, 0, 60, 0, 21, 42, 0, 63, 0]


def test_damping_brakes_every_joint_and_holds_none():
    data = encode_command(damping_command())
    for motor in range(12):
        mode, q, dq, tau, kp, kd = struct.unpack_from("<Bfffff", data, 10 + 33 * motor)
        assert (mode, dq, tau, kp) == (0x0A, 0.0, 0.0, 0.0)
        assert q == pytest.approx(2.146e9)
        assert kd > 0


@pytest.mark.parametrize("size", [0, 1, 730, 890, 892, 65_000])
def test_datagrams_of_another_size_are_refused(size):
    with pytest.raises(MalformedMessage, match=f"{size} bytes instead of 891"):
        decode_state(bytes(size))


@given(st.integers(0, 883), st.integers(0, 7))
def test_a_single_wrong_bit_is_seen(byte, bit):
    good = bytearray(encode_command(damping_command()) if byte < 724 else bytes(891))
    if byte < 724:
        good[byte] ^= 1 << bit
        with pytest.raises(MalformedMessage, match="checksum"):
            decode_command(bytes(good))
    else:
        before = checksum(bytes(good))
        good[byte] ^= 1 << bit
        assert checksum(bytes(good)) != before


def test_high_level_messages_are_refused(a_state):
    data = bytearray(encode_state(a_state()))
    data[0] = 0x00
    data[887:891] = struct.pack("<I", checksum(bytes(data)))
    with pytest.raises(MalformedMessage, match="level 0x0"):
        decode_state(bytes(data))
