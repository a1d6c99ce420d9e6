"""What stands in the file of a recording, read with distrust: recordings are sent around.

Every part is checked against the others and against bounds before anything is made of it, so that what comes out can be
drawn; what cannot is refused by a sentence.
"""

import re
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.circuit import initial_numbers
from ncap.circuits.spec import CircuitSpec
from ncap.circuits.tables import circuit_from
from ncap.errors import UserError, unknown_name
from ncap.files import decode, shown
from ncap.plan import QUADRUPED
from ncap.sim.bodies import body_from
from ncap.sim.body import Body
from ncap.sim.robot import Robot
from ncap.sim.terrain import CELLS_PER_BUMP, Bumpy, Flat, Grid, Terrain, Water

Array = NDArray[np.float64]

LONGEST: Final = 50_000
"""Longest recording that is read, control steps: 25 minutes of a robot that acts every 0.03 s."""
LARGEST: Final = 1e6
"""Largest number that is read, in SI units."""
MOST_ROWS: Final = 2_000
"""Most rows of a circuit's table, and most neurons, that are read."""
MOST_POINTS: Final = 4_000_000
"""Most points of a height field that are read."""
SIGNALS: Final = ("position", "quaternion", "joint_position", "foot_force", "velocity", "action")
"""Signals of every episode."""
FACTS: Final = ("title", "task", "seed", "control_dt", "target_speed", "neuron_names", "signal_names")
"""Entries of `About` that a recording has under the same names."""
_TERRAINS: Final = {"flat": Flat, "bumpy": Bumpy, "water": Water}
"""Terrains that are stored by their numbers; any other is stored by its heights."""
_BOUNDS: Final = {"seed": (0, 2**63), "control_dt": (1e-4, 1.0), "target_speed": (0.0, 100.0)}
_FORBIDDEN: Final = re.compile(
    r"<\s*(include|replicate|composite|flexcomp|attach|model|extension|plugin|hfield|skin|size|custom|sensor)\b"
    r"|\bfile\s*=|<\s*mesh\b[^>]*\bbuiltin\s*=|\b(width|height)\s*=\s*[\"']\s*\d{4}",
    re.IGNORECASE,
)
"""What the text of a recorded model may not have: other files, and elements that can be of any size."""


@dataclass(frozen=True, kw_only=True)
class About:
    """The facts in a file, as `Recording.save` writes them."""

    title: str
    task: str
    seed: int
    control_dt: float
    neuron_names: tuple[str, ...] = ()
    signal_names: tuple[str, ...] = ()
    target_speed: float | None = None
    robot: Any = None
    circuit: Any = None
    terrain: Any = None

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise UserError(f"{name} is {value}, outside [{low:g}, {high:g}]")
        for what, names in (("neurons", self.neuron_names), ("signals", self.signal_names)):
            if len(names) > MOST_ROWS:
                raise UserError(f"{len(names)} {what} are more than {MOST_ROWS}")


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedGround:
    """A terrain that is known by its heights alone, as they were in one episode."""

    grid: Grid
    """Where the height field lies."""
    points: NDArray[np.float32]
    """Ground height (rows, columns), m."""

    def heights(self, seed: int) -> Array:
        """The recorded heights (rows, columns) in m, whatever the seed."""
        return self.points.astype(np.float64)


def describe_terrain(terrain: Terrain) -> dict[str, Any]:
    """The terrain as JSON data. With an entry "grid", its heights must be stored beside it."""
    if type(terrain) is Bumpy:
        return {"type": "bumpy"} | asdict(terrain)
    if type(terrain) is Water:
        return {"type": "water"} | asdict(terrain)
    return {"type": "flat"} if terrain.grid is None else {"type": "heights", "grid": asdict(terrain.grid)}


def signals_from(tensors: dict[str, Array], neurons: int, signals: int, robot: Body | None) -> dict[str, Array]:
    """The arrays of a file, with shapes that fit each other and its robot, and numbers that can be drawn."""
    plan = QUADRUPED if robot is None else robot.plan
    joints, feet = (len(plan.sites), len(plan.joints)), len(plan.sites) if robot is None else len(robot.feet)
    shapes: dict[str, tuple[int, ...]] = {
        "position": (3,),
        "quaternion": (4,),
        "joint_position": joints,
        "foot_force": (feet,),
        "velocity": (3,),
        "action": joints,
        "neurons": (neurons,),
    }
    if signals or "signals" in tensors:
        shapes["signals"] = (signals,)
    for name in tensors.keys() - shapes.keys() - {"numbers", "heights"}:
        raise unknown_name("array", shown(name)[1:-1], (*shapes, "numbers", "heights"))
    for name in shapes:
        if name not in tensors:
            raise UserError(f"the array {name} is missing")
    steps = len(tensors["position"]) if tensors["position"].ndim else 0
    if not 1 <= steps <= LONGEST:
        raise UserError(f"it has {steps} steps, outside [1, {LONGEST}]")
    for name, shape in shapes.items():
        if tensors[name].shape != (steps, *shape):
            raise UserError(f"the array {name} has the shape {tensors[name].shape}, but {(steps, *shape)} is needed")
    found = {name: tensors[name] for name in shapes} | {"numbers": tensors.get("numbers", np.zeros(0))}
    if found["numbers"].ndim != 1:
        raise UserError(f"the array numbers has the shape {found['numbers'].shape}, but (K,) is needed")
    for name, values in found.items():
        if values.dtype.kind != "f" or not (np.abs(values) <= LARGEST).all():  # nor is NaN
            raise UserError(f"the array {name} has numbers that are none, or larger than {LARGEST:g}")
    return {name: values.astype(np.float64) for name, values in found.items()}


def check_task(name: str) -> None:
    """Refuse a task that is not known. A recording can name one, but not the file of Python that makes it."""
    from ncap.tasks import TASKS

    if name not in TASKS:
        raise unknown_name("task", shown(name)[1:-1], TASKS)


def robot_in(data: Any) -> Body | None:
    """The robot of a recording, with the text of its model."""
    if data is None:
        return None
    robot = body_from(data)
    if not isinstance(robot, Robot):
        return robot  # its model is made from its numbers
    if not robot.model_xml:
        raise UserError(f"the text of the model of its robot {shown(robot.name)} is missing")
    if found := _FORBIDDEN.search(robot.model_xml):
        raise UserError(f"the model of its robot {shown(robot.name)} has {found[0]!r}, which a recording may not have")
    return robot


def circuit_in(data: Any, numbers: int, robot: Body | None) -> CircuitSpec | None:
    """The circuit of a recording with so many trained numbers, which must fit its robot."""
    if data is None:
        return None
    rows = data.values() if isinstance(data, dict) else ()
    if sum(len(group) for group in rows if isinstance(group, list)) > MOST_ROWS:
        raise UserError(f"its circuit has more than {MOST_ROWS} rows")
    plan = QUADRUPED if robot is None else robot.plan
    if isinstance(data, dict) and data.get("plan") != plan.name:
        raise UserError(f"its circuit is for the body {shown(data.get('plan'))}, but a recording has {plan.name!r}")
    circuit = circuit_from(data)
    if numbers not in (0, len(initial_numbers(circuit))):
        raise UserError(f"it has {numbers} numbers, but its circuit {len(initial_numbers(circuit))}")
    return circuit


def terrain_in(data: Any, heights: Any) -> Terrain | None:
    """The ground of a recording: the inverse of `describe_terrain`."""
    if data is None:
        return None
    values = dict(data) if isinstance(data, dict) else {}
    kind = values.pop("type", None)
    if kind == "heights" and heights is not None and set(values) == {"grid"}:
        grid = decode(Grid, values["grid"], "its grid")
        _check_extent(asdict(grid), grid.cell)
        if heights.shape != (grid.rows, grid.columns) or not (np.abs(heights) <= 1.000001 * grid.top).all():
            raise UserError(f"its heights do not fit its grid of {grid.rows} × {grid.columns} points")
        return RecordedGround(grid=grid, points=heights)
    if not isinstance(kind, str) or kind not in _TERRAINS:
        raise UserError(f"unknown kind of ground {shown(kind)}; valid: {', '.join(_TERRAINS)}, and heights with a grid")
    terrain: Terrain = decode(_TERRAINS[kind], values, "its ground")
    if isinstance(terrain, Bumpy):
        _check_extent(asdict(terrain), terrain.spacing / CELLS_PER_BUMP)
    return terrain


def _check_extent(values: dict[str, float], cell: float) -> None:
    """Refuse a height field that is no field, or too large, before it is made."""
    for name in ("height", "top", "spacing", "cell", "behind", "ahead", "aside"):
        if name in values and not 0.0 < values[name] <= 1e4:
            raise UserError(f"{name} of its ground is {values[name]:g} m, outside (0, 10000]")
    columns, rows = (values["behind"] + values["ahead"]) / cell, 2 * values["aside"] / cell
    for across, along in ((columns, rows), (values.get("columns", 2), values.get("rows", 2))):
        if min(across, along) < 1 or across * along > MOST_POINTS:
            raise UserError(f"its ground has {along:g} × {across:g} points, more than {MOST_POINTS} or too few")
