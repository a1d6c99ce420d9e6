import numpy as np
import pytest

from ncap.tasks import build, drawn_variation, find_task
from ncap.view.shapes import TILE, _ball, _box, _cylinder, disc, ground_meshes, robot_meshes


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """By the divergence theorem: right only if the surface is closed and all faces look outwards."""
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


@pytest.mark.parametrize(
    ("surface", "exact"),
    [
        (_box(np.array([1.0, 2.0, 3.0])), 48.0),
        (_ball(np.array([1.0, 1.0, 1.0])), 4 / 3 * np.pi),
        (_ball(np.array([1.0, 2.0, 3.0])), 8 * np.pi),
        (_ball(np.array([1.0, 1.0, 1.0]), half_length=2.0), 4 / 3 * np.pi + 4 * np.pi),
        (_cylinder(1.0, 2.0), 4 * np.pi),
    ],
)
def test_surfaces_are_closed_look_outwards_and_enclose_nearly_their_volume(surface, exact):
    assert 0.96 * exact <= volume(*surface) <= exact * (1 + 1e-9)


def test_a_disc_is_seen_from_above():
    vertices, faces = disc()
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()


def test_the_robot_is_seen_without_its_collision_geoms():
    model = build(find_task("flat-walk")).model
    meshes = robot_meshes(model)
    # a1.xml: the hind cap ends at -0.185 - 0.03 m, the eyes at 0.261 + 0.010 m
    trunk = np.concatenate([mesh.vertices for mesh in meshes if model.body(mesh.body).name == "trunk"])
    assert trunk[:, 0].min() == pytest.approx(-0.215, abs=1e-6)
    assert trunk[:, 0].max() == pytest.approx(0.271, abs=2e-3)
    assert (230, 128, 51) not in {mesh.colour for mesh in meshes}  # the collision class's orange
    assert {mesh.body for mesh in meshes} == set(range(1, model.nbody))
    assert len({(mesh.body, mesh.colour) for mesh in meshes}) == len(meshes)


def test_the_ground_drawn_is_the_ground_walked_on():
    task = find_task("bumpy-walk")
    world = build(task)
    model = world.variant(drawn_variation(task, 7))
    light, dark = ground_meshes(model, task.terrain, (-1.0, 3.0), (-1.0, 1.0))
    heights, grid = task.terrain.heights(7), task.terrain.grid
    for x, y, z in light.vertices[::37]:
        column, row = round((x + grid.behind) / grid.cell), round((y + grid.aside) / grid.cell)
        assert z == pytest.approx(heights[row, column], abs=1e-6)
    a, b, c = (light.vertices[light.faces[:, i]] for i in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()
    assert len(light.faces) == len(dark.faces)


def test_tiles_alternate():
    task = find_task("flat-walk")
    light, _ = ground_meshes(build(task).model, task.terrain, (-2.0, 2.0), (-2.0, 2.0))
    middles = light.vertices[light.faces].mean(axis=1)
    assert {int(np.floor(x / TILE) + np.floor(y / TILE)) % 2 for x, y, _ in middles} == {0}
