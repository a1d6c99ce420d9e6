"""Shipped policies of the paper's table do what they did when their formulas stood in NumPy, before there were tables.

They had other names then, and episodes began at a moment in which all legs stand: both are put back here.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ncap import seeding
from ncap.circuits.animal import animal
from ncap.circuits.circuit import Circuit
from ncap.circuits.swimmer import swimmer
from ncap.errors import UserError
from ncap.evaluation import own_command, task_for
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import rollout
from ncap.tasks import PAPER_TASKS, TASKS
from ncap.trained import load, read_policy, shipped_policies

DATA = Path(__file__).parents[1] / "data"
SEEDS = [200, 201]
NAMES = tuple(shipped_policies())
LED = tuple(name for name in NAMES if name.startswith("ncap"))
FIRST_SPEEDS = DATA / "first" / "ncap-flat-speeds.safetensors"
"""Six sets of weights for many speeds, which were blended along the command."""
BEFORE = {name.replace("paper-", "ncap-"): name for name in NAMES if name not in LED}
"""What is recorded, by its name of then, and what is shipped under its name of today."""


@pytest.fixture(scope="module")
def before():
    """Observations, actions, neurons (every fourth step) and returns, recorded with the code before the table."""
    with np.load(DATA / "shipped_before.npz") as data:
        return dict(data)


class Standing:
    """A controller whose episodes begin as they did then: in the gait, when no flexor is active."""

    def __init__(self, controller, command):
        self.controller, self.command = controller, command
        self.act, self.signals = controller.act, controller.signals

    def reset(self, seeds, command=None):
        states = standing_starts(self.controller.policy.circuit, self.command)
        picks = [int(seeding.generator(seed, "rhythm start").integers(64)) for seed in seeds]
        return states.map(lambda part: part[picks])


def standing_starts(spec, command):
    """64 random states after 5 s, and then each at its first moment within 2 s in which all legs stand."""
    circuit = Circuit(spec)
    state = circuit.reset(64, seeding.generator(0, "standing starts"))
    said = [command if name.startswith(("freq", "sync")) else 0.0 for name in circuit.inputs]
    inputs = np.tile(said, (64, 1))
    for _ in range(round(5.0 / circuit.dt)):
        state = circuit.step(state, inputs)
    for _ in range(round(2.0 / circuit.dt)):
        swinging = circuit.state_of(state, "flexor")[1].any(axis=1, keepdims=True)
        if not swinging.any():
            break
        state = circuit.step(state, inputs).map(partial(np.where, swinging), state)
    return state


def recorded(name):
    """Two individuals of a policy as it was recorded."""
    found = load(BEFORE[name])
    controller = found.controller(2)
    return Standing(controller, found.policy.command) if name.startswith("ncap") else controller


def test_everything_that_was_recorded_is_still_shipped_but_the_blend_of_many_speeds(before):
    assert {key.split("/")[0] for key in before} == {*BEFORE, "ncap-flat-speeds"}


@pytest.mark.parametrize("name", BEFORE)
def test_actions_and_neurons_are_those_of_before_to_the_twelfth_digit(before, name):
    controller, observations = recorded(name), before[f"{name}/observation"].astype(np.float64)
    state, actions, neurons = controller.reset(SEEDS), [], []
    for t in range(200):
        state, action = controller.act(state, observations[:, t])
        actions.append(action)
        if t % 4 == 3:
            neurons.append(controller.signals(state).get("neurons"))
    assert np.abs(np.stack(actions, 1) - before[f"{name}/action"]).max() < 1e-12
    if name.startswith("ncap"):
        assert controller.controller.circuit.neurons == tuple(before[f"{name}/neuron_names"])
        assert np.abs(np.stack(neurons, 1) - before[f"{name}/neurons"]).max() < 1e-12


@pytest.mark.parametrize("name", BEFORE)
def test_returns_are_those_of_before(before, name):
    short = replace(TASKS[name.split("-", 1)[1]], episode_seconds=6.0)
    played = rollout(short, recorded(name), SEEDS)
    assert played.returns == pytest.approx(before[f"{name}/returns"], abs=1e-9)


@pytest.mark.parametrize("name", ["mlp-flat-run", "ncap-flat-walk"])
def test_files_of_the_first_version_are_converted_on_reading_and_act_as_todays(name):
    first, today = read_policy(DATA / "first" / f"{name}.safetensors"), load(BEFORE[name])
    assert first.policy == today.policy
    assert np.array_equal(first.theta, today.theta)
    assert first.task == today.task
    assert own_command(first, TASKS["flat-walk"]) is None  # it keeps its own command
    observations = np.random.default_rng(0).uniform(-1, 1, (20, 2, 4, 10))
    one, other = first.controller(2), today.controller(2)
    state, same = one.reset(SEEDS), other.reset(SEEDS)
    for observation in observations:
        state, action = one.act(state, observation)
        same, again = other.act(same, observation)
        assert np.array_equal(action, again)


def test_circuits_of_the_first_version_which_said_default_have_the_papers_table():
    found = read_policy(DATA / "first" / "ncap-flat-walk.safetensors")
    assert found.policy.circuit == animal("paper")
    assert found.parameters == 92
    assert own_command(found, TASKS["flat-walk"]) is None


def test_a_file_of_the_first_version_with_a_set_of_weights_for_each_of_several_commands_is_refused():
    with pytest.raises(
        UserError, match=r"ncap-flat-speeds\.safetensors: .*paces are \[0\.0, 0\.1, 0\.45, .*one set of"
    ):
        read_policy(FIRST_SPEEDS)


OTHERS = {
    "ncap-flat-speeds": "flat-speeds",
    "ncap-flat-bound": "flat-run",
    "ncap-drive": "flat-drive",
    "ncap-go2-drive": "flat-drive",
    "ncap-go1-walk": "flat-walk",
    "ncap-go2-walk": "flat-walk",
    "ncap-swim": "swim",
}
"""Shipped circuits beside those of the paper's tasks, and what they were trained for."""
DRIVEN = ("ncap-drive", "ncap-go2-drive")
SWIMMER = "ncap-swim"


def test_a_circuit_of_each_kind_is_shipped_for_every_task_of_the_paper_and_some_that_do_more():
    circuits = {f"{kind}-{task}" for kind in ("paper", "ncap") for task in PAPER_TASKS}
    assert set(NAMES) == circuits | OTHERS.keys() | {"mlp-flat-walk", "mlp-flat-run"}


@pytest.mark.parametrize("name", NAMES)
def test_shipped_policies_know_their_task_and_have_the_sizes_of_their_tables(name):
    found = load(name)
    assert found.task == OTHERS.get(name, name.split("-", 1)[1])
    # 92 weights in the paper's table, 112 in the default, 120 in drive; PPO: 40 · 64 + 64 + 64² + 64 + 64 · 12 + 12
    sizes = {"mlp-flat-run": 7564, "mlp-flat-walk": 79_372, **dict.fromkeys(LED, 112), **dict.fromkeys(DRIVEN, 120)}
    sizes[SWIMMER] = 4
    assert found.parameters == sizes.get(name, 92)
    if isinstance(found.policy, NCAPPolicy):
        table = "drive" if name in DRIVEN else "default" if name in LED else "paper"
        assert found.policy.circuit == (swimmer() if name == SWIMMER else animal(table))
        assert found.policy.copies == 1


@pytest.mark.parametrize("name", LED)
def test_shipped_circuits_play_their_task_at_the_command_of_their_training(name):
    found = load(name)
    assert found.policy.command == found.about["training"]["command"]
    played = rollout(replace(task_for(found), episode_seconds=1.5), found.controller(2), SEEDS)
    assert played.steps.tolist() == [50, 50]
    assert not played.fell.any()
    assert np.isfinite(played.returns).all()
