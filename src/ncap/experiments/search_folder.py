"""The folder of a search: its settings, and a line per finished generation. One process works in it at a time.

Going on after an interruption replays the lines. A line that is not whole, and all after it, are done again.
"""

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

from ncap.errors import UserError
from ncap.files import decode_value, parse_json, read_json, read_text, set_aside, write_whole
from ncap.runs import BusyError

_SETTINGS, _LOG = "search.json", "generations.jsonl"
_COLUMNS: Final[dict[str, Any]] = {
    "generation": int,
    "losses": list[float],
    "numbers": dict[str, dict[str, float]],
    "terms": dict[str, float],
}
"""What a line holds, and of which type; the last two only where a generation was validated."""


class SearchFolder:
    """A folder that this process holds. Use it in a `with` statement."""

    def __init__(
        self, folder: Path, settings: dict[str, Any], validates: Callable[[int], bool], tell: Callable[[str], None]
    ) -> None:
        """Hold the folder of a search with these settings.

        validates: says whether the line of a generation has the terms of a validation. tell: gets a sentence about
        everything that is damaged.
        """
        self._folder, self._tell = folder, tell
        self._log = folder / _LOG
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise UserError(f"cannot create {folder}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._check_settings(settings)
            self.records = self._read_log(settings["population"], validates)
            """Finished generations of an earlier process."""
        except BlockingIOError:
            os.close(self._lock)
            raise BusyError(f"another process is working on {folder}: wait for it, or stop it first") from None
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def append(self, record: dict[str, Any]) -> None:
        """Add the line of a generation."""
        try:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(record) + "\n")
        except OSError as error:
            raise UserError(
                f"cannot write {self._log}: {error.strerror}; the same command goes on from {self._folder}"
            ) from None

    def _check_settings(self, settings: dict[str, Any]) -> None:
        path = self._folder / _SETTINGS
        if path.exists():
            try:
                found = read_json(path)
            except UserError as error:
                self._set_aside(path, str(error))
            else:
                if found != settings:
                    raise UserError(f"{self._folder} holds another search (see {_SETTINGS}): choose another folder")
        if not path.exists() and self._log.exists():
            self._set_aside(self._log, f"{_SETTINGS}, which says of which search it is, is not there")
        write_whole(path, (json.dumps(settings, indent=1) + "\n").encode())

    def _read_log(self, population: int, validates: Callable[[int], bool]) -> list[dict[str, Any]]:
        if not self._log.exists():
            return []
        try:
            lines = read_text(self._log).splitlines(keepends=True)
        except UserError as error:
            self._set_aside(self._log, str(error))
            return []
        records: list[dict[str, Any]] = []
        for line in lines:
            try:
                records.append(_record(line, len(records), population, validates))
            except UserError as error:
                if line is not lines[-1] or line.endswith("\n"):  # otherwise a kill has cut it short
                    self._tell(f"{self._log}: {error}; what follows is done again")
                break
        write_whole(self._log, "".join(lines[: len(records)]).encode())
        return records

    def _set_aside(self, path: Path, reason: str) -> None:
        self._tell(f"{path} is set aside as {set_aside(path).name} ({reason})")


def _record(line: str, generation: int, population: int, validates: Callable[[int], bool]) -> dict[str, Any]:
    """The generation in a line, if it is whole and the one that is due."""
    what = f"line {generation + 1}"
    data = parse_json(line, what)
    if not (line.endswith("\n") and isinstance(data, dict) and set(data) <= set(_COLUMNS)):
        raise UserError(f"{what} is no generation")
    found = {name: decode_value(_COLUMNS[name], value, f"{what}: {name}") for name, value in data.items()}
    if found.get("generation") != generation or len(found.get("losses", ())) != population:
        raise UserError(f"{what} is not that of generation {generation} with {population} losses")
    if ("terms" in found) != validates(generation):
        raise UserError(f"{what}: terms are {'missing' if validates(generation) else 'there without a validation'}")
    return found
