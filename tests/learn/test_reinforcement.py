"""Runs with PPO and D4PG: the same weights with the same seed, also when stopped and resumed, and policies that act."""

import json
import re
from dataclasses import replace
from importlib import util

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from ncap import cli
from ncap.errors import UserError
from ncap.learn import d4pg, ppo
from ncap.learn.best import TEST_SEEDS
from ncap.learn.reinforcement import make_learner
from ncap.learn.settings import Training
from ncap.learn.training import read_training, train
from ncap.policies.mlp import MLPPolicy
from ncap.rollouts import rollout
from ncap.runs import read_progress
from ncap.tasks import TASKS
from ncap.trained import read_policy

TRAININGS = {
    "ppo": Training(task="flat-walk", algorithm="ppo", policy="mlp:16x8", epochs=3, seed=5),
    "ppo, ncap": Training(task="flat-walk", algorithm="ppo", policy="ncap", epochs=3, seed=5),
    "ppo, ncap with its rhythm": Training(
        task="flat-walk", algorithm="ppo", policy="ncap", trainable=("all",), epochs=3, seed=5
    ),
    "d4pg": Training(task="flat-walk", algorithm="d4pg", policy="mlp:16x8", epochs=3, seed=5),
}


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=0.3))
    small = d4pg.Settings(replay_size=2 * 16 * 10, batch_size=16)  # a replay of two epochs, so that it forgets
    monkeypatch.setattr("ncap.learn.d4pg.Settings", lambda: small)
    few = {kind: replace(settings, n_epochs=1, rollouts=2) for kind, settings in ppo.SETTINGS.items()}
    monkeypatch.setattr("ncap.learn.ppo.SETTINGS", few)


@pytest.fixture(params=TRAININGS)
def training(request):
    return TRAININGS[request.param]


def finish(folder, training, threads=1):
    train(training, folder, threads=threads)
    return read_policy(folder / "last.safetensors")


@pytest.fixture
def unbroken(training, tmp_path_factory):
    """(last policy, progress) of a whole run, done once for every training."""
    if training not in _DONE:
        folder = tmp_path_factory.mktemp("unbroken") / "run"
        _DONE[training] = finish(folder, training), read_progress(folder)
    return _DONE[training]


_DONE = {}


def stop_after(epochs):
    def report(row):
        if row["epoch"] == epochs - 1:
            raise KeyboardInterrupt

    return report


def interrupted(folder, training, epochs):
    with pytest.raises(KeyboardInterrupt):
        train(training, folder, threads=1, report=stop_after(epochs))
    return folder


def go_on(folder):
    """(last policy, complaints) of a run that is resumed."""
    complaints = []
    train(read_training(folder), folder, threads=1, complain=complaints.append)
    return read_policy(folder / "last.safetensors"), complaints


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path, training, unbroken):
    last, _ = unbroken
    again = finish(tmp_path / "again", training, threads=2)
    assert np.array_equal(last.theta, again.theta)
    assert last.policy == again.policy
    assert last.about["training"]["algorithm"] == training.algorithm
    other = finish(tmp_path / "other", replace(training, seed=6, epochs=2))
    assert not np.array_equal(last.theta, other.theta)


@pytest.mark.parametrize("stop", [1, 2])
def test_stopped_and_resumed_it_ends_in_the_same_weights(tmp_path, training, unbroken, stop):
    expected, progress = unbroken
    resumed, complaints = go_on(interrupted(tmp_path / "run", training, stop))
    assert np.array_equal(resumed.theta, expected.theta)
    assert resumed.about == expected.about
    assert complaints == []
    untimed = {"seconds": 0, "cpu_seconds": 0}
    for one, other in zip(read_progress(tmp_path / "run"), progress, strict=True):
        assert one | untimed == other | untimed


def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(tmp_path, training, unbroken):
    interrupted(tmp_path / "run", training, 2)
    newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-1])
    resumed, complaints = go_on(tmp_path / "run")
    assert newest.name in complaints[0]
    assert np.array_equal(resumed.theta, unbroken[0].theta)


def test_a_replay_with_a_hole_is_refused(tmp_path):
    folder = interrupted(tmp_path / "run", TRAININGS["d4pg"], 2)
    (folder / "replay" / "epoch-000001.safetensors").unlink()
    with pytest.raises(UserError, match=r"the replay is incomplete.*epoch-000001.safetensors does not exist"):
        go_on(folder)


def test_the_replay_on_disk_holds_what_is_remembered_and_goes_when_the_run_is_complete(tmp_path):
    folder = interrupted(tmp_path / "run", replace(TRAININGS["d4pg"], epochs=4), 4)
    # two epochs for the newest checkpoint, and one more for the checkpoint before it
    kept = sorted(path.name for path in (folder / "replay").iterdir())
    assert kept == [f"epoch-00000{epoch}.safetensors" for epoch in (1, 2, 3)]
    first, _ = go_on(folder)
    assert not (folder / "replay").exists()
    again, _ = go_on(folder)  # nothing left to do, and nothing missed
    assert np.array_equal(first.theta, again.theta)


@pytest.mark.parametrize("name", ["ppo", "d4pg"])
def test_the_exported_actor_acts_as_the_torch_one(name, one_thread):
    training = replace(TRAININGS[name], policy="mlp")  # the paper's size
    _, learner = make_learner(training, training.initial_policy(), 1)
    learner.practise(0)
    learner.practise(1)  # by now the normaliser is not the identity
    actor = learner.actor if name == "ppo" else learner.networks.actor
    with torch.no_grad():
        for weights in actor.parameters():
            weights += 0.03 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(0))
    policy, theta = learner.exported()
    assert isinstance(policy, MLPPolicy)
    assert policy.mean != (0.0,) * 40
    assert policy.hidden == {"ppo": (64, 64), "d4pg": (256, 256)}[name]
    assert policy.activation == {"ppo": "tanh", "d4pg": "relu"}[name]
    seen = np.array(policy.mean) + np.array(policy.std) * np.random.default_rng(0).standard_normal((100, 40))
    seen = seen.astype(np.float32)
    with torch.no_grad():
        act = learner.actor.means if name == "ppo" else learner.networks.act
        expected = act(torch.from_numpy(seen)).numpy()
    _, action = policy.bind(np.tile(theta, (100, 1))).act(None, seen.astype(np.float64).reshape(100, 4, 10))
    assert np.abs(expected).max() > 0.2
    assert np.abs(action.reshape(100, 12) - expected).max() < 1e-6


def test_progress_tells_what_evolution_tells_and_the_test_is_the_same(tmp_path, training):
    finish(tmp_path / "run", training)
    rows = read_progress(tmp_path / "run")
    assert [row["steps"] for row in rows[:2]] == [0, 16 * 10]
    assert json.loads((tmp_path / "run" / "provenance.json").read_text())["packages"]["torch"].startswith("2.")
    assert {"rollouts", "test_return", "test_return_min", "test_falls", "best_return", "seconds"} <= set(rows[0])
    best = read_policy(tmp_path / "run" / "best.safetensors")
    played = rollout(training.world, best.controller(5), TEST_SEEDS)
    assert best.about["test_return"] == played.returns.mean()
    assert rows[-1]["best_return"] == max(row["test_return"] for row in rows)


def test_wrong_words_are_refused_before_anything_is_written(tmp_path, capsys):
    for arguments, wrong in (
        (["--algorithm", "sarsa"], "unknown algorithm 'sarsa'; valid: evolution, ppo, d4pg"),
        (["--algorithm", "d4pg", "--policy", "ncap"], "d4pg trains no 'ncap'; valid: mlp"),
        (["--algorithm", "ppo", "--policy", "mlp:big"], "mlp:64x64"),
        (["--algorithm", "ppo", "--sigma", "0.1"], "--sigma: a setting of evolution, not of ppo"),
        (["--algorithm", "ppo", "--trainable", "CPG", "--policy", "ncap"], "unknown stage 'CPG'; valid: AF, BC"),
        (["--algorithm", "ppo", "--without", "V0v"], "--without: a setting of the policy ncap, not of mlp"),
        (["--algorithm", "ppo", "--cluster", "local"], "evolution only"),
        (["--algorithm", "ppo", "--epochs", "0"], "epochs is a number from 1 to 1,000,000, not 0"),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main(["train", "flat-walk", *arguments, "--out", str(tmp_path / "run")])
        assert stop.value.code == 2
        assert wrong in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_gives_the_command_to_install_it(tmp_path, capsys, monkeypatch):
    def missing(name, *rest):
        return None if name == "torch" else find_spec(name, *rest)

    find_spec = util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", missing)
    with pytest.raises(SystemExit) as stop:
        cli.main(["train", "flat-walk", "--algorithm", "ppo", "--out", str(tmp_path / "run")])
    assert stop.value.code == 2
    assert re.search(r" -m pip install -e '.*\[rl\]'", capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["ppo", "--policy", "mlp:8x8"], ["ppo", "--policy", "ncap"], ["d4pg"]])
def test_from_training_to_evaluation(tmp_path, capsys, arguments):
    folder = str(tmp_path / "run")
    cli.main(["train", "flat-walk", "--algorithm", *arguments, "--epochs", "1", "--out", folder, "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert summary["epochs"] == 1
    cli.main(["evaluate", folder, "--episodes", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == summary["parameters"]
    assert len(found["returns"]) == 2
    cli.main(["train", "--resume", folder, "--json"])
    assert json.loads(capsys.readouterr().out) == summary
