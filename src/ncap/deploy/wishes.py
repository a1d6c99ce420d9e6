"""What a driver can want of a robot: a speed and a yaw rate, and the ranges of both. Without NumPy."""

from typing import Final, NamedTuple

from ncap.errors import UserError

SPEEDS: Final = (0.0, 1.0)
"""Range of speeds that can be wanted, m/s: the one that driven circuits are trained for."""
YAW_RATES: Final = (-0.6, 0.6)
"""Range of yaw rates that can be wanted, positive to the left, rad/s."""
DRIVES: Final = ("none", "keyboard", "remote")
"""Who can drive a robot: nobody (the wish is constant), keys of the terminal, or the robot's own remote."""


class Wish(NamedTuple):
    """What is wanted of a robot. (0, 0) is to stand."""

    speed: float
    """Forward, m/s."""
    yaw_rate: float
    """Positive to the left, rad/s."""


STAND: Final = Wish(0.0, 0.0)
SLOW_WALK: Final = Wish(0.3, 0.0)
"""What a robot does that can be driven and is not told otherwise."""


def check_wish(wish: Wish) -> Wish:
    """The wish, if both of its numbers are in their ranges; otherwise a UserError that names the range."""
    for what, value, (low, high), unit in (
        ("speed", wish.speed, SPEEDS, "m/s"),
        ("yaw rate", wish.yaw_rate, YAW_RATES, "rad/s"),
    ):
        if not low <= value <= high:
            raise UserError(f"a wanted {what} is a number in [{low:g}, {high:g}] {unit}, not {value:g}")
    return wish


def clipped(wish: Wish) -> tuple[Wish, str]:
    """(nearest wish within the ranges, what was beyond them or nothing): for keys and sticks, which may overshoot."""
    speed = min(max(wish.speed, SPEEDS[0]), SPEEDS[1])
    yaw_rate = min(max(wish.yaw_rate, YAW_RATES[0]), YAW_RATES[1])
    notes = []
    if speed != wish.speed:
        notes.append(f"{speed:g} m/s is the {'most' if wish.speed > speed else 'least'}")
    if yaw_rate != wish.yaw_rate:
        notes.append(f"{yaw_rate:+g} rad/s is the sharpest")
    return Wish(speed, yaw_rate), ", ".join(notes)
