"""The flight recorder: every state and command in a log that grows on disk, and the recording that is made of it.

A flight is a folder: about.json, log.rows (all ticks, written as they happen, readable after a crash) and, when the
flight has ended, recording.safetensors, which `ncap replay` opens. The circuit table and the robot's data sheet travel
in both.
"""

import errno
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.tables import circuit_from, describe_circuit
from ncap.deploy.contract import CONTROL_DT, TICK, checksum
from ncap.deploy.driving import drivable
from ncap.deploy.flight_plan import LONGEST_FLIGHT, check_seed
from ncap.deploy.messages import TABLE, Command, State
from ncap.deploy.odometry import reckon
from ncap.deploy.wishes import Wish
from ncap.errors import UserError
from ncap.files import decode, read_json, write_whole
from ncap.plan import LEGS
from ncap.policies.ncap import NCAPPolicy
from ncap.recording import IN_FOLDER, Recording, numbers_in_use
from ncap.sim.legs import A1_LEGS, legs_of
from ncap.sim.robot import Robot, describe_robot, robot_from
from ncap.sim.terrain import Flat
from ncap.trained import TrainedPolicy

Array = NDArray[np.float64]

PHASES: Final = ("contract", "calibration", "low", "stand", "hold", "policy", "halt", "sit", "damping", "stop", "right")
"""Phases of a flight; a log keeps their numbers, so that new ones stand at the end."""
LONGEST: Final = 20_000
"""Longest recording in control steps, ten minutes: of a longer flight its end is kept; the log keeps everything."""
DEFAULT_TASK: Final = "flat-walk"
"""Task that a recording names for a policy that was not trained."""
LATEST: Final = 1e9
"""Latest time that a clock shows in a log, s after the machine was started."""
LARGEST_NUMBER: Final = 1e6
"""Largest number that a recording takes over from a log, which may be damaged."""
_ABOUT, _LOG = "about.json", "log.rows"


def row_layout(neurons: int, *, driven: bool = False) -> np.dtype[np.void]:
    """The columns of a log, which has one row per tick; that of a driven robot has the wanted speed and yaw rate."""
    joints = [(name, "<f4", TABLE) for name in ("joint_position", "joint_velocity", "torque", "temperature")]
    commands = [(name, "<f4", TABLE) for name in ("command_position", "command_kp", "command_kd", "action")]
    return np.dtype(
        [
            ("time", "<f8"), ("phase", "u1"), ("acted", "u1"), ("tick", "<u4"), ("quaternion", "<f4", (4,)),
            ("angular_velocity", "<f4", (3,)), ("acceleration", "<f4", (3,)), *joints,
            ("foot_force", "<f4", (len(LEGS),)), *commands, ("neurons", "<f4", (neurons,)),
            *([("wanted", "<f4", (2,))] if driven else []),
        ]
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FlightFacts:
    """What is known of a flight before the first tick: JSON data."""

    title: str
    """Policy and link, for a reader."""
    task: str
    """Name of the task that the policy was trained for."""
    policy_checksum: str
    """Checksum of the policy's description and weights."""
    link: str
    armed: bool
    seed: int
    neuron_names: tuple[str, ...]
    """Names of the recorded neurons: flexor.FL, …"""
    command: float | None = None
    """Brainstem command; None for a policy without a circuit."""
    circuit: dict[str, Any] | None = None
    """The circuit's table as `describe_circuit` gives it; None for a policy without one."""
    numbers: tuple[float, ...] = ()
    """The numbers of the table after training."""
    robot: dict[str, Any] | None = None
    """The robot's data sheet as `describe_robot` gives it; None in flights of the first version."""
    driven: bool = False
    """Whether a brainstem follows wishes; then the log has them."""

    def __post_init__(self) -> None:
        check_seed(self.seed)


def facts_about(policy: TrainedPolicy, robot: Robot, *, link: str, armed: bool, seed: int) -> FlightFacts:
    """The facts of a flight of a policy on a link."""
    brain = policy.policy if isinstance(policy.policy, NCAPPolicy) else None
    return FlightFacts(
        title=f"{policy.name} on {link}{'' if armed else ', dry run'}",
        task=policy.task or DEFAULT_TASK,
        policy_checksum=checksum(policy),
        link=link,
        armed=armed,
        seed=seed,
        neuron_names=brain.core.neurons if brain else (),
        command=brain.command if brain else None,
        circuit=describe_circuit(brain.circuit) if brain else None,
        numbers=tuple(numbers_in_use(policy).tolist()),
        robot=describe_robot(robot),
        driven=drivable(policy),
    )


class FlightRecorder:
    """Writes a flight's folder, in constant memory however long the flight takes.

    It never ends a flight: when the disk is full or gone, it stops and says why in `failure`.
    """

    def __init__(self, folder: Path, facts: FlightFacts) -> None:
        self.folder, self._facts = folder, facts
        self.failure = ""
        """Why nothing more is recorded; empty if all is well."""
        self._row = np.zeros((), row_layout(len(facts.neuron_names), driven=facts.driven))
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise UserError(f"{folder} exists: choose another --out, flights are never overwritten") from None
        except OSError as error:
            raise UserError(f"cannot write a flight into {str(folder)[:200]}: {error.strerror}") from None
        try:
            write_whole(folder / _ABOUT, json.dumps(vars(facts), indent=1).encode())
            self._log = (folder / _LOG).open("wb", buffering=0)  # a row that was written survives this process
        except (OSError, UserError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise UserError(f"cannot write a flight into {folder}: {error}") from None

    def think(self, action: Array, neurons: Array | None, wanted: Wish | None = None) -> None:
        """Keep an action (leg, 3) in [-1, 1], the neurons' activity (N,) and what was wanted for the next rows."""
        self._row["action"], self._row["acted"] = action, 1
        if wanted is not None and self._facts.driven:
            self._row["wanted"] = wanted
        if neurons is not None:
            self._row["neurons"] = neurons

    def write(self, now: float, phase: str, state: State, foot_force: Array, command: Command) -> None:
        """Add the row of a tick at time now in s, with tared foot forces (leg,) in N."""
        row = self._row
        row["time"], row["phase"], row["foot_force"] = now, PHASES.index(phase), foot_force
        row["command_position"], row["command_kp"], row["command_kd"] = command
        for name, value in zip(State._fields[:-1], state[:-1], strict=True):
            row[name] = value
        self._append(row.tobytes())
        row["acted"] = 0

    def _append(self, data: bytes) -> None:
        """Write a row. After the first that fails no other is tried, because a torn one would shift all others."""
        if self.failure:
            return
        try:
            if self._log.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.failure = f"cannot write {self.folder / _LOG}: {error.strerror}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the log and make the recording of what is in it."""
        try:
            self._log.close()
            if (self.folder / _LOG).stat().st_size >= self._row.itemsize:
                write_recording(self.folder)
            elif not self.failure:
                shutil.rmtree(self.folder, ignore_errors=True)  # a flight that was refused leaves nothing behind
        except (OSError, UserError) as error:
            self.failure = self.failure or str(error)


def read_log(folder: Path, newest: int = sys.maxsize) -> tuple[FlightFacts, NDArray[np.void]]:
    """(facts, newest rows (T,)) of a flight, also of one that was cut short. Rows are read from disk when needed.

    Rows without a time or a phase that a flight can have are left out, as are those that go back in time: what a
    damaged disk has left of a log can still be read.
    """
    about, path = folder / _ABOUT, folder / _LOG
    try:
        facts = decode(FlightFacts, read_json(about), str(about))
        layout = row_layout(len(facts.neuron_names), driven=facts.driven)
        if not path.is_file():  # nothing else has a size
            raise UserError(f"{path} is no file")
        rows = path.stat().st_size // layout.itemsize
        if not rows:
            raise UserError(f"{path} has no complete row: nothing was logged")
        log: NDArray[np.void] = np.memmap(path, layout, "r", shape=(rows,))[-newest:]
    except UserError as error:
        raise UserError(f"{folder} holds no flight ({error})") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} holds no flight ({getattr(error, 'strerror', None) or error})") from None
    sound = _sound(log)
    if not sound.any():
        raise UserError(f"{folder} holds no flight (no row of {path} has a time and a phase)")
    return facts, log if sound.all() else log[sound]


def _sound(log: NDArray[np.void]) -> NDArray[np.bool_]:
    """(T,) whether a row has a phase of a flight and a time that follows those before it."""
    time = log["time"].copy()
    good = (np.abs(time) < LATEST) & (log["phase"] < len(PHASES))
    if good.any():
        good &= np.abs(time - np.median(time[good])) < LONGEST_FLIGHT
    time[~good] = -np.inf
    sound: NDArray[np.bool_] = good & (time >= np.maximum.accumulate(time))
    return sound


@np.errstate(invalid="ignore")  # NumPy warns of some NaNs that it widens
def write_recording(folder: Path) -> Path:
    """Make the recording of a flight, one row per control step, and return its path. The ground is drawn as a plane."""
    facts, log = read_log(folder, newest=LONGEST * round(CONTROL_DT / TICK))

    def signal(name: str, largest: float = LARGEST_NUMBER) -> Array:
        values = np.nan_to_num(np.asarray(log[name], np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        return np.clip(values, -largest, largest)

    quaternion = signal("quaternion")
    quaternion /= np.maximum(np.linalg.norm(quaternion, axis=1, keepdims=True), 1e-9)
    joints, force, time = signal("joint_position"), signal("foot_force"), np.asarray(log["time"])
    robot = None if facts.robot is None else robot_from(facts.robot, f"{folder / _ABOUT}: the robot")
    legs = A1_LEGS if robot is None else legs_of(robot)
    spin, speed = signal("angular_velocity"), signal("joint_velocity")
    position, velocity = reckon(time, quaternion, spin, joints, speed, force, legs)
    # rows at equal distances in time, although ticks may be late; a flight is no longer than its rows
    moments = np.arange(max(time[0], time[-1] - LONGEST * CONTROL_DT), time[-1] + 1e-9, CONTROL_DT)
    chosen = np.clip(np.searchsorted(time, moments), 0, len(log) - 1)
    path = folder / IN_FOLDER
    try:
        recording = Recording(
            title=facts.title,
            task=facts.task,
            seed=facts.seed,
            control_dt=CONTROL_DT,
            position=np.clip(position[chosen], -LARGEST_NUMBER, LARGEST_NUMBER),
            quaternion=quaternion[chosen],
            joint_position=joints[chosen],
            foot_force=np.maximum(force[chosen], 0.0),
            velocity=np.clip(velocity[chosen], -LARGEST_NUMBER, LARGEST_NUMBER),
            action=signal("action", 1.0)[chosen],
            neurons=signal("neurons")[chosen],
            neuron_names=facts.neuron_names,
            robot=robot,
            terrain=Flat(),
            circuit=None if facts.circuit is None else circuit_from(facts.circuit),
            numbers=np.array(facts.numbers),
        )
    except UserError as error:
        raise UserError(f"{folder / _ABOUT}: {str(error)[:500]}") from None
    recording.save(path)
    return path
