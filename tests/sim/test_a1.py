"""The compiled robot against the published numbers, and against trajectories of the authors' environment."""

import copy
from dataclasses import replace
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

from ncap.plan import LEGS
from ncap.sim.a1 import A1
from ncap.sim.terrain import Flat
from ncap.sim.world import World

UNITREE = ("FR", "FL", "HR", "HL")  # the order of the reference data


@pytest.fixture(scope="module")
def released():
    return World(A1, Flat(), contact="released")


def test_masses(released):
    model = released.model
    assert model.body_mass.sum() == pytest.approx(12.4534, abs=1e-9)
    assert model.body("trunk").mass[0] == 4.713
    for leg in LEGS:
        assert [model.body(f"{leg}_{link}").mass[0] for link in ("hip", "thigh", "calf", "foot")] == pytest.approx(
            [0.696, 1.013, 0.226, 0.0001]
        )


def inertia_in_parent_frame(model, name):
    """The link's inertia matrix in its body frame: R diag(I) R^T."""
    body = model.body(name)
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, body.iquat)
    rotation = rotation.reshape(3, 3)
    return rotation @ np.diag(body.inertia) @ rotation.T


def test_inertias(released):
    xx, yy, zz, xy, xz, yz = 0.0158533, 0.0377999, 0.0456542, -3.66e-05, -6.11e-05, -2.75e-05
    expected = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    assert inertia_in_parent_frame(released.model, "trunk") == pytest.approx(expected, abs=1e-10)
    for leg in LEGS:
        assert released.model.body(f"{leg}_hip").inertia == pytest.approx([0.000807752, 0.00055293, 0.000468983])
        assert released.model.body(f"{leg}_thigh").inertia == pytest.approx([0.00555739, 0.00513936, 0.00133944])
        assert released.model.body(f"{leg}_calf").inertia == pytest.approx([0.00340344, 0.00339393, 3.54834e-05])


def test_left_and_right_links_mirror_each_other(released):
    mirror = np.diag([1.0, -1.0, 1.0])
    for girdle in "FH":
        for link in ("hip", "thigh", "calf"):
            left, right = (f"{girdle}{side}_{link}" for side in "LR")
            assert inertia_in_parent_frame(released.model, left) == pytest.approx(
                mirror @ inertia_in_parent_frame(released.model, right) @ mirror, abs=2e-6
            )
            assert released.model.body(left).ipos == pytest.approx(mirror @ released.model.body(right).ipos)


def turn_about_y(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def published_links():
    """(mass, centre of mass, inertia about it) of every link in the standing pose, from the published numbers alone."""
    xx, yy, zz, xy, xz, yz = 0.0158533, 0.0377999, 0.0456542, -3.66e-05, -6.11e-05, -2.75e-05
    yield 4.713, np.array([0, 0.0041, -0.0005]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    hip_quaternions = {
        "FR": (0.507528, 0.506268, 0.491507, 0.494499),
        "FL": (0.494499, 0.491507, 0.506268, 0.507528),
        "HR": (0.491507, 0.494499, 0.507528, 0.506268),
        "HL": (0.506268, 0.507528, 0.494499, 0.491507),
    }
    for leg, (_, thigh_angle, calf_angle) in zip(LEGS, A1.mid, strict=True):
        front, left = (1 if leg[0] == "F" else -1), (1 if leg[1] == "L" else -1)
        place, frame = np.array([0.183 * front, 0.047 * left, 0]), np.eye(3)
        links = (
            (0.696, (-0.003311 * front, 0.000635 * left, 3.1e-05), hip_quaternions[leg],
             (0.000807752, 0.00055293, 0.000468983), 0.0, (0, 0.08505 * left, 0)),
            (1.013, (-0.003237, -0.022327 * left, -0.027326),
             (0.999125, 0.00256393 * left, -0.0409531, 0.00806091 * left),
             (0.00555739, 0.00513936, 0.00133944), thigh_angle, (0, 0, -0.2)),
            (0.226, (0.00472659, 0, -0.131975), (0.706886, 0.017653, 0.017653, 0.706886),
             (0.00340344, 0.00339393, 3.54834e-05), calf_angle, (0, 0, -0.2)),
        )  # fmt: skip
        for mass, centre, quaternion, principal, angle, next_joint in links:
            frame = frame @ turn_about_y(angle)
            axes = np.empty(9)
            mujoco.mju_quat2Mat(axes, np.array(quaternion) / np.linalg.norm(quaternion))
            axes = frame @ axes.reshape(3, 3)
            yield mass, place + frame @ centre, axes @ np.diag(principal) @ axes.T
            place = place + frame @ next_joint
        yield 0.0001, place, np.zeros((3, 3))


def test_composite_inertia_of_the_standing_robot_follows_from_the_published_numbers(released):
    # parallel axes about the trunk's origin: I = sum I_i + m_i (|r|^2 1 - r r^T)
    expected, first_moment = np.zeros((3, 3)), np.zeros(3)
    for mass, centre, inertia in published_links():
        expected += inertia + mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        first_moment += mass * centre
    model, data = released.model, mujoco.MjData(released.model)
    data.qpos[:] = 0
    data.qpos[3] = 1
    data.qpos[released.position_columns] = A1.mid.ravel()
    mujoco.mj_forward(model, data)
    dense = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, dense)
    assert dense[3:6, 3:6] == pytest.approx(expected, abs=1e-6)
    assert data.subtree_com[released.trunk_id] == pytest.approx(first_moment / 12.4534, abs=1e-6)


def test_ranges_links_and_torque_limits(released):
    model = released.model
    ranges = {"hip": (-0.802851, 0.802851), "thigh": (-1.0472, 4.18879), "calf": (-2.69653, -0.916298)}
    for leg in LEGS:
        for joint, limits in ranges.items():
            assert tuple(model.joint(f"{leg}_{joint}").range) == pytest.approx(limits)
            assert model.joint(f"{leg}_{joint}").frictionloss[0] == 0.2
            assert tuple(model.actuator(f"{leg}_{joint}").forcerange) == (-33.5, 33.5)
        front, left = (1 if leg[0] == "F" else -1), (1 if leg[1] == "L" else -1)
        assert model.body(f"{leg}_hip").pos == pytest.approx([0.183 * front, 0.047 * left, 0])
        assert model.body(f"{leg}_thigh").pos == pytest.approx([0, 0.08505 * left, 0])
        assert model.body(f"{leg}_calf").pos == pytest.approx([0, 0, -0.2])
        assert model.body(f"{leg}_foot").pos == pytest.approx([0, 0, -0.2])


def drop(world):
    """The reference's start: standing pose, at rest, the trunk 0.43 m above the plane."""
    data = mujoco.MjData(world.model)
    data.qpos[:] = 0
    data.qpos[3] = 1
    data.qpos[world.position_columns] = A1.mid.ravel()
    mujoco.mj_kinematics(world.model, data)
    data.qpos[2] = 0.43 - data.xpos[world.trunk_id, 2]
    return data


def reference_actions(actions):
    """(T, leg, 3) in our order from the reference's (T, 8) thigh and calf, or (T, 12)."""
    full = np.zeros((len(actions), 4, 3))
    if actions.shape[1] == 8:
        full[:, :, 1:] = actions.reshape(-1, 4, 2)
    else:
        full[:] = actions.reshape(-1, 4, 3)
    return full[:, [UNITREE.index(leg) for leg in LEGS]]


@pytest.fixture(scope="module")
def hung(tmp_path_factory):
    """Our robot with the free joint where the authors' framework puts it: on a frame 0.43 m below the trunk.

    MuJoCo's contacts leave out the part of the foot's acceleration that is quadratic in the velocities, and that part
    depends on the point whose motion the free joint describes: the same robot moves a little differently.
    """
    tree = ElementTree.parse(A1.model)
    world = tree.find("worldbody")
    trunk = world.find("body")
    trunk.remove(trunk.find("freejoint"))
    world.remove(trunk)
    frame = ElementTree.SubElement(world, "body", name="frame")
    ElementTree.SubElement(frame, "freejoint")
    ElementTree.SubElement(frame, "inertial", pos="0 0 0", mass="1e-5", diaginertia="1e-9 1e-9 1e-9")
    frame.append(trunk)
    path = tmp_path_factory.mktemp("hung") / "a1.xml"
    tree.write(path)
    return World(replace(A1, model=path), Flat(), contact="released")


def error_against_the_authors(world, trajectories, name):
    """The largest difference of a joint angle in 200 control steps, rad; NaN if the simulation fails."""
    expected = trajectories[f"{name}_joint_position"].reshape(-1, 4, 3)
    expected = expected[:, [UNITREE.index(leg) for leg in LEGS]]
    data, reached = drop(world), []
    for action in reference_actions(trajectories[f"{name}_actions"]):
        data.ctrl[:] = A1.targets(action).ravel()
        mujoco.mj_step(world.model, data, nstep=30)
        reached.append(data.qpos[world.position_columns].reshape(4, 3))
    return np.abs(np.array(reached) - expected[1:]).max()


@pytest.mark.parametrize(("name", "tolerance"), [("zero8", 1e-4), ("random8", 1e-5), ("random12", 1e-5)])
def test_follows_the_authors_environment_for_200_control_steps(hung, reference_trajectories, name, tolerance):
    assert error_against_the_authors(hung, reference_trajectories, name) < tolerance


@pytest.mark.parametrize(("name", "tolerance"), [("zero8", 1e-5), ("random8", 1e-7), ("random12", 1e-7)])
def test_follows_them_to_the_last_digits_with_their_no_slip_tolerance(hung, reference_trajectories, name, tolerance):
    exact = copy.copy(hung)
    exact.model = copy.copy(hung.model)
    exact.model.opt.noslip_tolerance = 0
    assert error_against_the_authors(exact, reference_trajectories, name) < tolerance


@pytest.mark.parametrize(("name", "tolerance"), [("zero8", 1e-4), ("random8", 5.3e-3), ("random12", 5e-3)])
def test_follows_them_nearly_as_well_with_the_free_joint_in_the_trunk(
    released, reference_trajectories, name, tolerance
):
    assert error_against_the_authors(released, reference_trajectories, name) < tolerance


def test_native_pd_control_equals_a_python_pd(released):
    # the same robot with plain motors, to which tau = clip(kp (target - q) - kd dq) is given at every physics step
    native = released.model
    spec = mujoco.MjSpec.from_file(str(A1.model))
    spec.option.timestep, spec.option.cone = 0.001, mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.noslip_iterations = 5
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=[1, 0.005, 0.0001])
    for name in (name for leg in A1.joints for name in leg):
        spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    plain = spec.compile()
    ours, theirs = drop(released), mujoco.MjData(plain)
    theirs.qpos[:] = ours.qpos
    rng = np.random.default_rng(0)
    for _ in range(20):
        target = A1.targets(rng.uniform(-1, 1, (4, 3))).ravel()
        ours.ctrl[:] = target
        for _ in range(30):
            mujoco.mj_step(native, ours)
            q, dq = theirs.qpos[released.position_columns], theirs.qvel[released.velocity_columns]
            theirs.ctrl[:] = np.clip(60.0 * (target - q) - 10.0 * dq, -33.5, 33.5)
            mujoco.mj_step(plain, theirs)
    assert ours.qpos == pytest.approx(theirs.qpos, abs=1e-9)


def test_actions_meet_the_papers_ranges():
    zero, one = np.zeros((4, 3)), np.ones((4, 3))
    assert A1.targets(zero)[0] == pytest.approx([0, 0.4, -1.2])
    assert A1.targets(one)[0] == pytest.approx([0.15, 1.2, -0.92])
    assert A1.targets(-one)[3] == pytest.approx([-0.15, -0.3, -2.0])
    assert A1.targets(0.5 * one)[2] == pytest.approx([0.075, 1.1, -1.06])  # half-way from mid to max
    assert np.array_equal(A1.targets(7 * one), A1.targets(one))


def test_observations_meet_the_papers_ranges():
    nothing, feet = np.zeros((1, 4, 3)), np.array([[0.0, 25.0, 50.0, 80.0]])
    level, still = np.array([[0.0, 0.0, 1.0]]), np.zeros((1, 3))
    observed = A1.observation(A1.low[None], nothing + 33.5, nothing - 7.5, feet, level, still)[0]
    assert observed[:, 0:3] == pytest.approx(-np.ones((4, 3)))
    assert observed[:, 3:6] == pytest.approx(np.ones((4, 3)))
    assert observed[:, 6:9] == pytest.approx(-0.5 * np.ones((4, 3)))
    assert observed[:, 9] == pytest.approx([-1, 0, 1, 1])  # 0 … 50 N by three points: the middle is 25 N
    standing = A1.observation(A1.mid[None], nothing, nothing, np.full((1, 4), 25.0), level, still)
    assert standing == pytest.approx(np.zeros((1, 4, 14)))


def posture(up, angular_velocity):
    """(leg, 4) what the legs know of a trunk: roll, roll rate, pitch, pitch rate."""
    trunk = (np.array([values], float) for values in (up, angular_velocity))
    return A1.observation(A1.mid[None], *np.zeros((2, 1, 4, 3)), np.zeros((1, 4)), *trunk)[0, :, 10:]


def test_a_leg_knows_how_far_and_how_fast_its_side_and_its_girdle_sink():
    # legs FL, FR, HL, HR. With its right side down, a trunk sees the vertical on its left, which is its y; with its
    # nose down, behind it, which is -x. 0.5 rad and 2 rad/s are felt as 1
    lean, dive = (0.0, np.sin(0.1), np.cos(0.1)), (-np.sin(0.2), 0.0, np.cos(0.2))
    right, front = np.array([-1, 1, -1, 1]), np.array([1, 1, -1, -1])
    expected = np.stack((0.2 * right, -0.25 * right, 0 * front, 0.5 * front), axis=1)
    assert posture(lean, (-0.5, 1.0, 9.0)) == pytest.approx(expected)  # turning about the vertical is not felt
    expected = np.stack((0 * right, 0.25 * right, 0.4 * front, -0.5 * front), axis=1)
    assert posture(dive, (0.5, -1.0, -9.0)) == pytest.approx(expected)
    # far over the right side and the nose, and falling fast: no sense leaves [-1, 1]
    expected = np.stack((right, right, front, front), axis=1)
    assert posture((-0.7, 0.7, 0.1), (5.0, 5.0, 0.0)) == pytest.approx(expected)
