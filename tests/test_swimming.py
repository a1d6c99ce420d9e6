"""The swimmer in its water: how well it swims before training, how it turns, and what every command says of it."""

import json
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import ncap
from ncap import cli
from ncap.analysis.undulation import measure_undulation
from ncap.circuits.swimmer import swimmer
from ncap.errors import UserError
from ncap.evaluation import evaluate, task_for
from ncap.learn.settings import Training
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.seeker import Seeker
from ncap.recording import Recording, record
from ncap.rewards import nearness
from ncap.rollouts import Arena, rollout
from ncap.tasks import TASKS, find_task, with_robot
from ncap.trained import load, untrained

SWIM, NAVIGATE = TASKS["swim"], TASKS["navigate"]


def short(task, seconds):
    return replace(task, episode_seconds=seconds)


@pytest.mark.parametrize(
    ("links", "without", "expected"),
    [(6, [], 0.802), (12, [], 0.909), (3, [], 0.292), (6, ["proprioception"], 0.130)],
)
def test_before_training_it_swims_as_an_independent_rebuild_does(links, without, expected):
    # the numbers of a rebuild in another frame, with its own loop, over two or three episodes; without
    # proprioception, when nothing but the first joint works, they scatter by 7 % from episode to episode
    task = with_robot(SWIM, f"swimmer-{links}")
    found = evaluate(load("untrained").on(task).without(without), task, range(3))
    assert found.return_mean == pytest.approx(expected, rel=0.08 if without else 0.03)
    assert found.parameters == 4 - len(without)
    assert found.falls == 0


def test_the_command_line_gives_a_normalised_return_and_no_gait(capsys):
    cli.main(("evaluate", "untrained", "--task", "swim", "--links", "6", "--episodes", "5", "--seed", "0", "--json"))
    found = json.loads(capsys.readouterr().out)
    assert found["return_mean"] == pytest.approx(0.802, rel=0.03)
    assert found["gait"] is None
    assert found["undulation"]["frequency_hz"] == pytest.approx(1 / 1.8, rel=0.01)  # the pacemaker's
    assert "reached" not in found


def test_a_wave_has_the_numbers_with_which_it_was_made():
    time, joints = np.arange(1000) * 0.03, np.arange(5)
    hertz, bend, body_lengths = 0.7, 0.6, 0.8
    lag = 2 * np.pi / (body_lengths * 6)  # from joint to joint of a body with 6 links
    found = measure_undulation(bend * np.sin(2 * np.pi * hertz * time[:, None] - lag * joints), 0.03)
    assert found.frequency_hz == pytest.approx(hertz, rel=1e-3)
    assert found.amplitude_deg == pytest.approx(np.rad2deg(bend), rel=0.02)
    assert found.wavelength == pytest.approx(body_lengths, rel=1e-3)
    assert measure_undulation(np.full((1000, 5), 0.3), 0.03) is None


@pytest.mark.parametrize(("side", "sign"), [("left", 1), ("right", -1)])
def test_the_turn_neurons_turn_it_to_their_side_and_the_slow_ones_stop_it(side, sign):
    policy = NCAPPolicy(command=1.0, circuit=swimmer("swimmer-turning"))
    task, controller = short(SWIM, 10.0), policy.bind(np.tile(policy.space.initial, (3, 1)))
    straight, turning, slow = (
        rollout(task, controller, range(3), command=said, record=("angular_velocity", "action"))
        for said in ({}, {side: 1.0}, {"speed": 0.0})
    )
    means = [np.mean(played.signals["angular_velocity"][..., 2], axis=1) for played in (straight, turning)]
    assert (sign * (means[1] - means[0]) > 0.1).all()
    assert not slow.signals["action"].any()


def test_a_seeker_turns_to_where_the_target_is_and_swims_until_it_is_near():
    goals = np.array([(0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.05, 0.2), (0.0, 0.0, -0.5, -0.2)]).T
    _, said = Seeker().step(None, goals, (goals[0], goals[0]), 0.03)
    assert {name: values.tolist() for name, values in said.items()} == {
        "c": [1.0, 0.0, 1.0],
        "left": [0.0, 1.0, 0.0],
        "right": [0.0, 0.0, 1.0],
    }


def test_the_target_is_seen_from_the_nose_and_rewards_its_nearness():
    arena = Arena(NAVIGATE, 2)
    arena.start(np.arange(2), [4, 5])
    now = arena.measured
    for i in range(2):
        w, _, _, z = now.quaternion[i]
        forward = np.array([w * w - z * z, 2 * w * z])
        left = np.array([-forward[1], forward[0]])
        way = arena.targets[i] - (now.position[i, :2] + 0.06 * forward)
        np.testing.assert_allclose((arena.goal.ahead[i], arena.goal.left[i]), (way @ forward, way @ left))
    np.testing.assert_allclose(arena.wish() * 3, np.stack(arena.goal[2:], axis=1))  # 3 m are 1
    # a tenth at a distance of half a metre from the edge of the target, as in the Control Suite
    np.testing.assert_allclose(nearness(np.array([0.0, 0.1, 0.35, 0.6]), 0.1), (1.0, 1.0, 1 / 3.25, 0.1))
    places = np.array([NAVIGATE.target.place(seed) for seed in range(500)])
    assert np.abs(places).max() < 2
    near = (np.abs(places) < 0.3).all(axis=1).mean()
    assert near == pytest.approx(0.2 + 0.8 * 0.15**2, abs=0.05)


def test_turning_leads_to_targets_that_swimming_straight_ahead_does_not_reach():
    task, seeds = short(NAVIGATE, 20.0), range(10)
    seeking = evaluate(load("untrained").on(task), task, seeds)
    straight = evaluate(load("untrained").on(task).without(["turning"]), task, seeds)
    assert seeking.reached >= 3
    assert seeking.reached > straight.reached
    assert seeking.return_mean > straight.return_mean


def test_policies_go_onto_bodies_of_their_kind_and_no_others():
    assert task_for(load("untrained"), "swim").robot.name == "swimmer-6"
    with pytest.raises(UserError, match="ncap-flat-walk does not fit swimmer-6, the body of swim"):
        load("ncap-flat-walk").evaluate("swim")
    with pytest.raises(UserError, match="mlp-flat-walk does not fit swimmer-6"):
        load("mlp-flat-walk").evaluate("swim")
    with pytest.raises(UserError, match="swim is a task for a swimmer, but a1 is a robot with four legs"):
        task_for(load("untrained"), "swim", "a1")
    with pytest.raises(UserError, match="flat-walk is a task for a robot with four legs, but swimmer-4 is a swimmer"):
        task_for(load("untrained"), "flat-walk", "swimmer-4")
    with pytest.raises(UserError, match="untrained cannot turn, as navigate asks: --circuit swimmer-turning"):
        untrained(NCAPPolicy(circuit=swimmer())).evaluate("navigate")
    walking = load("untrained")
    assert walking.on(TASKS["flat-walk"]) is walking
    with pytest.raises(UserError, match="a robot with a name, such as a1, has its own number of links"):
        Training(task="swim", robot="a1", links=4).filled()
    with pytest.raises(UserError, match="navigate needs a circuit with commands to turn"):
        Training(task="navigate", circuit="swimmer")


def test_a_training_moves_the_four_weights_and_its_policy_swims_with_another_length(tmp_path):
    training = Training(task="swim", links=4, epochs=2, population=4, episodes=1, training_seconds=1.5,
                        episode_seconds=1.5)  # fmt: skip
    best = ncap.train(training, tmp_path / "run", threads=1)
    assert (best.parameters, best.task, best.robot) == (4, "swim", "swimmer-4")
    assert task_for(best).robot.name == "swimmer-4"
    longer = short(with_robot(SWIM, "swimmer-9"), 1.5)
    moved = best.on(longer)
    np.testing.assert_array_equal(moved.theta, best.theta)
    assert moved.policy.circuit.plan == longer.robot.plan
    assert np.isfinite(evaluate(moved, longer, [0]).return_mean)


def test_gymnasium_sees_five_numbers_a_joint_and_the_target():
    for name, size, robot in (("Swim", 25, None), ("Navigate", 27, None), ("Swim", 60, "swimmer-13")):
        env = gymnasium.make(f"ncap.envs:ncap/{name}-v0", disable_env_checker=True, robot=robot)
        observation, _ = env.reset(seed=0)
        assert observation.shape == (size,)
        assert env.action_space.shape == (12 if robot else 5,)
        _, reward, fallen, _, _ = env.step(np.zeros(env.action_space.shape, np.float32))
        assert 0 <= reward <= 1
        assert not fallen


def test_a_recording_keeps_body_and_circuit_and_refuses_another_bodys(tmp_path):
    kept = record("untrained", short(SWIM, 1.5))
    path = tmp_path / "swim.safetensors"
    kept.save(path)
    read = Recording.load(path)
    assert read.robot == SWIM.robot
    assert read.circuit == swimmer()
    assert read.terrain == SWIM.terrain
    np.testing.assert_array_equal(read.joint_position, kept.joint_position)
    assert read.foot_force.shape == (50, 0)
    assert {"B_dorsal.s1", "muscle_ventral.s5", "bend+.s2"} <= set(read.signal_names)
    replace(kept, robot=with_robot(SWIM, "swimmer-5").robot).save(path)
    with pytest.raises(UserError, match=r"the array joint_position has the shape .* but \(50, 4, 1\) is needed"):
        Recording.load(path)


def test_lesions_of_a_swimmer_have_no_gait(monkeypatch):
    monkeypatch.setitem(TASKS, "swim", short(SWIM, 6.0))
    rows = ncap.lesion("untrained", ["proprioception", "B_dorsal"], task="swim", seeds=range(2))
    assert [row.without for row in rows] == ["", "proprioception", "B_dorsal"]
    assert all(row.gait is None and row.gait_share is None and row.left_right_phase is None for row in rows)
    assert rows[0].return_mean > rows[1].return_mean
    assert rows[0].speed_mean > max(rows[1].speed_mean, rows[2].speed_mean)


def test_what_has_no_feet_is_told_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(TASKS, "swim", short(SWIM, 6.0))
    monkeypatch.chdir(tmp_path)
    cli.main(("evaluate", "untrained", "--task", "swim", "--episodes", "1"))
    shown = capsys.readouterr().out
    assert "none: it has no feet" in shown
    assert "touchdowns" not in shown
    cli.main(("lesion", "untrained", "--task", "swim", "--without", "rhythm", "--episodes", "1"))
    assert "no feet" in capsys.readouterr().out
    assert (tmp_path / "lesion.png").exists()
    with pytest.raises(UserError, match="a body without feet has no gait"):
        _ = load("untrained").evaluate("swim", [0]).walk
    assert find_task("swim").steps == 200
