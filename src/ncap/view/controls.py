"""Everything that a person may set in the live page, as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ncap.errors import UserError, unknown_name

RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "command": (0.0, 1.0),
    "target_speed": (0.1, 2.0),
    "bumpiness": (0.0, 1.0),
    "friction": (0.1, 2.0),
    "trunk_mass_scale": (0.5, 2.5),
    "kp": (10.0, 150.0),
    "kd": (0.5, 20.0),
    "pace": (0.05, 1.0),
    "speed": (0.0, 1.0),
    "yaw_rate": (-0.6, 0.6),
}
"""Controls that are numbers, and between which bounds; a robot or task with other numbers widens them."""
FREE: Final = "as it is turned"
BEHIND: Final = "behind the robot"
CAMERAS: Final = (FREE, BEHIND)
"""Where the camera stays: where a visitor turned it, or behind the robot, wherever that turns."""
GET_UP: Final = "get up"
START_ANEW: Final = "start anew"
AFTER_FALL: Final = (GET_UP, START_ANEW)
"""What a fallen robot does: rise from where it lies and go on, or begin the next episode."""

PUSHES: Final = {"forward": (1.0, 0.0), "back": (-1.0, 0.0), "left": (0.0, 1.0), "right": (0.0, -1.0)}
"""Directions of a push: unit vectors in the world, x forward and y to the left."""
MAX_PUSH: Final = 40.0
"""Largest impulse of a push, N s."""
FIRST_SPEED: Final = 0.3
"""Speed at which a robot that can be driven begins, m/s."""
KEY_STEP: Final = {"speed": 0.1, "yaw_rate": 0.1}
"""What a press of a key changes, m/s and rad/s."""


@dataclass(frozen=True, kw_only=True)
class Controls:
    """Everything that a person may set."""

    policy: str
    """Name of the policy that moves the robot."""
    task: str
    """Name of the task that gives the ground, the target speed and the numbers of the world."""
    robot: str
    """Name of the robot that walks."""
    ghost: str | None = None
    """Another policy, whose robot walks beside on the same ground and touches nothing of the first."""
    command: float | None
    """Brainstem command in [0, 1]; None for a policy without a circuit."""
    without: tuple[str, ...] = ()
    """Knock-outs: pathways, populations, single neurons, synapses; see ncap.circuits.animal.cut."""
    target_speed: float
    """Forward speed that is rewarded, m/s."""
    bumpiness: float
    """Share of the bumps' height that varies, in [0, 1]; 0 is a plane."""
    friction: float = 1.0
    """Sliding friction of the feet."""
    trunk_mass_scale: float = 1.0
    """Factor on the trunk's mass and inertia."""
    kp: float
    """Proportional gain of the joints, N m / rad."""
    kd: float
    """Derivative gain of the joints, N m s / rad."""
    pace: float = 1.0
    """Simulated seconds in a second of real time."""
    paused: bool = False
    can_be_driven: bool = False
    """Whether the policy can turn and stop."""
    driven: bool = False
    """Whether a brainstem follows the wishes below, in place of the command above."""
    speed: float = 0.0
    """Forward speed that is wanted, m/s; 0 stands."""
    yaw_rate: float = 0.0
    """Turning that is wanted, rad/s, positive to the left."""
    after_fall: str = GET_UP
    """One of AFTER_FALL."""
    camera: str = FREE
    """One of CAMERAS."""

    def check(self, ranges: Mapping[str, tuple[float, float]]) -> None:
        """Refuse a number outside its range, and an unknown word."""
        if self.after_fall not in AFTER_FALL:
            raise unknown_name("choice after a fall", self.after_fall, AFTER_FALL)
        if self.camera not in CAMERAS:
            raise unknown_name("camera", self.camera, CAMERAS)
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is None and name == "command":
                continue
            if not isinstance(value, int | float) or not low <= value <= high:
                raise UserError(f"{name} {value!r} is not a number in [{low:g}, {high:g}]")


def blow(direction: str, impulse: float) -> tuple[float, float, float]:
    """A push in a direction by its name, in the world, N s."""
    if direction not in PUSHES:
        raise unknown_name("direction", direction, PUSHES)
    if not 0.0 <= impulse <= MAX_PUSH:
        raise UserError(f"a push of {impulse:g} N s is outside [0, {MAX_PUSH:g}]")
    x, y = PUSHES[direction]
    return impulse * x, impulse * y, 0.0
