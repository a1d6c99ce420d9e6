"""Runs that survive anything: the weights at the end are the same however often a run was killed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from ncap import cli
from ncap.errors import UserError
from ncap.learn import train as learning
from ncap.learn.best import TEST_SEEDS
from ncap.learn.executors import LocalExecutor, play
from ncap.learn.search import Search
from ncap.learn.start import go_on as finish_from
from ncap.learn.start import read_training, run_name
from ncap.learn.train import Training, epoch_chunks, train
from ncap.policies.mlp import MLPPolicy
from ncap.policies.storage import load_policy, read_tensors
from ncap.rollout import rollout
from ncap.runs import Run, read_progress
from ncap.tasks import TASKS

#: The usual task with short episodes: set by the fixture below, and by this text in other processes.
SHORTENED = """
from dataclasses import asdict, replace
from ncap import tasks
tasks.TASKS["flat-walk"] = replace(tasks.TASKS["flat-walk"], episode_seconds=0.3)
"""
TRAINING = Training(task="flat-walk", epochs=4, seed=5, episodes=1, training_seconds=0.3)


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=0.3))


def quiet(row):
    pass


def finish(folder: Path, training: Training = TRAINING) -> np.ndarray:
    with Run.create(folder, asdict(training)) as run:
        return train(training, run, LocalExecutor(1), None, quiet).theta


def go_on(folder: Path):
    training = read_training(folder)
    with Run.open(folder) as run:
        saved, complaints = run.latest()
        return finish_from(training, run, saved, LocalExecutor(1), 1, quiet), complaints


def test_a_run_directory_holds_everything(tmp_path):
    finish(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"config.json", "provenance.json", "progress.csv", "checkpoints", "best.safetensors"} <= names
    assert json.loads((tmp_path / "run" / "provenance.json").read_text())["packages"]["mujoco"]
    rows = read_progress(tmp_path / "run")
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]
    assert [row["rollouts"] for row in rows] == [0, 16, 32, 48]
    policy, theta, about = load_policy(tmp_path / "run" / "best.safetensors")
    assert theta.shape == (policy.space.size,)
    assert about["training"]["seed"] == 5


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path):
    first = finish(tmp_path / "a")
    assert np.array_equal(first, finish(tmp_path / "b"))
    assert not np.array_equal(first, finish(tmp_path / "c", replace(TRAINING, seed=6)))


def test_threads_do_not_change_the_weights(tmp_path):
    with Run.create(tmp_path / "threads", asdict(TRAINING)) as run:
        threaded = train(TRAINING, run, LocalExecutor(3), None, quiet).theta
    assert np.array_equal(threaded, finish(tmp_path / "one"))


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_it_ends_in_the_same_weights(tmp_path):
    expected = finish(tmp_path / "unbroken", replace(TRAINING, epochs=30))
    folder, rng = tmp_path / "killed", np.random.default_rng(0)
    start = f"{SHORTENED}\nfrom ncap import cli\ncli.main(%r)"
    arguments = [
        "train", "flat-walk", "--seed", "5", "--epochs", "30", "--episodes", "1", "--training-seconds", "0.3",
        "--out", str(folder), "--threads", "1",
    ]  # fmt: skip
    kills = 0
    for attempt in range(40):
        if (folder / "config.json").exists():
            arguments = ["train", "--resume", str(folder), "--threads", "1"]
        process = subprocess.Popen([sys.executable, "-c", start % arguments], stderr=subprocess.DEVNULL)
        try:
            # kills come late enough for imports and early enough to interrupt; the last attempts are left alone
            process.wait(timeout=None if attempt >= 6 else 1.2 + 0.8 * rng.random())
            if process.returncode == 0:
                break
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills >= 2
    _, theta, _ = load_policy(folder / "last.safetensors")
    assert np.array_equal(theta, expected)
    assert [row["epoch"] for row in read_progress(folder)] == list(range(30))


def stop_after(epochs):
    def report(row):
        if row["epoch"] == epochs - 1:
            raise KeyboardInterrupt

    return report


def interrupted(folder: Path, epochs: int) -> None:
    with Run.create(folder, asdict(TRAINING)) as run, pytest.raises(KeyboardInterrupt):
        train(TRAINING, run, LocalExecutor(1), None, stop_after(epochs))


@pytest.mark.parametrize("damage", ["truncate", "alter"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(tmp_path, damage):
    expected = finish(tmp_path / "unbroken")
    interrupted(tmp_path / "run", 3)
    newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    data = bytearray(newest.read_bytes())
    data[-1] ^= 1
    newest.write_bytes(data[: len(data) // 2] if damage == "truncate" else data)
    state, complaints = go_on(tmp_path / "run")
    assert len(complaints) == 1
    assert newest.name in complaints[0]
    assert np.array_equal(state.theta, expected)


def test_a_row_cut_short_by_a_crash_is_written_again(tmp_path):
    interrupted(tmp_path / "run", 2)
    with (tmp_path / "run" / "progress.csv").open("a") as file:
        file.write("2,32,99")
    go_on(tmp_path / "run")
    assert [row["epoch"] for row in read_progress(tmp_path / "run")] == [0, 1, 2, 3]


def test_a_second_process_on_the_same_run_is_refused(tmp_path):
    with Run.create(tmp_path / "run", {}), pytest.raises(UserError, match="another process is working on"):
        Run.open(tmp_path / "run")
    Run.open(tmp_path / "run").close()


def test_an_existing_run_is_not_overwritten(tmp_path):
    finish(tmp_path / "run")
    with pytest.raises(UserError, match="holds a run already: go on with it by --resume"):
        Run.create(tmp_path / "run", {})


def test_folders_that_cannot_be_used_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot create"):
        Run.create(tmp_path / "file" / "run", {})
    with pytest.raises(UserError, match="holds no run"):
        read_training(tmp_path)


def test_a_full_disk_ends_the_run_with_a_sentence_and_loses_nothing(tmp_path, monkeypatch):
    expected = finish(tmp_path / "unbroken")
    calls = []
    original = os.fsync

    def fills_up(descriptor):
        calls.append(descriptor)
        if len(calls) > 6:
            raise OSError(28, "No space left on device")
        original(descriptor)

    monkeypatch.setattr("os.fsync", fills_up)
    with Run.create(tmp_path / "run", asdict(TRAINING)) as run, pytest.raises(UserError, match="No space"):
        train(TRAINING, run, LocalExecutor(1), None, quiet)
    monkeypatch.setattr("os.fsync", original)
    state, complaints = go_on(tmp_path / "run")
    assert complaints == []
    assert np.array_equal(state.theta, expected)


def test_a_run_of_another_version_is_refused_by_name(tmp_path):
    with Run.create(tmp_path / "run", asdict(TRAINING) | {"pairs": 8}):
        pass
    with pytest.raises(UserError, match="run was made by another version, with settings unknown here: pairs"):
        read_training(tmp_path / "run")
    with Run.create(tmp_path / "older", {"task": "flat-walk", "seed": 0}):
        pass
    with pytest.raises(UserError, match="made by another version, without the settings command, contact, epi"):
        read_training(tmp_path / "older")


def test_a_checkpoint_of_another_method_is_refused(tmp_path):
    folder = tmp_path / "run"
    finish(folder, replace(TRAINING, preset="ars"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"preset": "default"}))
    with pytest.raises(UserError, match="made by another method of evolution"):
        go_on(folder)


def test_a_table_with_other_columns_is_not_written_to(tmp_path):
    folder = tmp_path / "run"
    finish(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"epochs": 5}))
    table = folder / "progress.csv"
    table.write_text(table.read_text().replace("cpu_seconds", "cpu_minutes", 1))
    with pytest.raises(UserError, match=r"progress\.csv has other columns"):
        go_on(folder)


def test_a_record_says_what_was_left_to_defaults():
    settings = asdict(Training(task="flat-run"))
    assert (settings["command"], settings["population"], settings["sigma"]) == (0.9, 16, 0.14)
    assert Training(**settings) == Training(task="flat-run")


def test_chunks_have_a_fixed_size():
    training = Training(task="flat-walk", preset="released")
    policy = training.initial_policy()
    state = learning.State(3, Search(mean=policy.space.initial), np.zeros((3, 40)))
    chunks, test = epoch_chunks(training, policy, state)
    assert [len(chunk.indices) for chunk in chunks] == [16] * 4
    assert [index for chunk in chunks for index in chunk.indices] == list(range(64))
    assert len({seed for chunk in chunks for seed in chunk.seeds}) == 1
    assert test.seeds == TEST_SEEDS
    assert test.method is None


def test_candidates_of_cma_play_three_short_episodes_and_the_mean_whole_ones(monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=15.0))
    training = Training(task="flat-walk")
    policy, first = training.initial_policy(), training.evolution.start(training.initial_policy().space.initial)
    chunks, test = epoch_chunks(training, policy, learning.State(0, first, np.zeros((3, 40))))
    assert [chunk.task.episode_seconds for chunk in chunks] == [5.0] * 3
    assert len({chunk.seeds[0] for chunk in chunks}) == 3
    assert test.task.episode_seconds == 15.0
    asked = replace(training, episodes=1, training_seconds=2.0)
    assert [chunk.task.episode_seconds for chunk in epoch_chunks(asked, policy, learning.State(
        0, first, np.zeros((3, 40))))[0]] == [2.0]  # fmt: skip
    assert Training(task="flat-walk", preset="ars").training_seconds == 15.0
    with pytest.raises(UserError, match=r"training episodes need at least one control step, not 0\.01 s"):
        replace(training, training_seconds=0.01)


def test_candidates_are_ranked_by_the_mean_of_their_episodes(tmp_path):
    training = replace(TRAINING, epochs=1, episodes=2, population=32)
    policy, method = training.initial_policy(), training.evolution
    first = method.start(policy.space.initial)
    chunks, _ = epoch_chunks(training, policy, learning.State(0, first, np.zeros((3, 40))))
    halves = [tuple(range(16)), tuple(range(16, 32))]
    assert [chunk.indices for chunk in chunks] == halves * 2
    one, two = np.concatenate([play(chunk).returns for chunk in chunks]).reshape(2, 32)
    assert not np.array_equal(one, two)
    with Run.create(tmp_path / "run", asdict(training)) as run:
        state = train(training, run, LocalExecutor(1), None, quiet)
    assert np.array_equal(state.theta, method.update(policy.space, first, training.seed, 0, (one + two) / 2).mean)
    assert state.rollouts == 64


def test_the_mlp_normalises_by_the_observations_it_has_seen(tmp_path):
    training = Training(task="flat-walk", policy="mlp:4x4", epochs=2)
    with Run.create(tmp_path / "run", asdict(training)) as run:
        state = train(training, run, LocalExecutor(1), None, quiet)
    policy, _, _ = load_policy(tmp_path / "run" / "last.safetensors")
    assert isinstance(policy, MLPPolicy)
    count, total, squares = state.moments
    assert count[0] == 2 * 64 * 10  # two epochs of 64 candidates and 10 steps
    assert policy.mean == pytest.approx(total / count)
    assert np.array(policy.std) ** 2 == pytest.approx(np.maximum(squares / count - (total / count) ** 2, 1e-4))


def test_training_begins_from_given_weights_and_for_another_speed(tmp_path):
    first = finish(tmp_path / "first")
    training = replace(TRAINING, start=str(tmp_path / "first" / "last.safetensors"), target_speed=0.7)
    assert np.array_equal(training.initial_weights(), first)
    assert (training.world.target_speed, TRAINING.world.target_speed) == (0.7, 0.5)
    assert run_name(training) == "flat-walk-ncap-0.7ms-5"
    assert run_name(replace(training, command=0.45)) == "flat-walk-ncap-c0.45-0.7ms-5"
    finish(tmp_path / "second", replace(training, epochs=1))
    policy, _, about = load_policy(tmp_path / "second" / "finalists" / "epoch-000000.safetensors")
    played = rollout(training.world, policy.bind(np.tile(first, (5, 1))), TEST_SEEDS)
    assert about["test_return"] == played.returns.mean()
    assert replace(training, start="moved") == training


def test_only_circuits_of_the_same_size_can_be_a_start():
    for settings, complaint in (
        ({"start": "mlp-flat-walk"}, "only a circuit can begin from another, not an MLP: mlp-flat-walk"),
        ({"start": "ncap-flat-walk", "policy": "mlp"}, "only a circuit"),
        ({"start": "ncap-flat-speeds"}, "ncap-flat-speeds has 552 weights, but 92 are needed"),
    ):
        with pytest.raises(UserError, match=complaint):
            Training(task="flat-walk", **settings).initial_weights()


def test_wrong_words_are_refused_before_anything_is_written(tmp_path, capsys):
    for arguments, wrong in (
        (["train", "swim"], "unknown task 'swim'"),
        (["train", "flat-walk", "--policy", "cnn"], "unknown policy 'cnn'"),
        (["train", "flat-walk", "--policy", "mlp:big"], "mlp:64x64"),
        (["train", "flat-walk", "--preset", "magic"], "unknown preset 'magic'; valid: default, ars, paper, released"),
        (["train", "flat-walk", "--command", "2"], "outside [0, 1]"),
        (["train", "flat-walk", "--target-speed", "-1"], "target_speed must be positive, not -1"),
        (["train", "flat-walk", "--start", "horse"], "unknown policy 'horse'; valid: mlp-flat-run"),
        (["train", "--resume", str(tmp_path / "nothing")], "holds no run"),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main([*arguments, *([] if "--resume" in arguments else ["--out", str(tmp_path / "run")])])
        assert stop.value.code == 2
        assert wrong in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_from_training_to_the_report(tmp_path, capsys):
    folder = str(tmp_path / "run")
    cli.main(["train", "flat-walk", "--epochs", "2", "--out", folder, "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert summary["rollouts"] == 2 * 16 * 3  # the task is short: training episodes have its length
    assert summary["parameters"] == 92
    cli.main(["evaluate", folder, "--episodes", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == 92
    assert len(found["returns"]) == 2


@pytest.mark.slow
def test_training_improves_on_the_untrained_circuit(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=5.0))
    started = time.process_time()
    finish(tmp_path / "run", Training(task="flat-walk", epochs=8, seed=0, episodes=2))
    rows = read_progress(tmp_path / "run")
    assert rows[0]["test_return"] > 0.6
    assert rows[-1]["best_return"] > rows[0]["test_return"] + 0.1, time.process_time() - started
    assert read_tensors(tmp_path / "run" / "best.safetensors")
