"""A quadruped as data: its model file, the names in it, its ranges and gains. NumPy only.

A policy sees observations in [-1, 1] and gives actions in [-1, 1]; the maps between those and radians, newton metres
and newtons are the robot's, by three points: minimum, middle (the standing pose) and maximum.
"""

import json
import math
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError, unknown_name
from ncap.files import read_text
from ncap.plan import LEGS
from ncap.registry import Registry

Array = NDArray[np.float64]
LegTriple = tuple[tuple[float, float, float], ...]

SENSES: Final = 10
"""Observations per leg: position, torque and velocity of hip, thigh and calf, then foot contact."""


@dataclass(frozen=True, kw_only=True)
class Robot:
    """Everything the engine needs to know about a quadruped. Tables have a row per leg, FL, FR, HL, HR."""

    name: str
    model: Path
    """MJCF file with the bodies, joints and geoms, and nothing else: no actuators, sensors, ground or options."""
    trunk: str
    """Name of the trunk's body, which has the free joint."""
    joints: tuple[tuple[str, str, str], ...]
    """Joint names: hip, thigh, calf of every leg."""
    feet: tuple[str, ...]
    """Geom names of the feet, one per leg."""
    ground_geoms: tuple[str, ...] = ()
    """Geoms that the default contact preset lets touch the ground, beside the feet. Empty: all of them."""
    position_min: LegTriple
    position_mid: LegTriple
    """The standing pose: where action 0 leads."""
    position_max: LegTriple
    kp: float
    """Proportional gain of the joints' PD control, N m / rad."""
    kd: float
    """Derivative gain, N m s / rad."""
    torque_limit: float
    """Largest torque of a motor, N m; it maps to ±1."""
    velocity_limit: float
    """Joint velocity that maps to ±1, rad/s."""
    foot_force_max: float
    """Foot force that maps to 1, N; no force maps to -1."""
    leg_length: float
    """Length of a leg, m, for the Froude number."""
    model_xml: str = ""
    """The model's text, for a robot that travels without its file, as in a recording."""

    def __post_init__(self) -> None:
        for field in ("joints", "feet", "position_min", "position_mid", "position_max"):
            if len(getattr(self, field)) != len(LEGS):
                raise UserError(f"robot {self.name}: {field} needs a row per leg ({', '.join(LEGS)})")
        if not (np.all(self.low < self.mid) and np.all(self.mid < self.high)):
            raise UserError(f"robot {self.name}: position_min < position_mid < position_max must hold for every joint")

    @cached_property
    def low(self) -> Array:
        """(leg, 3) lowest joint position, rad."""
        return np.array(self.position_min, float)

    @cached_property
    def mid(self) -> Array:
        """(leg, 3) standing pose, rad."""
        return np.array(self.position_mid, float)

    @cached_property
    def high(self) -> Array:
        """(leg, 3) highest joint position, rad."""
        return np.array(self.position_max, float)

    def targets(self, action: Array) -> Array:
        """Joint targets in rad from actions (..., leg, 3), which are clipped to [-1, 1]."""
        action = np.clip(action, -1.0, 1.0)
        return self.mid + np.where(action < 0, action * (self.mid - self.low), action * (self.high - self.mid))

    def observation(self, position: Array, torque: Array, velocity: Array, foot_force: Array) -> Array:
        """Observations (..., leg, sense) in [-1, 1] from joint signals (..., leg, 3) and foot forces (..., leg), SI."""
        offset = position - self.mid
        result = np.empty((*foot_force.shape, SENSES))
        result[..., 0:3] = offset / np.where(offset < 0, self.mid - self.low, self.high - self.mid)
        result[..., 3:6] = torque / self.torque_limit
        result[..., 6:9] = velocity / self.velocity_limit
        result[..., 9] = 2.0 * foot_force / self.foot_force_max - 1.0
        return np.clip(result, -1.0, 1.0, out=result)


ROBOTS: Final[Registry[Robot]] = Registry("robot")
"""Robots by name."""


def find_robot(name: str) -> Robot:
    """A robot by its name, from a data sheet (.json), or from a Python file that registers it in ROBOTS."""
    if Path(name).suffix != ".json":
        return ROBOTS.find(name)
    path = Path(name)
    try:
        robot = robot_from(json.loads(read_text(path)))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return replace(robot, model=path.parent / robot.model)


def describe_robot(robot: Robot) -> dict[str, Any]:
    """The robot's data sheet as JSON data, with the text of its model."""
    text = robot.model_xml or read_text(robot.model)
    return asdict(robot) | {"model": robot.model.name, "model_xml": text}


def robot_from(data: object) -> Robot:
    """A robot from its data sheet. Anything that is not one is refused by a sentence that names it."""
    columns = {field.name: field for field in fields(Robot)}
    if not isinstance(data, dict):
        raise UserError(f"a robot's data sheet is a table, not {type(data).__name__}")
    for name in data.keys() - columns.keys():
        raise unknown_name("entry of a robot", str(name), columns)
    for name, column in columns.items():
        if name not in data and column.default is MISSING:
            raise UserError(f"the robot's {name} is missing")
    return Robot(**{name: _entry(name, value) for name, value in data.items()})


def _entry(name: str, value: Any) -> Any:
    table = {"position_min": float, "position_mid": float, "position_max": float, "joints": str}
    if name in table:
        rows = value if isinstance(value, list | tuple) else []
        if not rows or any(not isinstance(r, list | tuple) or len(r) != 3 for r in rows):
            raise UserError(f"the robot's {name} must be a table with hip, thigh and calf of every leg, not {value!r}")
        return tuple(tuple(_single(name, part, table[name]) for part in row) for row in rows)
    if name in ("feet", "ground_geoms"):
        if not isinstance(value, list | tuple):
            raise UserError(f"the robot's {name} must be a list of names, not {value!r}")
        return tuple(_single(name, part, str) for part in value)
    if name == "model":
        return Path(_single(name, value, str))
    return _single(name, value, str if name in ("name", "trunk", "model_xml") else float)


def _single(name: str, value: Any, kind: type) -> Any:
    good = isinstance(value, str) if kind is str else isinstance(value, int | float) and not isinstance(value, bool)
    if not good or (kind is float and not math.isfinite(value)):
        raise UserError(f"the robot's {name} has {value!r}, which is no {'name' if kind is str else 'finite number'}")
    return kind(value)
