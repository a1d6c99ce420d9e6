"""CPU time spent in functions of ncap and MuJoCo while something else calls them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


@contextmanager
def timed(owner: type, name: str) -> Iterator[list[float]]:
    """Collect the CPU seconds of every call of a method of a class within this context, calls inside it included."""
    method, seconds = getattr(owner, name), []

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        started = time.process_time()
        try:
            return method(*args, **kwargs)
        finally:
            seconds.append(time.process_time() - started)

    setattr(owner, name, call)
    try:
        yield seconds
    finally:
        setattr(owner, name, method)
