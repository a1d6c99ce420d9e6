"""One commander per robot and machine, and the fault that stays until a person has looked at the robot."""

import fcntl
import re
import tempfile
from pathlib import Path
from typing import Self

from ncap.errors import UserError


class CommanderLock:
    """Held by the process that may command a robot. Its file keeps the last fault, which refuses the next commander."""

    def __init__(self, link: str, *, rearm: bool, folder: Path | None = None) -> None:
        name = re.sub(r"\W+", "-", link).strip("-")
        self.path = (folder or Path(tempfile.gettempdir())) / f"ncap-robot-{name}.lock"
        try:
            self._file = self.path.open("a+")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise UserError(f"another process commands the robot on {link}: stop it first") from None
        except OSError as error:
            raise UserError(f"cannot lock {self.path}: {error.strerror}") from None
        self._file.seek(0)
        fault = self._file.read().strip()
        if fault and not rearm:
            self._file.close()
            raise UserError(f"the last flight ended with a fault ({fault}): look at the robot, then add --rearm")
        self.latch("")

    def latch(self, fault: str) -> None:
        """Keep a fault for the next commander; an empty one forgets it."""
        self._file.truncate(0)
        self._file.write(fault)
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
