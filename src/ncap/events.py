"""Scalars for TensorBoard, written without it: TFRecord frames around hand-encoded Event messages.

A frame is length, masked CRC of the length, data, masked CRC of the data (little endian). Of the Event message only
wall_time (1), step (2), file_version (3) and summary (5) with tag (1) and simple_value (2) are needed.
"""

import struct
from functools import cache
from pathlib import Path


def scalar_event(step: int, values: dict[str, float], wall_time: float) -> bytes:
    """One framed event with several scalars."""
    summary = b"".join(
        _field(1, _field(1, tag.encode()) + struct.pack("<Bf", 0x15, value)) for tag, value in values.items()
    )
    return _frame(struct.pack("<Bd", 0x09, wall_time) + b"\x10" + _varint(step) + _field(5, summary))


def append_scalars(path: Path, step: int, values: dict[str, float], wall_time: float) -> None:
    """Append scalars to an event file, beginning it if necessary."""
    with path.open("ab") as file:
        if file.tell() == 0:
            file.write(_frame(struct.pack("<Bd", 0x09, wall_time) + _field(3, b"brain.Event:2")))
        file.write(scalar_event(step, values, wall_time))


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum."""
    table, crc = _crc_table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


def _frame(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data))


def _masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
