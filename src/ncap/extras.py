"""Optional packages: which belong to which extra, and the command that installs what is missing here."""

import importlib.metadata
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Final

from ncap.errors import UserError

_OF_AN_EXTRA: Final = re.compile(r";.*\bextra == ['\"](?P<extra>[\w-]+)['\"]")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")


def requirements(extra: str | None = None) -> list[str]:
    """Return what ncap needs, as pip writes it: always, or for an extra. Empty where ncap was not installed by pip."""
    try:
        lines = importlib.metadata.requires("ncap") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = [(line.split(";")[0].strip(), _OF_AN_EXTRA.search(line)) for line in lines]
    return [text for text, match in found if (match["extra"] if match else None) == extra]


def extras() -> list[str]:
    """Return the names of all extras."""
    try:
        return importlib.metadata.metadata("ncap").get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def package_of(requirement: str) -> str:
    """Return the name of a requirement's package: "viser" of "viser<1.2,>=1.1"."""
    match = _NAME.match(requirement)
    return match[0] if match else requirement


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation: of a clone, or of a wheel from anywhere."""
    clone = _clone()
    if clone is not None:
        return f"{_pip()} install -e {shlex.quote(f'{_short(clone)}[{extra}]')}"
    return f"{_pip()} install {shlex.join(requirements(extra))}"


def missing_extra(what: str, extra: str) -> UserError:
    """Make the error for something that needs an extra which is not installed."""
    return UserError(f"{what} needs the extra {extra}: {install_command(extra)}")


def _clone() -> Path | None:
    """Return the clone whose sources are being run, or None if they were copied into the installation."""
    folder = Path(__file__).resolve().parents[2]
    return folder if (folder / "pyproject.toml").is_file() and (folder / "src" / "ncap").is_dir() else None


def _pip() -> str:
    return f"{shlex.quote(_short(Path(sys.executable)))} -m pip"


def _short(path: Path) -> str:
    """Return a path as seen from the working directory, if it lies in it."""
    try:
        return os.fspath(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return os.fspath(path)
