"""Evolution selects by the return and by how well feet do what the circuit says."""

from dataclasses import replace

import numpy as np
import pytest

from ncap.circuits.animal import animal
from ncap.circuits.tables import save_circuit
from ncap.errors import UserError
from ncap.evaluation import FOOTFALLS, footfall_errors
from ncap.learn.executors import Chunk, LocalExecutor, Played, play
from ncap.learn.search import Search, direction
from ncap.learn.settings import Training
from ncap.learn.training import train
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.runs import read_progress
from ncap.tasks import TASKS
from ncap.trained import read_policy

SHORT = replace(TASKS["flat-walk"], episode_seconds=0.9)


def played(returns, errors):
    returns = np.array(returns, float)
    return Played(
        returns=returns,
        falls=0,
        steps=len(returns),
        cpu_seconds=0.0,
        moments=None,
        footfall_errors=np.array(errors, float),
    )


def test_fitness_is_the_return_less_for_feet_that_do_not_follow():
    found = played([0.8, 0.8, 0.9], [0.0, 0.4, 1.0])
    assert found.fitness(0.5) == pytest.approx([0.8, 0.6, 0.4])
    assert found.fitness(0.0) == pytest.approx(found.returns, abs=0)


def test_what_is_measured_is_the_error_of_the_footfalls_and_0_where_nothing_is_measured():
    policy = NCAPPolicy(command=0.5)
    chunk = Chunk(task=SHORT, policy=policy, search=Search(mean=policy.space.initial), seeds=(3, 4, 5))
    assert np.array_equal(play([chunk])[0].footfall_errors, np.zeros(3))
    (measured,) = play([replace(chunk, footfalls=True)])
    episodes = rollout(SHORT, policy.bind(np.tile(policy.space.initial, (3, 1))), [3, 4, 5], record=FOOTFALLS)
    assert np.array_equal(measured.footfall_errors, footfall_errors(policy, episodes))
    assert np.array_equal(measured.returns, play([chunk])[0].returns)
    assert measured.footfall_errors.min() > 0
    assert measured.footfall_errors.max() < 2
    network = MLPPolicy(hidden=(2,))
    other = Chunk(task=SHORT, policy=network, search=Search(mean=network.space.initial), seeds=(3, 4))
    assert np.array_equal(play([other])[0].footfall_errors, np.zeros(2))


class Judge(LocalExecutor):
    """Everybody has the same return, but the feet of one candidate follow better than those of the others."""

    def __init__(self, winner):
        super().__init__(1)
        self.winner = winner

    def play(self, chunks):
        return [
            played([0.5] * len(chunk.seeds), [0.1 if i == self.winner else 0.4 for i in chunk.indices or chunk.seeds])
            for chunk in chunks
        ]


@pytest.mark.parametrize("winner", [1, 5, 15])
def test_of_candidates_with_equal_returns_the_one_whose_feet_follow_wins(tmp_path, winner):
    training = Training(task="flat-walk", epochs=1, episodes=1, seed=7, preset="plain")  # mutations of single weights
    train(training, tmp_path / "run", executor=Judge(winner))
    moved = read_policy(tmp_path / "run" / "last.safetensors").theta - NCAPPolicy().space.initial
    along = [moved @ direction(7, 0, index, 112) for index in range(16)]
    assert int(np.argmax(along)) == winner
    train(replace(training, footfalls=0.0), tmp_path / "blind", executor=Judge(winner))
    assert np.array_equal(read_policy(tmp_path / "blind" / "last.safetensors").theta, NCAPPolicy().space.initial)


def test_progress_and_policies_say_how_the_feet_followed(tmp_path):
    training = Training(task="flat-walk", epochs=1, episodes=1, population=4)
    train(training, tmp_path / "run", executor=Judge(0))
    (row,) = read_progress(tmp_path / "run")
    assert (row["test_return"], row["test_footfall_error"]) == (0.5, 0.4)
    first = read_policy(tmp_path / "run" / "finalists" / "epoch-000000.safetensors")
    assert first.about["test_return"] == 0.5
    assert first.about["test_fitness"] == pytest.approx(0.5 - 0.5 * 0.4)


def test_footfalls_count_by_half_where_the_rhythm_leads_and_not_elsewhere(tmp_path):
    sums = ("afferent_flexor", "afferent_extensor")
    spec = animal("paper")
    bounded = {row.name: row.unit for row in animal().neurons if row.name in sums}
    rows = tuple(replace(row, unit=bounded.get(row.name, row.unit)) for row in spec.neurons)
    save_circuit(replace(spec, neurons=rows), tmp_path / "bounded.json")
    for words, weight in (
        ({}, 0.5),
        ({"circuit": "default"}, 0.5),
        ({"circuit": "paper"}, 0.0),
        ({"circuit": "released"}, 0.0),
        ({"circuit": str(tmp_path / "bounded.json")}, 0.5),
        ({"without": ("extensor.FL",)}, 0.0),
        ({"policy": "mlp:4x4"}, 0.0),
        ({"footfalls": 0.0}, 0.0),
        ({"footfalls": 2.0, "circuit": "paper"}, 2.0),
    ):
        training = Training(task="flat-walk", **words)
        assert training.footfall_weight == weight, words
        assert training.filled().footfalls == (None if "policy" in words else weight)


@pytest.mark.parametrize("weight", [-0.1, 100.5, float("nan"), float("inf")])
def test_weights_of_footfalls_that_are_none_are_refused(weight):
    with pytest.raises(UserError, match="footfalls is a weight from 0 to 100, not"):
        Training(task="flat-walk", footfalls=weight)


def test_footfalls_are_a_setting_of_evolution_and_of_circuits():
    with pytest.raises(UserError, match="--footfalls: a setting of the policy ncap, not of mlp"):
        Training(task="flat-walk", policy="mlp", footfalls=0.5)
    pytest.importorskip("stable_baselines3")
    with pytest.raises(UserError, match="--footfalls: a setting of evolution, not of ppo"):
        Training(task="flat-walk", algorithm="ppo", policy="ncap", footfalls=0.5)
