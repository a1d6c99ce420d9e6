"""A quadruped as data: its model file, the names in it, its ranges and gains. NumPy only.

A policy sees observations in [-1, 1] and gives actions in [-1, 1]; the maps between those and radians, newton metres
and newtons are the robot's, by three points: minimum, middle (the standing pose) and maximum.
"""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.files import decode, decode_value, read_json, read_text
from ncap.plan import LEGS, QUADRUPED, BodyPlan
from ncap.registry import Registry
from ncap.rotations import pitch_of, roll_of
from ncap.sim.body import Gains

if TYPE_CHECKING:
    from ncap.sim.simulation import Measurements

Array = NDArray[np.float64]
LegTriple = tuple[tuple[float, float, float], ...]
PerJoint = float | tuple[float, float, float]
"""One number for all joints, or one each for hip, thigh and calf."""

SENSES: Final = len(QUADRUPED.senses)
"""Observations per leg: position, torque and velocity of hip, thigh and calf, then foot contact."""
POSTURE: Final = len(QUADRUPED.posture)
"""Observations of the trunk, as every leg has them after its own: how far its side has sunk and how fast it sinks, how
far its girdle has sunk and how fast it sinks."""
TILT: Final = 0.5
"""Roll or pitch that maps to ±1, rad."""
TILT_RATE: Final = 2.0
"""Roll or pitch rate that maps to ±1, rad/s."""
POSTURE_FULL: Final = np.array([TILT, TILT_RATE, TILT, TILT_RATE])
"""Roll, its rate, pitch and its rate that map to ±1."""
SINKS: Final = np.array(
    [
        [1.0 if leg in QUADRUPED.groups[group][part] else -1.0 for group, part in (("side", "R"), ("girdle", "fore"))]
        for leg in LEGS
    ]
).repeat(2, axis=1)
"""(leg, 4) signs of the same: 1 where the leg's side or girdle sinks."""


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
    torque_limit: PerJoint
    """Largest torque of a motor, N m; it maps to ±1."""
    velocity_limit: PerJoint
    """Joint velocity that maps to ±1, rad/s."""
    foot_force_max: float
    """Foot force that maps to 1, N; no force maps to -1."""
    leg_length: float
    """Length of a leg, m, for the Froude number."""
    joint_min: LegTriple | None = None
    """Lowest position that a joint of the machine can take, rad; None: not known. Commands stay inside."""
    joint_max: LegTriple | None = None
    motor_speed: PerJoint | None = None
    """Fastest that a motor turns its joint, rad/s; None: not known."""
    hip_at: tuple[float, float] | None = None
    """Forward and leftward distance from the trunk's middle to the front left hip, m, for the places of feet; None, as
    for the three below: the A1's."""
    links: tuple[float, float, float] | None = None
    """Lengths of hip (sideways), thigh and calf, m."""
    foot_radius: float | None = None
    """Radius of a foot, m."""
    belly: float | None = None
    """Height of the trunk's middle above the ground when it lies, m."""
    foot_sensors: bool | None = None
    """False for a machine whose feet feel nothing: contact is then estimated from its joint torques."""
    model_xml: str = ""
    """The model's text, for a robot that travels without its file, as in a recording."""

    def __post_init__(self) -> None:
        for field in ("joints", "feet", "position_min", "position_mid", "position_max", "joint_min", "joint_max"):
            rows = getattr(self, field)
            if rows is not None and len(rows) != len(LEGS):
                raise UserError(f"robot {self.name}: {field} needs a row per leg ({', '.join(LEGS)})")
        if not (np.all(self.low < self.mid) and np.all(self.mid < self.high)):
            raise UserError(f"robot {self.name}: position_min < position_mid < position_max must hold for every joint")
        reach = ((self.joint_min, -1.0, self.low), (self.joint_max, 1.0, self.high))
        if any(end is not None and (sign * (target - np.array(end)) > 0).any() for end, sign, target in reach):
            raise UserError(f"robot {self.name}: position_min and position_max must lie within joint_min and joint_max")
        for field in ("torque_limit", "velocity_limit", "motor_speed", "links", "foot_radius", "belly"):
            value = getattr(self, field)
            if value is not None and not (np.array(value) > 0).all():
                raise UserError(f"robot {self.name}: {field} must be above 0")

    @property
    def plan(self) -> BodyPlan:
        """Four legs."""
        return QUADRUPED

    @property
    def nose(self) -> float:
        """The trunk's middle itself."""
        return 0.0

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

    @cached_property
    def _reach(self) -> tuple[Array, Array]:
        """(leg, 3) distance from the standing pose to the lowest joint position, and to the highest, rad."""
        return self.mid - self.low, self.high - self.mid

    @cached_property
    def torque_limits(self) -> Array:
        """(leg, 3) largest torque of the motors, N m."""
        return np.full(self.mid.shape, self.torque_limit, float)

    @cached_property
    def velocity_limits(self) -> Array:
        """(leg, 3) joint velocity that maps to ±1, rad/s."""
        return np.full(self.mid.shape, self.velocity_limit, float)

    def gains(self, kp: float | None, kd: float | None) -> Gains:
        """PD control of joint positions."""
        kp, kd = self.kp if kp is None else kp, self.kd if kd is None else kd
        return Gains(kp, kp, kd)

    def start(self, draws: np.random.Generator, noise: float) -> tuple[Array, float]:
        """Near the standing pose, straight ahead."""
        return draws.uniform(-1, 1, self.mid.shape) * noise, 0.0

    def at_rest(self, positions: Array) -> Array:
        """The positions themselves."""
        return positions

    def targets(self, action: Array) -> Array:
        """Joint targets in rad from actions (..., leg, 3), which are clipped to [-1, 1]."""
        action = np.minimum(np.maximum(action, -1.0), 1.0)
        return self.mid + action * np.where(action < 0, *self._reach)

    def seen(self, now: "Measurements") -> Array:
        """Observations (P, leg, sense) of the robots that were measured."""
        return self.observation(
            now.joint_position, now.torque, now.joint_velocity, now.foot_force, now.up, now.angular_velocity
        )

    def observation(
        self,
        position: Array,
        torque: Array,
        velocity: Array,
        foot_force: Array,
        up: Array,
        angular_velocity: Array,
    ) -> Array:
        """Observations (P, leg, sense) in [-1, 1] from joint signals (P, leg, 3), foot forces (P, leg) and the trunk.

        up, angular_velocity: (P, 3) the vertical and the turning of the trunk, in its own frame. All in SI units.
        """
        offset = position - self.mid
        result = np.empty((*foot_force.shape, SENSES + POSTURE))
        result[..., 0:3] = offset / np.where(offset < 0, *self._reach)
        result[..., 3:6] = torque / self.torque_limits
        result[..., 6:9] = velocity / self.velocity_limits
        result[..., 9] = 2.0 * foot_force / self.foot_force_max - 1.0
        posture = np.empty((len(up), POSTURE))
        posture[:, 0], posture[:, 2] = roll_of(up), pitch_of(up)
        posture[:, 1::2] = angular_velocity[:, :2]
        posture /= POSTURE_FULL
        np.multiply(posture[:, None], SINKS, out=result[..., SENSES:])
        np.maximum(result, -1.0, out=result)
        return np.minimum(result, 1.0, out=result)


def leg_rows(table: Array) -> LegTriple:
    """A table (leg, 3) as a data sheet has it."""
    return tuple((float(hip), float(thigh), float(calf)) for hip, thigh, calf in table)


ROBOTS: Final[Registry[Robot]] = Registry("robot")
"""Robots by name."""


def find_robot(name: str) -> Robot:
    """A robot by its name, from a data sheet (.json), or from a Python file that registers it in ROBOTS."""
    if Path(name).suffix != ".json":
        return ROBOTS.find(name)
    path = Path(name)
    robot = robot_from(read_json(path), str(path))
    return replace(robot, model=path.parent / robot.model)


def describe_robot(robot: Robot) -> dict[str, Any]:
    """The robot's data sheet as JSON data, with the text of its model and without what is not known."""
    text = robot.model_xml or read_text(robot.model)
    known = {name: value for name, value in asdict(robot).items() if value is not None}
    return known | {"model": robot.model.name, "model_xml": text}


def robot_from(data: object, what: str = "the robot") -> Robot:
    """A robot from its data sheet. Anything that is not one is refused by a sentence; `what` names the data in it."""
    model = data.get("model") if isinstance(data, dict) else None
    given = {} if model is None else {"model": Path(decode_value(str, model, f"{what}: model"))}
    return decode(Robot, data, what, given)
