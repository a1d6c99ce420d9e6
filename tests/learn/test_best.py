"""The best policy of a run is chosen by more episodes than an epoch's test has."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from ncap.learn.best import FINAL_SEEDS, KEPT, TEST_SEEDS, choose, keep
from ncap.learn.executors import LocalExecutor
from ncap.learn.start import go_on
from ncap.learn.train import Training, train
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.storage import load_policy
from ncap.rollout import rollout
from ncap.runs import Run
from ncap.tasks import TASKS

WALK = replace(TASKS["flat-walk"], episode_seconds=1.5)
POLICY = NCAPPolicy(command=0.05)
WALKS = POLICY.space.initial
STANDS = np.zeros_like(WALKS)


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as run:
        yield run


def candidate(epoch, test_return, theta=WALKS):
    return POLICY, theta, {"epoch": epoch, "test_return": test_return}


def best(run):
    return load_policy(run.folder / "best.safetensors")


def kept(run):
    return sorted(load_policy(path)[2]["epoch"] for path in (run.folder / "finalists").iterdir())


def decide(run, last, epochs=60):
    choose(run, last, WALK, epochs, LocalExecutor(1))


def test_no_test_episode_and_no_held_out_one_is_a_final_one():
    assert not set(FINAL_SEEDS) & (set(TEST_SEEDS) | set(range(1000)))
    assert len(set(FINAL_SEEDS)) == 30


def test_the_highest_test_returns_are_kept_and_the_best_is_there_at_any_time(run):
    returns = [0.5, 0.9, 0.6, 0.8, 0.7, 0.65, 0.95, 0.1]
    for epoch, test_return in enumerate(returns):
        assert keep(run, candidate(epoch, test_return)) == max(returns[: epoch + 1])
        assert best(run)[2]["epoch"] == int(np.argmax(returns[: epoch + 1]))
    assert kept(run) == [1, 3, 4, 6]
    assert len(kept(run)) == KEPT


def test_an_epoch_done_again_after_a_crash_is_kept_once(run):
    for epoch in (0, 1, 1):
        keep(run, candidate(epoch, 0.5 + 0.1 * epoch))
    assert kept(run) == [0, 1]


def test_the_final_episodes_decide_and_not_the_test(run):
    keep(run, candidate(0, 0.99, STANDS))
    keep(run, candidate(1, 0.50, WALKS))
    last = candidate(2, 0.40, STANDS)
    decide(run, last)
    _, theta, about = best(run)
    played = rollout(WALK, POLICY.bind(np.tile(WALKS, (30, 1))), FINAL_SEEDS).returns
    assert np.array_equal(theta, WALKS)
    assert (about["epoch"], about["final_return"]) == (1, played.mean())
    assert load_policy(run.folder / "last.safetensors")[2] == last[2]


def test_a_short_run_plays_as_many_final_episodes_as_it_has_epochs(run):
    decide(run, candidate(3, 0.5), epochs=3)
    played = rollout(WALK, POLICY.bind(np.tile(WALKS, (3, 1))), FINAL_SEEDS[:3]).returns
    assert best(run)[2]["final_return"] == played.mean()


def test_the_last_policy_takes_part_whatever_its_test_said(run):
    for epoch in range(KEPT):
        keep(run, candidate(epoch, 0.9, STANDS))
    decide(run, candidate(9, 0.1, WALKS))
    assert best(run)[2]["epoch"] == 9


class Stops(LocalExecutor):
    """Is interrupted in the final episodes."""

    def play(self, chunks):
        if chunks[0].seeds[0] in FINAL_SEEDS:
            raise KeyboardInterrupt
        return super().play(chunks)


def test_a_run_stopped_while_it_chooses_is_not_complete_and_then_chooses_the_same(tmp_path):
    training = Training(task="flat-walk", epochs=2, population=4, episodes=1, episode_seconds=0.3)
    folders = [tmp_path / "unbroken", tmp_path / "stopped"]
    with Run.create(folders[0], asdict(training)) as run:
        train(training, run, LocalExecutor(1), None, lambda row: None)
    with Run.create(folders[1], asdict(training)) as run:
        with pytest.raises(KeyboardInterrupt):
            train(training, run, Stops(1), None, lambda row: None)
        assert not (folders[1] / "last.safetensors").exists()
        saved, _ = run.latest()
        go_on(training, run, saved, LocalExecutor(1), 1, lambda row: None)
    for name in ("best", "last"):
        first, second = (load_policy(folder / f"{name}.safetensors") for folder in folders)
        assert np.array_equal(first[1], second[1])
        assert first[2] == second[2]
