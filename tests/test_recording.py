"""An episode kept in a file is the episode that was played, with its robot, its ground and its circuit."""

import copy
import os
import random
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncap.circuits.animal import animal, cut
from ncap.circuits.spec import Synapse
from ncap.errors import UserError
from ncap.evaluation import evaluate
from ncap.files import read_tensors, write_tensors
from ncap.policies.controller import ZeroPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.recording import Recording, is_recording, numbers_in_use, record
from ncap.rollouts import rollout
from ncap.sim.robot import describe_robot
from ncap.sim.terrain import Flat, Grid
from ncap.tasks import TASKS
from ncap.trained import load, untrained

SHORT = replace(TASKS["bumpy-walk"], episode_seconds=0.6)


@dataclass(frozen=True, kw_only=True)
class Staircase:
    """A step of 10 cm every metre: a terrain that this package does not know."""

    grid: ClassVar[Grid] = Grid(rows=5, columns=9, cell=0.5, behind=1.0, ahead=3.0, aside=1.0, top=0.4, level=0.0)

    def heights(self, seed: int) -> np.ndarray:
        return np.tile(np.repeat([0.0, 0.1, 0.2, 0.3, 0.4], 2)[:9], (5, 1))


def same(a: object, b: object) -> None:
    """Equal arrays, numbers and tables; robots by their data sheets, which hold the text of the model."""
    if hasattr(a, "model_xml"):
        a, b = describe_robot(a), describe_robot(b)
    if isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


def test_a_recording_is_the_rollout_and_survives_a_file(tmp_path):
    policy = NCAPPolicy(command=0.05)
    controller = policy.bind(policy.space.initial[None])
    kept = record(controller, SHORT, seed=3, title="untrained")
    played = rollout(SHORT, controller, [3], record=("joint_position", "neurons"))
    same(kept.joint_position, played.signals["joint_position"][0])
    same(kept.neurons, played.signals["neurons"][0])
    assert kept.neuron_names == policy.core.neurons
    kept.save(tmp_path / "walk.safetensors")
    assert is_recording(tmp_path / "walk.safetensors")
    read = Recording.load(tmp_path / "walk.safetensors")
    for field in fields(Recording):
        same(getattr(read, field.name), getattr(kept, field.name))


def test_a_policy_plays_its_own_task_at_its_own_command():
    trained = load("ncap-flat-walk")
    kept = record(trained, seed=1)
    assert (kept.task, kept.title) == ("flat-walk", "ncap-flat-walk on flat-walk")
    returns = evaluate(trained, TASKS["flat-walk"], [1])
    assert kept.velocity[:, 0].mean() == pytest.approx(returns.speed_mean, rel=1e-12)
    # an untrained circuit gets the command that suits the task: another for a run than for a walk
    task = replace(TASKS["flat-run"], episode_seconds=0.3)
    same(record("untrained", task).neurons, record("untrained", task, command=task.command).neurons)
    assert (
        record("untrained", task).neurons != record("untrained", task, command=TASKS["flat-walk"].command).neurons
    ).any()


def test_the_circuit_that_was_played_travels_along(tmp_path):
    trained = load("ncap-flat-walk").without(["V0v", "cross_V0d.FL"])
    kept = record(trained, SHORT)
    kept.save(tmp_path / "walk.safetensors")
    read = Recording.load(tmp_path / "walk.safetensors")
    assert read.circuit == cut(animal(), ["V0v", "cross_V0d.FL"])
    assert read.neurons.shape == (20, 36 - 2 - 1)
    # where the table says that a number is trained, it is the trained one
    trainable = [entry.row.trainable for entry in trained.policy.circuit.entries]
    same(read.numbers[trainable], trained.policy.space.compress(trained.theta[None])[0])


def test_numbers_in_use_are_the_trained_ones_and_those_of_the_table_where_nothing_is_trained():
    policy = NCAPPolicy()
    numbers = numbers_in_use(replace(untrained(policy), theta=policy.space.initial + 0.5))
    rows = [entry.row for entry in policy.circuit.entries]
    given = [row.weight if isinstance(row, Synapse) else row.bias for row in rows]
    np.testing.assert_allclose(numbers, np.add(given, [0.5 * row.trainable for row in rows]), atol=1e-12)
    assert not numbers_in_use(load("zero")).size


def test_ground_of_a_kind_that_nobody_here_knows_is_kept_by_its_heights(tmp_path):
    task = replace(SHORT, name="stairs", terrain=Staircase(), target_speed=0.3)
    record("zero", task, seed=2).save(tmp_path / "stairs.safetensors")
    read = Recording.load(tmp_path / "stairs.safetensors")  # although no task "stairs" is registered
    assert read.terrain.grid == Staircase().grid
    np.testing.assert_allclose(read.terrain.heights(0), Staircase().heights(0), atol=1e-7)
    assert read.target_speed == 0.3


def test_a_plane_is_stored_as_one(tmp_path):
    record("zero", replace(TASKS["flat-walk"], episode_seconds=0.3)).save(tmp_path / "flat.safetensors")
    assert Recording.load(tmp_path / "flat.safetensors").terrain == Flat()


def test_a_recording_of_the_first_version_still_loads(tmp_path):
    steps = 4
    tensors = {"position": (3,), "quaternion": (4,), "joint_position": (4, 3), "foot_force": (4,), "velocity": (3,)}
    tensors |= {"action": (4, 3), "neurons": (2,)}
    about = {"title": "old", "task": "bumpy-walk", "seed": 5, "control_dt": 0.03, "neuron_names": ["a.FL", "b.FL"]}
    arrays = {name: np.full((steps, *shape), 0.5) for name, shape in tensors.items()}
    write_tensors(tmp_path / "old.safetensors", arrays, {"recording": about})
    read = Recording.load(tmp_path / "old.safetensors")
    assert (read.title, read.seed, read.neuron_names) == ("old", 5, ("a.FL", "b.FL"))
    assert read.robot is read.terrain is read.target_speed is read.circuit is None
    assert read.neurons.shape == (4, 2)
    write_tensors(tmp_path / "moon.safetensors", arrays, {"recording": about | {"task": "moon-walk"}})
    with pytest.raises(UserError, match="moon-walk"):
        Recording.load(tmp_path / "moon.safetensors")


def test_a_policy_without_neurons_is_recorded_without():
    policy = ZeroPolicy()
    kept = record(policy.bind(np.zeros((1, 0))), SHORT, title="zero")
    assert kept.neurons.shape == (20, 0)
    assert kept.neuron_names == ()
    assert kept.circuit is None


def test_what_cannot_be_recorded_is_named():
    with pytest.raises(UserError, match="seed -1 is negative"):
        record("zero", SHORT, seed=-1)
    with pytest.raises(UserError, match="does not know its task"):
        record(ZeroPolicy().bind(np.zeros((1, 0))))


def test_a_policy_file_is_refused(tmp_path):
    untrained(NCAPPolicy()).save(tmp_path / "p.safetensors")
    assert not is_recording(tmp_path / "p.safetensors")
    with pytest.raises(UserError, match="holds no recording"):
        Recording.load(tmp_path / "p.safetensors")


class Parts:
    """What is in the file of a recording."""

    def __init__(self, path) -> None:
        self.tensors, description = read_tensors(path)
        self.about = description["recording"]


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """A recording with everything in it: a circuit, a robot, and ground given by heights."""
    path = tmp_path_factory.mktemp("valid") / "walk.safetensors"
    record("untrained", replace(SHORT, terrain=Staircase()), seed=3).save(path)
    return Parts(path)


def refusal(path, tensors, about) -> str:
    """What is said to a forged file, whose checksum is right."""
    write_tensors(path, tensors, {"recording": about})
    with pytest.raises(UserError) as error:
        Recording.load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000
    return str(error.value)


BUMPY = {"type": "bumpy", "bumpiness": 0.5}
GRID = {"rows": 5, "columns": 9, "cell": 0.5, "behind": 1.0, "ahead": 3.0, "aside": 1.0, "top": 0.4, "level": 0.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": 5}, "title is 5"),
        ({"seed": -1}, "seed is -1, outside"),
        ({"seed": "0"}, "seed is '0'"),
        ({"seed": 10**30}, "seed is 1000"),
        ({"control_dt": 0.0}, "control_dt is 0.0, outside"),
        ({"control_dt": float("nan")}, "control_dt is nan"),
        ({"control_dt": 1e9}, "control_dt is 1000000000.0, outside"),
        ({"target_speed": "fast"}, "target_speed is 'fast'"),
        ({"neuron_names": None}, "neuron_names is None"),
        ({"neuron_names": ["a"]}, "the array neurons has the shape (20, 36), but (20, 1) is needed"),
        ({"neuron_names": ["a"] * 5000}, "5000 neurons are more than 2000"),
        ({"colour": "red"}, "unknown entry 'colour'"),
        ({"terrain": None}, "unknown task 'stairs.py'"),  # which is not run
        ({"target_speed": None}, "unknown task 'stairs.py'"),
        ({"terrain": "bumpy"}, "unknown kind of ground"),
        ({"terrain": {"type": ["bumpy"]}}, "unknown kind of ground"),
        ({"terrain": BUMPY | {"spacing": 0.0}}, "spacing of its ground is 0 m"),
        ({"terrain": BUMPY | {"spacing": 1e-9}}, "points, more than 4000000"),
        ({"terrain": BUMPY | {"ahead": 1e9}}, "ahead of its ground is 1e+09 m"),
        ({"terrain": BUMPY | {"bumpiness": 2.0}}, "bumpiness 2 is outside"),
        ({"terrain": BUMPY | {"height": -1.0}}, "height of its ground is -1 m"),
        ({"terrain": {"type": "heights", "grid": GRID | {"rows": 10**9}}}, "points, more than 4000000"),
        ({"terrain": {"type": "heights", "grid": GRID | {"rows": 6}}}, "do not fit its grid of 6 × 9 points"),
        ({"terrain": {"type": "heights", "grid": GRID | {"top": 0.1}}}, "do not fit its grid"),
        ({"terrain": {"type": "heights", "grid": None}}, "its grid is None"),
        ({"robot": "a1"}, "table"),
        ({"robot": {}}, "missing"),
        ({"circuit": {}}, "its circuit is for the body None"),
        ({"circuit": {"plan": "chain-900"}}, "its circuit is for the body 'chain-900'"),
        ({"circuit": {"plan": "quadruped", "neurons": [0] * 10**5}}, "more than 2000 rows"),
    ],
)
def test_a_forged_fact_is_named_with_its_value(valid, tmp_path, changes, said):
    tensors, about = valid.tensors, valid.about
    assert said in refusal(tmp_path / "forged.safetensors", tensors, about | {"task": "stairs.py"} | changes)


@pytest.mark.parametrize(
    "part",
    [
        '<include file="/etc/passwd"/>',
        '<worldbody><replicate count="1000000000"><geom size="1"/></replicate></worldbody>',
        '<asset><mesh file="/dev/zero"/></asset>',
        '<asset><texture name="t" type="2d" builtin="flat" width="99999" height="99999"/></asset>',
        '<size memory="900G"/>',
    ],
)
def test_a_recorded_model_opens_no_file_and_has_bounds(valid, tmp_path, part):
    tensors, about = valid.tensors, valid.about
    text = about["robot"]["model_xml"].replace("</mujoco>", f"{part}</mujoco>")
    said = refusal(tmp_path / "forged.safetensors", tensors, about | {"robot": about["robot"] | {"model_xml": text}})
    assert "which a recording may not have" in said
    said = refusal(tmp_path / "forged.safetensors", tensors, about | {"robot": about["robot"] | {"model_xml": ""}})
    assert "the text of the model of its robot 'a1' is missing" in said


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("position", lambda x: x[:, :2], "the array position has the shape (20, 2), but (20, 3) is needed"),
        ("position", lambda x: x[:0], "it has 0 steps"),
        ("position", lambda x: np.float64(1.0), "it has 0 steps"),
        ("position", lambda x: np.zeros((50_001, 3)), "it has 50001 steps"),
        ("velocity", lambda x: x[:-1], "the array velocity has the shape (19, 3), but (20, 3) is needed"),
        ("neurons", lambda x: np.zeros((10**12, 0)), "the array neurons has the shape (1000000000000, 0)"),
        ("quaternion", lambda x: x * np.nan, "the array quaternion has numbers that are none"),
        ("action", lambda x: x + 1e7, "the array action has numbers that are none, or larger than 1e+06"),
        ("foot_force", lambda x: x.astype(np.int64), "the array foot_force has numbers that are none"),
        ("joint_position", None, "the array joint_position is missing"),
        ("numbers", lambda x: x[:-1], "numbers, but its circuit"),
        ("heights", None, "unknown kind of ground 'heights'"),
        ("heights", lambda x: x * np.nan, "do not fit its grid"),
    ],
)
def test_a_forged_array_is_named(valid, tmp_path, name, change, said):
    tensors, about = dict(valid.tensors), valid.about
    if change is None:
        del tensors[name]
    else:
        tensors[name] = np.asarray(change(tensors[name]))
    assert said in refusal(tmp_path / "forged.safetensors", tensors, about)
    assert "unknown array" in refusal(tmp_path / "forged.safetensors", valid.tensors | {"more": np.zeros(3)}, about)


def test_what_is_no_file_is_no_recording(tmp_path):
    os.mkfifo(tmp_path / "fifo")  # whoever opens it waits for ever
    for path in (tmp_path / "fifo", tmp_path, tmp_path / ("x" * 300), tmp_path / "nul\0"):
        assert not is_recording(path)
        with pytest.raises(UserError):
            Recording.load(path)


NASTY = (None, True, -1, 0, 7, 10**30, 0.5, 1e-9, 1e6, 1e300, float("nan"), float("inf"), "", "x", "<svg>", "\0")
PIECES = ("", "<", '"', "nan", "-1", "1e300", "</body>", "<geom/>", "\0")


def places(tree, path=()):
    """The way to every value of JSON data, of long lists only the first ones."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree[:3]) if isinstance(tree, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def mutated(rng: random.Random, tensors, about) -> None:
    """Change one thing of a recording: a fact, an array, or the text of its model."""
    kind = rng.choice(("fact", "gone", "array", "model"))
    if kind == "array" and tensors:
        name = rng.choice(sorted(tensors))
        values = np.array(tensors[name], ndmin=1)
        if values.size:
            values.flat[rng.randrange(values.size)] = rng.choice((np.nan, np.inf, 1e30, -1e6, 0.0))
        forms = (values, values, values[1:], values.T, values.astype("f4"), values[..., None], np.zeros(()))
        tensors[name] = rng.choice(forms)
        return
    text = about["robot"].get("model_xml") if isinstance(about.get("robot"), dict) else None
    if kind == "model" and isinstance(text, str) and text:
        first = rng.randrange(len(text))
        about["robot"]["model_xml"] = text[:first] + rng.choice(PIECES) + text[first + rng.randrange(9) :]
        return
    *way, last = rng.choice(sorted(places(about), key=str))
    parent = about
    for key in way:
        parent = parent[key]
    if kind == "gone":
        del parent[last]
    else:
        parent[last] = rng.choice((*NASTY, [], {}, {"type": "flat"}, [[[]]]))


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_mutated_recording_is_drawn_or_refused_by_a_sentence(valid, tmp_path, seed):
    write_replay = pytest.importorskip("ncap.view.replay").write_replay
    rng, tensors, about = random.Random(seed), dict(valid.tensors), copy.deepcopy(valid.about)
    for _ in range(rng.choice((1, 1, 2))):
        mutated(rng, tensors, about)
    path = tmp_path / "forged.safetensors"
    write_tensors(path, tensors, {"recording": about})
    with suppress(UserError):
        write_replay(Recording.load(path), tmp_path / "walk.html")


class Failing:
    """A controller that stands for three steps and then gives no numbers."""

    def reset(self, seeds, command=None):
        return 0

    def act(self, state, observation, command=None):
        return state + 1, np.full((1, 4, 3), 0.0 if state < 3 else np.nan)

    def signals(self, state):
        return {}


def test_the_step_in_which_a_simulation_fails_is_not_kept(tmp_path):
    kept = record(Failing(), SHORT, title="failing")
    assert len(kept.position) == 3
    kept.save(tmp_path / "failing.safetensors")
    assert len(Recording.load(tmp_path / "failing.safetensors").position) == 3
