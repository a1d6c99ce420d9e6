from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from ncap.circuits.animal import PATHWAYS, animal, cut
from ncap.circuits.circuit import Circuit
from ncap.errors import UserError
from ncap.policies.ncap import NCAPPolicy
from ncap.recording import record
from ncap.rollouts import rollout
from ncap.sim.terrain import Bumpy, Grid
from ncap.tasks import find_task
from ncap.trained import find_policy, load, untrained
from ncap.view.brain import Brain, toggled
from ncap.view.controls import FIRST_SPEED, GET_UP, MAX_PUSH, START_ANEW
from ncap.view.falling import FALL_PAUSE
from ncap.view.paths import Paths
from ncap.view.replay import signals_of
from ncap.view.session import Session

FLAT = find_task("flat-walk")


def session(policy="untrained", **settings) -> Session:
    return Session(FLAT, policy, **settings)


def play(session: Session, seconds: float) -> None:
    for _ in range(round(seconds / session.control_dt)):
        session.step()


def position(session: Session, individual: int = 0) -> np.ndarray:
    return session.arena.measured.position[individual]


@pytest.mark.parametrize("without", [(), ("V0v", "cross_V3f.FL")])
def test_a_session_plays_the_very_episode_of_a_rollout(without):
    live = session(seed=3, without=without)
    controller = load("untrained").without(without).controller(1)
    task = replace(FLAT, friction=(1.0, 1.0), episode_seconds=1.5)
    episode = rollout(task, controller, [3], command=task.command, record=("position", "foot_force"))
    for t in range(task.steps):
        live.step()
        assert (position(live) == episode.signals["position"][0, t]).all()
    assert (live.memory.foot_force() == episode.signals["foot_force"][0]).all()


def acting(seconds: float = 0.9, **settings) -> tuple[Brain, np.ndarray]:
    """A brain in the middle of an episode, and what it felt last."""
    brain, feel = Brain(load("untrained"), **settings), np.full(FLAT.senses, 0.2)
    brain.reset(0)
    for _ in range(round(seconds / 0.03)):
        brain.act(feel)
    return brain, feel


@pytest.mark.parametrize(
    "names", [*([name] for name in PATHWAYS if name != "turning"), ["cross_V0d.FL"], ["V3", "flexor>cross_V0d same"]]
)
def test_a_live_knock_out_goes_on_as_the_circuit_without_those_rows_would_from_the_same_state(names):
    brain, feel = acting()
    state, intact = brain._state, brain.controller.circuit
    brain.knock_out(names)
    # by hand: the cut table's own controller, its state filled from the intact one's by the neurons' names
    controller = load("untrained").without(names).controller(1)
    start = controller.reset([0])
    there = {name: i for i, name in enumerate((*intact.neurons, *intact.inputs))}
    for i, name in enumerate((*controller.circuit.neurons, *controller.circuit.inputs)):
        start.signals[0, i] = state.signals[0, there[name]]
    for name in dict.fromkeys(neuron.split(".")[0] for neuron in controller.circuit.neurons):
        number, columns = controller.circuit.place_of(name)
        sites = controller.circuit.spec.sites_of(controller.circuit.spec.neuron(name))
        every = intact.spec.sites_of(intact.spec.neuron(name))
        for mine, theirs in zip(start.units[number], intact.state_of(state, name), strict=True):
            mine[0, columns] = [theirs[0, every.index(site)] for site in sites]
    for _ in range(30):
        start, action = controller.act(start, feel[None])
        np.testing.assert_array_equal(brain.act(feel), action[0])
    silent = set(brain.names) - {*controller.circuit.neurons, *controller.circuit.inputs}
    seen = dict(zip(brain.names, brain.signals(), strict=True))
    without_memory = {row for level in brain.table.after for row in level}  # none of which is knocked out
    assert not any(seen[name] for name in silent if name.split(".")[0] not in without_memory)


def test_one_silenced_neuron_keeps_everybody_elses_state_and_takes_its_drive_away():
    brain, _ = acting()
    before = dict(zip(brain.names, brain.signals(), strict=True))
    driven, drive = "flexor.FR", brain.controller.circuit
    weights = drive.weights[drive.neurons.index(driven)]
    expected = weights[drive.neurons.index("cross_V0d.FL")]
    assert expected < -1.0
    brain.knock_out(["cross_V0d.FL"])
    after = dict(zip(brain.names, brain.signals(), strict=True))
    assert after == before | {"cross_V0d.FL": 0.0}
    cut_weights = brain.controller.circuit.weights[brain.controller.circuit.neurons.index(driven)]
    # the sum of what can reach the flexor differs by exactly that one synapse
    assert weights.sum() - cut_weights.sum() == pytest.approx(expected, abs=1e-12)


def test_a_click_silences_a_neuron_or_a_synapse_and_another_one_heals_it():
    live = session()
    play(live, 0.9)
    x = position(live)[0]
    live.click("cross_V0d.FL")
    live.click("cross_V0d>flexor cross")
    live.click("afferent_flexor.HL")
    assert live.controls.without == ("cross_V0d.FL", "cross_V0d>flexor cross", "afferent_flexor.HL")
    play(live, 0.3)
    assert live.memory.signals()[-1, live.brain.names.index("cross_V0d.FL")] == 0.0
    assert abs(position(live)[0] - x) < 0.3  # it went on from where it was
    live.click("cross_V0d.FL")
    assert live.controls.without == ("cross_V0d>flexor cross", "afferent_flexor.HL")
    play(live, 0.3)
    assert len(live.memory.moments) == 50  # the whole past is still one array
    with pytest.raises(UserError, match="unknown knock-out 'V7'"):
        live.click("V7")
    live.change(policy="zero")
    assert live.controls.without == ()
    with pytest.raises(UserError, match="has no circuit"):
        live.click("V0v")


def test_a_click_on_a_part_of_a_silenced_pathway_heals_the_pathway():
    without = ("V0v", "cross_V3f.FL")
    assert toggled(animal(), without, "diag_V0v.FR") == ("cross_V3f.FL",)
    assert toggled(animal(), without, "diag_V0v>flexor diag-down") == ("cross_V3f.FL",)
    assert toggled(animal(), without, "cross_V3f.FR") == (*without, "cross_V3f.FR")
    assert toggled(animal(), ("afferents",), "afferents") == ()


def test_healing_a_knock_out_gives_the_intact_circuit_back_and_never_touches_other_brains():
    brain, other = Brain(load("untrained")), Brain(load("untrained"))
    before = other.controller.circuit.weights.copy()
    brain.knock_out(["V0"])
    assert brain.controller.circuit.neurons == Circuit(cut(animal(), ["V0"])).neurons
    assert (other.controller.circuit.weights == before).all()
    brain.knock_out(())
    assert (brain.controller.circuit.weights == before).all()


def test_the_command_changes_the_gait_of_the_deafferented_circuit():
    live = session()
    live.change(without=("afferents",))
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
        ({"without": ("V7",)}, "homolateral"),
        ({"without": ("V0v", "flexor.XL")}, "flexor.XL"),
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


def test_a_fallen_robot_is_counted_and_if_wanted_soon_stands_again_in_another_episode():
    live = session(seed=5)
    live.change(after_fall=START_ANEW)
    play(live, 0.6)
    live.push("left", MAX_PUSH)
    play(live, 0.9)
    assert live.reading().fallen
    play(live, FALL_PAUSE)
    assert live.falls == 1
    assert not live.reading().fallen
    assert live.seed == 6
    assert live.time < 1.0


def thrown() -> Session:
    """A session whose robot a blow has just thrown."""
    live = session(seed=5)
    play(live, 0.6)
    live.push("left", MAX_PUSH)
    play(live, 0.9)
    assert live.reading().fallen
    return live


def test_a_fallen_robot_gets_up_where_it_lies_and_its_circuit_begins_anew():
    live = thrown()
    place = position(live).copy()
    play(live, FALL_PAUSE)
    assert live.reading().getting_up
    while live.reading().fallen and live.time < 20.0:
        live.step()
    assert (live.falls, live.seed) == (1, 5)  # still the same episode
    assert np.linalg.norm(position(live) - place) < 1.0
    assert live.arena.measured.up[0, 2] > np.cos(np.deg2rad(15))
    fresh = Brain(load("untrained"), live.brain.command)
    fresh.reset(5)
    np.testing.assert_array_equal(live.brain._state.signals, fresh._state.signals)
    start = live.time
    play(live, 2.0)
    assert live.time > start + 1.9  # it walks on
    assert live.falls == 1
    assert live.reading().speed > 0.05


def test_the_choice_after_a_fall_may_change_while_the_robot_gets_up():
    live = thrown()
    play(live, FALL_PAUSE)
    assert live.reading().getting_up
    live.change(after_fall=START_ANEW)
    live.step()
    assert not live.reading().fallen
    assert (live.seed, live.time) == (6, 0.0)
    with pytest.raises(UserError, match="start anew"):
        live.change(after_fall="cry")


def test_a_robot_too_weak_to_get_up_starts_anew_in_the_end():
    live = thrown()
    live.change(kp=10.0, kd=20.0, trunk_mass_scale=2.5)
    for _ in range(round(60.0 / live.control_dt)):
        live.step()
        if live.seed == 6:
            break
    assert (live.seed, live.time) == (6, 0.0)


def test_a_robot_whose_joints_do_not_reach_the_poses_starts_anew(monkeypatch):
    monkeypatch.setattr("ncap.view.session.within", lambda low, high: False)
    live = session()
    assert live.controls.after_fall == START_ANEW
    with pytest.raises(UserError, match="joints of robot a1 do not reach"):
        live.change(after_fall=GET_UP)


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


def test_a_ghost_stops_at_the_edge_and_does_not_fall_off_the_world():
    live = Session(find_task("bumpy-walk"), "zero", ghost="untrained")
    live.arena.simulation._qpos[1, 0] = 33.0
    play(live, 0.1)
    place = live.arena.state(1)
    play(live, 0.5)
    np.testing.assert_array_equal(live.arena.state(1), place)
    assert live.time > 0.5  # the robot itself goes on
    live.reset()
    play(live, 0.1)
    assert abs(live.arena.state(1)[0]) < 0.1


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
    # rhythm generator, fast pools, motor neurons, afferent sums, commands, posture
    assert live.memory.signals().shape == (10, 36 + 8 + 12 + 16 + 4 + 16)
    live.change(policy="paper-flat-walk")
    play(live, 0.3)
    assert live.memory.signals().shape == (10, 28 + 8 + 8 + 4)


def test_cost_of_transport_is_power_over_weight_times_speed():
    live = session("ncap-flat-walk")
    play(live, 4.0)
    recent = list(live.memory.moments)[-67:]
    power, speed = (np.mean([getattr(moment, name) for moment in recent]) for name in ("power", "speed"))
    assert live.reading().cost_of_transport == pytest.approx(power / (12.4534 * 9.81 * speed), rel=1e-4)


def test_motor_neurons_show_what_moves_the_joints():
    live = session()
    play(live, 0.3)
    observation = live.arena.observation()
    action = live.brain.act(observation[0])
    seen = dict(zip(live.brain.names, live.brain.signals(), strict=True))
    assert [seen[f"calf.{leg}"] for leg in ("FL", "FR", "HL", "HR")] == action[:, 2].tolist()
    # a motor neuron of a hip says how far outwards, which is the negative angle on the right
    assert [seen[f"hip.{leg}"] for leg in ("FL", "FR", "HL", "HR")] == (action[:, 0] * [1, -1, 1, -1]).tolist()
    assert action[:, 0].any()


def test_senses_of_posture_show_what_the_legs_feel_unless_nothing_hears_them():
    live = session()
    play(live, 0.3)
    felt = {
        f"{name}.{leg}": value
        for leg, row in zip(("FL", "FR", "HL", "HR"), live.arena.observation()[0, :, 10:], strict=True)
        for name, value in zip(("roll", "roll rate", "pitch", "pitch rate"), row, strict=True)
    }
    for names, silent in (((), ()), (("roll rate",), ("roll rate",)), (("vestibular",), ("roll", "pitch"))):
        live.brain.knock_out(names)
        live.brain.act(live.arena.observation()[0])
        seen = dict(zip(live.brain.names, live.brain.signals(), strict=True))
        expected = {name: 0.0 if name.startswith(silent) else value for name, value in felt.items()}
        assert {name: seen[name] for name in felt} == expected
    assert all(felt.values())


def test_fast_pools_show_what_the_speed_pathway_lets_through():
    live = session()
    live.change(command=0.8)
    play(live, 1.2)
    live.brain.act(live.arena.observation()[0])
    seen = dict(zip(live.brain.names, live.brain.signals(), strict=True))
    for name, loudest in (("flexor", 0.9), ("extensor", 0.6), ("late_flexor", 0.9), ("late_extensor", 0.6)):
        for leg in ("FL", "FR", "HL", "HR"):
            let_through = max(0.0, seen[f"{name}.{leg}"] - loudest * (1 - 0.8))
            assert seen[f"fast_{name}.{leg}"] == pytest.approx(let_through, abs=1e-12)
    assert max(seen[f"fast_extensor.{leg}"] for leg in ("FL", "FR", "HL", "HR")) > 0.1


def test_a_policy_that_was_handed_over_keeps_its_own_circuit_and_command_when_it_is_chosen_again():
    mine = find_policy("ncap-flat-walk", circuit="released", command=0.3)
    live = session(mine)
    assert live.brain.table == animal("released")
    live.change(policy="zero")
    live.change(policy="ncap-flat-walk")
    assert live.brain.table == animal("released")
    assert live.controls.command == 0.3


def test_ground_of_a_task_of_ones_own_stays_until_the_bumpiness_is_changed():
    @dataclass(frozen=True)
    class Ramp:
        grid: ClassVar[Grid] = Grid(
            rows=17, columns=65, cell=0.25, behind=4.0, ahead=12.0, aside=2.0, top=0.3, level=0.0
        )

        def heights(self, seed: int) -> np.ndarray:
            return np.broadcast_to(np.linspace(0.0, 0.3, 65), (17, 65))

    live = Session(replace(FLAT, terrain=Ramp()), "zero")
    assert isinstance(live.arena.task.terrain, Ramp)
    live.change(friction=0.8)
    assert isinstance(live.arena.task.terrain, Ramp)
    live.change(bumpiness=0.2)
    assert live.arena.task.terrain == Bumpy(bumpiness=0.2)
    live.change(bumpiness=0.0)
    assert isinstance(live.arena.task.terrain, Ramp)


def test_numbers_of_an_own_robot_widen_the_controls():
    soft = replace(FLAT, robot=replace(FLAT.robot, kp=5.0))
    live = Session(soft, "zero")
    assert live.ranges["kp"] == (5.0, 150.0)
    live.change(kp=100.0)
    live.change(kp=5.0)
    with pytest.raises(UserError, match=r"kp 4.0 is not a number in \[5, 150\]"):
        live.change(kp=4.0)


def test_a_negative_seed_is_refused():
    with pytest.raises(UserError, match="seed -3 is negative"):
        session(seed=-3)


# --- other worlds, and what is kept ---------------------------------------------------------------------------------


def test_another_task_is_another_world_in_which_the_same_policy_goes_on():
    live = session("ncap-flat-walk", without=("V0v",))
    play(live, 0.6)
    live.change(friction=0.5)
    live.change(task="bumpy-run")
    controls = live.controls
    assert (controls.policy, controls.without, controls.robot) == ("ncap-flat-walk", ("V0v",), "a1")
    assert (controls.target_speed, controls.bumpiness, controls.friction, live.time) == (1.0, 0.5, 1.0, 0.0)
    assert live.arena.task.terrain == Bumpy()
    assert live.news == []
    live.change(robot="go2")
    assert (live.controls.task, live.controls.robot) == ("bumpy-run", "go2")
    assert live.arena.world.robot.name == "go2"
    play(live, 0.3)
    live.change(task="flat-walk")  # the policy's own robot comes back with a task
    assert (live.controls.robot, live.controls.bumpiness) == ("a1", 0.0)
    for wrong, named in (({"task": "moon-walk"}, "bumpy-run"), ({"robot": "spot"}, "go2")):
        before = live.controls
        with pytest.raises(UserError, match=named):
            live.change(**wrong)
        assert live.controls == before


def test_a_policy_that_does_not_fit_another_world_gives_way_and_the_page_says_why():
    hasty = untrained(NCAPPolicy(control_dt=0.015), name="hasty")
    live = Session(replace(FLAT, name="quick", control_dt=0.015), hasty, ghost=hasty)
    play(live, 0.1)
    live.change(task="bumpy-walk")
    assert (live.controls.policy, live.controls.ghost) == ("ncap-bumpy-walk", None)  # the one that was trained for it
    assert "hasty acts every 0.015 s, but bumpy-walk every 0.03 s" in live.news[0]
    assert live.news[0].endswith("ncap-bumpy-walk moves the robot now.")
    assert "The ghost has left: hasty acts" in live.news[1]
    play(live, 0.3)
    with pytest.raises(UserError, match="hasty acts every"):
        live.change(policy="hasty")
    assert live.controls.policy == live.brain.name == "ncap-bumpy-walk"
    live.change(task="quick")  # and back
    assert live.controls.policy == "hasty"


def test_a_worm_and_its_ghost_take_the_place_of_a_quadruped_and_leave_again():
    live = session("ncap-flat-walk", ghost="untrained")
    live.change(task="swim")
    assert "ncap-flat-walk" in live.news[0]
    assert live.brain.table.plan.name != "quadruped"
    play(live, 0.5)
    assert len(live.recording().position) == round(0.5 / live.control_dt)
    live.change(task="bumpy-walk")
    assert live.brain.table.plan.name == "quadruped"
    play(live, 0.3)


def test_the_last_seconds_are_a_recording_of_what_was_played():
    live = session("ncap-flat-walk", seed=2)
    with pytest.raises(UserError, match="nothing has happened yet"):
        live.recording()
    play(live, 0.6)
    live.change(without=("V0v",))
    play(live, 0.3)
    kept = live.recording()
    played = record(load("ncap-flat-walk"), replace(FLAT, friction=(1.0, 1.0), episode_seconds=0.6), 2)
    for name in ("position", "quaternion", "joint_position", "foot_force", "velocity", "action", "neurons"):
        np.testing.assert_array_equal(getattr(kept, name)[:20], getattr(played, name), name)
    assert kept.title == "ncap-flat-walk without V0v on flat-walk, live"
    assert (len(kept.position), kept.circuit) == (30, animal())
    names, signals = signals_of(kept)
    shown = dict(zip(names, signals.T, strict=True))
    assert shown["diag_V0v.FL"][:20].any()
    assert not shown["diag_V0v.FL"][20:].any()
    np.testing.assert_array_equal(shown["freq.L"], live.brain.command)
    live.change(policy="zero")
    play(live, 0.3)
    assert len(live.recording().position) == 10
    assert live.recording().neurons.shape == (10, 0)


def test_what_is_kept_has_an_end():
    live = session("zero")
    memory = live.memory
    play(live, 0.1)
    memory.moments.extend([memory.moments[-1]] * 2000)
    assert len(memory.moments) == round(20.0 / 0.03)
    assert len(memory.foot_force()) == round(6.0 / 0.03)


# --- driving ----------------------------------------------------------------------------------------------------------

DRIVEN = find_policy("untrained", circuit="drive")


def test_a_policy_that_can_turn_is_driven_from_the_start_and_does_what_is_wanted():
    driven = Session(find_task("flat-drive"), DRIVEN)
    assert (driven.controls.driven, driven.controls.speed, driven.controls.yaw_rate) == (True, FIRST_SPEED, 0.0)
    driven.change(speed=0.3, yaw_rate=0.4)
    play(driven, 6.0)
    assert driven.reading().yaw_rate == pytest.approx(0.4, abs=0.2)
    assert driven.reading().speed > 0.1
    assert dict(zip(driven.brain.names, driven.brain.signals(), strict=True))["chx10.FL"] > 0.2
    driven.change(speed=0.0, yaw_rate=0.0)
    play(driven, 4.5)
    assert abs(driven.reading().speed) < 0.02
    assert driven.reading().gait.frequency_hz == 0.0


def test_the_last_word_counts_the_command_s_or_the_wishes():
    driven = Session(find_task("flat-drive"), DRIVEN)
    driven.change(command=0.6)
    assert not driven.controls.driven
    driven.change(yaw_rate=0.2)
    assert driven.controls.driven
    assert driven.controls.command == 0.6


def test_keys_go_by_steps_as_far_as_the_ranges():
    driven = Session(find_task("flat-drive"), DRIVEN)
    driven.press("speed", 1)
    assert driven.controls.speed == pytest.approx(FIRST_SPEED + 0.1)
    for _ in range(20):
        driven.press("speed", -1)
        driven.press("yaw_rate", 1)
    assert (driven.controls.speed, driven.controls.yaw_rate) == (0.0, 0.6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.1, 1.01, "fast", None])
def test_impossible_wishes_are_refused_and_change_nothing(wrong):
    driven = Session(find_task("flat-drive"), DRIVEN)
    before = driven.controls
    with pytest.raises(UserError, match=r"speed .* is not a number in"):
        driven.change(speed=wrong)
    assert driven.controls == before


def test_a_policy_that_cannot_turn_says_so():
    driven = Session(FLAT, load("untrained"))
    assert not driven.controls.can_be_driven
    with pytest.raises(UserError, match="untrained cannot be driven: its circuit has no commands to turn and to stop"):
        driven.press("yaw_rate", 1)
    assert not driven.controls.driven


def test_the_wanted_path_begins_anew_with_every_wish_where_the_robot_is():
    driven = Session(find_task("flat-drive"), DRIVEN)
    play(driven, 3.0)
    paths = driven.driving.paths
    assert len(paths.went) == len(paths.wanted) - 1 == 20  # a point every 0.15 s, and the beginning
    np.testing.assert_array_equal(paths.went[-1], position(driven)[:2])
    driven.change(yaw_rate=0.5)
    assert [point.tolist() for point in paths.wanted] == [position(driven)[:2].tolist()]
    driven.change(friction=0.9)  # no wish
    play(driven, 1.5)
    assert len(paths.wanted) == 11


def test_a_wanted_path_by_hand():
    left = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])  # the trunk looks along y
    paths = Paths(np.array([1.0, 2.0, 0.3]), left)
    for _ in range(10):
        paths.step(np.zeros(3), 0.5, 0.0, 0.1)
    np.testing.assert_allclose(paths.wanted[-1], [1.0, 2.5], atol=1e-12)
    paths.wish_anew(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    for _ in range(2000):
        paths.step(np.zeros(3), 0.5, np.pi, 0.001)  # a whole circle of radius 0.5 / π
    np.testing.assert_allclose(paths.wanted[-1], [0.0, 0.0], atol=1e-3)
    assert np.max([np.hypot(*point) for point in paths.wanted]) == pytest.approx(1 / np.pi, abs=0.01)
