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
import os
import platform
import subprocess
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ncap import __version__
from ncap.errors import UserError
from ncap.events import append_scalars
from ncap.files import read_tensors, write_tensors, write_whole

Array = NDArray[np.float64]

KEPT_CHECKPOINTS: Final = 2
_CONFIG, _PROGRESS, _EVENTS = "config.json", "progress.csv", "events.out.tfevents.0.ncap"
_LAST: Final = "last.safetensors"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Everything that a run needs to go on: nothing else influences what follows."""

    epoch: int
    """The next epoch to do."""
    tensors: dict[str, Array]
    facts: dict[str, Any]
    """Small values, as JSON."""


class BusyError(UserError):
    """The run directory belongs to another process at the moment."""


class Run:
    """A run directory, held by one process at a time. Use it in a `with` statement."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.folder, self.config = folder, config
        self._lock: io.TextIOWrapper | None = None

    @classmethod
    def create(cls, folder: Path, config: dict[str, Any]) -> Self:
        """A new run; its folder must not hold another."""
        if holds_run(folder):
            raise UserError(f"{folder} holds a run already: go on with it by --resume, or choose another --out")
        try:
            (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot create {folder}: {error.strerror}") from None
        run = cls(folder, config)
        run._acquire()
        try:
            write_whole(folder / "provenance.json", json.dumps(provenance(), indent=1).encode())
            write_whole(folder / _CONFIG, json.dumps(config, indent=1).encode())
        except UserError:
            run.close()
            raise
        return run

    @classmethod
    def open(cls, folder: Path) -> Self:
        """An existing run, to go on with."""
        run = cls(folder, read_config(folder))
        run._acquire()
        return run

    def _acquire(self) -> None:
        try:
            self._lock = (self.folder / ".lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise BusyError(f"another process is working on {self.folder}: wait for it, or stop it first") from None
        except OSError as error:
            raise UserError(f"cannot write in {self.folder}: {error.strerror}") from None

    @property
    def complete(self) -> bool:
        """Whether its last policy, which is written in the end, is there."""
        return (self.folder / _LAST).exists()

    def close(self) -> None:
        """Release the directory, so that another process can work in it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, then forget the oldest."""
        path = self.folder / "checkpoints" / f"epoch-{checkpoint.epoch:06d}.safetensors"
        write_tensors(path, checkpoint.tensors, {"epoch": checkpoint.epoch, "facts": checkpoint.facts})
        for old in self._checkpoints()[:-KEPT_CHECKPOINTS]:
            old.unlink(missing_ok=True)

    def latest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, and what is wrong with newer ones."""
        complaints: list[str] = []
        for path in reversed(self._checkpoints()):
            try:
                tensors, description = read_tensors(path)
                return Checkpoint(epoch=description["epoch"], tensors=tensors, facts=description["facts"]), complaints
            except UserError as error:
                complaints.append(str(error))
        return None, complaints

    def _checkpoints(self) -> list[Path]:
        return sorted((self.folder / "checkpoints").glob("epoch-*.safetensors"))

    def append_progress(self, row: dict[str, Any]) -> None:
        """Add a row to progress.csv and to TensorBoard's events."""
        path = self.folder / _PROGRESS
        try:
            with path.open("a+", newline="") as file:
                file.seek(0)
                columns = next(csv.reader(file), None)
                writer = csv.DictWriter(file, fieldnames=list(row))
                if columns is None:
                    writer.writeheader()
                elif columns != list(row):
                    raise UserError(f"{path} has other columns: the run was begun by another version")
                writer.writerow(row)
            scalars = {name: float(value) for name, value in row.items() if name != "epoch"}
            append_scalars(self.folder / _EVENTS, row["epoch"], scalars, time.time())
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}; checkpoints are safe, go on by --resume") from None

    def rewind_progress(self, epoch: int) -> None:
        """Drop rows from this epoch on, and a row that a crash cut short: they are about to be done again."""
        path = self.folder / _PROGRESS
        if not path.exists():
            return
        lines = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        kept = lines[:1] + [line for line in lines[1:] if int(line.split(",", 1)[0]) < epoch]
        write_whole(path, "".join(kept).encode())


def holds_run(folder: Path) -> bool:
    """Whether a folder is a run directory."""
    return (folder / _CONFIG).exists()


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run directory."""
    path = folder / _CONFIG
    try:
        config: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"{folder} holds no run: there is no {_CONFIG} in it") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error})") from None
    return config


def read_progress(folder: Path) -> list[dict[str, float]]:
    """Rows of progress.csv."""
    path = folder / _PROGRESS
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


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
    """None where an extra is not installed."""
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
