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
from ncap.circuits.animal import animal
from ncap.circuits.tables import load_circuit, save_circuit
from ncap.errors import UserError
from ncap.files import read_tensors
from ncap.learn.best import FINAL_SEEDS, TEST_SEEDS
from ncap.learn.evolution import State, epoch_chunks, training_seeds
from ncap.learn.executors import play
from ncap.learn.search import Search
from ncap.learn.settings import Training
from ncap.learn.training import read_training, run_name, train
from ncap.policies.mlp import MLPPolicy
from ncap.rollouts import rollout
from ncap.runs import Run, read_progress
from ncap.tasks import TASKS, drawn_variation
from ncap.trained import TrainedPolicy, load, read_policy

#: The usual task with short episodes: set by the fixture below, and by this text in other processes.
SHORTENED = """
from dataclasses import replace
from ncap import tasks
tasks.TASKS["flat-walk"] = replace(tasks.TASKS["flat-walk"], episode_seconds=0.3)
"""
TRAINING = Training(task="flat-walk", epochs=4, seed=5, population=16, episodes=1, training_seconds=0.3)


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=0.3))


def last(folder: Path) -> TrainedPolicy:
    return read_policy(folder / "last.safetensors")


def finish(folder: Path, training: Training = TRAINING, threads: int = 1) -> np.ndarray:
    """The last weights of a new run."""
    train(training, folder, threads=threads)
    return last(folder).theta


def go_on(folder: Path) -> tuple[np.ndarray, list[str]]:
    """The last weights of a run that is resumed with its own settings, and the complaints about its checkpoints."""
    complaints = []
    train(read_training(folder), folder, threads=1, complain=complaints.append)
    return last(folder).theta, complaints


def test_a_run_directory_holds_everything(tmp_path):
    finish(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"config.json", "provenance.json", "progress.csv", "checkpoints", "best.safetensors"} <= names
    assert json.loads((tmp_path / "run" / "provenance.json").read_text())["packages"]["mujoco"]
    rows = read_progress(tmp_path / "run")
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]
    assert [row["rollouts"] for row in rows] == [0, 16, 32, 48]
    assert load_circuit(tmp_path / "run" / "circuit.json") == animal()
    best = read_policy(tmp_path / "run" / "best.safetensors")
    assert best.theta.shape == (112,)
    assert (best.task, best.robot, best.about["training"]["seed"]) == ("flat-walk", "a1", 5)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path):
    first = finish(tmp_path / "a")
    assert np.array_equal(first, finish(tmp_path / "b"))
    assert not np.array_equal(first, finish(tmp_path / "c", replace(TRAINING, seed=6)))


def test_threads_do_not_change_the_weights(tmp_path):
    assert np.array_equal(finish(tmp_path / "threads", threads=3), finish(tmp_path / "one"))


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_it_ends_in_the_same_weights(tmp_path):
    expected = finish(tmp_path / "unbroken", replace(TRAINING, epochs=30))
    folder, rng = tmp_path / "killed", np.random.default_rng(0)
    start = f"{SHORTENED}\nfrom ncap import cli\ncli.main(%r)"
    arguments = [
        "train", "flat-walk", "--seed", "5", "--epochs", "30", "--population", "16", "--episodes", "1",
        "--training-seconds", "0.3", "--out", str(folder), "--threads", "1",
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
    assert np.array_equal(last(folder).theta, expected)
    assert [row["epoch"] for row in read_progress(folder)] == list(range(30))


def stop_after(epochs):
    def report(row):
        if row["epoch"] == epochs - 1:
            raise KeyboardInterrupt

    return report


def interrupted(folder: Path, epochs: int, training: Training = TRAINING) -> Path:
    with pytest.raises(KeyboardInterrupt):
        train(training, folder, threads=1, report=stop_after(epochs))
    return folder


@pytest.mark.parametrize("damage", ["truncate", "alter"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(tmp_path, damage):
    expected = finish(tmp_path / "unbroken")
    interrupted(tmp_path / "run", 3)
    newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    data = bytearray(newest.read_bytes())
    data[-1] ^= 1
    newest.write_bytes(data[: len(data) // 2] if damage == "truncate" else data)
    theta, complaints = go_on(tmp_path / "run")
    assert len(complaints) == 1
    assert newest.name in complaints[0]
    assert np.array_equal(theta, expected)


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
    with pytest.raises(UserError, match="No space"):
        finish(tmp_path / "run")
    monkeypatch.setattr("os.fsync", original)
    theta, complaints = go_on(tmp_path / "run")
    assert complaints == []
    assert np.array_equal(theta, expected)


def test_settings_that_an_older_run_did_not_have_take_their_defaults_and_unknown_ones_are_refused(tmp_path):
    with Run.create(tmp_path / "older", {"task": "flat-walk", "seed": 3, "population": 8}):
        pass
    # there was no other physics than the paper's
    expected = Training(task="flat-walk", seed=3, population=8, physics="paper").filled()
    assert read_training(tmp_path / "older") == expected
    with Run.create(tmp_path / "newer", asdict(TRAINING) | {"pairs": 8}):
        pass
    with pytest.raises(UserError, match=r"newer: config\.json: unknown entry 'pairs'; valid: task, algorithm"):
        read_training(tmp_path / "newer")


def test_a_folder_is_gone_on_with_by_the_same_settings_and_refused_for_others(tmp_path):
    expected = finish(tmp_path / "unbroken")
    interrupted(tmp_path / "run", 2)
    assert np.array_equal(finish(tmp_path / "run"), expected)
    with pytest.raises(UserError, match="holds a run with other settings"):
        train(replace(TRAINING, seed=6), tmp_path / "run")


def test_a_finished_run_returns_its_best_policy_and_changes_nothing(tmp_path):
    best = train(TRAINING, tmp_path / "run", threads=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.name != ".lock"}
    again = train(TRAINING, tmp_path / "run", threads=1)
    assert np.array_equal(again.theta, best.theta)
    assert again.about == best.about
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*") if path.name != ".lock"}


def test_checkpoints_of_another_method_are_passed_over_and_the_run_begins_anew(tmp_path):
    expected = finish(tmp_path / "unbroken")
    folder = tmp_path / "run"
    interrupted(folder, 2, replace(TRAINING, preset="ars", population=16, sigma=0.14))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"preset": "default"}))
    theta, complaints = go_on(folder)
    assert "array search.origin has the shape (112,) in such a run, but it is missing" in complaints[0]
    assert "no checkpoint" in complaints[-1]
    assert np.array_equal(theta, expected)


def test_a_table_with_other_columns_is_set_aside_and_not_written_to(tmp_path):
    folder = tmp_path / "run"
    finish(folder)
    table = folder / "progress.csv"
    table.write_text(table.read_text().replace("cpu_seconds", "cpu_minutes", 1))
    before, told = table.read_text(), []
    train(replace(TRAINING, epochs=5), folder, threads=1, complain=told.append)
    assert "progress.csv is damaged (it has other columns than this version writes): it is set aside" in told[0]
    assert (folder / "progress.csv.damaged-1").read_text().startswith(before[:200])
    assert [row["epoch"] for row in read_progress(folder)] == [4]


def test_a_record_says_what_was_left_to_defaults():
    settings = asdict(Training(task="flat-run").filled())
    assert (settings["command"], settings["population"], settings["sigma"]) == (TASKS["flat-run"].command, 8, 0.14)
    assert (settings["policy"], settings["circuit"], settings["episodes"]) == ("ncap", "default", 3)
    assert (settings["footfalls"], settings["physics"]) == (0.5, "fast")
    assert Training(**settings) == Training(task="flat-run").filled()


def test_chunks_have_a_fixed_size():
    training = Training(task="flat-walk", preset="released")
    policy = training.initial_policy()
    state = State(3, Search(mean=policy.space.initial), np.zeros((3, 40)))
    chunks, test = epoch_chunks(training, policy, state)
    assert [len(chunk.indices) for chunk in chunks] == [16] * 4
    assert [index for chunk in chunks for index in chunk.indices] == list(range(64))
    assert len({seed for chunk in chunks for seed in chunk.seeds}) == 1
    assert test.seeds == TEST_SEEDS
    assert test.method is None


def test_candidates_of_cma_play_three_short_episodes_and_the_mean_whole_ones(monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=15.0))
    training = Training(task="flat-walk")
    policy = training.initial_policy()
    first = training.evolution.start(policy.space, policy.space.initial)
    chunks, test = epoch_chunks(training, policy, State(0, first, np.zeros((3, 40))))
    assert [chunk.task.episode_seconds for chunk in chunks] == [5.0] * 3
    assert len({chunk.seeds[0] for chunk in chunks}) == 3
    assert test.task.episode_seconds == 15.0
    asked = replace(training, episodes=1, training_seconds=2.0)
    assert [chunk.task.episode_seconds for chunk in epoch_chunks(asked, policy, State(
        0, first, np.zeros((3, 40))))[0]] == [2.0]  # fmt: skip
    for preset, seconds in (("ars", 5.0), ("released", 15.0), ("paper", 15.0)):
        assert Training(task="flat-walk", preset=preset).filled().training_seconds == seconds
    with pytest.raises(UserError, match=r"training episodes need at least one control step, not 0\.01 s"):
        replace(training, training_seconds=0.01)


def test_candidates_play_in_the_physics_of_the_training_and_tests_in_the_tasks_own():
    policy = TRAINING.initial_policy()
    first = TRAINING.evolution.start(policy.space, policy.space.initial)
    chunks, test = epoch_chunks(TRAINING, policy, State(0, first, np.zeros((3, 40))))
    assert {chunk.task.physics for chunk in chunks} == {"fast"}
    assert test.task.physics == TRAINING.world.physics == "paper"
    slow = replace(TRAINING, physics="paper")
    assert not np.array_equal(play(chunks)[0].returns, play([replace(chunks[0], task=slow.practice)])[0].returns)
    assert Training(task="flat-walk", algorithm="ppo").practice == replace(TASKS["flat-walk"], physics="fast")
    with pytest.raises(UserError, match="unknown physics preset 'slow'; valid: paper, fast"):
        replace(TRAINING, physics="slow")


def test_chunks_played_together_give_what_each_gives_alone():
    training = Training(task="flat-walk", policy="mlp:4", population=32, episodes=2, training_seconds=0.3)
    policy = training.initial_policy()
    first = training.evolution.start(policy.space, policy.space.initial)
    chunks, _ = epoch_chunks(training, policy, State(0, first, np.zeros((3, 40))))
    assert len(chunks) == 4
    for one, alone in zip(play(chunks, threads=2), (play([chunk])[0] for chunk in chunks), strict=True):
        assert np.array_equal(one.returns, alone.returns)
        assert np.array_equal(one.moments, alone.moments)
        assert (one.steps, one.falls) == (alone.steps, alone.falls)


@pytest.mark.parametrize("footfalls", [0.0, 0.5, 20.0])
def test_candidates_are_ranked_by_the_mean_fitness_of_their_episodes(tmp_path, footfalls):
    training = replace(TRAINING, epochs=1, episodes=2, population=32, footfalls=footfalls)
    policy, method = training.initial_policy(), training.evolution
    first = method.start(policy.space, policy.space.initial)
    chunks, _ = epoch_chunks(training, policy, State(0, first, np.zeros((3, 40))))
    halves = [tuple(range(16)), tuple(range(16, 32))]
    assert [chunk.indices for chunk in chunks] == halves * 2
    assert all(chunk.footfalls == (footfalls > 0) for chunk in chunks)
    played = play([replace(chunk, footfalls=True) for chunk in chunks])
    returns, errors = (
        np.concatenate(part) for part in zip(*((p.returns, p.footfall_errors) for p in played), strict=True)
    )
    one, two = (returns - footfalls * errors).reshape(2, 32)
    assert not np.array_equal(one, two)
    assert np.ptp(errors.reshape(2, 32).mean(axis=0)) > 0.02  # it makes a difference between the candidates
    theta = finish(tmp_path / "run", training)
    assert np.array_equal(theta, method.update(policy.space, first, training.seed, 0, (one + two) / 2).mean)
    assert checkpoint(tmp_path / "run").rollouts == 64


def checkpoint(folder):
    """Where a run has come to."""
    with Run.open(folder) as run:
        return State.from_checkpoint(run.latest({}))


def test_the_mlp_normalises_by_the_observations_it_has_seen(tmp_path):
    training = Training(task="flat-walk", policy="mlp:4x4", epochs=2)
    finish(tmp_path / "run", training)
    policy = last(tmp_path / "run").policy
    assert isinstance(policy, MLPPolicy)
    count, total, squares = checkpoint(tmp_path / "run").moments
    assert count[0] == 2 * 32 * 10  # two epochs of 32 candidates and 10 steps
    assert policy.mean == pytest.approx(total / count)
    assert np.array(policy.std) ** 2 == pytest.approx(np.maximum(squares / count - (total / count) ** 2, 1e-4))


def test_training_begins_from_given_weights_and_for_another_speed(tmp_path):
    first = finish(tmp_path / "first")
    training = replace(TRAINING, start=str(tmp_path / "first" / "last.safetensors"), target_speed=0.7)
    assert np.array_equal(training.initial_weights(training.initial_policy()), first)
    assert (training.world.target_speed, TRAINING.world.target_speed) == (0.7, 0.5)
    assert run_name(training) == "flat-walk-ncap-0.7ms-5"
    assert run_name(replace(training, command=0.45)) == "flat-walk-ncap-c0.45-0.7ms-5"
    finish(tmp_path / "second", replace(training, epochs=1))
    begun = read_policy(tmp_path / "second" / "finalists" / "epoch-000000.safetensors")
    played = rollout(training.world, begun.policy.bind(np.tile(first, (5, 1))), TEST_SEEDS)
    assert begun.about["test_return"] == played.returns.mean()
    assert replace(training, start="moved") == training


def test_only_a_circuit_can_be_a_start_of_a_circuit():
    for settings, complaint in (
        ({"start": "mlp-flat-walk"}, "only a circuit can begin from another, not an MLP: mlp-flat-walk"),
        ({"start": "ncap-flat-walk", "policy": "mlp"}, "only a circuit"),
    ):
        training = Training(task="flat-walk", **settings)
        with pytest.raises(UserError, match=complaint):
            training.initial_weights(training.initial_policy())


def test_a_start_with_other_rows_gives_those_that_both_have():
    training = Training(task="flat-drive", start="ncap-flat-walk")
    policy, walk = training.initial_policy(), load("ncap-flat-walk")
    found = dict(zip(policy.space.names, training.initial_weights(policy), strict=True))
    own = dict(zip(walk.policy.space.names, walk.theta, strict=True))
    assert {name: found[name] for name in own} == own
    steering = {name: value for name, value in found.items() if name not in own}
    assert len(steering) == 8
    assert {abs(value) for value in steering.values()} == {1.5}  # as the table has them


def test_wrong_words_are_refused_before_anything_is_written(tmp_path, capsys):
    for arguments, wrong in (
        (["train", "fly"], "unknown task 'fly'"),
        (["train", "flat-walk", "--policy", "cnn"], "unknown policy 'cnn'"),
        (["train", "flat-walk", "--policy", "mlp:big"], "mlp:64x64"),
        (["train", "flat-walk", "--preset", "magic"], "unknown preset 'magic'; valid: default, plain, few, ars, ranks"),
        (["train", "flat-walk", "--command", "2"], "outside [0, 1]"),
        (["train", "flat-walk", "--target-speed", "-1"], "target_speed must be positive and finite, not -1"),
        (["train", "flat-walk", "--start", "horse"], "unknown policy 'horse'; valid: zero, random, untrained, mlp"),
        (["train", "flat-walk", "--seed", "-1"], "a seed is a number from 0 on"),
        (["train", "flat-walk", "--threads", "0"], "at least one thread is needed, not 0"),
        (["train", "flat-walk", "--threads", "-2"], "at least one thread is needed, not -2"),
        (["train", "flat-walk", "--trainable", "CPG"], "unknown stage 'CPG'; valid: AF, BC, RG, PF, all"),
        (["train", "flat-walk", "--without", "V7"], "unknown knock-out 'V7'; valid: V0, V0d"),
        (["train", "flat-walk", "--robot", "spot"], "unknown robot 'spot'; valid: a1"),
        (["train", "flat-walk", "--circuit", "lamprey"], "unknown circuit 'lamprey'; valid: default, drive, paper"),
        (["train", "flat-walk", "--footfalls", "-1"], "footfalls is a weight from 0 to 100, not -1"),
        (["train", "flat-walk", "--footfalls", "101"], "footfalls is a weight from 0 to 100, not 101"),
        (["train", "flat-walk", "--footfalls", "nan"], "footfalls is a weight from 0 to 100, not nan"),
        (["train", "flat-walk", "--footfalls", "1", "--policy", "mlp"], "--footfalls: a setting of the policy ncap"),
        (
            ["train", "flat-speeds", "--policy", "mlp"],
            "flat-speeds has several commands, so it trains a circuit (ncap)",
        ),
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
    assert summary["rollouts"] == 2 * 8 * 3  # the task is short: training episodes have its length
    assert summary["parameters"] == 112
    cli.main(["evaluate", folder, "--episodes", "2", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == 112
    assert len(found["returns"]) == 2


def test_a_trainable_rhythm_is_trained_and_resumed_to_the_bit(tmp_path):
    training = replace(TRAINING, trainable=("all",), epochs=3)
    expected = finish(tmp_path / "unbroken", training)
    resumed, _ = go_on(interrupted(tmp_path / "run", 1, training))
    assert np.array_equal(resumed, expected)
    trained = last(tmp_path / "run")
    weights, initial = (trained.policy.space.unpack(theta) for theta in (trained.theta, trained.policy.space.initial))
    assert {name: values.size for name, values in weights.items()} == {
        "AF.fore": 40, "AF.hind": 40, "BC": 10, "RG": 22, "RG.bias": 9,
        "PF": 6, "PF.fore": 10, "PF.fore.bias": 3, "PF.hind": 10, "PF.hind.bias": 3,
    }  # fmt: skip
    for stage in ("RG", "RG.bias", "BC"):
        assert (weights[stage] != initial[stage]).any(), stage
        assert np.all(weights[stage] * initial[stage] >= 0) or stage == "RG.bias"  # synapses keep their sign
    assert run_name(training) == "flat-walk-ncap-all-5"


def test_what_is_not_named_as_trainable_stays_as_the_table_has_it(tmp_path):
    training = replace(TRAINING, trainable=("RG",), epochs=2)
    assert finish(tmp_path / "run", training).shape == (31,)
    trained = last(tmp_path / "run")
    assert [row.weight for row in trained.policy.circuit.synapses] == [row.weight for row in animal().synapses]


def test_a_resumed_run_trains_the_table_that_it_began_with_although_its_file_has_changed(tmp_path):
    table = tmp_path / "mine.json"
    stronger = {"cross_V0d>flexor cross": -1.7}
    rows = tuple(replace(row, weight=stronger.get(row.key, row.weight)) for row in animal().synapses)
    save_circuit(replace(animal(), synapses=rows), table)
    training = replace(TRAINING, circuit=str(table), without=("V0v",))
    expected = finish(tmp_path / "unbroken", training)
    interrupted(tmp_path / "run", 2, training)
    save_circuit(animal("released"), table)
    theta, _ = go_on(tmp_path / "run")
    assert np.array_equal(theta, expected)
    spec = last(tmp_path / "run").policy.circuit
    assert next(row.weight for row in spec.synapses if row.key == "cross_V0d>flexor cross") == -1.7
    assert "diag_V0v" not in [row.name for row in spec.neurons]
    assert spec.dt == animal().dt
    assert run_name(training) == "flat-walk-ncap-mine-no-V0v-5"


@pytest.mark.slow
def test_training_improves_on_the_untrained_circuit(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=5.0))
    started = time.process_time()
    finish(tmp_path / "run", Training(task="flat-walk", epochs=8, seed=0, episodes=2))
    rows = read_progress(tmp_path / "run")
    assert rows[0]["test_return"] > 0.6  # it walks before it is trained
    fitness = [row["test_return"] - 0.5 * row["test_footfall_error"] for row in rows]
    assert max(fitness) > fitness[0] + 0.1, time.process_time() - started
    assert rows[-1]["best_return"] > rows[0]["test_return"] + 0.1
    assert read_tensors(tmp_path / "run" / "best.safetensors")


@pytest.mark.parametrize(("name", "number"), [("flat-walk", 3), ("flat-walk", 7), ("flat-speeds", 10)])
def test_training_episodes_lie_in_equal_parts_of_the_friction_and_take_paces_by_turns(name, number):
    task = TASKS[name]
    orders = set()
    for epoch in range(5):
        seeds = training_seeds(task, np.random.default_rng(epoch), number)
        low, high = task.friction
        parts = [int(number * (drawn_variation(task, seed).friction - low) / (high - low)) for seed in seeds]
        assert sorted(parts) == list(range(number))
        orders.add(tuple(parts))
        if task.paces:
            assert [seed % 5 for seed in seeds] == [0, 1, 2, 3, 4] * 2
    assert len(orders) > 1  # no part belongs to a place
    slippery = replace(task, friction=(0.8, 0.8))
    assert len(set(training_seeds(slippery, np.random.default_rng(0), number))) == number


def test_test_episodes_lie_in_the_fifths_of_the_friction_and_have_five_paces():
    task = TASKS["flat-speeds"]
    shares = [(drawn_variation(task, seed).friction - 0.75) / 0.5 for seed in TEST_SEEDS]
    assert sorted(int(5 * share) for share in shares) == [0, 1, 2, 3, 4]
    assert sorted(seed % 5 for seed in TEST_SEEDS) == [0, 1, 2, 3, 4]
    assert not set(TEST_SEEDS) & set(FINAL_SEEDS)
