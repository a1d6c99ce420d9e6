"""Triangles of a model's geoms, which the live page and the replay draw.

A vertex on an edge that should look sharp is repeated for every face, so that averaged normals shade it well.
"""

from typing import Final, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap.sim.camera import COLLISION_GROUP
from ncap.sim.terrain import Terrain

Array = NDArray[np.float64]
Colour = tuple[int, int, int]
_Surface = tuple[Array, NDArray[np.int64]]

TILE: Final = 0.5
"""Side of a tile of the ground, m."""
TILES: Final[tuple[Colour, Colour]] = ((58, 69, 84), (47, 57, 71))
FLAT_RADIUS: Final = 8.0
"""Distance to which the plane is drawn around the robot, m."""
_SEGMENTS: Final = 20
"""Corners of a circle."""


class Mesh(NamedTuple):
    """Triangles of one colour, fixed to one body."""

    body: int
    """Number of the body in the model; 0 is the world."""
    colour: Colour
    vertices: Array
    """(V, 3) in the body's frame, m."""
    faces: NDArray[np.int64]
    """(F, 3) counterclockwise from outside."""


def robot_meshes(model: mujoco.MjModel) -> list[Mesh]:
    """Visible surfaces of the robot, one mesh for each body and colour."""
    found: dict[tuple[int, Colour], list[_Surface]] = {}
    for geom in range(model.ngeom):
        body = int(model.geom_bodyid[geom])
        if body == 0 or model.geom_group[geom] == COLLISION_GROUP:
            continue
        vertices, faces = _surface(model, geom)
        vertices = vertices @ _rotation(model.geom_quat[geom]).T + model.geom_pos[geom]
        found.setdefault((body, _colour(model, geom)), []).append((vertices, faces))
    return [Mesh(body, colour, *_joined(surfaces)) for (body, colour), surfaces in found.items()]


def ground_meshes(
    model: mujoco.MjModel, terrain: Terrain, x: tuple[float, float], y: tuple[float, float]
) -> list[Mesh]:
    """Chequered ground between x and between y, m, one mesh for each of its two colours."""
    grid = terrain.grid
    step = TILE if grid is None else TILE / max(1, round(TILE / (2 * grid.cell)))  # tiles end at vertices
    xs, ys = (np.arange(np.floor(low / TILE), np.ceil(high / TILE) + step, step / TILE) * TILE for low, high in (x, y))
    grid_x, grid_y = np.meshgrid(xs, ys)
    height = np.zeros_like(grid_x)
    if grid is not None:
        field = model.hfield_data.reshape(grid.rows, grid.columns) * grid.top
        row = np.round((grid_y + grid.aside) / grid.cell).astype(int)
        column = np.round((grid_x + grid.behind) / grid.cell).astype(int)
        there = (row >= 0) & (row < grid.rows) & (column >= 0) & (column < grid.columns)
        height = np.where(there, field[row % grid.rows, column % grid.columns], grid.level)
    vertices = np.stack((grid_x, grid_y, height), axis=-1).reshape(-1, 3)
    corner = (np.arange(len(ys) - 1)[:, None] * len(xs) + np.arange(len(xs) - 1)).ravel()
    quads = np.stack((corner, corner + 1, corner + len(xs) + 1, corner + len(xs)), axis=1)
    faces = quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    middle = vertices[quads].mean(axis=1)
    odd = np.repeat((np.floor(middle[:, 0] / TILE) + np.floor(middle[:, 1] / TILE)) % 2 == 1, 2)
    return [Mesh(0, colour, vertices, faces[odd == side]) for side, colour in enumerate(TILES)]


def disc() -> _Surface:
    """A flat disc of radius 1 that is seen from above."""
    return _lathe([(1.0, 0.0), (0.0, 0.0)], np.ones(3))


def _joined(surfaces: list[_Surface]) -> _Surface:
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in surfaces)])
    faces = [faces + start for (_, faces), start in zip(surfaces, starts, strict=False)]
    return np.concatenate([vertices for vertices, _ in surfaces]), np.concatenate(faces)


def _colour(model: mujoco.MjModel, geom: int) -> Colour:
    material = int(model.geom_matid[geom])
    rgba = model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]
    red, green, blue = (round(255 * float(channel)) for channel in np.clip(rgba[:3], 0.0, 1.0))
    return red, green, blue


def _rotation(quaternion: Array) -> Array:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


def _surface(model: mujoco.MjModel, geom: int) -> _Surface:
    size, kind = model.geom_size[geom], mujoco.mjtGeom(int(model.geom_type[geom]))
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return _box(size)
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return _ball(np.full(3, size[0]))
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        return _ball(size)
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return _ball(np.full(3, size[0]), half_length=size[1])
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return _cylinder(size[0], size[1])
    mesh = model.mesh(int(model.geom_dataid[geom]))
    points, triangles = int(mesh.vertadr[0]), int(mesh.faceadr[0])
    return (
        model.mesh_vert[points : points + int(mesh.vertnum[0])].astype(float),
        model.mesh_face[triangles : triangles + int(mesh.facenum[0])].astype(np.int64),
    )


def _box(half: Array) -> _Surface:
    corners: list[Array] = []
    faces = []
    for axis in range(3):
        across, up = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1, 1):
            start = len(corners)
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                corner = np.zeros(3)
                corner[[axis, across, up]] = side, a * side, b
                corners.append(corner * half)
            faces += [(start, start + 1, start + 2), (start, start + 2, start + 3)]
    return np.array(corners), np.array(faces)


def _ball(radii: Array, half_length: float = 0.0) -> _Surface:
    """An ellipsoid, or a capsule along z when it has a half length."""
    latitude = np.linspace(-np.pi / 2, np.pi / 2, _SEGMENTS // 2 + 2)
    if half_length:
        latitude = np.sort([*latitude, 0.0, 0.0])  # a ring at either end of the straight part
    rings = [(np.cos(angle), np.sin(angle)) for angle in latitude]
    shift = np.where(np.arange(len(rings)) < len(rings) / 2, -half_length, half_length)
    return _lathe(
        [(width, height * radii[2] + move) for (width, height), move in zip(rings, shift, strict=True)], radii
    )


def _cylinder(radius: float, half_length: float) -> _Surface:
    low, high, size = -half_length, half_length, np.array([radius, radius, 1.0])
    return _joined(
        [_lathe(list(part), size) for part in (((0, low), (1, low)), ((1, low), (1, high)), ((1, high), (0, high)))]
    )


def _lathe(outline: list[tuple[float, float]], radii: Array) -> _Surface:
    """A surface of revolution about z from (width, height) pairs that go upwards around the outside."""
    angle = np.arange(_SEGMENTS) * 2 * np.pi / _SEGMENTS
    circle = np.stack((np.cos(angle) * radii[0], np.sin(angle) * radii[1]), axis=1)
    vertices = np.concatenate(
        [np.column_stack((circle * width, np.full(_SEGMENTS, height))) for width, height in outline]
    )
    here = np.arange(_SEGMENTS)
    after = (here + 1) % _SEGMENTS
    faces = []
    for ring in range(len(outline) - 1):
        low, high = ring * _SEGMENTS, (ring + 1) * _SEGMENTS
        if outline[ring][0] > 1e-9:
            faces.append(np.stack((low + here, low + after, high + after), axis=1))
        if outline[ring + 1][0] > 1e-9:
            faces.append(np.stack((low + here, high + after, high + here), axis=1))
    return vertices, np.concatenate(faces)
