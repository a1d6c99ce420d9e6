"""The swimmer's body beside an independent model of it: planar root, forward along -y, as in the Control Suite."""

import math

import mujoco
import numpy as np
import pytest

from ncap.errors import UserError
from ncap.sim.a1 import A1
from ncap.sim.bodies import body_from, describe_body, find_body, legged
from ncap.sim.simulation import Simulation
from ncap.sim.swimmer import Swimmer
from ncap.sim.terrain import Water
from ncap.sim.world import Variation, World


def planar_model(links):
    """The Control Suite's numbers in its own frame, with two slides and a hinge at the nose for a root."""
    range_deg = 360 / links

    def link(i):
        root = "".join(
            f'<joint name="{name}" type="{kind}" axis="{axis}" pos="0 -.05 0"/>'
            for name, kind, axis in (("x", "slide", "1 0 0"), ("y", "slide", "0 1 0"), ("z", "hinge", "0 0 1"))
        )
        bend = (
            f'<joint name="bend{i}" type="hinge" axis="0 0 1" pos="0 -.05 0" limited="true" '
            f'range="-{range_deg} {range_deg}" solreflimit=".05 1" solimplimit="0 .8 .1" armature="1e-6"/>'
        )
        return (
            f'<body pos="0 {0.1 if i else 0} 0">{bend if i else root}<geom type="box" size=".001 .05 .01" mass=".01"/>'
            f"{link(i + 1) if i + 1 < links else ''}</body>"
        )

    motors = "".join(
        f'<motor joint="bend{i}" gear="5e-4" ctrllimited="true" ctrlrange="-1 1"/>' for i in range(1, links)
    )
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep=".002" density="3000"><flag contact="disable"/></option>'
        f"<worldbody>{link(0)}</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def simulated(links, bends, heading=0.0):
    body = Swimmer(links=links)
    world = World(body, Water(), physics="suite")
    simulation = Simulation(world, 1, control_dt=0.03, threads=1)
    model = world.variant(Variation())
    qpos, qvel = world.standing(model, np.array(bends)[:, None], heading)
    simulation.place(np.array([0]), [model], qpos[None], qvel[None])
    return body, simulation


@pytest.mark.parametrize("links", [3, 6])
def test_it_moves_as_the_planar_model_does_and_stays_in_its_plane(links):
    rng = np.random.default_rng(links)
    bends = rng.uniform(-1, 1, links - 1)
    body, simulation = simulated(links, bends)
    model = planar_model(links)
    data = mujoco.MjData(model)
    data.qpos[3:] = bends
    mujoco.mj_forward(model, data)
    for step in range(30):
        if step % 10 == 0:
            action = rng.uniform(-1.2, 1.2, links - 1)
        assert not len(simulation.step(np.array([0]), body.targets(action[None, :, None])))
        data.ctrl[:] = np.clip(action, -1, 1)
        mujoco.mj_step(model, data, 15)
    now = simulation.measure()
    # the roots have other coordinates, in which a step of Euler's method errs differently, by the square of 2 ms
    np.testing.assert_allclose(now.joint_position[0, :, 0], data.qpos[3:], atol=2e-3)
    assert np.abs(data.qpos[3:] - bends).max() > 0.2
    velocity = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, 1, velocity, 1)
    np.testing.assert_allclose(now.velocity[0, :2], (-velocity[4], velocity[3]), atol=2e-3)  # forward is -y there
    assert now.position[0, 2] == 0.05
    np.testing.assert_array_equal(now.up[0], (0.0, 0.0, 1.0))


def test_every_joint_feels_how_the_link_in_front_of_it_moves():
    rng = np.random.default_rng(1)
    body, simulation = simulated(5, rng.uniform(-1, 1, 4), heading=2.0)
    for _ in range(20):
        simulation.step(np.array([0]), rng.uniform(-1, 1, (1, 4, 1)))
    seen, now = body.seen(simulation.measure())[0], simulation.measure()
    assert seen.shape == (4, 5)
    assert np.abs(seen).max() < 1  # nothing is clipped, so all can be compared
    np.testing.assert_allclose(seen[:, 0], now.joint_position[0, :, 0] / (2 * math.pi / 5))
    np.testing.assert_allclose(seen[:, 1] * 10.0, now.joint_velocity[0, :, 0])
    model = simulation.model(0)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = simulation._qpos[0], simulation._qvel[0]
    mujoco.mj_forward(model, data)
    for i in range(4):
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, model.body(f"link{i + 1}").id, velocity, 1)
        expected = velocity[3] / 0.3, velocity[4] / 0.3, velocity[2] / 6.0
        np.testing.assert_allclose(seen[i, 2:], expected, atol=1e-9)


def test_it_starts_bent_in_any_way_within_its_reach_with_any_heading():
    body = Swimmer(links=4)
    starts = [body.start(np.random.default_rng(seed), noise=0.0) for seed in range(400)]
    bends, headings = np.array([offsets for offsets, _ in starts]), np.array([heading for _, heading in starts])
    assert bends.shape == (400, 3, 1)
    for values, most in ((bends, math.pi / 2), (headings, math.pi)):  # 4 links: a quarter of a circle
        assert np.abs(values).max() < most
        assert np.abs(values).mean() == pytest.approx(most / 2, rel=0.1)


def test_bodies_have_names_and_travel_as_data():
    assert find_body("swimmer-12") == Swimmer(links=12)
    assert find_body("a1") is A1
    assert body_from(describe_body(Swimmer(links=3, torque=1e-3))) == Swimmer(links=3, torque=1e-3)
    assert legged(A1) is A1
    for name in ("swimmer-2", "swimmer-14"):
        with pytest.raises(UserError, match=f"a swimmer has 3 to 13 links, not {name.split('-')[1]}"):
            find_body(name)
    with pytest.raises(UserError, match="swimmer-6 is no robot with legs"):
        legged(Swimmer())
    with pytest.raises(UserError, match="a swimmer has 3 to 13 links, not 9000"):
        body_from({"swimmer": {"links": 9000}})
    with pytest.raises(UserError, match="a density is a number from 0 on, not -1"):
        Water(density=-1.0)
