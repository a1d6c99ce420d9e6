"""An episode kept in a file is the episode that was played."""

from dataclasses import fields, replace

import numpy as np
import pytest

from ncap.errors import UserError
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.policy import ZeroController
from ncap.policies.storage import save_policy
from ncap.recording import Recording, record
from ncap.rollout import rollout
from ncap.tasks import TASKS

SHORT = replace(TASKS["bumpy-walk"], episode_seconds=0.6)


def test_a_recording_is_the_rollout_and_survives_a_file(tmp_path):
    policy = NCAPPolicy(command=0.05)
    controller = policy.bind(policy.space.initial[None])
    kept = record(SHORT, controller, seed=3, title="untrained")
    played = rollout(SHORT, controller, [3], record=("joint_position", "neurons"))
    np.testing.assert_array_equal(kept.joint_position, played.signals["joint_position"][0])
    np.testing.assert_array_equal(kept.neurons, played.signals["neurons"][0])
    assert kept.neuron_names == policy.circuit.neurons
    kept.save(tmp_path / "walk.safetensors")
    read = Recording.load(tmp_path / "walk.safetensors")
    for field in fields(Recording):
        np.testing.assert_array_equal(getattr(read, field.name), getattr(kept, field.name))


def test_a_policy_without_neurons_is_recorded_without():
    kept = record(SHORT, ZeroController(), seed=0, title="zero")
    assert kept.neurons.shape == (20, 0)
    assert kept.neuron_names == ()


def test_a_policy_file_is_refused(tmp_path):
    policy = NCAPPolicy(command=0.05)
    save_policy(tmp_path / "p.safetensors", policy, policy.space.initial, {})
    with pytest.raises(UserError, match="holds no recording"):
        Recording.load(tmp_path / "p.safetensors")
