"""The best policy of a run is chosen by more episodes than an epoch's test has."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.learn.best import FINAL_SEEDS, TEST_SEEDS, choose, keep
from ncap.learn.executors import LocalExecutor, Played
from ncap.learn.settings import Training
from ncap.learn.training import train
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.runs import Run
from ncap.tasks import TASKS
from ncap.trained import TrainedPolicy, read_policy

WALK = replace(TASKS["flat-walk"], episode_seconds=1.5)
POLICY = NCAPPolicy()
WALKS = POLICY.space.initial
STANDS = np.zeros_like(WALKS)
KEPT = 4


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr("ncap.learn.best.KEPT", KEPT)  # fewer than usual, to see who is not kept
    with Run.create(tmp_path / "run", {}) as run:
        yield run


def candidate(epoch, test_return, theta=WALKS, **more):
    return TrainedPolicy(policy=POLICY, theta=theta, about={"epoch": epoch, "test_return": test_return} | more)


def best(run):
    return read_policy(run.folder / "best.safetensors")


def kept(run):
    return sorted(read_policy(path).about["epoch"] for path in (run.folder / "finalists").iterdir())


def decide(run, last, epochs=60):
    choose(run, last, WALK, epochs, LocalExecutor(1))


def test_no_test_episode_and_no_held_out_one_is_a_final_one():
    assert not set(FINAL_SEEDS) & (set(TEST_SEEDS) | set(range(1000)))
    assert len(set(FINAL_SEEDS)) == 60


def test_the_highest_test_returns_are_kept_and_the_best_is_there_at_any_time(run):
    returns = [0.5, 0.9, 0.6, 0.8, 0.7, 0.65, 0.95, 0.1]
    for epoch, test_return in enumerate(returns):
        assert keep(run, candidate(epoch, test_return)) == max(returns[: epoch + 1])
        assert best(run).about["epoch"] == int(np.argmax(returns[: epoch + 1]))
    assert kept(run) == [1, 3, 4, 6]
    assert len(kept(run)) == KEPT


def test_the_fittest_are_kept_where_fitness_is_something_else_than_the_return(run):
    fitness = [0.3, 0.8, 0.7, 0.1, 0.6, 0.5]
    for epoch, value in enumerate(fitness):
        told = keep(run, candidate(epoch, 0.9 - 0.1 * epoch, test_fitness=value))
        assert best(run).about["epoch"] == int(np.argmax(fitness[: epoch + 1]))
        assert told == best(run).about["test_return"]  # progress has the return of the best policy
    assert kept(run) == [1, 2, 4, 5]


class Told(LocalExecutor):
    """Episodes of those who walk have a higher return, but the feet of those who stand are better."""

    def play(self, chunks):
        return [self._played(chunk, np.array_equal(chunk.search.mean, WALKS)) for chunk in chunks]

    @staticmethod
    def _played(chunk, walks):
        everybody = np.ones(len(chunk.seeds))
        errors = (0.5 if walks and chunk.footfalls else 0.0) * everybody
        returns = (0.8 if walks else 0.7) * everybody
        return Played(returns=returns, falls=0, steps=1, cpu_seconds=0.0, moments=None, footfall_errors=errors)


@pytest.mark.parametrize(("weight", "chosen"), [(0.0, 1), (0.1, 1), (0.5, 0)])
def test_the_final_choice_is_by_fitness(run, weight, chosen):
    # the walker loses half the weight: 0.8 - 0.05 is still above 0.7, and 0.8 - 0.25 is not
    keep(run, candidate(0, 0.5, STANDS))
    keep(run, candidate(1, 0.5, WALKS))
    choose(run, candidate(2, 0.5, STANDS), WALK, 60, Told(1), weight)
    expected = {0: [0, 2], 1: [1]}[chosen]
    assert best(run).about["epoch"] in expected
    assert best(run).about["final_return"] == pytest.approx(0.8 if chosen else 0.7)


def test_an_epoch_done_again_after_a_crash_is_kept_once(run):
    for epoch in (0, 1, 1):
        keep(run, candidate(epoch, 0.5 + 0.1 * epoch))
    assert kept(run) == [0, 1]


def test_the_final_episodes_decide_and_not_the_test(run):
    keep(run, candidate(0, 0.99, STANDS))
    keep(run, candidate(1, 0.50, WALKS))
    last = candidate(2, 0.40, STANDS)
    decide(run, last)
    chosen = best(run)
    played = rollout(WALK, POLICY.bind(np.tile(WALKS, (60, 1))), FINAL_SEEDS).returns
    assert np.array_equal(chosen.theta, WALKS)
    assert (chosen.about["epoch"], chosen.about["final_return"]) == (1, played.mean())
    assert read_policy(run.folder / "last.safetensors").about == last.about


def test_a_short_run_plays_as_many_final_episodes_as_it_has_epochs(run):
    decide(run, candidate(3, 0.5), epochs=3)
    played = rollout(WALK, POLICY.bind(np.tile(WALKS, (3, 1))), FINAL_SEEDS[:3]).returns
    assert best(run).about["final_return"] == played.mean()


def test_the_last_policy_takes_part_whatever_its_test_said(run):
    for epoch in range(KEPT):
        keep(run, candidate(epoch, 0.9, STANDS))
    decide(run, candidate(9, 0.1, WALKS))
    assert best(run).about["epoch"] == 9


class Rounds(LocalExecutor):
    """Counts the final episodes of everybody; who is farther along in its first weight does better."""

    def __init__(self):
        super().__init__(1)
        self.episodes = {}

    def play(self, chunks):
        for chunk in chunks:
            place = round(float(chunk.search.mean[0]), 3)
            self.episodes.setdefault(place, []).extend(chunk.seeds)
        return [self._played(np.full(len(chunk.seeds), chunk.search.mean[0])) for chunk in chunks]

    @staticmethod
    def _played(returns):
        errors = np.zeros_like(returns)
        return Played(returns=returns, falls=0, steps=1, cpu_seconds=0.0, moments=None, footfall_errors=errors)


def test_all_play_ten_final_episodes_and_the_three_best_play_the_others(run):
    for epoch in range(KEPT):
        keep(run, candidate(epoch, 0.5, np.where(np.arange(len(WALKS)) == 0, 0.1 * epoch, WALKS)))
    executor = Rounds()
    choose(run, candidate(9, 0.5, np.where(np.arange(len(WALKS)) == 0, 0.15, WALKS)), WALK, 60, executor)
    expected = {0.0: 10, 0.1: 10, 0.15: 60, 0.2: 60, 0.3: 60}
    assert {place: len(seeds) for place, seeds in executor.episodes.items()} == expected
    assert all(tuple(seeds) == FINAL_SEEDS[: len(seeds)] for seeds in executor.episodes.values())
    assert best(run).about["epoch"] == 3


class Stops(LocalExecutor):
    """Is interrupted in the final episodes."""

    def play(self, chunks):
        if chunks[0].seeds[0] in FINAL_SEEDS:
            raise KeyboardInterrupt
        return super().play(chunks)


def test_a_run_stopped_while_it_chooses_is_not_complete_and_then_chooses_the_same(tmp_path):
    training = Training(task="flat-walk", epochs=2, population=4, episodes=1, episode_seconds=0.3)
    folders = [tmp_path / "unbroken", tmp_path / "stopped"]
    train(training, folders[0], threads=1)
    with pytest.raises(KeyboardInterrupt):
        train(training, folders[1], executor=Stops(1))
    assert not (folders[1] / "last.safetensors").exists()
    train(training, folders[1], threads=1)
    for name in ("best", "last"):
        first, second = (read_policy(folder / f"{name}.safetensors") for folder in folders)
        assert np.array_equal(first.theta, second.theta)
        assert first.about == second.about
