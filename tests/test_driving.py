"""Driving: wishes, brainstem, the circuit that turns and stops, and how its errors are measured."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ncap import cli
from ncap.analysis.driving import tracking_errors, wish_spans
from ncap.circuits.animal import STEERING, animal, cut
from ncap.errors import UserError
from ncap.evaluation import evaluate
from ncap.learn.settings import Training
from ncap.policies.brainstem import Brainstem, can_be_driven
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.tasks import FASTEST, SHARPEST, TASKS, Drive, with_wish
from ncap.trained import TrainedPolicy, find_policy, load

FAST = replace(TASKS["flat-drive"], physics="fast")
DRIVEN = find_policy("untrained", circuit="drive")


def driven(speed, yaw_rate, *, without=(), seconds=9.0, episodes=3):
    """Episodes of the untrained circuit under one wish."""
    player = DRIVEN.without(without) if without else DRIVEN
    task = with_wish(replace(FAST, episode_seconds=seconds), speed, yaw_rate)
    record = ("angular_velocity", "velocity", "neurons")
    return rollout(task, player.controller(episodes), range(episodes), command=Brainstem(), record=record)


def mean_of(episodes, name, axis):
    """Mean of a component of a signal after the first 3 s."""
    return float(np.nanmean(episodes.signals[name][:, 100:, axis]))


def test_wishes_come_from_the_seed_and_change_every_few_seconds():
    wishes = np.array([FAST.wishes(seed) for seed in range(100)])
    np.testing.assert_array_equal(wishes[7], FAST.wishes(7))
    assert wishes.shape == (100, 667, 2)
    assert 0.0 <= wishes[..., 0].min() < 0.05 < 0.95 < wishes[..., 0].max() <= 1.0
    assert -0.6 <= wishes[..., 1].min() < -0.55 < 0.55 < wishes[..., 1].max() <= 0.6
    spans = [wish_spans(wish) for wish in wishes]
    seconds = [(span.stop - span.start) * FAST.control_dt for some in spans for span in some[:-1]]
    assert 2.9 < min(seconds) < 3.5 < 7.5 < max(seconds) < 8.1
    stands = [not wish[span.start].any() for wish, some in zip(wishes, spans, strict=True) for span in some]
    assert 0.05 < np.mean(stands) < 0.15


def test_a_longer_episode_begins_with_the_wishes_of_a_shorter_one():
    short = replace(FAST, episode_seconds=5.0)
    np.testing.assert_array_equal(short.wishes(3), FAST.wishes(3)[: short.steps])


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"speed": (0.0, FASTEST + 0.1)}, "a wish for a speed from 0 to 1.3 is outside"),
        ({"speed": (-0.1, 0.5)}, "a wish for a speed"),
        ({"speed": (np.nan, 0.5)}, "a wish for a speed"),
        ({"yaw_rate": (-SHARPEST - 1, 0.0)}, "a wish for a yaw rate"),
        ({"seconds": (0.0, 1.0)}, "wishes last for a rising range of seconds"),
        ({"standing": 1.5}, "wishes last"),
    ],
)
def test_impossible_wishes_are_refused(values, complaint):
    with pytest.raises(UserError, match=complaint):
        Drive(**values)


def test_only_a_drive_task_takes_a_wish():
    with pytest.raises(UserError, match="flat-walk has no wishes for a speed and a yaw rate; valid: flat-drive, bumpy"):
        with_wish(TASKS["flat-walk"], 0.5, 0.0)


def test_errors_by_hand():
    wanted = np.repeat([[0.5, 0.0], [0.0, 0.0], [1.0, 0.4]], (100, 50, 40), axis=0)
    assert [(span.start, span.stop) for span in wish_spans(wanted)] == [(0, 100), (100, 150), (150, 190)]
    done = wanted + np.array([0.1, -0.2])
    errors = tracking_errors(wanted, done, 0.03)
    assert len(errors) == (100 - 33) + (50 - 33) + (40 - 33)  # all but the first second of each
    np.testing.assert_allclose(errors, np.tile([0.1, 0.2], (len(errors), 1)))
    swinging = done + 0.3 * np.sin(np.arange(190) * 2 * np.pi / 20)[:, None]  # within a stride of 0.6 s
    np.testing.assert_allclose(tracking_errors(wanted, swinging, 0.03), errors, atol=1e-9)
    assert not len(tracking_errors(wanted[:20], done[:20], 0.03))


def test_the_brainstem_changes_slowly_stands_at_0_and_leans_against_errors():
    brainstem, zero = Brainstem(), np.zeros(1)
    state = brainstem.start(1)
    said = []
    for _ in range(100):
        state, commands = brainstem.step(state, (np.ones(1), np.full(1, -0.5)), (zero, zero), 0.03)
        said.append({name: float(value[0]) for name, value in commands.items()})
    assert [row["stop"] for row in said[:3]] == [1.0, 0.0, 0.0]
    commands_said = np.array([row["c"] for row in said])
    assert np.diff(commands_said).min() >= 0
    assert np.diff(commands_said).max() <= 0.25  # the jump over the commands between walk and trot
    assert not ((commands_said > brainstem.walk[-1][1]) & (commands_said < brainstem.trot[0][1])).any()
    assert said[-1]["turn.L"] == 0.0
    assert said[-1]["turn.R"] == 1.0
    assert said[-1]["c"] == brainstem.trot[-1][1]
    for _ in range(100):
        state, commands = brainstem.step(state, (zero, zero), (zero, zero), 0.03)
    assert {name: float(value[0]) for name, value in commands.items()} == {
        "c": 0.0,
        "turn.L": 0.0,
        "turn.R": 0.0,
        "stop": 1.0,
    }


def test_after_standing_it_first_walks_slowly_straight_ahead():
    will, dt = Brainstem(), 0.03
    wanted, still = (np.array([0.9]), np.array([0.5])), (np.zeros(1), np.zeros(1))
    state, said = will.start(1), []
    for _ in range(100):
        state, commands = will.step(state, wanted, still, dt)
        said.append((commands["c"][0], commands["turn.L"][0], state.speed[0]))
    c, turn, speed = np.array(said).T
    settled = round(0.8 / dt)  # it moves from the first step on, since the wanted yaw rate is at once above STANDING
    assert speed[:settled].max() <= 0.2
    assert turn[:settled].max() == 0.0
    assert 0.0 < turn[settled + 3] < 0.2  # then more and more: 4 of 27 steps of at most 1
    assert turn[2 * settled + 3] == 1.0  # nothing turns, so the gyroscope asks for all of it
    assert c[:settled].max() < 0.17 < 0.35 < c[-1]  # a walk, and then a trot
    # who stands anew settles anew, and who was moving does not
    for _ in range(100):
        state, commands = will.step(state, (np.zeros(1), np.zeros(1)), still, dt)
    assert commands["stop"][0] == 1.0
    assert state.moving[0] == 0.0


def test_nobody_s_brainstem_depends_on_others():
    draws = np.random.default_rng(0)
    wanted, felt = draws.uniform(0, 1, (2, 20, 2, 5))
    brainstem = Brainstem()
    together, alone = brainstem.start(5), brainstem.start(1)
    for now, motion in zip(wanted, felt, strict=True):
        together, said = brainstem.step(together, tuple(now), tuple(motion), 0.03)
        alone, own = brainstem.step(alone, tuple(now[:, [3]]), tuple(motion[:, [3]]), 0.03)
        assert all(own[name][0] == said[name][3] for name in own)


def test_the_untrained_circuit_turns_to_either_side_and_goes_straight_between():
    left, straight, right = (mean_of(driven(0.3, yaw), "angular_velocity", 2) for yaw in (0.4, 0.0, -0.4))
    assert left == pytest.approx(0.4, abs=0.12)
    assert straight == pytest.approx(0.0, abs=0.06)
    assert right == pytest.approx(-0.4, abs=0.12)


def test_without_its_turning_neurons_it_does_not_turn():
    cut_off = driven(0.3, 0.4, without=("turning",))
    assert abs(mean_of(cut_off, "angular_velocity", 2)) < 0.1


def test_a_wish_for_0_makes_it_stand_and_silences_both_half_centres():
    still = driven(0.0, 0.0, seconds=5.0)
    assert not still.fell.any()
    assert abs(mean_of(still, "velocity", 0)) < 0.01
    core = DRIVEN.policy.core
    for half in ("flexor", "extensor"):
        assert np.abs(still.signals["neurons"][:, 100:, core.columns(half)]).max() == 0.0


def test_without_a_turn_the_steering_neurons_are_silent_and_the_rest_is_as_if_they_were_not_there():
    spec = animal("drive")
    without = cut(spec, list(STEERING))
    whole, less = (NCAPPolicy(circuit=table) for table in (spec, without))
    seen = np.random.default_rng(1).uniform(-1, 1, (40, 1, 4, 14))
    first, second = (policy.bind(policy.space.initial[None]) for policy in (whole, less))
    one, two = first.reset([0]), second.reset([0])
    for observation in seen:
        one, action = first.act(one, observation)
        two, other = second.act(two, observation)
        np.testing.assert_allclose(action, other, atol=1e-12)


def test_only_circuits_that_can_turn_and_stop_are_driven():
    assert can_be_driven(animal("drive"))
    assert not can_be_driven(animal())
    assert Training(task="flat-drive").circuit_name == "drive"
    with pytest.raises(UserError, match="flat-drive needs a circuit with the commands turn and stop"):
        Training(task="flat-drive", circuit="default")
    with pytest.raises(UserError, match="ncap-flat-walk cannot turn or stop, as flat-drive asks"):
        evaluate(load("ncap-flat-walk"), TASKS["flat-drive"], [0])


def test_evaluation_has_the_errors_where_wishes_change_and_only_there(capsys):
    words = ["untrained", "--circuit", "drive", "--task", "flat-drive", "--physics", "fast", "--episodes", "2"]
    cli.main(["evaluate", *words, "--speed", "0.3", "--yaw", "0.3", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["commands"] == 2
    assert found["error_yaw"] < 0.25
    assert found["yaw_rate_mean"] == pytest.approx(0.3, abs=0.15)
    assert 0.0 < found["error_vel_x"] < 0.3
    assert found["gait"]["commanded"] == "by speed"
    other = evaluate(load("zero"), replace(TASKS["flat-walk"], episode_seconds=1.0), [0])
    assert (other.error_vel_x, other.error_yaw, other.commands) == (None, None, None)


def test_faster_means_a_higher_command_and_paces_are_those_of_a_walk_or_a_trot():
    brainstem = Brainstem()
    speeds, commands = np.array((*brainstem.walk, *brainstem.trot)).T
    assert (np.diff(speeds) > 0).all()
    assert (np.diff(commands) > 0).all()
    assert max(command for _, command in brainstem.walk) <= 0.25
    assert all(0.35 <= command <= 0.7 for _, command in brainstem.trot)


@pytest.mark.parametrize(("wanted", "felt", "gait"), [(0.4, 0.0, "walk"), (0.5, 1.0, "trot")])
def test_the_wish_decides_on_the_gait_and_no_correction_leaves_it(wanted, felt, gait):
    """A walk that is too slow is not corrected into a trot, nor a trot that is too fast into a walk."""
    brainstem = Brainstem()
    state = brainstem.start(1)
    for _ in range(200):
        wish, motion = (np.full(1, wanted), np.zeros(1)), (np.full(1, felt), np.zeros(1))
        state, said = brainstem.step(state, wish, motion, 0.03)
    assert abs(state.more_speed[0]) == pytest.approx(brainstem.most_correction)
    assert said["c"][0] == {"walk": brainstem.walk[-1], "trot": brainstem.trot[0]}[gait][1]


def test_a_policy_of_a_drive_is_what_it_was_after_its_file(tmp_path):
    DRIVEN.save(tmp_path / "drive.safetensors")
    again = load(tmp_path / "drive.safetensors")
    assert isinstance(again, TrainedPolicy)
    assert again.policy == DRIVEN.policy


# --- agents that learn to drive ---------------------------------------------------------------------------------------


def test_an_agent_sees_what_is_wanted_and_how_it_turns():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("ncap.envs:ncap/FlatDrive-v0")
    assert env.spec.max_episode_steps == FAST.steps
    seen, _ = env.reset(seed=3)
    assert seen.shape == (43,)
    arena = env.unwrapped._arena
    wanted = [arena.goal.speed[0] / FASTEST, arena.goal.yaw_rate[0] / SHARPEST]
    assert seen[40:42] == pytest.approx(wanted)
    seen, *_ = env.step(env.action_space.sample())
    # about the vertical, not about the trunk's own axis: a trunk that rolls and pitches differs
    assert seen[42] == pytest.approx(arena.measured.up[0] @ arena.measured.angular_velocity[0] / 3)
    envs = gymnasium.make_vec("ncap.envs:ncap/BumpyDrive-v0", num_envs=2)
    assert envs.reset(seed=3)[0].shape == (2, 43)
    with pytest.raises(UserError, match="flat-drive has wishes that change, which a circuit within an environment"):
        gymnasium.make("ncap.envs:ncap/FlatDrive-v0", circuit="drive")


def test_an_mlp_hears_the_wish_and_needs_one():
    policy = Training(task="flat-drive", algorithm="ppo", policy="mlp:8").initial_policy()
    assert (policy.senses, policy.wishes, policy.space.size) == (40, 3, 43 * 8 + 8 + 8 * 12 + 12)
    theta = np.random.default_rng(0).normal(size=(1, policy.space.size))
    controller, seen = policy.bind(theta), np.zeros((1, 4, 14))
    left, right = (controller.act(None, seen, {"wish": np.array([[0.5, yaw, 0.0]])})[1] for yaw in (0.4, -0.4))
    assert np.abs(left - right).max() > 0.01
    for wrong in (None, {}, {"wish": np.zeros((1, 2))}):
        with pytest.raises(UserError, match="this MLP drives: it needs the command wish"):
            controller.act(None, seen, wrong)
    short = replace(FAST, episode_seconds=0.3)
    one, other = (rollout(short, controller, [seed], record=("action", "wanted")) for seed in (4, 5))
    assert (one.signals["wanted"] != other.signals["wanted"]).any()
    assert (one.signals["action"] != other.signals["action"]).any()


def test_who_learns_to_drive_by_what():
    for settings in ({"policy": "mlp"}, {"algorithm": "ppo", "policy": "ncap"}):
        with pytest.raises(UserError, match=r"flat-drive trains a circuit .* by evolution, or an MLP by ppo"):
            Training(task="flat-drive", **settings)
