"""What this machine has: versions, cores, rendering back ends, extras. For people, and for bug reports."""

import importlib.metadata
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Final

import ncap
from ncap.extras import extras, package_of, requirements

#: Rendering without a display: MuJoCo's name of the back end and Debian's packages that it needs.
BACK_ENDS: Final = {"egl": "libegl1 libgl1-mesa-dri libopengl0", "osmesa": "libosmesa6"}


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Everything that `ncap doctor` shows."""

    python: str
    system: str
    cores: int
    packages: dict[str, str | None]
    """Version of every core dependency, None where it is missing."""
    extras: dict[str, list[str]]
    """For every extra, the packages that are missing; empty means present."""
    rendering: dict[str, bool] = field(default_factory=dict)
    """Whether MuJoCo can draw with a back end here."""


def diagnose() -> Diagnosis:
    """Look at this machine. Takes a few seconds, because every rendering back end is really tried."""
    needed = [package_of(line) for line in requirements()]
    packages = {"ncap": ncap.__version__} | {name: _version(name) for name in needed}
    missing = {
        extra: [name for name in map(package_of, requirements(extra)) if _version(name) is None] for extra in extras()
    }
    return Diagnosis(
        python=platform.python_version(),
        system=platform.platform(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        packages=packages,
        extras=missing,
        rendering={name: _can_render(name) for name in BACK_ENDS},
    )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _can_render(back_end: str) -> bool:
    """Whether MuJoCo opens a drawing context; asked in another process, because a failure can end the process."""
    program = "import mujoco; context = mujoco.GLContext(16, 16); context.make_current(); context.free()"
    environment = os.environ | {"MUJOCO_GL": back_end}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
