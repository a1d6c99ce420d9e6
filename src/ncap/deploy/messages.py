"""The robot's messages: Unitree's packed LowState and LowCmd (SDK v3.3.1), to and from our own types.

This is the only file that knows Unitree's leg order (FR, FL, RR, RL) and its checksum; with `dds_messages`, which has
those of a Go2, it is the only one that knows layouts and the sign of the torque. Everything that leaves them is in
project order (FL, FR, HL, HR) and SI units.
"""

import struct
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.plan import LEGS
from ncap.rotations import rotation_of

Array = NDArray[np.float64]

STATE_CHANNEL: Final = "LCM_Low_State"
COMMAND_CHANNEL: Final = "LCM_Low_Cmd"
LOW_LEVEL: Final = 0xFF
MOTOR_ON: Final = 0x0A
POSITION_STOP: Final = 2.146e9
"""A motor's q that means: no position is commanded."""
DAMPING_KD: Final = 5.0
"""Gain of every joint while damping, N m s / rad: the robot sinks within a few seconds instead of falling."""

_LEGS: Final = np.array([1, 0, 3, 2])
"""Row i of our tables is leg _LEGS[i] of Unitree's. Its own inverse."""
_SLOTS: Final = 20
"""Motors that Unitree's messages have room for."""
_MOTORS: Final = 12
"""Motors that an A1 has."""
TABLE: Final = (len(LEGS), _MOTORS // len(LEGS))
"""Shape of joint tables: legs, and joints of a leg."""

_HEAD: Final = [("levelFlag", "u1"), ("commVersion", "<u2"), ("robotID", "<u2"), ("SN", "<u4"), ("bandWidth", "u1")]
_IMU: Final = np.dtype(
    [
        *((name, "<f4", (size,)) for name, size in (("quaternion", 4), ("gyroscope", 3), ("accelerometer", 3))),
        ("rpy", "<f4", (3,)),
        ("temperature", "i1"),
    ]
)
_MOTOR_STATE: Final = np.dtype(
    [
        ("mode", "u1"),
        *((name, "<f4") for name in ("q", "dq", "ddq", "tauEst", "q_raw", "dq_raw", "ddq_raw")),
        ("temperature", "i1"),
        ("reserve", "<u4", (2,)),
    ]
)
_MOTOR_COMMAND: Final = np.dtype(
    [("mode", "u1"), *((name, "<f4") for name in ("q", "dq", "tau", "Kp", "Kd")), ("reserve", "<u4", (3,))]
)
_TAIL: Final = [("wirelessRemote", "u1", (40,)), ("reserve", "<u4"), ("crc", "<u4")]
LOW_STATE: Final = np.dtype(
    [
        *_HEAD,
        ("imu", _IMU),
        ("motorState", _MOTOR_STATE, (_SLOTS,)),
        ("footForce", "<i2", (len(LEGS),)),
        ("footForceEst", "<i2", (len(LEGS),)),
        ("tick", "<u4"),
        *_TAIL,
    ]
)
LOW_COMMAND: Final = np.dtype([*_HEAD, ("motorCmd", _MOTOR_COMMAND, (_SLOTS,)), ("led", "u1", (4, 3)), *_TAIL])
STATE_BYTES: Final = 891
COMMAND_BYTES: Final = 730
if (LOW_STATE.itemsize, LOW_COMMAND.itemsize) != (STATE_BYTES, COMMAND_BYTES):
    raise AssertionError("the layout of the robot's messages is wrong")


class MalformedMessage(ValueError):
    """A datagram that is not what it should be. It is dropped and counted, never acted upon."""


class State(NamedTuple):
    """Measurements of a robot at one moment. Joint tables are (leg, 3)."""

    tick: int
    """The robot's clock, in ms or µs; calibration finds out which."""
    quaternion: Array
    """(4,) orientation of the trunk, w x y z."""
    angular_velocity: Array
    """(3,) of the trunk in its own frame, rad/s."""
    acceleration: Array
    """(3,) of the trunk in its own frame, gravity included, m/s²."""
    joint_position: Array
    """(leg, 3) in rad."""
    joint_velocity: Array
    """(leg, 3) in rad/s."""
    torque: Array
    """(leg, 3) positive in the joint's direction, N m."""
    temperature: Array
    """(leg, 3) of the motors, °C."""
    foot_force: Array
    """(leg,) raw, with an offset that drifts, about N."""

    @property
    def up(self) -> Array:
        """(3,) the vertical in the trunk's frame."""
        up: Array = rotation_of((self.quaternion / np.linalg.norm(self.quaternion))[None])[0, 2]
        return up


class Command(NamedTuple):
    """Targets and gains of all motors: torque = kp (position - q) - kd dq."""

    position: Array
    """(leg, 3) in rad."""
    kp: Array
    """(leg, 3) in N m / rad."""
    kd: Array
    """(leg, 3) in N m s / rad."""

    @property
    def is_damping(self) -> bool:
        """Whether it only brakes."""
        return not self.kp.any()


class Wire(NamedTuple):
    """A kind of messages: how a robot writes its states and reads commands, and how a commander does the reverse."""

    encode_state: Callable[[State, bytes], bytes]
    """From a state and the bytes of the remote."""
    decode_command: Callable[[bytes], Command]
    """Raises MalformedMessage for what is no command."""
    decode_state: Callable[[bytes], State]
    """Raises MalformedMessage for what is no state."""
    remote_in: Callable[[bytes], bytes]
    """The bytes of the remote in what is a state."""
    encode_command: Callable[[Command], bytes]


def damping_command() -> Command:
    """The command that brakes every joint and holds none."""
    return Command(np.full(TABLE, POSITION_STOP), np.zeros(TABLE), np.full(TABLE, DAMPING_KD))


def encode_state(state: State, remote: bytes = b"") -> bytes:
    """The LowState datagram of a state, as the robot sends it, with the bytes of its remote."""
    message = np.zeros((), LOW_STATE)
    message["levelFlag"] = LOW_LEVEL
    message["imu"]["quaternion"], message["imu"]["gyroscope"] = state.quaternion, state.angular_velocity
    message["imu"]["accelerometer"] = state.acceleration
    motors = message["motorState"][:_MOTORS]
    motors["mode"] = MOTOR_ON
    motors["q"], motors["dq"] = theirs(state.joint_position), theirs(state.joint_velocity)
    motors["tauEst"] = -theirs(state.torque)
    motors["temperature"] = theirs(state.temperature)
    message["footForce"] = np.clip(np.round(state.foot_force[_LEGS]), -32768, 32767)
    message["tick"] = state.tick % 2**32
    message["wirelessRemote"][: len(remote)] = np.frombuffer(remote, np.uint8)
    return _signed(message)


@np.errstate(invalid="ignore")  # NumPy warns of some NaNs that it widens
def decode_state(data: bytes) -> State:
    """The state in a LowState datagram. Whether its numbers make sense is for the safety layer to judge."""
    message = _checked(data, LOW_STATE)
    imu, motors = message["imu"], message["motorState"][:_MOTORS]
    return State(
        tick=int(message["tick"]),
        quaternion=imu["quaternion"].astype(np.float64),
        angular_velocity=imu["gyroscope"].astype(np.float64),
        acceleration=imu["accelerometer"].astype(np.float64),
        joint_position=ours(motors["q"]),
        joint_velocity=ours(motors["dq"]),
        torque=-ours(motors["tauEst"]),
        temperature=ours(motors["temperature"]),
        foot_force=message["footForce"][_LEGS].astype(np.float64),
    )


def remote_in(data: bytes) -> bytes:
    """The bytes of the remote in a LowState datagram that `decode_state` takes."""
    remote: NDArray[np.uint8] = np.frombuffer(data, LOW_STATE)[0]["wirelessRemote"]
    return remote.tobytes()


def encode_command(command: Command) -> bytes:
    """The LowCmd datagram of a command, as the robot expects it."""
    message = np.zeros((), LOW_COMMAND)
    message["levelFlag"] = LOW_LEVEL
    motors = message["motorCmd"][:_MOTORS]
    motors["mode"] = MOTOR_ON
    motors["q"], motors["Kp"], motors["Kd"] = (theirs(part) for part in command)
    return _signed(message)


@np.errstate(invalid="ignore")
def decode_command(data: bytes) -> Command:
    """The command in a LowCmd datagram."""
    motors = _checked(data, LOW_COMMAND)["motorCmd"][:_MOTORS]
    return Command(*(ours(motors[name]) for name in ("q", "Kp", "Kd")))


def command_for_sdk(command: Command) -> NDArray[np.float32]:
    """(60,) numbers for the SDK's Python module: q, Kp, dq, Kd, tau of every motor, in another order than LowCmd's."""
    numbers = np.zeros((_MOTORS, 5), np.float32)
    numbers[:, 0], numbers[:, 1], numbers[:, 3] = (theirs(part) for part in command)
    return numbers.ravel()


def state_from_sdk(observed: Any) -> State:
    """The state in the object that the SDK's Python module gives, which has the fields of LowState. Copies."""
    motors = observed.motorState[:_MOTORS]

    def table(name: str) -> Array:
        return ours(np.array([getattr(motor, name) for motor in motors], np.float64))

    return State(
        tick=int(observed.tick),
        quaternion=np.array(observed.imu.quaternion, np.float64),
        angular_velocity=np.array(observed.imu.gyroscope, np.float64),
        acceleration=np.array(observed.imu.accelerometer, np.float64),
        joint_position=table("q"),
        joint_velocity=table("dq"),
        torque=-table("tauEst"),
        temperature=table("temperature"),
        foot_force=np.array(observed.footForce, np.float64)[_LEGS],
    )


def checksum(data: bytes) -> int:
    """Unitree's CRC of a message: over its 32-bit words up to, and without, the last one that fits.

    It is the plain CRC-32 with polynomial 0x04C11DB7, started from all ones, that takes every little-endian word from
    its highest bit down, and is not inverted at the end. zlib's CRC-32 has the same polynomial but takes bytes from
    their lowest bit up and inverts the result. So: reverse all 32 bits of every word, let zlib do the work in C, undo
    the inversion, and reverse the 32 bits of the result.
    """
    words = len(data) // 4 - 1
    reversed_words = np.frombuffer(data, "<u4", words).byteswap().tobytes().translate(_REVERSED_BITS)
    reflected = zlib.crc32(reversed_words) ^ 0xFFFFFFFF
    return int.from_bytes(struct.pack("<I", reflected).translate(_REVERSED_BITS), "big")


_REVERSED_BITS: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _signed(message: NDArray[np.void]) -> bytes:
    message["crc"] = checksum(message.tobytes())
    return message.tobytes()


def _checked(data: bytes, layout: np.dtype[np.void]) -> NDArray[np.void]:
    if len(data) != layout.itemsize:
        raise MalformedMessage(f"{len(data)} bytes instead of {layout.itemsize}")
    message = np.frombuffer(data, layout)[0]
    if message["crc"] != checksum(data):
        raise MalformedMessage("the checksum does not fit")
    if message["levelFlag"] != LOW_LEVEL:
        raise MalformedMessage(f"level {int(message['levelFlag']):#x} instead of {LOW_LEVEL:#x}")
    result: NDArray[np.void] = message
    return result


def ours(motors: NDArray[Any]) -> Array:
    """(leg, 3) in our order of motors (12,) in Unitree's."""
    table: Array = motors.reshape(TABLE)[_LEGS].astype(np.float64)
    return table


def theirs(table: Array) -> Array:
    """(12,) motors in Unitree's order of a table (leg, 3) in ours."""
    motors: Array = table[_LEGS].reshape(_MOTORS)
    return motors


def swap_legs(values: Array) -> Array:
    """(leg,) from Unitree's order to ours, or back, which is the same."""
    swapped: Array = values[_LEGS]
    return swapped


WIRE: Final = Wire(encode_state, decode_command, decode_state, remote_in, encode_command)
"""These messages."""
