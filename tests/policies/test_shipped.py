"""Shipped policies do what they did before the whole animal became a table, when their formulas stood in NumPy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncap.evaluation import own_command
from ncap.rollouts import rollout
from ncap.tasks import TASKS
from ncap.trained import load, read_policy, shipped_policies

DATA = Path(__file__).parents[1] / "data"
SEEDS = [200, 201]
NAMES = tuple(shipped_policies())


@pytest.fixture(scope="module")
def before():
    """Observations, actions, neurons (every fourth step) and returns, recorded with the code before the table."""
    with np.load(DATA / "shipped_before.npz") as data:
        return dict(data)


def recorded(name):
    """A policy as it was recorded: the one of many speeds at a command between two of its paces."""
    found = load(name)
    return found.with_command(0.3) if name == "ncap-flat-speeds" else found


def test_every_shipped_policy_was_recorded(before):
    assert {key.split("/")[0] for key in before} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_actions_and_neurons_are_those_of_before_to_the_twelfth_digit(before, name):
    controller, observations = recorded(name).controller(2), before[f"{name}/observation"].astype(np.float64)
    state, actions, neurons = controller.reset(SEEDS), [], []
    for t in range(200):
        state, action = controller.act(state, observations[:, t])
        actions.append(action)
        if t % 4 == 3:
            neurons.append(controller.signals(state).get("neurons"))
    assert np.abs(np.stack(actions, 1) - before[f"{name}/action"]).max() < 1e-12
    if name.startswith("ncap"):
        assert controller.circuit.neurons == tuple(before[f"{name}/neuron_names"])
        assert np.abs(np.stack(neurons, 1) - before[f"{name}/neurons"]).max() < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_returns_are_those_of_before(before, name):
    task = "flat-run" if name == "ncap-flat-speeds" else name.split("-", 1)[1]
    short = replace(TASKS[task], episode_seconds=6.0)
    played = rollout(short, recorded(name).controller(2), SEEDS)
    assert played.returns == pytest.approx(before[f"{name}/returns"], abs=1e-9)


@pytest.mark.parametrize("path", sorted((DATA / "first").iterdir()), ids=lambda path: path.stem)
def test_files_of_the_first_version_are_converted_on_reading_and_act_as_todays(path):
    first, today = read_policy(path), load(path.stem)
    assert first.policy == today.policy
    assert np.array_equal(first.theta, today.theta)
    if "training" in first.about:  # a blend of several policies has one for each
        assert first.task == today.task
    assert own_command(first, TASKS["flat-walk"]) is None  # it keeps its own command
    observations = np.random.default_rng(0).uniform(-1, 1, (20, 2, 4, 10))
    one, other = first.controller(2), today.controller(2)
    state, same = one.reset(SEEDS), other.reset(SEEDS)
    for observation in observations:
        state, action = one.act(state, observation)
        same, again = other.act(same, observation)
        assert np.array_equal(action, again)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_policies_know_their_task_and_have_the_sizes_of_the_paper(name):
    found = load(name)
    assert found.task in TASKS
    # 92 weights, in six sets for the many speeds; 40 · 64 + 64 + 64² + 64 + 64 · 12 + 12 for PPO's network
    sizes = {"ncap-flat-speeds": 6 * 92, "mlp-flat-run": 7564, "mlp-flat-walk": 79_372}
    assert found.parameters == sizes.get(name, 92)
