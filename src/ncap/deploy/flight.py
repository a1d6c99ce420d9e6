"""The flight recorder: every state and command in a log that grows on disk, and the recording that is made of it.

A flight is a folder: about.json, log.rows (all ticks, written as they happen, readable after a crash) and, when the
flight has ended, recording.safetensors, which `ncap replay` opens.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.messages import Command, State
from ncap.deploy.odometry import reckon
from ncap.deploy.pilot import CONTROL_DT
from ncap.errors import UserError
from ncap.policies.storage import write_whole
from ncap.recording import Recording

Array = NDArray[np.float64]

PHASES: Final = ("contract", "calibration", "low", "stand", "hold", "policy", "halt", "sit", "damping")
LONGEST: Final = 20_000
"""Control steps in a recording, ten minutes: of a longer flight its end is kept, and the log keeps everything."""
_ABOUT, _LOG, _RECORDING = "about.json", "log.rows", "recording.safetensors"


def row_layout(neurons: int) -> np.dtype[np.void]:
    """One tick of a log."""
    joints = [(name, "<f4", (4, 3)) for name in ("joint_position", "joint_velocity", "torque")]
    commands = [(name, "<f4", (4, 3)) for name in ("command_position", "command_kp", "command_kd")]
    return np.dtype(
        [
            ("time", "<f8"), ("phase", "u1"), ("acted", "u1"), ("tick", "<u4"), ("quaternion", "<f4", (4,)),
            ("angular_velocity", "<f4", (3,)), ("acceleration", "<f4", (3,)), *joints, ("temperature", "<f4", (4, 3)),
            ("foot_force", "<f4", (4,)), *commands, ("action", "<f4", (4, 3)), ("neurons", "<f4", (neurons,)),
        ]
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FlightFacts:
    """What is known before the first tick."""

    title: str
    task: str
    policy_checksum: str
    link: str
    armed: bool
    seed: int
    neuron_names: tuple[str, ...]


class FlightRecorder:
    """Writes a flight. A constant amount of memory, however long it takes."""

    def __init__(self, folder: Path, facts: FlightFacts) -> None:
        self.folder, self._facts = folder, facts
        self._row = np.zeros((), row_layout(len(facts.neuron_names)))
        try:
            folder.mkdir(parents=True)
            write_whole(folder / _ABOUT, json.dumps(vars(facts), indent=1).encode())
            self._log: IO[bytes] = (folder / _LOG).open("wb")
        except FileExistsError:
            raise UserError(f"{folder} exists: choose another --out, flights are never overwritten") from None
        except OSError as error:
            raise UserError(f"cannot write a flight into {folder}: {error.strerror}") from None

    def think(self, action: Array, neurons: Array | None) -> None:
        """Keep an action (leg, 3) and the neurons' activity (N,) for the next rows."""
        self._row["action"], self._row["acted"] = action, 1
        if neurons is not None:
            self._row["neurons"] = neurons

    def write(self, now: float, phase: str, state: State, foot_force: Array, command: Command) -> None:
        """Add a tick. foot_force (leg,) is tared."""
        row = self._row
        row["time"], row["phase"], row["foot_force"] = now, PHASES.index(phase), foot_force
        row["command_position"], row["command_kp"], row["command_kd"] = command
        for name, value in zip(State._fields[:-1], state[:-1], strict=True):
            row[name] = value
        self._log.write(row.tobytes())
        row["acted"] = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
        if (self.folder / _LOG).stat().st_size:
            write_recording(self.folder)


def read_log(folder: Path) -> tuple[FlightFacts, NDArray[np.void]]:
    """(facts, rows (T,)) of a flight, even of one that was cut short. Rows are read from disk as they are needed."""
    try:
        about: dict[str, Any] = json.loads((folder / _ABOUT).read_text())
        facts = FlightFacts(**about | {"neuron_names": tuple(about["neuron_names"])})
        layout = row_layout(len(facts.neuron_names))
        rows = (folder / _LOG).stat().st_size // layout.itemsize
        if not rows:
            raise UserError(f"{folder}: nothing was logged")
        return facts, np.memmap(folder / _LOG, layout, "r", shape=(rows,))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{folder} holds no flight ({error})") from None


def write_recording(folder: Path) -> Path:
    """Make the recording of a flight, one row per control step, and return its path."""
    facts, log = read_log(folder)
    ticks = round(CONTROL_DT / 0.002)
    log = log[-LONGEST * ticks :]

    def signal(name: str) -> Array:
        return np.asarray(log[name], np.float64)

    quaternion = signal("quaternion")
    quaternion /= np.maximum(np.linalg.norm(quaternion, axis=1, keepdims=True), 1e-9)
    joints, force = np.nan_to_num(signal("joint_position")), signal("foot_force")
    measured = (quaternion, signal("angular_velocity"), joints, signal("joint_velocity"), force)
    position, velocity = reckon(signal("time"), *(np.nan_to_num(part) for part in measured))
    # rows at equal distances in time, although ticks may be late
    moments = np.arange(log["time"][0], log["time"][-1] + 1e-9, CONTROL_DT)
    chosen = np.clip(np.searchsorted(log["time"], moments), 0, len(log) - 1)
    path = folder / _RECORDING
    Recording(
        title=facts.title,
        task=facts.task,
        seed=facts.seed,
        control_dt=CONTROL_DT,
        position=position[chosen],
        quaternion=quaternion[chosen],
        joint_position=joints[chosen],
        foot_force=np.maximum(force[chosen], 0.0),
        velocity=velocity[chosen],
        action=signal("action")[chosen],
        neurons=signal("neurons")[chosen],
        neuron_names=facts.neuron_names,
    ).save(path)
    return path
