"""Messages between a commander and a twin in another process that say how far simulated time goes.

Networks keep the order of messages within a channel only. So every message says how many of another channel precede it,
and who gets it waits for those. All numbers are eight-byte floats, so that the bytes are the same over LCM and DDS.
"""

from typing import Final

import numpy as np

from ncap.deploy.messages import TABLE, MalformedMessage

UNTIL_CHANNEL: Final = "ncap_twin_until"
TRUTH_CHANNEL: Final = "ncap_twin_truth"
UNTIL: Final = np.dtype([("time", "<f8"), ("commands", "<f8")])
"""The commander's question: the time until which to simulate, s, and how many commands it has sent before."""
TRUTH: Final = np.dtype(
    [
        ("time", "<f8"), ("states", "<f8"), ("position", "<f8", (3,)), ("up", "<f8", (3,)),
        ("joint_position", "<f8", TABLE), ("joint_velocity", "<f8", TABLE), ("torque", "<f8", TABLE),
        ("trunk_touches", "<f8"),
    ]
)  # fmt: skip
"""The twin's answer: its time, s, how many states it has sent before, and its simulated state."""
NUMBERS: Final = {UNTIL_CHANNEL: UNTIL.itemsize // 8, TRUTH_CHANNEL: TRUTH.itemsize // 8}
"""How many numbers a message of each channel has."""


def read_message(data: bytes, kind: np.dtype[np.void]) -> np.void:
    """The fields of a message; a MalformedMessage if it has another length."""
    if len(data) != kind.itemsize:
        raise MalformedMessage(f"{len(data)} bytes instead of {kind.itemsize}")
    fields: np.void = np.frombuffer(data, kind)[0]
    return fields
