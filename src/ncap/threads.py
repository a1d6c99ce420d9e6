"""BLAS on one thread, around our own work: our matrices are small and work is parallel over simulations.

Unpinned BLAS threads make small products many times slower on a busy machine, and results dependent on the core count.
A program of somebody else that imports ncap keeps its own setting outside of our functions.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread within this context, and as many as before after it. Also a decorator."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> Any:
    """The loaded BLAS libraries, looked up once: that takes milliseconds, setting them takes microseconds."""
    import numpy  # noqa: F401 - loads the library that is meant
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()


def pin_process() -> None:
    """Let this whole process and its children use one BLAS thread: for programs of our own."""
    for variable in _VARIABLES:
        os.environ[variable] = "1"
    if "numpy" in sys.modules:  # too late for the environment: ask the loaded libraries themselves
        import threadpoolctl

        threadpoolctl.threadpool_limits(1, user_api="blas")
