"""A Go2's messages over DDS: Unitree's LowState_ and LowCmd_ (unitree_go) as CDR bytes, to and from our own types.

CDR is DDS's encoding: a header of four bytes, then every number at a multiple of its own size, little endian. The
checksum in the messages is not over these bytes but over the same fields laid out as a C compiler does.

Other than on an A1, the estimated torque is positive in the joint's direction (unitree_mujoco fills in the actuator's
force). This file needs NumPy only; DDS itself is spoken by `ncap.deploy.dds_end`.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.messages import (
    LOW_LEVEL,
    POSITION_STOP,
    TABLE,
    Array,
    Command,
    MalformedMessage,
    State,
    Wire,
    checksum,
    ours,
    swap_legs,
    theirs,
)
from ncap.rotations import rotation_of

STATE_TOPIC: Final = "rt/lowstate"
COMMAND_TOPIC: Final = "rt/lowcmd"
HEADER: Final = b"\x00\x01\x00\x00"
"""First bytes of a sample: plain CDR, little endian."""
HEAD: Final = (0xFE, 0xEF)
"""First bytes of both messages."""
SERVO: Final = 0x01
"""Mode of a motor that follows its targets; 0 is a motor that is off."""
VELOCITY_STOP: Final = 16_000.0
"""A motor's dq that means: no velocity is commanded."""
_MOTORS: Final = TABLE[0] * TABLE[1]
_SLOTS: Final = 20
"""Motors that the messages have room for."""

Fields = Sequence[tuple[str, Any, int]]
"""(name, format, number) of the fields of a struct. A format is one of NumPy's, or the fields of another struct."""

_IMU: Final[Fields] = (
    ("quaternion", "<f4", 4), ("gyroscope", "<f4", 3), ("accelerometer", "<f4", 3), ("rpy", "<f4", 3),
    ("temperature", "u1", 1),
)  # fmt: skip
_MOTOR_STATE: Final[Fields] = (
    ("mode", "u1", 1), ("q", "<f4", 1), ("dq", "<f4", 1), ("ddq", "<f4", 1), ("tau_est", "<f4", 1),
    ("q_raw", "<f4", 1), ("dq_raw", "<f4", 1), ("ddq_raw", "<f4", 1), ("temperature", "u1", 1), ("lost", "<u4", 1),
    ("reserve", "<u4", 2),
)  # fmt: skip
_MOTOR_COMMAND: Final[Fields] = (
    ("mode", "u1", 1), ("q", "<f4", 1), ("dq", "<f4", 1), ("tau", "<f4", 1), ("kp", "<f4", 1), ("kd", "<f4", 1),
    ("reserve", "<u4", 3),
)  # fmt: skip
_BATTERY_STATE: Final[Fields] = (
    ("version_high", "u1", 1), ("version_low", "u1", 1), ("status", "u1", 1), ("soc", "u1", 1), ("current", "<i4", 1),
    ("cycle", "<u2", 1), ("bq_ntc", "u1", 2), ("mcu_ntc", "u1", 2), ("cell_vol", "<u2", 15),
)  # fmt: skip
_BATTERY_COMMAND: Final[Fields] = (("off", "u1", 1), ("reserve", "u1", 3))
_BEGIN: Final[Fields] = (
    ("head", "u1", 2), ("level_flag", "u1", 1), ("frame_reserve", "u1", 1), ("sn", "<u4", 2), ("version", "<u4", 2),
    ("bandwidth", "<u2", 1),
)  # fmt: skip
STATE_FIELDS: Final[Fields] = (
    *_BEGIN, ("imu_state", _IMU, 1), ("motor_state", _MOTOR_STATE, _SLOTS), ("bms_state", _BATTERY_STATE, 1),
    ("foot_force", "<i2", 4), ("foot_force_est", "<i2", 4), ("tick", "<u4", 1), ("wireless_remote", "u1", 40),
    ("bit_flag", "u1", 1), ("adc_reel", "<f4", 1), ("temperature_ntc1", "u1", 1), ("temperature_ntc2", "u1", 1),
    ("power_v", "<f4", 1), ("power_a", "<f4", 1), ("fan_frequency", "<u2", 4), ("reserve", "<u4", 1), ("crc", "<u4", 1),
)  # fmt: skip
COMMAND_FIELDS: Final[Fields] = (
    *_BEGIN, ("motor_cmd", _MOTOR_COMMAND, _SLOTS), ("bms_cmd", _BATTERY_COMMAND, 1), ("wireless_remote", "u1", 40),
    ("led", "u1", 12), ("fan", "u1", 2), ("gpio", "u1", 1), ("reserve", "<u4", 1), ("crc", "<u4", 1),
)  # fmt: skip


class Place(NamedTuple):
    """Where a number is in a message, bytes from its beginning."""

    cdr: int
    struct: int
    """Its place in the C struct."""
    format: str


class Layout:
    """Places of all numbers of a message, in CDR and in C, and the way from the one to the other."""

    def __init__(self, fields: Fields) -> None:
        self.places: dict[str, list[Place]] = {}
        """Places of every field by its name, those within structs like motor_cmd.q, one per number."""
        self.size, self.struct_size, _ = self._walk(fields, "", 0, 0)
        source = np.full(self.struct_size, self.size)  # what C fills up reads the zero behind the message
        for place in (place for places in self.places.values() for place in places):
            for byte in range(np.dtype(place.format).itemsize):
                source[place.struct + byte] = place.cdr + byte
        self._source = source

    def _walk(self, fields: Fields, prefix: str, cdr: int, struct: int) -> tuple[int, int, int]:
        """(end in CDR, end in C, alignment in C) of fields that begin at these places."""
        widest = 1
        for name, kind, number in fields:
            for _ in range(number):
                if isinstance(kind, str):
                    size = np.dtype(kind).itemsize
                    cdr, struct = _up(cdr, size), _up(struct, size)
                    self.places.setdefault(prefix + name, []).append(Place(cdr, struct, kind))
                    cdr, struct, widest = cdr + size, struct + size, max(widest, size)
                else:
                    struct = _up(struct, 4)  # every struct here has a number of four bytes, or is made of bytes
                    cdr, struct, inner = self._walk(kind, f"{prefix}{name}.", cdr, struct)
                    widest = max(widest, inner)
        return cdr, _up(struct, widest), widest

    def table(self, names: Sequence[str]) -> np.dtype[np.void]:
        """A view of some fields of the message that are not the motors'."""
        formats = []
        for name in names:
            places = self.places[name]
            formats.append((places[0].format, (len(places),)) if len(places) > 1 else places[0].format)
        offsets = [self.places[name][0].cdr for name in names]
        return np.dtype({"names": list(names), "formats": formats, "offsets": offsets, "itemsize": self.size})

    def columns(self, name: str) -> NDArray[np.intp]:
        """(slot,) places of a field of the motors, counted in numbers of its own size."""
        return np.array([place.cdr // np.dtype(place.format).itemsize for place in self.places[name]])

    def checksum(self, message: NDArray[np.uint8]) -> int:
        """Unitree's checksum of a message (size,) of bytes."""
        return checksum(np.append(message, np.uint8(0))[self._source].tobytes())


def _up(offset: int, size: int) -> int:
    return -(-offset // size) * size


STATE: Final = Layout(STATE_FIELDS)
COMMAND: Final = Layout(COMMAND_FIELDS)
STATE_BYTES: Final = len(HEADER) + 1176
COMMAND_BYTES: Final = len(HEADER) + 808
if (STATE.size, COMMAND.size, STATE.struct_size, COMMAND.struct_size) != (1176, 808, 1180, 812):
    raise AssertionError("the layout of the Go2's messages is wrong")
_STATE: Final = STATE.table(
    [
        "head", "level_flag", "imu_state.quaternion", "imu_state.gyroscope", "imu_state.accelerometer", "imu_state.rpy",
        "imu_state.temperature", "foot_force", "tick", "wireless_remote", "crc",
    ]
)  # fmt: skip
_COMMAND: Final = COMMAND.table(["head", "level_flag", "crc"])
_STATE_MODE, _STATE_Q, _STATE_DQ, _STATE_TORQUE, _STATE_HOT = (
    STATE.columns(f"motor_state.{name}")[:_MOTORS] for name in ("mode", "q", "dq", "tau_est", "temperature")
)
_MODE, _Q, _DQ, _KP, _KD = (COMMAND.columns(f"motor_cmd.{name}") for name in ("mode", "q", "dq", "kp", "kd"))
IMU_TEMPERATURE: Final = 40
"""Temperature of the motion sensor that a twin reports, °C."""


def encode_state(state: State, remote: bytes = b"") -> bytes:
    """The LowState_ of a state, as the robot writes it, with the bytes of its remote."""
    data, message, floats = _blank(STATE, _STATE)
    message["head"], message["level_flag"] = HEAD, LOW_LEVEL
    message["imu_state.quaternion"], message["imu_state.gyroscope"] = state.quaternion, state.angular_velocity
    message["imu_state.accelerometer"], message["imu_state.rpy"] = state.acceleration, _rpy(state.quaternion)
    message["imu_state.temperature"] = IMU_TEMPERATURE
    floats[_STATE_Q], floats[_STATE_DQ] = theirs(state.joint_position), theirs(state.joint_velocity)
    floats[_STATE_TORQUE] = theirs(state.torque)
    data[_STATE_MODE], data[_STATE_HOT] = SERVO, np.clip(theirs(state.temperature), 0, 255)
    message["foot_force"] = swap_legs(np.clip(np.round(state.foot_force), -32768, 32767))
    message["tick"] = state.tick % 2**32
    message["wireless_remote"][: len(remote)] = np.frombuffer(remote, np.uint8)
    return _signed(STATE, data, message)


@np.errstate(invalid="ignore")  # NumPy warns of some NaNs that it widens
def decode_state(data: bytes, *, unsigned: bool = False) -> State:
    """The state in a LowState_. Whether its numbers make sense is for the safety layer to judge.

    unsigned: a checksum of 0 is accepted as well, for simulators that do not fill it in.
    """
    bytes_, message, floats = _read(data, STATE, _STATE, unsigned=unsigned)
    return State(
        tick=int(message["tick"]),
        quaternion=message["imu_state.quaternion"].astype(np.float64),
        angular_velocity=message["imu_state.gyroscope"].astype(np.float64),
        acceleration=message["imu_state.accelerometer"].astype(np.float64),
        joint_position=ours(floats[_STATE_Q]),
        joint_velocity=ours(floats[_STATE_DQ]),
        torque=ours(floats[_STATE_TORQUE]),
        temperature=ours(bytes_[_STATE_HOT]),
        foot_force=swap_legs(message["foot_force"].astype(np.float64)),
    )


def remote_in(data: bytes) -> bytes:
    """The bytes of the remote in a LowState_ that `decode_state` takes."""
    remote: NDArray[np.uint8] = np.frombuffer(data, _STATE, 1, len(HEADER))[0]["wireless_remote"]
    return remote.tobytes()


def encode_command(command: Command) -> bytes:
    """The LowCmd_ of a command, as the robot expects it. Motors that the legs do not have are off, at stop values."""
    data, message, floats = _blank(COMMAND, _COMMAND)
    message["head"], message["level_flag"] = HEAD, LOW_LEVEL
    data[_MODE[:_MOTORS]] = SERVO
    floats[_Q], floats[_DQ[_MOTORS:]] = POSITION_STOP, VELOCITY_STOP
    floats[_Q[:_MOTORS]], floats[_KP[:_MOTORS]], floats[_KD[:_MOTORS]] = (theirs(part) for part in command)
    return _signed(COMMAND, data, message)


@np.errstate(invalid="ignore")
def decode_command(data: bytes) -> Command:
    """The command in a LowCmd_."""
    _, message, floats = _read(data, COMMAND, _COMMAND)
    if (*message["head"], message["level_flag"]) != (*HEAD, LOW_LEVEL):
        raise MalformedMessage("no low-level command")
    return Command(*(ours(floats[places[:_MOTORS]]) for places in (_Q, _KP, _KD)))


WIRE: Final = Wire(encode_state, decode_command, decode_state, remote_in, encode_command)
"""These messages."""


def _blank(layout: Layout, view: np.dtype[np.void]) -> tuple[NDArray[np.uint8], NDArray[np.void], NDArray[np.float32]]:
    """(bytes, fields, four-byte floats) of a message of zeros."""
    data = np.zeros(layout.size, np.uint8)
    return data, data.view(view)[0], data.view("<f4")


def _read(
    data: bytes, layout: Layout, view: np.dtype[np.void], *, unsigned: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.void], NDArray[np.float32]]:
    """(bytes, fields, four-byte floats) of a message that is what it should be."""
    size = len(HEADER) + layout.size
    if len(data) != size:
        raise MalformedMessage(f"{len(data)} bytes instead of {size}")
    if data[:2] != HEADER[:2]:
        raise MalformedMessage("not plain CDR")
    message = np.frombuffer(data, np.uint8, offset=len(HEADER))
    fields, floats = message.view(view)[0], message.view("<f4")
    if fields["crc"] != layout.checksum(message) and not (unsigned and fields["crc"] == 0):
        raise MalformedMessage("the checksum does not fit")
    return message, fields, floats


def _signed(layout: Layout, data: NDArray[np.uint8], message: NDArray[np.void]) -> bytes:
    message["crc"] = layout.checksum(data)
    return HEADER + data.tobytes()


def _rpy(quaternion: Array) -> Array:
    """(3,) roll, pitch and yaw of a trunk, rad."""
    rotation = rotation_of(quaternion[None])[0]
    pitch = -np.arcsin(np.clip(rotation[2, 0], -1.0, 1.0))
    return np.array([np.arctan2(rotation[2, 1], rotation[2, 2]), pitch, np.arctan2(rotation[1, 0], rotation[0, 0])])
