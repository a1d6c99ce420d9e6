"""A recorded episode as one HTML file that needs no other: motion, footfalls and neurons on one time line."""

import base64
import hashlib
import json
import re
from functools import lru_cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap.analysis.undulation import measure_undulation
from ncap.circuits.animal import animal, mirrored
from ncap.circuits.circuit import Circuit
from ncap.circuits.spec import CircuitSpec
from ncap.errors import UserError, unknown_name
from ncap.evaluation import STANCE_FORCE, foot_gait
from ncap.files import write_whole
from ncap.plan import LEGS
from ncap.recording import Recording
from ncap.sim.a1 import A1
from ncap.sim.robot import Robot
from ncap.sim.terrain import Terrain
from ncap.sim.world import Variation, World
from ncap.tasks import TASKS, Task
from ncap.view import style
from ncap.view.diagram import Diagram
from ncap.view.reading import GAIT_WINDOWS
from ncap.view.shapes import Mesh, disc, ground_meshes, robot_meshes
from ncap.view.traces import traces_of

Array = NDArray[np.float64]

GAIT_EVERY: Final = 0.24
"""Time between two labels of the gait on the time line, s."""
SPEED_WINDOW: Final = 1.0
"""Time over which the speed is averaged, s."""
MARGIN: Final = 5.0
"""Width of the ground that is drawn around the robot's way, m."""
WIDEST: Final = 100.0
"""Most of the ground that is drawn, m: a robot that goes further leaves it."""
MOST_BODIES: Final = 500
"""Most bodies and most geoms of a robot that is drawn."""


def world_of(recording: Recording) -> World:
    """The recorded robot on the recorded ground; what an old recording does not say is an A1 on its task's ground."""
    terrain = task_of(recording).terrain if recording.terrain is None else recording.terrain
    return _compiled(A1 if recording.robot is None else recording.robot, terrain)  # type: ignore[arg-type]


def task_of(recording: Recording) -> Task:
    """The task that a recording names. It is looked up and never run: a recording comes from anywhere."""
    if recording.task not in TASKS:
        raise unknown_name("task", recording.task, TASKS)
    return TASKS[recording.task]


@lru_cache(maxsize=8)
def _compiled(robot: Robot, terrain: Terrain) -> World:
    try:
        world = World(robot, terrain)
    except (UserError, ValueError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        # the text of its model is recorded, but not the files that it names
        reason = " ".join(str(error).split())
        raise UserError(f"robot {robot.name} cannot be built from the recording: {reason}") from None
    model = world.model
    if max(model.nbody, model.ngeom) > MOST_BODIES:
        raise UserError(f"robot {robot.name} has {model.nbody} bodies and {model.ngeom} geoms, too many to draw")
    joint = int(model.body_jntadr[world.trunk_id])
    free = joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE and model.jnt_qposadr[joint] == 0
    if not free or len(set(world.position_columns)) != robot.mid.size:
        raise UserError(
            f"robot {robot.name}: its trunk must have the first joint, a free one, and its legs one joint each"
        )
    for part in (model.geom_size, model.geom_pos, model.geom_quat, model.geom_rgba, model.mat_rgba, model.body_pos):
        if not np.isfinite(part).all():
            raise UserError(f"robot {robot.name} has sizes, places or colours that are no numbers")
    return world


def model_of(recording: Recording) -> mujoco.MjModel:
    """The recorded robot on the ground of the recording's seed, as a model of its own."""
    return world_of(recording).variant(Variation(terrain_seed=recording.seed))


def circuit_of(recording: Recording) -> CircuitSpec | None:
    """The table that was recorded; an old recording has the default one, if its neurons were recorded."""
    table = animal() if recording.circuit is None else recording.circuit
    return table if Circuit(table).neurons == recording.neuron_names else None


def diagram_of(recording: Recording) -> Diagram | None:
    """The wiring that was recorded; None without a circuit."""
    table = circuit_of(recording)
    return None if table is None else Diagram(table, recording.numbers)


def signals_of(recording: Recording) -> tuple[tuple[str, ...], Array]:
    """(names, (T, S)) of all signals of the wiring, 0 where they were not recorded; without wiring, the neurons."""
    diagram = diagram_of(recording)
    if diagram is None:
        return recording.neuron_names, recording.neurons
    found = dict(zip(recording.neuron_names, recording.neurons.T, strict=True))
    found |= dict(zip(recording.signal_names, recording.signals.T, strict=False))
    joints = diagram.spec.plan.joints
    if recording.action.shape[1:] == (len(diagram.spec.plan.sites), len(joints)):  # of motor neurons that were not
        outputs = recording.action * mirrored(diagram.spec)
        for leg, site in enumerate(diagram.spec.plan.sites):
            for i, joint in enumerate(joints):
                found.setdefault(f"{joint}.{site}", outputs[:, leg, i])
    silent = np.zeros(len(recording.neurons))
    return diagram.names, np.stack([found.get(name, silent) for name in diagram.names], axis=1)


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
    world = world_of(recording)
    qpos = np.zeros((len(recording.position), world.model.nq))
    qpos[:, 0:3], qpos[:, 3:7] = recording.position, recording.quaternion
    qpos[:, world.position_columns] = recording.joint_position.reshape(len(qpos), -1)
    return qpos


def gaits_over_time(recording: Recording) -> list[tuple[float, str, float]]:
    """(start in s, label, frequency in Hz) of the gait at regular moments, each measured around its moment."""
    dt, force = recording.control_dt, recording.foot_force
    if not force.shape[1]:  # a body without feet has a wave, and no gait
        wave = measure_undulation(recording.joint_position[..., 0], dt) if len(force) > 2 else None
        return [(0.0, "none", 0.0 if wave is None else round(wave.frequency_hz, 2))]
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
    """Write the page of a recording."""
    page = replay_page(recording)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create {path.parent}: {error.strerror}") from None
    write_whole(path, page)


def replay_page(recording: Recording) -> bytes:
    """The page of a recording, UTF-8."""
    if len(recording.position) < 2:
        raise UserError(f"{recording.title}: the recording has {len(recording.position)} steps, too few to replay")
    diagram = diagram_of(recording)
    wiring = "" if diagram is None else diagram.svg()
    page, script = (
        resources.files("ncap.view").joinpath(f"replay.{kind}").read_text("utf-8") for kind in ("html", "js")
    )
    data = json.dumps(_content(recording), separators=(",", ":")).replace("<", "\\u003c")
    digest = base64.b64encode(hashlib.sha256(f"\n{script}".encode()).digest()).decode()
    parts = {"@SCRIPT@": script, "@WIRING@": wiring, "@DATA@": data, "@TITLE@": escape(recording.title)}
    parts["@HASH@"] = f"sha256-{digest}"  # the browser runs this program and no other
    return re.sub("|".join(parts), lambda mark: parts[mark[0]], page).encode()


def _content(recording: Recording) -> dict[str, Any]:
    """The data of the page's program, arrays as base64."""
    world, model = world_of(recording), model_of(recording)
    names, signals = signals_of(recording)
    traces = traces_of(recording)
    target = task_of(recording).target_speed if recording.target_speed is None else recording.target_speed
    along, across = (_span(recording.position[:, axis]) for axis in (0, 1))
    ground = ground_meshes(model, world.terrain, along, across)
    return {
        "dt": recording.control_dt,
        "steps": len(recording.position),
        "target": target,
        "flat": world.terrain.grid is None,
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
        "signals": _base64(np.round(255 * np.clip(np.abs(signals), 0, 1)), np.uint8),
        "names": list(names),
        "speed_window": SPEED_WINDOW,
        "legs": list(LEGS) if len(world.foot_geoms) else [],
        "sites": list(traces.sites),
        "pair": list(traces.pair) if all(f"{n}.{s}" in names for n in traces.pair for s in traces.sites) else [],
        "gaits": gaits_over_time(recording),
        "stance": STANCE_FORCE,
        "full": style.FULL_FORCE,
        "colours": {
            "legs": style.LEG_COLOURS, "gaits": style.GAIT_COLOURS, "flexor": style.FLEXOR,
            "extensor": style.EXTENSOR, "muted": style.MUTED, "text": style.TEXT,
        },
    }  # fmt: skip


def _span(places: Array) -> tuple[float, float]:
    """From where to where the ground is drawn along an axis, m."""
    low, high = float(places.min()) - MARGIN, float(places.max()) + MARGIN
    if high - low > WIDEST:
        middle = float(np.median(places))
        low, high = middle - WIDEST / 2, middle + WIDEST / 2
    return low, high


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
