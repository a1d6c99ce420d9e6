"""The compiled Go1 and Go2 against their published numbers: Unitree's descriptions, as in MuJoCo Menagerie."""

from typing import NamedTuple

import mujoco
import numpy as np
import pytest

from ncap.plan import LEGS
from ncap.sim.a1 import A1
from ncap.sim.robot import find_robot
from ncap.sim.terrain import Flat
from ncap.sim.world import World

MIRROR = np.diag([1.0, -1.0, 1.0])


class Link(NamedTuple):
    """A link of the front left leg, or the trunk: mass, kg; centre of mass, m; xx yy zz xy xz yz about it, kg m²."""

    mass: float
    centre: tuple[float, float, float]
    inertia: tuple[float, float, float, float, float, float]


class Published(NamedTuple):
    total: float
    trunk: Link
    hip: Link
    thigh: Link
    calf: Link
    """With its foot."""
    places: tuple[tuple[float, float, float], ...]
    """Of hip in trunk, thigh in hip, calf in thigh, foot in calf, of the front left leg, m."""
    foot_radius: float
    ranges: dict[str, tuple[float, float]]
    """By joint, and by girdle and joint where they differ, rad."""
    torque: tuple[float, float, float]
    speed: tuple[float, float, float]


PUBLISHED = {
    "go1": Published(
        total=12.7434,
        trunk=Link(5.204, (0.0223, 0.002, -0.0005),
                   (0.0168128557, 0.063009565, 0.0716547275, -0.0002296769, -0.0002945293, -4.18731e-5)),
        hip=Link(0.68, (-0.0049166, -0.00762615, -8.865e-5),
                 (0.00039938, 0.000733419, 0.000468422, -1.45897e-5, 1.24609e-6, 1.57518e-6)),
        thigh=Link(1.009, (-0.00304722, -0.019315, -0.0305004),
                   (0.0045988, 0.00468922, 0.000817448, 6.13737e-5, -0.00022753, 0.000610808)),
        calf=Link(0.195862, (0.00429862, 0.000976676, -0.146197),
                  (0.00148449, 0.00149764, 3.60682e-5, -6.18625e-7, -1.772e-5, -3.56628e-6)),
        places=((0.1881, 0.04675, 0), (0, 0.08, 0), (0, 0, -0.213), (0, 0, -0.213)),
        foot_radius=0.023,
        ranges={"hip": (-0.863, 0.863), "thigh": (-0.686, 4.501), "calf": (-2.818, -0.888)},
        torque=(23.7, 23.7, 35.55),
        speed=(30.1, 30.1, 20.06),
    ),
    "go2": Published(
        total=15.2064,
        trunk=Link(6.921, (0.021112, 0, -0.005366), (0.02448, 0.098077, 0.107, 0.00012166, 0.0014849, -3.12e-5)),
        hip=Link(0.678, (-0.0054, 0.00194, -0.000105), (0.00048, 0.000884, 0.000596, -3.01e-6, 1.11e-6, -1.42e-6)),
        thigh=Link(1.152, (-0.00374, -0.0223, -0.0327), (0.00584, 0.0058, 0.00103, 8.72e-5, -0.000289, 0.000808)),
        calf=Link(0.241352, (0.00629595, -0.000622121, -0.141417),
                  (0.00146354, 0.00148999, 5.32693e-5, 2.17545e-7, 5.96681e-6, 1.22479e-5)),
        places=((0.1934, 0.0465, 0), (0, 0.0955, 0), (0, 0, -0.213), (-0.002, 0, -0.213)),
        foot_radius=0.022,
        ranges={"hip": (-1.0472, 1.0472), "F thigh": (-1.5708, 3.4907), "H thigh": (-0.5236, 4.5379),
                "calf": (-2.7227, -0.83776)},
        torque=(23.7, 23.7, 45.43),
        speed=(30.1, 30.1, 15.70),
    ),
}  # fmt: skip


@pytest.fixture(params=PUBLISHED)
def body(request):
    """(published numbers, compiled world) of a robot."""
    return PUBLISHED[request.param], World(find_robot(request.param), Flat(), contact="elliptic")


def matrix(inertia):
    xx, yy, zz, xy, xz, yz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def compiled_inertia(body):
    """The link's inertia matrix in its own frame: R diag(I) R^T."""
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, body.iquat)
    rotation = rotation.reshape(3, 3)
    return rotation @ np.diag(body.inertia) @ rotation.T


def test_masses_centres_and_inertias(body):
    published, world = body
    assert world.total_mass == pytest.approx(published.total, abs=5e-5)
    links = {"trunk": (published.trunk, np.eye(3))}
    for leg in LEGS:
        side = np.eye(3) if leg[1] == "L" else MIRROR
        for name in ("hip", "thigh", "calf"):
            # the hip's motor lies inside, so that hind hips are front hips turned around
            girdle = np.diag([-1.0, 1.0, 1.0]) if leg[0] == "H" and name == "hip" else np.eye(3)
            links[f"{leg}_{name}"] = (getattr(published, name), side @ girdle)
    for name, (link, mirror) in links.items():
        found = world.model.body(name)
        assert found.mass[0] == pytest.approx(link.mass)
        assert found.ipos == pytest.approx(mirror @ link.centre)
        assert compiled_inertia(found) == pytest.approx(mirror @ matrix(link.inertia) @ mirror, abs=1e-9)


def test_places_and_feet(body):
    published, world = body
    for leg in LEGS:
        signs = np.array([1 if leg[0] == "F" else -1, 1 if leg[1] == "L" else -1, 1])
        for name, place in zip(("hip", "thigh", "calf"), published.places[:3], strict=True):
            assert world.model.body(f"{leg}_{name}").pos == pytest.approx(signs * place)
        foot = world.model.geom(f"{leg}_foot")
        assert world.model.body(foot.bodyid[0]).name == f"{leg}_calf"
        assert foot.pos == pytest.approx(published.places[3])  # its x is not mirrored: knees of all legs bend alike
        assert foot.size[0] == published.foot_radius


def test_ranges_torques_and_speeds_per_joint_and_girdle(body):
    published, world = body
    robot = world.robot
    for leg in LEGS:
        for number, name in enumerate(("hip", "thigh", "calf")):
            expected = published.ranges.get(f"{leg[0]} {name}", published.ranges.get(name))
            assert tuple(world.model.joint(f"{leg}_{name}").range) == pytest.approx(expected)
            assert tuple(world.model.actuator(f"{leg}_{name}").forcerange) == (
                -published.torque[number],
                published.torque[number],
            )
    assert robot.torque_limit == published.torque
    assert robot.motor_speed == published.speed


def test_targets_stay_inside_what_the_machine_allows(body):
    _, world = body
    robot = world.robot
    ranges = np.array([world.model.joint(name).range for leg in robot.joints for name in leg]).reshape(4, 3, 2)
    assert (ranges[..., 0] <= np.array(robot.joint_min)).all()
    assert (ranges[..., 1] >= np.array(robot.joint_max)).all()
    assert (np.array(robot.joint_min) <= robot.low).all()
    assert (robot.high <= np.array(robot.joint_max)).all()


def test_axes_have_the_a1s_directions(body):
    # a positive thigh swings the foot back, a more negative calf bends the knee, a positive hip moves a foot left
    def feet(world, joint, angle):
        data = mujoco.MjData(world.model)
        position = np.tile([0.0, 0.5, -1.2], (4, 1))
        position[:, joint] += angle
        data.qpos[3], data.qpos[world.position_columns] = 1.0, position.ravel()
        mujoco.mj_kinematics(world.model, data)
        return data.geom_xpos[world.foot_geoms]

    a1 = World(A1, Flat())
    for joint, axis in ((0, 1), (1, 0), (2, 2)):
        ours, theirs = (feet(w, joint, 0.1)[:, axis] - feet(w, joint, -0.1)[:, axis] for w in (body[1], a1))
        assert ours == pytest.approx(theirs, rel=0.1)
