"""The DDS types of Unitree's topics and a stepped twin's, of which only the description is used: samples are CDR bytes.

Every byte is declared as `byte`, never as `uint8`. Cyclone DDS 11 describes uint8 by a kind that the robot's version
(0.10.2) does not know, and a peer of that version crashes when it hears of the type. Declared so, the descriptions of
LowCmd_ and LowState_ are equal, byte for byte, to those of Unitree's SDK; a test compares their hashes.

This file needs cyclonedds; `ncap.deploy.dds_end` imports it when a DDS link is opened.
"""

from typing import Any, Final

from cyclonedds.idl import make_idl_struct
from cyclonedds.idl.types import array, byte, float32, float64, int16, int32, int64, sequence, uint16, uint32

from ncap.deploy.dds_messages import COMMAND_FIELDS, COMMAND_TOPIC, STATE_FIELDS, STATE_TOPIC, Fields
from ncap.deploy.motion_service import REQUEST_TOPIC, RESPONSE_TOPIC
from ncap.deploy.steps import NUMBERS

_NUMBERS: Final = {
    "u1": byte, "<i2": int16, "<u2": uint16, "<i4": int32, "<u4": uint32, "<f4": float32, "<i8": int64,
}  # fmt: skip
_STRUCTS: Final = {
    "imu_state": "IMUState_",
    "motor_state": "MotorState_",
    "bms_state": "BmsState_",
    "motor_cmd": "MotorCmd_",
    "bms_cmd": "BmsCmd_",
}


def _struct(package: str, name: str, fields: dict[str, Any]) -> Any:
    """A type that Cyclone DDS can describe to its peers, with its package's name as in C++."""
    return make_idl_struct(name, f"{package}.msg.dds_.{name}", fields)


def _go(name: str, fields: Fields) -> Any:
    """The type of a struct of unitree_go."""
    types: dict[str, Any] = {}
    for field, kind, number in fields:
        one = _NUMBERS[kind] if isinstance(kind, str) else _go(_STRUCTS[field], kind)
        types[field] = one if number == 1 else array[one, number]
    return _struct("unitree_go", name, types)


def _raw(described: Any) -> Any:
    """The same type, whose samples are CDR bytes: nothing is taken apart or put together on the way."""

    def start(self: Any, cdr: bytes) -> None:
        self.cdr, self.sample_info = cdr, None

    def serialize(self: Any, **_: object) -> bytes:
        cdr: bytes = self.cdr
        return cdr

    def deserialize(cls: Any, /, data: bytes, **_: object) -> Any:
        return cls(data)

    described.__init__, described.serialize = start, serialize
    described.deserialize = described.deserialize_key = classmethod(deserialize)
    return described


_IDENTITY: Final = _struct("unitree_api", "RequestIdentity_", {"id": int64, "api_id": int64})
_REQUEST_HEADER: Final = _struct(
    "unitree_api",
    "RequestHeader_",
    {
        "identity": _IDENTITY,
        "lease": _struct("unitree_api", "RequestLease_", {"id": int64}),
        "policy": _struct("unitree_api", "RequestPolicy_", {"priority": int32, "noreply": bool}),
    },
)
_RESPONSE_HEADER: Final = _struct(
    "unitree_api",
    "ResponseHeader_",
    {"identity": _IDENTITY, "status": _struct("unitree_api", "ResponseStatus_", {"code": int32})},
)

TYPES: Final[dict[str, Any]] = {
    STATE_TOPIC: _raw(_go("LowState_", STATE_FIELDS)),
    COMMAND_TOPIC: _raw(_go("LowCmd_", COMMAND_FIELDS)),
    REQUEST_TOPIC: _raw(
        _struct("unitree_api", "Request_", {"header": _REQUEST_HEADER, "parameter": str, "binary": sequence[byte]})
    ),
    RESPONSE_TOPIC: _raw(
        _struct("unitree_api", "Response_", {"header": _RESPONSE_HEADER, "data": str, "binary": sequence[byte]})
    ),
    **{
        topic: _raw(_struct("ncap", f"{topic}_", {"numbers": array[float64, number]}))
        for topic, number in NUMBERS.items()
    },
}
"""Type of every topic that is read or written here."""
