"""A session in 3-D: robot, ghost, ground, paths, gates and pushes as nodes of a viser scene."""

import time
from typing import Any, Final

import numpy as np

from ncap.view.beside import LANE, beside
from ncap.view.controls import BEHIND, PUSHES
from ncap.view.course import Course
from ncap.view.looks import CAMERA
from ncap.view.scene import (
    PATH_COLOUR,
    ROOT,
    WANTED_COLOUR,
    CourseNode,
    FootLights,
    GroundNodes,
    NameNode,
    PathNode,
    RobotNodes,
    TargetNode,
)
from ncap.view.session import GHOST, ROBOT, Session

AWAY: Final = float(np.arctan2(-CAMERA[1], -CAMERA[0])) + 0.25
"""Direction in which a robot looks that the first camera sees from behind and a little from the side, rad."""
TURN_SHARE: Final = 0.06
"""Share of its way that the world turns under the camera in a step: slower than the trunk swings in a stride."""
STILL: Final = 0.002
"""Angle that is not worth a message, rad."""
ARROW_SECONDS: Final = 0.5
"""Real time for which the arrow of a push is shown, s."""


class Drawing:
    """The nodes of a session, made anew whenever its ground or its robot is another one."""

    def __init__(self, server: Any, session: Session) -> None:
        self._server, self._session = server, session
        self._nodes: list[Any] = []
        self._gates: CourseNode | None = None
        self._course: Course | None = None
        self._arrow_until = 0.0
        self._root = server.scene.add_frame(ROOT, show_axes=False)
        self._turned = 0.0
        self._build()

    def _build(self) -> None:
        for node in self._nodes:
            node.remove()
        session, scene = self._session, self._server.scene
        model = session.arena.simulation.model(ROBOT)
        self._arena, self._seed = session.arena, session.seed
        self.ground = GroundNodes(scene, model, session.arena.task.terrain)
        self._robot = RobotNodes(scene, f"{ROOT}/robot", model)
        self._ghost = RobotNodes(scene, f"{ROOT}/ghost", model, ghost=True)
        self._name = NameNode(scene)
        self._feet = FootLights(scene, session.arena.world.foot_geoms)
        self._path = PathNode(scene, f"{ROOT}/path", PATH_COLOUR)
        self._wanted = PathNode(scene, f"{ROOT}/wanted", WANTED_COLOUR)
        self._nodes = [self.ground, self._robot, self._ghost, self._name, self._feet, self._path, self._wanted]
        target = session.arena.task.target
        self._target = None if target is None else TargetNode(scene, target.radius)
        if self._target is not None:
            self._nodes.append(self._target)

    def move(self) -> None:
        """Put everything where it is now."""
        session = self._session
        flat = session.arena.task.terrain.grid is None
        if session.arena is not self._arena or (session.seed != self._seed and not flat):
            self._build()
        if session.course is not self._course:
            self._draw_course()
        robot, ghost = session.arena.measured.position[[ROBOT, GHOST]]
        origin = np.array([*robot[:2], 0.0])
        place = beside(robot, session.heading(), ghost, lane=LANE if flat else 0.0)
        with self._server.atomic():
            self._turn()
            self._robot.move(session.arena.state(ROBOT), origin)
            for node in (self.ground, self._path, self._wanted, *([self._gates] if self._gates else ())):
                node.move(origin)
            if self._target is not None:
                self._target.move(session.arena.targets[ROBOT], origin)
            self._feet.move(self._robot, session.arena.measured.foot_force[ROBOT], origin)
            self._ghost.show(session.ghost is not None)
            if session.ghost is not None:
                self._ghost.move(session.arena.state(GHOST), origin - place.shift)
            name = "" if session.ghost is None else f"{session.ghost.name}, {place.said}"
            self._name.show(name, ghost + place.shift - origin)

    def _turn(self) -> None:
        """Turn the world under the camera, so that it stays behind the robot, if it is to."""
        session, goal = self._session, 0.0
        if session.controls.camera == BEHIND:
            x, y = session.heading()
            goal = AWAY - float(np.arctan2(y, x))
        gap = (goal - self._turned + np.pi) % (2 * np.pi) - np.pi
        if abs(gap) > STILL:
            self._turned += TURN_SHARE * gap
            self._root.wxyz = (np.cos(self._turned / 2), 0.0, 0.0, np.sin(self._turned / 2))

    def draw_ways(self) -> None:
        """Draw where the robot went and was to go, and the gates as they were passed."""
        paths = self._session.driving.paths
        self._path.draw(paths.went)
        self._wanted.draw(paths.wanted if self._session.controls.driven else ())
        if self._gates is not None and self._course is not None:
            self._gates.show(self._course.score)

    def _draw_course(self) -> None:
        if self._gates is not None:
            self._gates.remove()
        self._course = course = self._session.course
        self._gates = None if course is None else CourseNode(self._server.scene, course)

    def show_push(self, direction: str, impulse: float) -> None:
        """Show an arrow for a blow with an impulse in N s, for a moment."""
        way = np.array([*PUSHES[direction], 0.0])
        tip = np.array([0.0, 0.0, 0.32])
        self._server.scene.add_arrows(
            f"{ROOT}/push",
            np.array([[tip - way * (0.25 + 0.02 * impulse), tip - 0.12 * way]]),
            (255, 90, 90),
            shaft_radius=0.012,
            head_radius=0.035,
            head_length=0.08,
        )
        self._arrow_until = time.perf_counter() + ARROW_SECONDS

    def end_push(self, now: float) -> None:
        """Take the arrow away when its time is over. now: of time.perf_counter, s."""
        if self._arrow_until and now > self._arrow_until:
            self._server.scene.remove_by_name(f"{ROOT}/push")
            self._arrow_until = 0.0
