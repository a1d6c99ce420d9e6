"""The run directory: configuration, provenance, progress, checkpoints, and the best and last policy.

config.json        the settings; a run is resumed with exactly these
circuit.json       the circuit's table, of a run that trains one
provenance.json    versions, commit, machine
progress.csv       one row per epoch
events.*           the same for TensorBoard
checkpoints/       the last two states, each complete or not there
finalists/         the policies among which the best is chosen in the end
best.safetensors   last.safetensors   policies
"""

import csv
import fcntl
import io
import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ncap import __version__
from ncap.errors import UserError
from ncap.events import append_scalars
from ncap.files import (
    check_regular,
    decode,
    decode_value,
    read_json,
    read_tensors,
    read_text,
    remove_leftovers,
    set_aside,
    shown,
    write_tensors,
    write_whole,
)

Array = NDArray[np.float64]

KEPT_CHECKPOINTS: Final = 2
_CONFIG, _PROGRESS, _EVENTS = "config.json", "progress.csv", "events.out.tfevents.0.ncap"
_CHECKPOINTS, _LAST = "checkpoints", "last.safetensors"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a run counts."""

    rollouts: float
    """Training episodes in whole ones."""
    steps: int
    """Control steps of training episodes."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Everything that a run needs to go on: nothing else influences what follows."""

    epoch: int
    """The next epoch to do."""
    tensors: dict[str, Array]
    facts: Facts


class BusyError(UserError):
    """The run directory belongs to another process at the moment."""


class Run:
    """A run directory, held by one process at a time. Use it in a `with` statement.

    tell: gets a sentence about every damaged file that was passed over or set aside.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self.folder, self.tell = folder, tell
        self.about: dict[str, Any] = {}
        """What the files of its policies say of it."""
        self._lock: int | None = None

    @classmethod
    def create(cls, folder: Path, config: dict[str, Any], tell: Callable[[str], None] = lambda _: None) -> Self:
        """A new run; its folder must not hold another."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise UserError(f"cannot create {shown(str(folder))}: {getattr(error, 'strerror', error)}") from None
        run = cls(folder, tell)
        run._acquire()
        try:
            if holds_run(folder):
                raise UserError(f"{folder} holds a run already: go on with it by --resume, or choose another --out")
            write_whole(folder / "provenance.json", json.dumps(provenance(), indent=1).encode())
            run.configure(config)
        except UserError:
            run.close()
            raise
        return run

    @classmethod
    def open(cls, folder: Path, tell: Callable[[str], None] = lambda _: None) -> Self:
        """An existing run, to go on with."""
        read_config(folder)
        run = cls(folder, tell)
        run._acquire()
        return run

    def configure(self, config: dict[str, Any]) -> None:
        """Write the configuration."""
        write_whole(self.folder / _CONFIG, json.dumps(config, indent=1).encode())

    def _acquire(self) -> None:
        """Lock the directory itself, so that there is no lock file that somebody could remove."""
        try:
            self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self.folder / _CHECKPOINTS).mkdir(exist_ok=True)
        except BlockingIOError:
            self.close()
            raise BusyError(f"another process is working on {self.folder}: wait for it, or stop it first") from None
        except OSError as error:
            self.close()
            raise UserError(f"cannot write in {self.folder}: {error.strerror}") from None
        for place in (self.folder, *(path for path in self.folder.iterdir() if path.is_dir())):
            remove_leftovers(place)

    @property
    def complete(self) -> bool:
        """Whether its last policy, which is written in the end, is there."""
        return (self.folder / _LAST).exists()

    def close(self) -> None:
        """Release the directory, so that another process can work in it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_aside(self, path: Path, reason: str) -> None:
        """Give a damaged file another name, so that the run can go on without it and nothing is lost."""
        self.tell(f"{path} is damaged ({reason}): it is set aside as {set_aside(path).name}")

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, then forget the oldest."""
        path = self.folder / _CHECKPOINTS / f"epoch-{checkpoint.epoch:06d}.safetensors"
        description = {"epoch": checkpoint.epoch, "facts": asdict(checkpoint.facts)}
        write_tensors(path, checkpoint.tensors, description)
        for old in self._checkpoints()[:-KEPT_CHECKPOINTS]:
            old.unlink(missing_ok=True)

    def latest(self, wanted: Mapping[str, tuple[int, ...]]) -> Checkpoint | None:
        """The newest checkpoint that is whole and has at least these arrays, by name with their shapes.

        A newer one that is damaged is told and passed over.
        """
        paths = self._checkpoints()
        for path in reversed(paths):
            try:
                return _checkpoint(path, wanted)
            except UserError as error:
                self.tell(f"{error}; the checkpoint before it is used")
        if paths:
            self.tell(f"no checkpoint in {self.folder} is whole: the run begins anew")
        return None

    def _checkpoints(self) -> list[Path]:
        return sorted((self.folder / _CHECKPOINTS).glob("epoch-*.safetensors"))

    def append_progress(self, row: dict[str, Any]) -> None:
        """Add a row to progress.csv and to TensorBoard's events. Before the checkpoint: a repeated row is dropped."""
        path, events = self.folder / _PROGRESS, self.folder / _EVENTS
        for place in (path, events):
            self._set_aside_unless_regular(place)
        table = _read_table(path)
        if table.columns and table.columns != list(row):
            self.set_aside(path, "it has other columns than this version writes")
        try:
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, fieldnames=list(row))
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
            scalars = {name: float(value) for name, value in row.items() if name != "epoch"}
            append_scalars(events, row["epoch"], scalars, time.time())
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}; checkpoints are safe, go on by --resume") from None

    def _set_aside_unless_regular(self, path: Path) -> None:
        if path.exists() or path.is_symlink():
            try:
                check_regular(path)
            except UserError as error:
                self.set_aside(path, str(error))

    def rewind_progress(self, epoch: int) -> None:
        """Drop rows from this epoch on, and a row that a crash cut short: they are about to be done again."""
        path = self.folder / _PROGRESS
        self._set_aside_unless_regular(path)
        table = _read_table(path)
        if table.damage:
            self.set_aside(path, table.damage)
        if not table.columns:
            path.unlink(missing_ok=True)
            return
        writer = csv.writer(text := io.StringIO())
        writer.writerow(table.columns)
        writer.writerows(row for row in table.rows if int(float(row[0])) < epoch)
        write_whole(path, text.getvalue().encode())


class _Table(NamedTuple):
    columns: list[str]
    rows: list[list[str]]
    """Rows with a number in every column."""
    damage: str
    """What is wrong with other rows, if anything; a last row that was cut short is no damage."""


def _read_table(path: Path) -> _Table:
    """The rows of a progress.csv, whatever happened to the file."""
    if not path.exists():
        return _Table([], [], "")
    try:
        lines = read_text(path).splitlines(keepends=True)
    except UserError as error:
        return _Table([], [], str(error))
    whole = [line for line in lines if line.endswith("\n")]
    try:
        columns, *rows = list(csv.reader(whole)) or [[]]
    except csv.Error as error:
        return _Table([], [], str(error))
    if not columns or columns[0] != "epoch":
        cut_short = not whole and all(line.startswith("epoch"[: len(line)]) for line in lines)
        return _Table([], [], "" if cut_short else "it has no header")
    good = [row for row in rows if len(row) == len(columns) and all(map(_is_number, row)) and float(row[0]) >= 0]
    return _Table(columns, good, "" if len(good) == len(rows) else f"{len(rows) - len(good)} of its rows are no rows")


def _is_number(text: str) -> bool:
    try:
        return not math.isinf(float(text))
    except ValueError:
        return False


def _checkpoint(path: Path, wanted: Mapping[str, tuple[int, ...]]) -> Checkpoint:
    tensors, description = read_tensors(path)
    for name, shape in wanted.items():
        if name not in tensors or tensors[name].shape != shape:
            found = tensors[name].shape if name in tensors else "missing"
            raise UserError(f"{path}: array {name} has the shape {shape} in such a run, but it is {found}")
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise UserError(f"{path}: array {name} is not finite")
    epoch = decode_value(int, description.get("epoch"), f"{path}: epoch")
    facts = decode(Facts, description.get("facts"), f"{path}: facts")
    if epoch < 0 or facts.rollouts < 0 or facts.steps < 0:
        raise UserError(f"{path}: epoch, rollouts and steps are not negative")
    return Checkpoint(epoch=epoch, tensors=tensors, facts=facts)


def holds_run(folder: Path) -> bool:
    """Whether a folder is a run directory."""
    try:
        return (folder / _CONFIG).exists()
    except (OSError, ValueError):
        return False


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run directory."""
    if not holds_run(folder):
        raise UserError(f"{shown(str(folder))} holds no run: there is no {_CONFIG} in it")
    config = read_json(folder / _CONFIG)
    if not isinstance(config, dict):
        raise UserError(f"{folder / _CONFIG} is {shown(config)}, not a table of settings")
    return config


def read_progress(folder: Path) -> list[dict[str, float]]:
    """Rows of progress.csv; those that are damaged are left out."""
    table = _read_table(folder / _PROGRESS)
    return [dict(zip(table.columns, map(float, row), strict=True)) for row in table.rows]


def provenance() -> dict[str, Any]:
    """Versions, commit, machine and time, which say where results come from."""
    packages = ("mujoco", "numpy", "scipy", "safetensors", "torch", "stable-baselines3")
    return {
        "ncap": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages},
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _version(package: str) -> str | None:
    """Version of a package; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the source tree, marked when it has changes; None outside of one."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
