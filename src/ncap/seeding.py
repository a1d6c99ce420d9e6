"""One root seed, many independent streams.

A draw is addressed by (seed, stream name, numbers such as epoch and index), never by the order in which draws happen to
be made, so that results do not depend on threads, machines or interruptions.
"""

import zlib

import numpy as np

from ncap.errors import UserError


def generator(seed: int, stream: str, *address: int) -> np.random.Generator:
    """The random generator that belongs to an address. Seed and address are non-negative integers."""
    if not all(isinstance(part, int | np.integer) and part >= 0 for part in (seed, *address)):
        raise UserError(f"a seed is a number from 0 on, not {seed!r}")
    return np.random.default_rng([seed, zlib.crc32(stream.encode()), *address])
