"""Robot and ground as nodes of a viser scene. The robot stays in the middle and the ground moves under it.

So the camera needs not follow it, and every tab can turn its own view.
"""

from collections.abc import Sequence
from typing import Any, Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap.evaluation import STANCE_FORCE
from ncap.plan import LEGS
from ncap.sim.terrain import Terrain
from ncap.view.course import Course, Score
from ncap.view.shapes import FLAT_RADIUS, TILE, disc, ground_meshes, robot_meshes
from ncap.view.style import FULL_FORCE, LEG_COLOURS, rgb

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

ROOT: Final = "/world"
"""The frame to which all nodes belong, so that the view can turn with the robot."""
GHOST_COLOUR: Final = (120, 190, 255)
GHOST_OPACITY: Final = 0.28
PATH_COLOUR: Final = (255, 190, 70)
WANTED_COLOUR: Final = (150, 165, 185)
ABOVE: Final = 0.28
"""Height of the ghost's name over its trunk, m."""
GATE_HEIGHT: Final = 0.5
"""Height of a gate of a course, m."""
GATE_COLOURS: Final = {
    "next": (255, 209, 102),
    "later": (96, 112, 134),
    "passed": (61, 220, 151),
    "lost": (150, 60, 60),
}
PATH_HEIGHT: Final = 0.01
"""Height of a path over the plane, m."""
HALF_WIDTH: Final = 4.0
"""Distance to which a height field is drawn to either side, m."""


class RobotNodes:
    """A robot in the scene: a frame per body, moved as the body moves."""

    def __init__(self, scene: Any, name: str, model: mujoco.MjModel, *, ghost: bool = False) -> None:
        self.model, self._data = model, mujoco.MjData(model)
        self._root = scene.add_frame(name, show_axes=False)
        self._frames: dict[int, Any] = {}
        look = {"color": GHOST_COLOUR, "opacity": GHOST_OPACITY, "cast_shadow": False} if ghost else {}
        for number, mesh in enumerate(robot_meshes(model)):
            body = f"{name}/{mesh.body}"
            if mesh.body not in self._frames:
                self._frames[mesh.body] = scene.add_frame(body, show_axes=False)
            scene.add_mesh_simple(f"{body}/{number}", mesh.vertices, mesh.faces, **{"color": mesh.colour, **look})

    def show(self, visible: bool) -> None:
        """Show or hide it."""
        if self._root.visible != visible:
            self._root.visible = visible

    def move(self, qpos: Array, origin: Array) -> None:
        """Put every body where the state qpos (nq,) has it, seen from an origin (3,) in the world."""
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self._data)
        for body, frame in self._frames.items():
            frame.position = self._data.xpos[body] - origin
            frame.wxyz = self._data.xquat[body]

    def geom_positions(self, geoms: Indices) -> Array:
        """(n, 3) positions in the world as of the last `move`, m."""
        positions: Array = self._data.geom_xpos[geoms]
        return positions

    def remove(self) -> None:
        """Remove its nodes from the scene."""
        self._root.remove()


class FootLights:
    """A disc of the leg's colour under every foot that stands, the larger the harder it presses."""

    def __init__(self, scene: Any, feet: Indices) -> None:
        self._feet = feet
        vertices, faces = disc()
        self._discs = [
            scene.add_mesh_simple(
                f"{ROOT}/feet/{leg}", vertices, faces, color=rgb(colour), opacity=0.75, cast_shadow=False
            )
            for leg, colour in list(zip(LEGS, LEG_COLOURS, strict=True))[: len(feet)]
        ]

    def move(self, robot: RobotNodes, force: Array, origin: Array) -> None:
        """Follow a robot whose feet press with these forces (leg,), N."""
        places = robot.geom_positions(self._feet) - origin
        for node, place, size, pressed in zip(
            self._discs, places, robot.model.geom_size[self._feet, 0], force, strict=True
        ):
            node.visible = bool(pressed > STANCE_FORCE)
            if node.visible:
                node.position = place - [0.0, 0.0, size - 0.006]
                node.scale = round(0.03 + 0.06 * min(1.0, float(pressed) / FULL_FORCE), 3)

    def remove(self) -> None:
        """Remove the discs from the scene."""
        for node in self._discs:
            node.remove()


class TargetNode:
    """A disc where a body is to go to."""

    def __init__(self, scene: Any, radius: float) -> None:
        vertices, faces = disc()
        self._disc = scene.add_mesh_simple(
            f"{ROOT}/target", vertices, faces, color=PATH_COLOUR, opacity=0.8, cast_shadow=False, scale=radius
        )

    def move(self, place: Array, origin: Array) -> None:
        """Put it to a place (2,) in the world, m, seen from an origin (3,)."""
        self._disc.position = np.array([*place, PATH_HEIGHT]) - origin

    def remove(self) -> None:
        """Remove it from the scene."""
        self._disc.remove()


class GroundNodes:
    """The ground under the robot. A plane repeats every two tiles, so it never needs to move further than that."""

    def __init__(self, scene: Any, model: mujoco.MjModel, terrain: Terrain) -> None:
        grid = terrain.grid
        self._endless = grid is None
        self._root = scene.add_frame(f"{ROOT}/ground", show_axes=False)
        x, y = ((-FLAT_RADIUS, FLAT_RADIUS),) * 2
        if grid is not None:
            x, y = (-grid.behind, grid.ahead), (-HALF_WIDTH, HALF_WIDTH)
        for number, mesh in enumerate(ground_meshes(model, terrain, x, y)):
            scene.add_mesh_simple(
                f"{ROOT}/ground/{number}",
                mesh.vertices,
                mesh.faces,
                color=mesh.colour,
                cast_shadow=False,
                receive_shadow=True,
            )

    def move(self, origin: Array) -> None:
        """Put it where it belongs, seen from an origin (3,) in the world."""
        self._root.position = -(np.fmod(origin, 2 * TILE) if self._endless else origin)

    def remove(self) -> None:
        """Remove its nodes from the scene."""
        self._root.remove()


class NameNode:
    """The ghost's name above it, and where it is."""

    def __init__(self, scene: Any) -> None:
        self._label = scene.add_label(f"{ROOT}/ghost-name", "", anchor="bottom-center", visible=False)

    def show(self, text: str, place: Array) -> None:
        """Write a text above a place (3,); nothing if it is empty."""
        if self._label.visible != bool(text):
            self._label.visible = bool(text)
        if text:
            self._label.position = place + np.array([0.0, 0.0, ABOVE])
            if self._label.text != text:
                self._label.text = text

    def remove(self) -> None:
        """Remove it from the scene."""
        self._label.remove()


class CourseNode:
    """The gates of a course, in the colours of how each went, and the way from gate to gate."""

    def __init__(self, scene: Any, course: Course) -> None:
        posts = np.concatenate((course.posts, np.zeros((*course.posts.shape[:2], 1))), axis=2)
        tops = posts + np.array([0.0, 0.0, GATE_HEIGHT])
        left, right = posts[:, 0], posts[:, 1]
        bars = ((left, tops[:, 0]), (right, tops[:, 1]), (tops[:, 0], tops[:, 1]), (left, right))
        points = np.stack([np.stack(bar, axis=1) for bar in bars], axis=1).reshape(-1, 2, 3).astype(np.float32)
        self._bars, self._shown = len(bars), (*course.score.points, course.score.over)
        self._lines = scene.add_line_segments(
            f"{ROOT}/course/gates", points, self._colours(course.score), thickness=0.03
        )
        middles = np.concatenate(([course.start], course.middles)).astype(np.float32)
        ground = np.column_stack((middles, np.full(len(middles), PATH_HEIGHT / 2, np.float32)))
        way = np.stack((ground[:-1], ground[1:]), axis=1)
        self._way = scene.add_line_segments(f"{ROOT}/course/way", way, GATE_COLOURS["later"], thickness=0.02)

    def _colours(self, score: Score) -> NDArray[np.uint8]:
        """(bar, 2, 3) colours of all bars."""
        kinds = ["later" if points is None else "passed" if points else "lost" for points in score.points]
        if score.next is not None:
            kinds[score.next] = "next"
        colours = np.array([GATE_COLOURS[kind] for kind in kinds])
        colours = np.round(255 * (colours / 255) ** 2.2).astype(np.uint8)  # viser takes those of line ends as linear
        return np.repeat(np.repeat(colours, self._bars, axis=0)[:, None], 2, axis=1)

    def show(self, score: Score) -> None:
        """Colour the gates as the drive goes."""
        now = (*score.points, score.over)
        if now != self._shown:
            self._shown, self._lines.colors = now, self._colours(score)

    def move(self, origin: Array) -> None:
        """Put it where it belongs, seen from an origin (3,) in the world."""
        self._lines.position = self._way.position = -origin

    def remove(self) -> None:
        """Remove it from the scene."""
        self._lines.remove()
        self._way.remove()


class PathNode:
    """A path on the ground as a line."""

    def __init__(self, scene: Any, name: str, colour: tuple[int, int, int]) -> None:
        nowhere = np.zeros((1, 2, 3), np.float32)
        self._line = scene.add_line_segments(name, nowhere, colour, thickness=0.012)

    def draw(self, path: Sequence[Array]) -> None:
        """Lead it through points (2,), m."""
        self._line.visible = len(path) > 1
        if len(path) > 1:
            points = np.column_stack((np.array(path, np.float32), np.full(len(path), PATH_HEIGHT, np.float32)))
            self._line.points = np.stack((points[:-1], points[1:]), axis=1)

    def move(self, origin: Array) -> None:
        """Put it where it belongs, seen from an origin (3,) in the world."""
        self._line.position = -origin

    def remove(self) -> None:
        """Remove it from the scene."""
        self._line.remove()
