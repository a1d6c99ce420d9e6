import struct

import pytest

from ncap.events import append_scalars, crc32c


def test_crc32c_against_the_published_check_values():
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C in every catalogue
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4: 32 bytes of zeros


def frames(data):
    """Independent reader: checks both checksums of every frame."""
    place = 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        head, body = data[place : place + 8], data[place + 12 : place + 12 + length]
        for checked, at in ((head, place + 8), (body, place + 12 + length)):
            crc = crc32c(checked)
            assert (
                struct.unpack_from("<I", data, at)[0]
                == ((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + 0xA282EAD8 & 0xFFFFFFFF
            )
        yield body
        place += length + 16


def test_an_event_file_by_hand(tmp_path):
    append_scalars(tmp_path / "e", 300, {"return": 0.5}, wall_time=2.0)
    version, event = frames((tmp_path / "e").read_bytes())
    assert version == b"\x09" + struct.pack("<d", 2.0) + b"\x1a\x0dbrain.Event:2"
    # step 300 is the varint AC 02; summary { value { tag: "return", simple_value: 0.5 } }
    value = b"\x0a\x06return\x15" + struct.pack("<f", 0.5)
    assert event == b"\x09" + struct.pack("<d", 2.0) + b"\x10\xac\x02" + b"\x2a\x0f" + b"\x0a\x0d" + value


def test_events_are_appended(tmp_path):
    for step in range(3):
        append_scalars(tmp_path / "e", step, {"a": 1.0, "b": 2.0}, wall_time=1.0)
    assert len(list(frames((tmp_path / "e").read_bytes()))) == 4


def test_tensorboard_reads_them_where_it_is_installed(tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    append_scalars(tmp_path / "events.out.tfevents.1", 7, {"return": 0.25}, wall_time=1.0)
    *_, event = loader.LegacyEventFileLoader(str(tmp_path / "events.out.tfevents.1")).Load()
    assert (event.step, event.summary.value[0].tag, event.summary.value[0].simple_value) == (7, "return", 0.25)
