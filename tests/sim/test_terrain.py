from dataclasses import dataclass, replace

import mujoco
import numpy as np
import pytest

from ncap.errors import UserError
from ncap.sim.a1 import A1
from ncap.sim.terrain import CELLS_PER_BUMP, TERRAINS, Bumpy, Flat, Grid
from ncap.sim.world import Variation, World
from ncap.tasks import TASKS, build


@pytest.mark.parametrize("bumpiness", [0.0, 0.25, 0.5, 1.0])
def test_bumps_are_uniform_between_one_minus_b_and_one_times_five_centimetres(bumpiness):
    # uniform on [1 - b, 1]: mean 1 - b/2, standard deviation b / sqrt(12); knots are independent
    knots = Bumpy(bumpiness=bumpiness).heights(3)[::CELLS_PER_BUMP, ::CELLS_PER_BUMP] / 0.05
    assert knots.mean() == pytest.approx(1 - bumpiness / 2, abs=0.01)
    assert knots.std() == pytest.approx(bumpiness / np.sqrt(12), abs=0.01)
    assert knots.min() >= 1 - bumpiness
    assert knots.max() <= 1
    if bumpiness:
        neighbours = np.corrcoef(knots[:, :-1].ravel(), knots[:, 1:].ravel())[0, 1]
        assert abs(neighbours) < 0.05


def test_between_the_knots_the_ground_is_smooth_and_stays_within_its_corners():
    heights = Bumpy(bumpiness=1.0).heights(0)
    along = heights[0, : CELLS_PER_BUMP + 1]
    low, high = sorted((along[0], along[-1]))
    assert np.all((along >= low) & (along <= high))
    # the steepest slope of the S-shaped blend is 1.5 times the mean slope: at most 1.5 * 0.05 m / 0.2 m
    assert np.abs(np.diff(heights, axis=1)).max() / Bumpy().grid.cell <= 1.5 * 0.05 / 0.2 + 1e-9


def test_terrain_comes_from_its_seed_and_is_long_enough_for_15_s_at_2_metres_a_second():
    terrain = Bumpy()
    assert np.array_equal(terrain.heights(5), terrain.heights(5))
    assert not np.array_equal(terrain.heights(5), terrain.heights(6))
    assert terrain.ahead > 30
    assert (terrain.grid.columns - 1) * terrain.grid.cell == pytest.approx(terrain.ahead + terrain.behind)


def test_impossible_bumpiness_is_refused():
    with pytest.raises(UserError, match=r"bumpiness 1.5 is outside \[0, 1\]"):
        Bumpy(bumpiness=1.5)


def lowest_foot_distance(world, model, qpos):
    """Signed distance between the lowest foot and the ground according to MuJoCo's own collision test."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    touching = [c.dist for c in data.contact if set(c.geom) & set(world.foot_geoms)]
    return min(touching, default=np.inf), data


@pytest.mark.parametrize("bumpiness", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_robot_starts_settled_on_the_bumps_and_never_inside(bumpiness, seed):
    world = World(A1, Bumpy(bumpiness=bumpiness))
    model = world.variant(Variation(terrain_seed=seed))
    qpos, qvel = world.standing(model, np.zeros((4, 3)))
    distance, data = lowest_foot_distance(world, model, qpos)
    assert np.all(qvel == 0)
    assert -0.01 < distance < 0.002  # the feet's contact is soft: standing on the plane they sink 6 mm
    data.ctrl[:] = A1.mid.ravel()
    mujoco.mj_step(model, data, nstep=300)
    assert abs(data.qpos[2] - qpos[2]) < 0.005
    assert not data.sensor("trunk_touch").data[0]


def test_on_the_plane_the_lowest_foot_starts_two_millimetres_above_the_ground():
    world = build(TASKS["flat-walk"])
    qpos, _ = world.standing(world.model, np.random.default_rng(0).uniform(-0.02, 0.02, (4, 3)))
    data = mujoco.MjData(world.model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(world.model, data)
    assert (data.geom_xpos[world.foot_geoms, 2] - 0.02).min() == pytest.approx(0.002)


@pytest.mark.parametrize("name", ["flat-walk", "bumpy-walk"])
def test_neither_feet_nor_trunk_sink_into_the_ground_when_the_robot_is_dropped(name):
    world = build(TASKS[name])
    model = world.variant(Variation(terrain_seed=2))
    data = mujoco.MjData(model)
    data.qpos[:], _ = world.standing(model, np.zeros((4, 3)))
    data.qpos[2] += 0.1
    data.ctrl[:] = A1.mid.ravel()
    deepest = 0.0
    for step in range(2000):
        if step == 700:  # lie down: fold the legs, so that the trunk comes to the ground
            data.ctrl[:] = A1.low.ravel()
            data.qpos[2] += 0.05
        mujoco.mj_step(model, data)
        for contact in data.contact:
            deepest = min(deepest, contact.dist)
    assert -0.025 < deepest < 0  # a foot's radius is 0.02 m; the impact of a fall from 0.1 m presses it in for a moment


def test_the_ground_of_a_variant_is_its_own():
    world = build(TASKS["bumpy-walk"])
    one, other = (world.variant(Variation(terrain_seed=seed)) for seed in (1, 2))
    assert not np.array_equal(one.hfield_data, other.hfield_data)
    assert np.all(world.model.hfield_data == 0)


@dataclass(frozen=True)
class Plateau:
    """A terrain of one's own: level ground at a height of 8 cm."""

    @property
    def grid(self):
        return Grid(rows=41, columns=61, cell=0.1, behind=2.0, ahead=4.0, aside=2.0, top=0.2, level=0.08)

    def heights(self, seed):
        return np.full((41, 61), 0.08)


def test_a_terrain_of_ones_own_needs_a_grid_and_heights_and_nothing_else():
    flat, high = (World(A1, terrain) for terrain in (Flat(), Plateau()))
    heights = {}
    for world in (flat, high):
        model = world.variant(Variation())
        data = mujoco.MjData(model)
        data.qpos[:], _ = world.standing(model, np.zeros((4, 3)))
        data.ctrl[:] = A1.mid.ravel()
        mujoco.mj_step(model, data, nstep=1000)
        heights[world] = data.qpos[2]
    assert heights[high] - heights[flat] == pytest.approx(0.08, abs=0.003)
    task = replace(TASKS["flat-walk"], terrain=Plateau())
    assert build(task) is build(replace(TASKS["flat-walk"], terrain=Plateau()))  # compared by value, compiled once


def test_terrains_are_known_by_name():
    assert (TERRAINS["flat"], TERRAINS["bumpy"]) == (Flat(), Bumpy())
    assert Flat().grid is None
    with pytest.raises(UserError, match="unknown terrain 'ice'; valid: flat, bumpy"):
        TERRAINS.find("ice")
