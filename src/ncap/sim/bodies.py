"""Bodies by name, and as the JSON data that travels in recordings."""

from typing import Any

from ncap.errors import UserError
from ncap.files import decode
from ncap.sim.body import Body
from ncap.sim.robot import Robot, describe_robot, find_robot, robot_from
from ncap.sim.swimmer import Swimmer, swimmer_named


def find_body(name: str) -> Body:
    """A robot by its name, from a data sheet (.json) or a Python file, or a swimmer of N links, swimmer-N."""
    return swimmer_named(name) or find_robot(name)


def describe_body(body: Body) -> dict[str, Any]:
    """The body's data sheet as JSON data."""
    if isinstance(body, Swimmer):
        sizes = {name: getattr(body, name) for name in ("links", "half_size", "mass", "torque")}
        return {"swimmer": sizes}
    return describe_robot(legged(body))


def body_from(data: object, what: str = "the robot") -> Body:
    """The inverse of `describe_body`. Anything that is none is refused by a sentence; `what` names the data in it."""
    if isinstance(data, dict) and set(data) == {"swimmer"}:
        swimmer: Swimmer = decode(Swimmer, data["swimmer"], what)
        return swimmer
    return robot_from(data, what)


def legged(body: Body) -> Robot:
    """The same body, if it is a quadruped."""
    if not isinstance(body, Robot):
        raise UserError(f"{body.name} is no robot with legs")
    return body
