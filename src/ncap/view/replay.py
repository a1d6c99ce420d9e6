"""A recorded episode as one HTML file that needs nothing else: motion, footfalls and neurons on one time line."""

import base64
import json
import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import CIRCUIT_DT, rhythm_spec
from ncap.errors import UserError
from ncap.experiments.evaluation import STANCE_FORCE, find_controller, foot_gait
from ncap.legs import LEGS
from ncap.policies.storage import read_tensors, write_whole
from ncap.recording import Recording, record
from ncap.sim.terrain import Flat
from ncap.tasks import build, drawn_variation, find_task
from ncap.view import style
from ncap.view.diagram import Diagram
from ncap.view.shapes import Mesh, disc, ground_meshes, robot_meshes

Array = NDArray[np.float64]

GAIT_EVERY: Final = 0.24
"""s between two labels of the gait on the time line."""
GAIT_WINDOWS: Final = (2.0, 4.0)
"""s around a moment in which its gait is looked for, the shorter first."""
MARGIN: Final = 5.0
"""m of ground around the robot's way."""


def find_recording(name: str, task: str, seed: int) -> Recording:
    """A recording's file as it is, or an episode of a policy, played now."""
    path = Path(name)
    if path.is_file() and "recording" in read_tensors(path)[1]:
        return Recording.load(path)
    found = find_task(task)
    controller, _ = find_controller(name, task, 1)
    return record(found, controller, seed, f"{name} on {task}")


def circuit_of(recording: Recording) -> Circuit | None:
    """The rhythm generator, if it is its neurons that were recorded."""
    circuit = Circuit(rhythm_spec(), dt=CIRCUIT_DT)
    return circuit if circuit.neurons == recording.neuron_names else None


def body_poses(recording: Recording, model: mujoco.MjModel) -> Array:
    """(T, body, 7) position and quaternion of every body of the model; the world comes first."""
    data = mujoco.MjData(model)
    poses = np.empty((len(recording.position), model.nbody, 7))
    for pose, qpos in zip(poses, states(recording), strict=True):
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        pose[:, :3], pose[:, 3:] = data.xpos, data.xquat
    return poses


def states(recording: Recording) -> Array:
    """(T, nq) generalised positions."""
    world = build(find_task(recording.task))
    qpos = np.zeros((len(recording.position), world.model.nq))
    qpos[:, 0:3], qpos[:, 3:7] = recording.position, recording.quaternion
    qpos[:, world.position_columns] = recording.joint_position.reshape(len(qpos), -1)
    return qpos


def gaits_over_time(recording: Recording) -> list[tuple[float, str, float]]:
    """(from second, label, Hz) of the gait, whenever it changes, each measured around its moment."""
    dt, force = recording.control_dt, recording.foot_force
    found = []
    for middle in range(0, len(force), max(1, round(GAIT_EVERY / dt))):
        for window in GAIT_WINDOWS:
            half = round(window / dt / 2)
            first = min(max(0, middle - half), max(0, len(force) - 2 * half))
            gait = foot_gait(force[first : first + 2 * half], dt)
            if gait.frequency_hz > 0:
                break
        found.append((middle * dt, gait.label, round(gait.frequency_hz, 2)))
    return found


def write_replay(recording: Recording, path: Path) -> None:
    """Write the page."""
    if len(recording.position) < 2:
        raise UserError(f"{recording.title}: the recording has {len(recording.position)} steps, too few to replay")
    circuit = circuit_of(recording)
    wiring = Diagram(circuit).svg() if circuit else ""
    page, script = (
        resources.files("ncap.view").joinpath(f"replay.{kind}").read_text("utf-8") for kind in ("html", "js")
    )
    data = json.dumps(_content(recording), separators=(",", ":")).replace("</", "<\\/")
    parts = {"@SCRIPT@": script, "@WIRING@": wiring, "@DATA@": data, "@TITLE@": escape(recording.title)}
    page = re.sub("|".join(parts), lambda mark: parts[mark[0]], page)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create {path.parent}: {error.strerror}") from None
    write_whole(path, page.encode())


def _content(recording: Recording) -> dict[str, Any]:
    """All that the page's program needs, arrays as base64."""
    task = find_task(recording.task)
    world = build(task)
    model = world.variant(drawn_variation(task, recording.seed))
    x, y = recording.position[:, 0], recording.position[:, 1]
    ground = ground_meshes(
        model, task.terrain, (x.min() - MARGIN, x.max() + MARGIN), (y.min() - MARGIN, y.max() + MARGIN)
    )
    return {
        "dt": recording.control_dt,
        "steps": len(recording.position),
        "target": task.target_speed,
        "flat": isinstance(task.terrain, Flat),
        "bodies": model.nbody,
        "trunk": world.trunk_id,
        "poses": _base64(body_poses(recording, model), np.float32),
        "robot": [_packed(mesh) for mesh in robot_meshes(model)],
        "ground": [_packed(mesh) for mesh in ground],
        "disc": _packed(Mesh(0, (0, 0, 0), *disc())),
        "feet": [
            {
                "body": int(model.geom_bodyid[geom]),
                "place": model.geom_pos[geom].tolist(),
                "size": float(model.geom_size[geom, 0]),
            }
            for geom in world.foot_geoms
        ],
        "force": _base64(recording.foot_force, np.float32),
        "speed": _base64(recording.velocity[:, 0], np.float32),
        "neurons": _base64(np.round(255 * np.clip(recording.neurons, 0, 1)), np.uint8),
        "names": list(recording.neuron_names),
        "legs": list(LEGS),
        "gaits": gaits_over_time(recording),
        "stance": STANCE_FORCE,
        "full": style.FULL_FORCE,
        "colours": {
            "legs": style.LEG_COLOURS, "gaits": style.GAIT_COLOURS, "flexor": style.FLEXOR,
            "extensor": style.EXTENSOR, "muted": style.MUTED, "text": style.TEXT,
        },
    }  # fmt: skip


def _packed(mesh: Mesh) -> dict[str, Any]:
    used, faces = np.unique(mesh.faces, return_inverse=True)
    return {
        "body": mesh.body,
        "colour": [channel / 255 for channel in mesh.colour],
        "vertices": _base64(mesh.vertices[used], np.float32),
        "faces": _base64(faces.reshape(-1), np.uint32),
    }


def _base64(values: NDArray[Any], kind: type) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<")).tobytes()).decode()
