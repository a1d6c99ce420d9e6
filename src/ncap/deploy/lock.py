"""A lock per robot and user for the process that commands it; it also keeps the last fault until a person rearms."""

import fcntl
import os
import re
import stat
from pathlib import Path
from typing import Final, Self

from ncap.errors import UserError

LONGEST_FAULT: Final = 1000
"""Bytes of a fault's text that are kept."""


def state_folder() -> Path:
    """The user's folder for what must outlast a process: ncap in $XDG_STATE_HOME, or in ~/.local/state."""
    try:
        return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ncap"
    except RuntimeError:
        raise UserError("there is no home folder for the lock of the robot: set XDG_STATE_HOME") from None


class CommanderLock:
    """Lock of the process that may command a robot. Its file keeps the last fault, which refuses the next commander."""

    def __init__(self, link: str, *, rearm: bool, folder: Path | None = None) -> None:
        name = re.sub(r"\W+", "-", link.partition("?ttl=")[0]).strip("-")
        self.path = (folder or state_folder()) / f"robot-{name}.lock"
        self._file = _open_own(self.path)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise UserError(f"another process commands the robot on {link}: stop it first") from None
        fault = os.read(self._file, LONGEST_FAULT).decode("utf-8", "replace").strip()
        if fault and not rearm:
            os.close(self._file)
            raise UserError(f"the last flight ended with a fault ({fault}): look at the robot, then add --rearm")
        self.latch("")

    def latch(self, fault: str) -> None:
        """Write a fault for the next commander to find; an empty text clears it.

        The new text overwrites the old one before anything is cut off, so that on a full disk one of them remains.
        """
        text = fault.encode()[:LONGEST_FAULT]
        try:
            if os.pwrite(self._file, text, 0) == len(text):
                os.ftruncate(self._file, len(text))
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def _open_own(path: Path) -> int:
    """Descriptor of a regular file in a folder that is this user's alone; both are made if they are not there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            about = os.fstat(folder)
            if about.st_uid != os.getuid() or about.st_mode & 0o022:
                raise UserError(f"others may write into {path.parent}: a lock there protects nobody")
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(path.name, flags, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise UserError(f"cannot lock {path}: {error.strerror}; set XDG_STATE_HOME to a folder of your own") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise UserError(f"{path} is not a regular file: remove it")
    return file
