"""Files that are damaged, forged or not files at all: one sentence, never a traceback, a hang, or a lot of memory."""

import copy
import json
import os
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncap.circuits.animal import animal
from ncap.circuits.tables import circuit_from, describe_circuit, load_circuit
from ncap.circuits.units import OscillatorUnit
from ncap.errors import UserError
from ncap.evaluation import task_for
from ncap.files import read_json, read_tensors, write_tensors
from ncap.learn.settings import Training, training_from
from ncap.learn.training import read_training, train
from ncap.policies.description import describe, policy_from
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.runs import read_progress
from ncap.sim.a1 import A1
from ncap.sim.robot import describe_robot, robot_from
from ncap.tasks import TASKS
from ncap.trained import load, read_policy

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
#: What a hostile file has in place of a value.
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=20),
    st.sampled_from(["x" * 5000, "\0", "../../etc", [], {}, [[]], {"a": {}}, [1] * 50, 1e308, -1, 0, 10**9]),
)  # fmt: skip


def places(data, path=()):
    """Paths to every value within JSON data."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


@st.composite
def mutated(draw, data):
    """The data with one to three values replaced, removed or added."""
    data = json.loads(json.dumps(data))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(data))))
        if not path:
            return draw(JUNK)
        here = data
        for key in path[:-1]:
            here = here[key]
        kind = draw(st.sampled_from(["replace", "remove", "add"]))
        if kind == "replace":
            here[path[-1]] = copy.deepcopy(draw(JUNK))
        elif kind == "remove":
            del here[path[-1]]
        elif isinstance(here, dict):
            here[draw(st.text(max_size=8))] = copy.deepcopy(draw(JUNK))
    return data


def refused_or_fine(decode, data):
    """What is decoded, or None where it was refused by a sentence in one line."""
    try:
        return decode(data)
    except UserError as error:
        message = str(error)
    assert message.isprintable()
    assert 0 < len(message) < 1500
    return None


CIRCUIT = describe_circuit(animal())
NCAP = describe(NCAPPolicy(command=0.3)) | {"paces": []}
MLP = describe(MLPPolicy(hidden=(8, 8), mean=(0.0,) * 40, std=(1.0,) * 40))
CONFIG = asdict(Training(task="flat-walk").filled())
ROBOT = describe_robot(A1) | {"model_xml": ""}


@FUZZ
@given(mutated(CIRCUIT))
def test_any_circuit_table(data):
    refused_or_fine(circuit_from, data)


@FUZZ
@given(mutated({key: value for key, value in NCAP.items() if key != "circuit"}) | mutated(MLP))
def test_any_description_of_a_policy(data):
    policy = refused_or_fine(policy_from, data)
    assert policy is None or policy.space.size <= 10_000_000


@FUZZ
@given(mutated(CONFIG))
def test_any_configuration_of_a_run(data):
    refused_or_fine(lambda values: training_from(values, "config.json"), data)


@FUZZ
@given(mutated(ROBOT))
def test_any_data_sheet_of_a_robot(data):
    refused_or_fine(robot_from, data)


@pytest.fixture(scope="module")
def policy_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "p.safetensors"
    load("ncap-flat-walk").save(path)
    return path.read_bytes()


@FUZZ
@given(data=st.data())
def test_any_damage_to_the_bytes_of_a_policy_file(policy_bytes, tmp_path_factory, data):
    content = bytearray(policy_bytes)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.write_bytes(bytes(content[:cut]))
    same = bytes(content[:cut]) == policy_bytes
    assert (refused_or_fine(read_policy, path) is not None) == same


@pytest.mark.parametrize(
    ("tensors", "description", "complaint"),
    [
        ({}, {"policy": NCAP}, "holds no policy"),
        ({"theta": np.zeros(112)}, {"about": {}}, "holds no policy"),
        ({"theta": np.zeros(112)}, [], "its description is a list"),
        ({"theta": np.zeros(112)}, {"policy": NCAP, "about": "mine"}, "about is 'mine': a table"),
        ({"theta": np.zeros(112)}, {"policy": NCAP, "about": {"task": 3}}, "its task is 3: a text"),
        ({"theta": np.zeros(112)}, {"policy": NCAP | {"command": "fast"}}, "command is 'fast': a number is needed"),
        ({"theta": np.zeros(112)}, {"policy": NCAP | {"command": None}}, "command is None: a number is needed"),
        ({"theta": np.zeros(112)}, {"policy": NCAP | {"command": float("nan")}}, "command is nan, which is not finite"),
        ({"theta": np.zeros(112)}, {"policy": NCAP | {"paces": [[0.1]]}}, r"paces are \[\[0\.1\]\], but a circuit"),
        ({"theta": np.zeros(112)}, {"policy": NCAP | {"paces": "fast"}}, "paces are fast, but a circuit has one set"),
        ({"theta": np.zeros(112)}, {"policy": NCAP | {"copies": "x"}}, "copies is 'x': a whole number is needed"),
        ({"theta": np.zeros(112)}, {"policy": NCAP | {"control_dt": 1e9}}, "no multiple of the circuit's step"),
        ({"theta": np.zeros(4)}, {"policy": MLP | {"hidden": "big"}}, "hidden is 'big': a list is needed"),
        ({"theta": np.zeros(4)}, {"policy": MLP | {"hidden": [2.5]}}, "hidden is a list: a whole number is needed"),
        ({"theta": np.zeros(4)}, {"policy": MLP | {"hidden": [100_000] * 2}}, "up to 10,000,000 weights"),
        ({"theta": np.zeros(4)}, {"policy": MLP | {"mean": [0.0] * 39}}, "mean needs 40 numbers"),
        ({"theta": np.zeros(4)}, {"policy": MLP | {"kind": 7}}, "unknown kind of policy '7'; valid: ncap, mlp"),
    ],
)  # fmt: skip
def test_forged_policies_with_a_valid_checksum_are_refused_by_the_field(tmp_path, tensors, description, complaint):
    path = tmp_path / "forged.safetensors"
    write_tensors(path, tensors, description)
    with pytest.raises(UserError, match=complaint) as error:
        read_policy(path)
    assert str(path) in str(error.value)


def test_numbers_that_numpy_does_not_have_are_refused(tmp_path):
    header = json.dumps({"theta": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "half.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(UserError, match="numbers of kind 'BF16'; valid: F64, F32"):
        read_tensors(path)


@pytest.mark.parametrize("read", [read_policy, load_circuit, read_json, read_tensors])
def test_only_regular_files_are_opened(tmp_path, read):
    os.mkfifo(tmp_path / "fifo.json")  # to open it would hang
    with pytest.raises(UserError, match=r"fifo\.json is not a regular file"):
        read(tmp_path / "fifo.json")
    with pytest.raises(UserError, match="is a folder, not a file"):
        read(tmp_path)
    with pytest.raises(UserError, match=r"cannot be read|does not exist"):
        read(tmp_path / ("x" * 5000))
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "nul\0l")


def test_json_that_is_nested_too_deeply_is_refused(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000 + "]" * 200_000)
    with pytest.raises(UserError, match="is not JSON"):
        load_circuit(path)


# --- run folders -----------------------------------------------------------------------------------------------------

TRAINING = Training(task="flat-walk", epochs=3, population=4, episodes=1, episode_seconds=0.3, seed=1)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that was stopped after two of three epochs, and the weights of one that was not."""
    folder = tmp_path_factory.mktemp("runs")

    def stop(row):
        if row["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(TRAINING, folder / "stopped", threads=1, report=stop)
    train(TRAINING, folder / "whole", threads=1)
    return folder / "stopped", read_policy(folder / "whole" / "last.safetensors").theta


def resumed(folder):
    """(last weights, what was told) of a run that is gone on with."""
    told = []
    train(read_training(folder), folder, threads=1, complain=told.append)
    return read_policy(folder / "last.safetensors").theta, told


TABLES = {
    "garbage": "\x00\x01garbage",
    "binary": b"\xff\xfe\x00",
    "a blank line": "{0}\n{1}",
    "a foreign number of columns": "{0}1,2,3\n{1}",
    "words": "{0}one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve,thirteen\n",
    "no header": "{1}",
    "empty": "",
    "cut short": "{0}0,1",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_damaged_table_of_progress_never_prevents_a_resume(runs, tmp_path, name):
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    lines = (folder / "progress.csv").read_text().splitlines(keepends=True)
    content = TABLES[name]
    data = content if isinstance(content, bytes) else content.replace("{0}", lines[0]).replace("{1}", lines[1]).encode()
    (folder / "progress.csv").write_bytes(data)
    read_progress(folder)  # a report must not fail either
    theta, told = resumed(folder)
    assert np.array_equal(theta, runs[1])
    damaged = list(folder.glob("progress.csv.damaged-*"))
    if name in ("empty", "cut short"):  # what a crash leaves is no damage
        assert not damaged
    else:
        assert "progress.csv is damaged" in told[0]
        assert damaged[0].read_bytes() == data
    assert read_progress(folder)[-1]["epoch"] == 2


@pytest.mark.parametrize("name", ["progress.csv", "events.out.tfevents.0.ncap"])
def test_a_fifo_in_place_of_a_table_does_not_hang_a_resume(runs, tmp_path, name):
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    theta, told = resumed(folder)
    assert np.array_equal(theta, runs[1])
    assert "not a regular file" in told[0]


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_finalist_is_set_aside(runs, tmp_path, damage):
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    path = sorted((folder / "finalists").iterdir())[0]
    if damage is None:  # whole, but without what the choice needs
        replace(read_policy(path), about={"epoch": "first"}).save(path)
    else:
        path.write_bytes(damage)
    theta, told = resumed(folder)
    assert np.array_equal(theta, runs[1])
    assert f"{path.name} is damaged" in told[0]
    assert path.with_name(f"{path.name}.damaged-1").exists()


def forged(change):
    def forge(path):
        tensors, description = read_tensors(path)
        change(tensors, description)
        write_tensors(path, tensors, description)

    return forge


CHECKPOINTS = {
    "no theta": forged(lambda tensors, _: tensors.pop("theta")),
    "no moments": forged(lambda tensors, _: tensors.pop("moments")),
    "another shape": forged(lambda tensors, _: tensors.update(theta=np.zeros(5))),
    "NaN": forged(lambda tensors, _: tensors["theta"].fill(np.nan)),
    "no epoch": forged(lambda _, description: description.pop("epoch")),
    "a word for the epoch": forged(lambda _, description: description.update(epoch="two")),
    "a negative epoch": forged(lambda _, description: description.update(epoch=-1)),
    "no facts": forged(lambda _, description: description.pop("facts")),
    "facts of another kind": forged(lambda _, description: description.update(facts={"rollouts": "many", "steps": 1})),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_that_is_damaged_or_forged_is_told_and_passed_over(runs, tmp_path, name):
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    CHECKPOINTS[name](newest)
    theta, told = resumed(folder)
    assert newest.name in told[0]
    assert np.array_equal(theta, runs[1])


def test_with_all_checkpoints_damaged_the_run_begins_anew_and_says_so(runs, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    for path in (folder / "checkpoints").iterdir():
        path.write_bytes(b"")
    theta, told = resumed(folder)
    assert told[-1].endswith("is whole: the run begins anew")
    assert np.array_equal(theta, runs[1])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"epochs": "3"}, "epochs is '3': a whole number or nothing is needed"),
        ({"epochs": 3.5}, "epochs is 3.5: a whole number or nothing is needed"),
        ({"seed": None}, "seed is None: a whole number is needed"),
        ({"population": "many"}, "population is 'many'"),
        ({"sigma": "big"}, "sigma is 'big'"),
        ({"sigma": float("inf")}, "sigma is inf, which is not finite"),
        ({"episode_seconds": 0}, "episode_seconds is a number of seconds up to 600, not 0"),
        ({"episode_seconds": float("nan")}, "episode_seconds is nan, which is not finite"),
        ({"episodes": 10**9}, "episodes is a number from 1 to 10,000, not 1000000000"),
        ({"task": 7}, "task is 7: a text is needed"),
        ({"without": "V0v"}, "without is 'V0v': a list is needed"),
        ({"colour": "red"}, "unknown entry 'colour'"),
    ],
)
def test_a_configuration_of_the_wrong_type_is_refused_by_the_field(runs, tmp_path, change, complaint):
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UserError, match=complaint) as error:
        read_training(folder)
    assert "config.json" in str(error.value)


def test_leftovers_of_killed_writes_are_removed_at_the_next_start(runs, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    leftovers = [folder / ".config.json.123.tmp", folder / "checkpoints" / ".epoch-000009.safetensors.7.tmp"]
    for path in leftovers:
        path.write_bytes(b"half")
    resumed(folder)
    assert not any(path.exists() for path in leftovers)


def test_a_run_can_be_made_longer_and_not_shorter(runs, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    train(replace(TRAINING, epochs=5), folder, threads=1)
    assert read_training(folder).epochs == 5
    assert [row["epoch"] for row in read_progress(folder)] == [0, 1, 2, 3, 4]
    train(replace(TRAINING, epochs=5), tmp_path / "unbroken", threads=1)
    ends = [read_policy(place / "last.safetensors").theta for place in (folder, tmp_path / "unbroken")]
    assert np.array_equal(*ends)
    with pytest.raises(UserError, match="is a run of 5 epochs, which cannot become 4"):
        train(replace(TRAINING, epochs=4), folder, threads=1)


def test_every_row_of_progress_is_there_after_a_kill_before_the_checkpoint(tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ncap.runs.Run.save", killed)
        with pytest.raises(KeyboardInterrupt):
            train(TRAINING, tmp_path / "run", threads=1)
    assert [row["epoch"] for row in read_progress(tmp_path / "run")] == [0]
    train(TRAINING, tmp_path / "run", threads=1)
    assert [row["epoch"] for row in read_progress(tmp_path / "run")] == [0, 1, 2]


def test_tasks_refuse_numbers_that_are_not_finite():
    for change in ({"target_speed": float("inf")}, {"target_speed": float("nan")}, {"episode_seconds": float("nan")}):
        with pytest.raises(UserError, match="must be"):
            replace(TASKS["flat-walk"], **change)


# --- words in files that would run code ------------------------------------------------------------------------------


def test_a_policy_file_that_names_a_python_file_does_not_run_it(tmp_path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    for about, wish in (({"task": str(trap)}, "say --task"), ({"robot": str(trap)}, "say --robot")):
        player = replace(load("ncap-flat-walk"), about=about)
        with pytest.raises(UserError, match=wish):
            task_for(player)
    assert not (tmp_path / "ran").exists()


def test_a_run_whose_task_is_a_python_file_runs_it_only_if_it_is_named_again(runs, tmp_path):
    folder, own = tmp_path / "run", tmp_path / "own.py"
    own.write_text(
        "from dataclasses import replace\nfrom ncap.tasks import TASKS\n"
        "TASKS['own'] = replace(TASKS['flat-walk'], name='own')\n"
        f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
    )
    shutil.copytree(runs[0], folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"task": str(own)}))
    with pytest.raises(UserError, match="is run only if you name it too"):
        read_training(folder)
    assert not (tmp_path / "ran").exists()
    assert read_training(folder, [str(own)]).task == str(own)


def test_times_of_a_neuron_that_no_number_can_hold_are_refused():
    with pytest.raises(UserError, match="phases may last up to 100 times its adaptation_time"):
        OscillatorUnit(quiet_time=1e300)
