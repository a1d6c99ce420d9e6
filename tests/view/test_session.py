from dataclasses import replace

import numpy as np
import pytest

from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import CIRCUIT_DT, KNOCKOUTS, rhythm_inputs, rhythm_spec
from ncap.errors import UserError
from ncap.experiments.evaluation import find_controller
from ncap.rollout import rollout
from ncap.tasks import find_task
from ncap.view.brain import INTACT, Brain
from ncap.view.session import FALL_PAUSE, MAX_PUSH, Session

FLAT = find_task("flat-walk")


def session(policy="untrained", **settings) -> Session:
    return Session(FLAT, policy, **settings)


def play(session: Session, seconds: float) -> None:
    for _ in range(round(seconds / session.control_dt)):
        session.step()


def position(session: Session, individual: int = 0) -> np.ndarray:
    return session.arena.measured.position[individual]


def test_a_session_plays_the_very_episode_of_a_rollout():
    live = session(seed=3)
    controller, _ = find_controller("untrained", "flat-walk", 1)
    task = replace(FLAT, friction=(1.0, 1.0), episode_seconds=1.5)
    episode = rollout(task, controller, [3], record=("position", "foot_force"))
    for t in range(task.steps):
        live.step()
        assert (position(live) == episode.signals["position"][0, t]).all()
    assert (live.foot_force() == episode.signals["foot_force"][0]).all()


@pytest.mark.parametrize("name", list(KNOCKOUTS))
def test_a_live_knock_out_equals_the_circuit_without_those_rows(name):
    brain = Brain("untrained", "flat-walk")
    brain.knock_out(name)
    live, built = brain.circuit, Circuit(rhythm_spec(without=[name]), dt=CIRCUIT_DT, substeps=12)
    start = np.linspace(0.3, 0.6, 4)[None]
    states = [circuit.reset_to(start) for circuit in (live, built)]
    kept = [live.neurons.index(neuron) for neuron in built.neurons]
    silent = sorted(set(range(len(live.neurons))) - set(kept))
    for _ in range(60):
        states = [c.step(s, rhythm_inputs(np.array([0.4]))) for c, s in zip((live, built), states, strict=True)]
        activity = live.outputs(states[0])
        np.testing.assert_allclose(activity[:, kept], built.outputs(states[1]), rtol=0, atol=1e-12)
        assert not activity[:, silent].any()


def test_healing_a_knock_out_gives_the_intact_circuit_back_and_never_touches_other_brains():
    brain, other = Brain("untrained", "flat-walk"), Brain("untrained", "flat-walk")
    before = other.circuit.weights.copy()
    brain.knock_out("V0")
    assert (brain.circuit.weights != before).any()
    assert (other.circuit.weights == before).all()
    brain.knock_out(INTACT)
    assert (brain.circuit.weights == before).all()


def test_the_command_changes_the_gait_of_the_deafferented_circuit():
    live = session()
    live.change(feedback=False)
    for command, gait in ((0.2, "walk"), (0.55, "trot"), (0.95, "bound")):
        live.change(command=command)
        play(live, 7.0)
        assert live.reading().circuit_gait.label == gait


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"command": 1.01}, "command"),
        ({"command": float("nan")}, "command"),
        ({"kp": "stiff"}, "kp"),
        ({"friction": None}, "friction"),
        ({"bumpiness": -0.1}, "bumpiness"),
        ({"pace": 0.0}, "pace"),
        ({"without": "V7"}, "homolateral"),
        ({"policy": "cat"}, "untrained"),
        ({"ghost": "cat"}, "untrained"),
        ({"gravity": 1.0}, "trunk_mass_scale"),
        ({"command": 0.9, "friction": 99.0}, "friction"),
    ],
)
def test_a_bad_value_is_refused_and_changes_nothing(wrong, named):
    live = session()
    before, command = live.controls, live.brain.command
    with pytest.raises(UserError, match=named):
        live.change(**wrong)
    assert live.controls == before
    assert live.brain.command == command
    live.step()


def test_a_push_adds_its_impulse_over_the_mass_also_of_a_heavier_trunk():
    # the A1's trunk has 4.713 kg; its legs weigh 4 (0.696 + 1.013 + 0.226 + 0.0001) = 7.7404 kg
    for scale in (1.0, 2.0):
        live = session("zero")
        play(live, 0.3)
        live.change(trunk_mass_scale=scale)
        before = live.arena.simulation.measure()
        live.push("left", 10.0)
        after = live.arena.simulation.measure()
        gained = after.velocity[0] - before.velocity[0]
        expected = 10.0 / (scale * 4.713 + 7.7404)
        assert np.linalg.norm(gained) == pytest.approx(expected, rel=1e-9)
        assert gained[1] == pytest.approx(expected, rel=1e-2)  # the standing trunk is nearly level
    with pytest.raises(UserError, match="forward, back, left, right"):
        live.push("up", 1.0)
    with pytest.raises(UserError, match="40"):
        live.push("left", 1e6)


def test_mass_friction_and_gains_change_without_moving_the_robot():
    live = session()
    play(live, 1.0)
    before = live.arena.simulation.measure()
    live.change(friction=0.4, trunk_mass_scale=1.5, kp=80.0, kd=5.0, target_speed=0.7)
    after = live.arena.simulation.measure()
    assert (before.position == after.position).all()
    assert (before.velocity == after.velocity).all()
    model = live.arena.simulation.model(0)
    assert model.geom_friction[live.arena.world.foot_geoms, 0] == pytest.approx(0.4)
    assert model.actuator_gainprm[:, 0] == pytest.approx(80.0)
    assert model.body_mass[live.arena.world.trunk_id] == pytest.approx(1.5 * 4.713)
    assert live.arena.task.target_speed == 0.7


def test_a_pushed_robot_slides_on_ice_as_far_as_friction_lets_it():
    # v = 8 N s / 12.4534 kg, and friction 0.1 stops it after v² / (2 · 0.1 · 9.81 m/s²) = 0.210 m
    live = session("zero")
    live.change(friction=0.1)
    play(live, 0.6)
    live.push("forward", 8.0)
    start = position(live)[0]
    play(live, 1.2)
    assert position(live)[0] - start == pytest.approx(0.210, rel=0.08)


def test_a_fallen_robot_is_counted_and_soon_stands_again_in_another_episode():
    live = session(seed=5)
    play(live, 0.6)
    live.push("left", MAX_PUSH)
    play(live, 0.9)
    assert live.reading().fallen
    play(live, FALL_PAUSE)
    assert live.falls == 1
    assert not live.reading().fallen
    assert live.seed == 6
    assert live.time < 1.0


def test_a_ghost_with_the_same_policy_is_in_the_same_place():
    live = session(ghost="untrained")
    play(live, 1.0)
    live.push("right", 8.0)
    play(live, 1.0)
    assert (position(live, 0) == position(live, 1)).all()
    live.change(ghost="zero")
    play(live, 1.0)
    assert position(live, 0)[0] - position(live, 1)[0] > 0.02
    live.change(ghost=None)
    assert live.ghost is None


def test_bumps_are_new_ground_on_which_the_robot_starts_again_before_the_edge():
    live = session()
    play(live, 0.3)
    live.change(bumpiness=0.4)
    assert live.time == 0.0
    heights = live.arena.simulation.model(0).hfield_data
    assert heights.min() >= 0.6 - 1e-6
    assert heights.max() > 0.9
    live.arena.simulation._qpos[0, 0] = 33.0
    live.step()
    assert abs(position(live)[0]) < 0.1
    assert live.falls == 0


def test_a_policy_can_be_switched_mid_stride_to_one_without_a_circuit_and_back():
    live = session()
    play(live, 1.0)
    x = position(live)[0]
    live.change(policy="random")
    assert live.controls.command is None
    play(live, 0.3)
    assert live.reading().circuit_gait is None
    assert abs(position(live)[0] - x) < 0.3  # it went on from where it was
    live.change(policy="ncap-flat-walk")
    assert live.controls.command == live.brain.command is not None
    play(live, 0.3)
    assert live.signals().shape == (10, 28 + 12)


def test_cost_of_transport_is_power_over_weight_times_speed():
    live = session("ncap-flat-walk")
    play(live, 4.0)
    recent = list(live.history)[-67:]
    power, speed = (np.mean([getattr(moment, name) for moment in recent]) for name in ("power", "speed"))
    assert live.reading().cost_of_transport == pytest.approx(power / (12.4534 * 9.81 * speed), rel=1e-4)
