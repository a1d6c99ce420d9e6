"""A task of several commands: the seed of an episode says at which of them it is played."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from ncap import cli
from ncap.errors import UserError
from ncap.learn.best import FINAL_SEEDS, FIRST_ROUND, TEST_SEEDS
from ncap.learn.evolution import State, epoch_chunks
from ncap.learn.executors import Chunk, play
from ncap.learn.search import Search
from ncap.learn.settings import Training
from ncap.learn.training import read_training, train
from ncap.policies.ncap import NCAPPolicy
from ncap.tasks import PAPER_TASKS, TASKS, Pace
from ncap.trained import read_policy

SPEEDS = replace(TASKS["flat-speeds"], episode_seconds=0.6)


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    monkeypatch.setitem(TASKS, "flat-speeds", SPEEDS)


def test_the_paper_has_four_tasks_and_the_fifth_has_faster_paces_at_higher_commands():
    assert PAPER_TASKS == ("flat-walk", "flat-run", "bumpy-walk", "bumpy-run")
    for ground in ("flat", "bumpy"):
        assert TASKS[f"{ground}-walk"].command < TASKS[f"{ground}-run"].command
    assert not any(TASKS[name].paces for name in PAPER_TASKS)
    commands, speeds = zip(*((pace.command, pace.speed) for pace in SPEEDS.paces), strict=True)
    assert (commands[0], commands[-1]) == (0.0, 0.95)
    assert min(np.diff(commands)) > 0
    assert min(np.diff(speeds)) > 0


def test_a_task_at_a_pace_is_the_same_task_with_its_command_and_speed():
    at = SPEEDS.at(Pace(command=0.3, speed=0.8))
    assert at == replace(SPEEDS, command=0.3, target_speed=0.8, paces=())


def alone(theta, seed):
    """An episode with weights (D,), played by itself at the pace that its seed stands for."""
    pace = SPEEDS.paces[seed % 5]
    task = replace(SPEEDS, paces=(), command=pace.command, target_speed=pace.speed)
    policy = NCAPPolicy(command=pace.command)
    return play([Chunk(task=task, policy=policy, search=Search(mean=theta), seeds=(seed,), footfalls=True)])[0]


@pytest.mark.parametrize("candidates", [True, False], ids=["candidates", "the mean"])
def test_the_seed_decides_the_pace_and_episodes_are_those_of_each_pace_by_itself(candidates):
    training = Training(task="flat-speeds")
    policy, method = training.initial_policy(), training.evolution
    search = method.start(policy.space, policy.space.initial)
    chunk = Chunk(
        task=SPEEDS, policy=policy, search=search, seeds=(12, 3, 7, 0, 8, 23), seed=4, epoch=2, footfalls=True
    )
    rows = [search.mean] * 6
    if candidates:
        chunk = replace(chunk, method=method, indices=(4, 0, 2, 5, 1, 9))
        rows = method.candidates(policy.space, search, 4, 2, chunk.indices)
    whole, parts = play([chunk])[0], [alone(*one) for one in zip(rows, chunk.seeds, strict=True)]
    assert np.array_equal(whole.returns, [part.returns[0] for part in parts])
    assert np.array_equal(whole.footfall_errors, [part.footfall_errors[0] for part in parts])
    assert (whole.steps, whole.falls) == (sum(part.steps for part in parts), sum(part.falls for part in parts))
    assert len(set(whole.returns)) == 6


def test_paces_are_rewarded_by_their_own_speeds():
    # a robot that stands gets 1 - v / 0.6 at the speed v, and nothing from 0.6 m/s on
    longer = replace(SPEEDS, episode_seconds=3.0)
    chunk = Chunk(task=longer, policy=NCAPPolicy(), search=Search(mean=np.zeros(112)), seeds=tuple(range(5)))
    assert play([chunk])[0].returns == pytest.approx(
        [max(0.0, 1 - pace.speed / 0.6) for pace in SPEEDS.paces], abs=0.02
    )


def chunks_of(training, epoch=0):
    policy = training.initial_policy()
    first = training.evolution.start(policy.space, policy.space.initial)
    return epoch_chunks(training, policy, State(epoch, first, np.zeros((3, 40))))


def test_the_episodes_of_an_epoch_go_through_the_paces_in_turn():
    training = Training(task="flat-speeds")
    assert (training.candidate_episodes, Training(task="flat-walk").candidate_episodes) == (5, 3)
    chunks, test = chunks_of(training)
    assert [set(np.array(chunk.seeds) % 5) for chunk in chunks] == [{0}, {1}, {2}, {3}, {4}]
    assert all(len(set(chunk.seeds)) == 1 for chunk in chunks)  # everybody plays the same episode
    longer, _ = chunks_of(replace(training, episodes=7))
    assert [chunk.seeds[0] % 5 for chunk in longer] == [0, 1, 2, 3, 4, 0, 1]
    later, _ = chunks_of(training, epoch=1)
    assert not {chunk.seeds[0] for chunk in chunks} & {chunk.seeds[0] for chunk in later}
    assert min(chunk.seeds[0] for chunk in (*chunks, *later)) > max(FINAL_SEEDS)  # no episode of a test is practised
    assert test.task.paces == SPEEDS.paces


def test_tests_and_the_final_choice_have_every_pace_equally_often():
    for seeds, times in ((TEST_SEEDS, 1), (FINAL_SEEDS[:FIRST_ROUND], 2), (FINAL_SEEDS[FIRST_ROUND:], 10)):
        assert np.bincount(np.array(seeds) % 5).tolist() == [times] * 5


@pytest.mark.parametrize(
    "words", [{"policy": "mlp"}, {"policy": "mlp:8x8"}, {"algorithm": "ppo"}, {"algorithm": "ppo", "policy": "ncap"},
              {"algorithm": "d4pg"}],
)  # fmt: skip
def test_what_cannot_have_several_commands_is_refused_with_a_sentence(words):
    if "algorithm" in words:
        pytest.importorskip("stable_baselines3")
    complaint = r"flat-speeds has several commands, so it trains a circuit \(ncap\) by evolution only"
    with pytest.raises(UserError, match=complaint):
        Training(task="flat-speeds", **words)


def test_a_circuit_is_trained_at_all_paces_and_resumed_to_the_bit(tmp_path, capsys):
    training = Training(task="flat-speeds", epochs=2, population=4, seed=3, training_seconds=0.3)
    best = train(training, tmp_path / "whole", threads=1)

    def stop(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(training, tmp_path / "broken", threads=1, report=stop)
    train(read_training(tmp_path / "broken"), tmp_path / "broken", threads=2)
    last = [read_policy(tmp_path / name / "last.safetensors") for name in ("whole", "broken")]
    assert np.array_equal(last[0].theta, last[1].theta)
    assert not np.array_equal(last[0].theta, NCAPPolicy().space.initial)
    assert (best.task, best.policy.command, asdict(training.filled())["episodes"]) == ("flat-speeds", SPEEDS.command, 5)
    cli.main(["evaluate", str(tmp_path / "whole"), "--episodes", "1", "--json"])
    assert json.loads(capsys.readouterr().out)["task"] == "flat-speeds"
