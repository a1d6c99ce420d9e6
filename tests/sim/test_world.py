from dataclasses import replace

import mujoco
import numpy as np
import pytest

from ncap.errors import UserError
from ncap.policies.controller import ZeroPolicy
from ncap.rollouts import rollout
from ncap.sim.a1 import A1
from ncap.sim.terrain import Bumpy, Flat
from ncap.sim.world import CONTACTS, Variation, World
from ncap.tasks import PAPER_TASKS, TASKS

STANDS = ZeroPolicy().bind(np.zeros((1, 0)))


@pytest.mark.parametrize("terrain", [Flat(), Bumpy()])
@pytest.mark.parametrize("friction", [0.3, 0.75, 1.25])
def test_the_drawn_friction_is_the_effective_one(terrain, friction):
    world = World(A1, terrain)
    model = world.variant(Variation(friction=friction))
    data = mujoco.MjData(model)
    data.qpos[:], _ = world.standing(model, np.zeros((4, 3)))
    data.ctrl[:] = A1.mid.ravel()
    mujoco.mj_step(model, data, nstep=200)
    feet = [contact for contact in data.contact if set(contact.geom) & set(world.foot_geoms)]
    assert len(feet) >= 3
    assert {contact.friction[0] for contact in feet} == {friction}


@pytest.mark.parametrize("contact", CONTACTS)
@pytest.mark.parametrize("place", [(0, 9), (0, -9), (35, 0), (-5, 0)])
def test_beyond_the_bumps_the_ground_is_level(contact, place):
    terrain = Bumpy(bumpiness=0.5)
    world = World(A1, terrain, contact=contact)
    model = world.variant(Variation(friction=0.6))
    data = mujoco.MjData(model)
    data.qpos[:], _ = World(A1, Flat()).standing(World(A1, Flat()).model, np.zeros((4, 3)))
    data.qpos[:3] += (*place, 0.0375)  # the mean of heights between 2.5 and 5 cm
    data.ctrl[:] = A1.mid.ravel()
    height = data.qpos[2]
    mujoco.mj_step(model, data, nstep=500)
    assert data.qpos[2] == pytest.approx(height, abs=0.02)  # it gives way a little
    assert {contact.friction[0] for contact in data.contact} == {0.6}
    data.qpos[2] = 0.08  # the trunk reaches 5.7 cm below its middle
    mujoco.mj_forward(model, data)
    assert data.sensor("trunk_touch").data[0] > 0


def test_a_robot_slides_down_a_slope_exactly_when_its_friction_is_too_small():
    # on a plane inclined by 20 degrees a body at rest slides if friction < tan(20 deg) = 0.364. With 0.25 it
    # accelerates by 9.81 (sin 20 - 0.25 cos 20) = 1.05 m/s^2 and covers 0.39 m in the second half of a second; with
    # more friction it only creeps, because contacts are soft.
    def slid(friction):
        world = World(A1, Flat())
        model = world.variant(Variation(friction=friction))
        model.opt.gravity[:] = 9.81 * np.array([np.sin(np.deg2rad(20)), 0, -np.cos(np.deg2rad(20))])
        data = mujoco.MjData(model)
        data.qpos[:], _ = world.standing(model, np.zeros((4, 3)))
        data.ctrl[:] = A1.mid.ravel()
        mujoco.mj_step(model, data, nstep=500)
        before = data.qpos[0]
        mujoco.mj_step(model, data, nstep=500)
        return data.qpos[0] - before

    assert slid(0.25) == pytest.approx(0.39, abs=0.08)
    assert slid(0.55) < 0.06


def test_mass_and_gains_vary_without_compiling_and_leave_the_world_alone():
    world = World(A1, Flat())
    model = world.variant(Variation(trunk_mass_scale=2.0, kp=30.0, kd=5.0, motor_strength=0.5))
    assert model.body_mass[world.trunk_id] == pytest.approx(2 * 4.713)
    assert model.body_subtreemass[world.trunk_id] == pytest.approx(12.4534 + 4.713)  # derived constants follow
    assert set(model.actuator_gainprm[:, 0]) == {30.0}
    assert set(model.actuator_biasprm[:, 2]) == {-5.0}
    assert model.actuator_forcerange.tolist() == [[-16.75, 16.75]] * 12
    assert world.model.actuator_forcerange.tolist() == [[-33.5, 33.5]] * 12
    assert world.model.body_mass[world.trunk_id] == 4.713
    assert set(world.model.actuator_gainprm[:, 0]) == {60.0}


def test_unknown_contact_presets_are_refused_with_the_valid_ones():
    with pytest.raises(UserError, match="unknown contact preset 'soft'; valid: default, elliptic, released"):
        World(A1, Flat(), contact="soft")


@pytest.mark.parametrize("contact", CONTACTS)
def test_the_robot_stands_in_every_contact_preset(contact):
    episodes = rollout(replace(TASKS["flat-walk"], contact=contact, episode_seconds=1.5), STANDS, [0])
    assert not episodes.fell.any()


@pytest.fixture
def small_robot(tmp_path):
    """A second body, from a user's own file: an A1 of 0.8 times the size, with other names."""
    text = A1.model.read_text()
    spec = mujoco.MjSpec.from_string(text)
    for body in spec.bodies:
        body.pos = 0.8 * body.pos
        body.mass, body.ipos, body.inertia = 0.8**3 * body.mass, 0.8 * body.ipos, 0.8**5 * body.inertia
        body.fullinertia = 0.8**5 * body.fullinertia
    for geom in spec.geoms:
        geom.size, geom.pos, geom.fromto = 0.8 * geom.size, 0.8 * geom.pos, 0.8 * geom.fromto
    for element in (*spec.bodies, *spec.joints, *spec.geoms):
        element.name = (element.name and element.name != "world" and f"my_{element.name}") or element.name
    spec.compile()
    path = tmp_path / "small.xml"
    path.write_text(spec.to_xml())
    return replace(
        A1,
        name="small",
        model=path,
        trunk="my_trunk",
        joints=tuple(tuple(f"my_{name}" for name in names) for names in A1.joints),
        feet=tuple(f"my_{name}" for name in A1.feet),
        ground_geoms=(),
        kp=30.0,
        kd=4.0,
        leg_length=0.25,
    )


@pytest.mark.parametrize("name", [*PAPER_TASKS, "flat-speeds"])
def test_another_robot_needs_no_change_in_the_engine(small_robot, name):
    task = replace(TASKS[name], robot=small_robot, episode_seconds=3.0)
    episodes = rollout(task, STANDS, [0, 1], record=["position", "foot_force"])
    assert not episodes.fell.any()
    # standing still gives half the reward of the paper's tasks whatever their speed; where 0.2 and 0.45 m/s are
    # tracked at a width of 0.6 m/s, two thirds and a quarter
    assert episodes.returns == pytest.approx([0.5, 0.5] if name in PAPER_TASKS else [2 / 3, 1 / 4], abs=0.02)
    height = episodes.signals["position"][:, -1, 2]
    ground = 0.0 if name.startswith("flat") else 0.0375  # bumps of 0.05 m times a mean of 0.75
    assert height == pytest.approx(0.8 * 0.336 + ground, abs=0.02)  # the A1 stands at 0.336 m
    weight = episodes.signals["foot_force"][:, -1].sum(axis=1)
    assert weight == pytest.approx(12.4534 * 0.8**3 * 9.81, rel=0.15)


def test_names_that_are_not_in_the_model_file_are_listed(small_robot):
    with pytest.raises(UserError, match=r"robot small: unknown joint 'knee'; valid: .*my_FR_hip"):
        World(replace(small_robot, joints=(("my_FL_hip", "my_FL_thigh", "knee"), *small_robot.joints[1:])), Flat())
    with pytest.raises(UserError, match="robot small: cannot read"):
        World(replace(small_robot, model=small_robot.model.with_name("no.xml")), Flat())


def test_a_robot_with_an_impossible_data_sheet_is_refused():
    with pytest.raises(UserError, match="robot a1: feet needs a row per leg"):
        replace(A1, feet=("FL_foot",))
    with pytest.raises(UserError, match="position_min < position_mid"):
        replace(A1, position_min=A1.position_mid)
