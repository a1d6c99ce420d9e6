"""An episode kept in a file is the episode that was played, with its robot, its ground and its circuit."""

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pytest

from ncap.circuits.animal import animal, cut
from ncap.errors import UserError
from ncap.evaluation import evaluate
from ncap.files import write_tensors
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
    # an untrained circuit gets the command that suits the task: 0.9 for a run, and 0.05 for a walk
    task = replace(TASKS["flat-run"], episode_seconds=0.3)
    same(record("untrained", task).neurons, record("untrained", task, command=0.9).neurons)
    assert (record("untrained", task).neurons != record("untrained", task, command=0.05).neurons).any()


def test_the_circuit_that_was_played_travels_along(tmp_path):
    trained = load("ncap-flat-walk").without(["V0v", "cross_V0d.FL"])
    kept = record(trained, SHORT)
    kept.save(tmp_path / "walk.safetensors")
    read = Recording.load(tmp_path / "walk.safetensors")
    assert read.circuit == cut(animal(), ["V0v", "cross_V0d.FL"])
    assert read.neurons.shape == (20, 28 - 2 - 1)
    # where the table says that a number is trained, it is the trained one
    trainable = [entry.row.trainable for entry in trained.policy.circuit.entries]
    same(read.numbers[trainable], trained.policy.space.compress(trained.theta[None])[0])


def test_numbers_of_several_paces_are_blended_for_the_command():
    policy = NCAPPolicy(paces=(0.0, 1.0))
    slow, fast = np.full(92, 0.25), np.full(92, 0.75)
    signs = np.sign(policy.space.initial[:92])
    theta = np.concatenate((slow * signs, fast * signs))
    trained = replace(untrained(policy), theta=theta)
    numbers = numbers_in_use(trained, 0.5)
    trainable = np.array([entry.row.trainable for entry in policy.circuit.entries])
    np.testing.assert_allclose(numbers[trainable], 0.5 * signs, atol=1e-12)
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
