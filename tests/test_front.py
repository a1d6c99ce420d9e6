"""The front door: names instead of deep imports, and sentences instead of tracebacks."""

from dataclasses import replace

import numpy as np
import pytest

import ncap
from ncap.policies.controller import ZeroController

SHORT = replace(ncap.TASKS["flat-walk"], episode_seconds=0.6)


@pytest.fixture
def short(monkeypatch):
    """The usual tasks with episodes of 20 control steps."""
    for name, task in ncap.TASKS.items():
        monkeypatch.setitem(ncap.TASKS, name, replace(task, episode_seconds=0.6))


class Careless(ZeroController):
    """Acts by whatever it was given."""

    def __init__(self, action):
        self.action = action

    def act(self, state, observation, command=None):
        return None, self.action


def test_a_controller_may_act_by_lists_and_single_precision(short):
    zeros = ncap.rollout("flat-walk", "zero", seeds=[0]).returns
    for action in (np.zeros((1, 4, 3), np.float32), np.zeros((1, 4, 3)).tolist(), np.zeros((1, 4, 3), int)):
        assert np.array_equal(ncap.rollout("flat-walk", Careless(action), seeds=[0]).returns, zeros)


def test_seeds_may_be_an_array(short):
    expected = ncap.rollout("flat-walk", "zero", seeds=[3, 4]).returns
    for seeds in (np.array([3, 4]), range(3, 5), (3, np.int32(4))):
        assert np.array_equal(ncap.rollout("flat-walk", "zero", seeds=seeds).returns, expected)


def test_a_shipped_policy_is_measured_in_one_line():
    found = ncap.load("paper-flat-walk").evaluate("flat-walk", seeds=[0])
    assert (found.task, found.policy, found.episodes, found.parameters) == ("flat-walk", "paper-flat-walk", 1, 92)
    assert found.falls == 0
    assert found.return_mean == found.returns[0] > 0.9  # it was trained to near 1; standing still gives 0.5
    assert found.gait.label == "walk"


def test_names_and_things_are_the_same(short, tmp_path):
    trained = ncap.load("ncap-flat-run")
    trained.save(tmp_path / "run.safetensors")
    expected = ncap.rollout(ncap.TASKS["flat-run"], trained.controller(2), seeds=[0, 1]).returns
    for policy in ("ncap-flat-run", trained, tmp_path / "run.safetensors", str(tmp_path / "run.safetensors")):
        assert np.array_equal(ncap.rollout("flat-run", policy, seeds=[0, 1]).returns, expected)
        assert ncap.evaluate(policy, seeds=[0, 1]).returns == expected.tolist()
    assert trained.evaluate(seeds=[0, 1]).returns == expected.tolist()


def test_an_untrained_circuit_has_the_command_that_suits_the_task(short):
    untrained = ncap.load("untrained")
    for task in ("flat-walk", "flat-run"):
        command = ncap.TASKS[task].command
        found = ncap.rollout(task, "untrained", seeds=[0])
        same = ncap.rollout(ncap.TASKS[task], untrained.controller(1), seeds=[0], command=command)
        assert np.array_equal(found.returns, same.returns)
    assert not np.array_equal(found.returns, ncap.rollout("flat-run", "untrained", seeds=[0], command=0.1).returns)


def test_training_from_the_front_door_gives_the_policy_of_its_folder(short, tmp_path):
    training = ncap.Training(task="bumpy-walk", epochs=1, population=4, episodes=1, training_seconds=0.3)
    best = ncap.train(training, str(tmp_path / "run"), threads=1)
    found = ncap.load(tmp_path / "run")
    assert np.array_equal(best.theta, found.theta)
    assert found.task == "bumpy-walk"
    assert ncap.evaluate(tmp_path / "run", seeds=[3]).task == "bumpy-walk"  # and not on flat-walk


def test_a_circuit_is_edited_saved_and_put_into_a_body(short, tmp_path):
    ncap.save_circuit(ncap.animal(), tmp_path / "mine.json")
    spec = ncap.load_circuit(tmp_path / "mine.json").without(["diag_V0v"])
    player = ncap.untrained(ncap.NCAPPolicy(circuit=spec))
    assert "diag_V0v" not in str(player.policy.circuit)
    assert np.isfinite(ncap.evaluate(player, "flat-walk", seeds=[0]).return_mean)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ncap.NCAPPolicy().bind(np.zeros(112)), r"weights have the shape \(individuals, 112\), not \(112,\)"),
        (lambda: ncap.MLPPolicy().bind(np.zeros((2, 100))), r"the shape \(individuals, 79372\), not \(2, 100\)"),
        (
            lambda: ncap.TrainedPolicy(policy=ncap.NCAPPolicy(), theta=np.zeros((1, 112))),
            r"112 weights are needed, not \(1, 112\)",
        ),
        (
            lambda: ncap.load("untrained").controller(1).act(None, np.zeros((1, 4, 9))),
            "an observation has 40 numbers, or 56 with the posture of the trunk, not 36",
        ),
        (
            lambda: ncap.rollout(SHORT, ZeroController((4, 2)), seeds=[0]),
            r"actions have the shape \(1, 4, 2\), but \(1, 4, 3\) is needed",
        ),
        (lambda: ncap.rollout(SHORT, "zero", seeds=[]), "at least one episode is needed"),
        (lambda: ncap.rollout(SHORT, "zero", seeds=[-1]), "a seed is a number from 0 on, not -1"),
        (lambda: ncap.rollout(SHORT, "untrained", seeds=[-3]), "a seed is a number from 0 on, not -3"),
        (lambda: ncap.rollout(SHORT, "zero", seeds=[0], threads=0), "at least one thread is needed, not 0"),
        (lambda: ncap.evaluate("zero", SHORT, seeds=[0], threads=-1), "at least one thread is needed, not -1"),
        (lambda: ncap.rollout("fly", "zero"), "unknown task 'fly'; valid: flat-walk"),
        (lambda: ncap.load("horse"), "unknown policy 'horse'; valid: zero, random, untrained"),
        (lambda: ncap.rollout(SHORT, "zero", seeds=[0], record=["mood"]), "unknown signal 'mood'; valid"),
        (lambda: ncap.rollout(SHORT, "untrained", seeds=[0], command={"turn": 1.0}), "unknown command 'turn'; valid"),
        (lambda: ncap.Training(seed=-1), "a seed is a number from 0 on, not -1"),
        (lambda: ncap.rollout(SHORT, "zero", seeds="01"), "seeds are whole numbers in a list, tuple, range or array"),
        (lambda: ncap.rollout(SHORT, "zero", seeds=[0.5]), "seeds are whole numbers"),
        (lambda: ncap.rollout(SHORT, "zero", seeds=np.zeros(2)), "seeds are whole numbers"),
        (lambda: ncap.rollout(SHORT, "zero", seeds=[None]), "seeds are whole numbers"),
        (lambda: ncap.rollout(SHORT, "zero", seeds=3), "seeds are whole numbers .* not in this int"),
        (lambda: ncap.rollout(SHORT, "zero", seeds={0: 1}), "seeds are whole numbers .* not in this dict"),
        (lambda: ncap.rollout(SHORT, "zero", seeds=range(10**8)), "up to 10,000 episodes are played at once"),
        (
            lambda: ncap.rollout(SHORT, "zero", seeds=[0], threads=1.5),
            "the number of threads is a whole number, not float",
        ),
        (lambda: ncap.rollout(SHORT, "zero", seeds=[0], threads=10**6), "up to 1,024 threads are possible"),
        (lambda: ncap.rollout(["flat-walk"], "zero"), "a task is a name or a Task, not list"),
        (
            lambda: ncap.rollout(SHORT, None),
            "a policy is a name, a path, a TrainedPolicy or a controller, not NoneType",
        ),
        (lambda: ncap.rollout(3, ZeroController((4, 3))), "a task is a name or a Task, not int"),
        (lambda: ncap.rollout(SHORT, Careless(None), seeds=[0]), "an action is made of numbers, not of NoneType"),
        (lambda: ncap.rollout(SHORT, Careless("up"), seeds=[0]), "an action is made of numbers, not of 'up'"),
        (lambda: ncap.rollout(SHORT, Careless([1.0]), seeds=[0]), r"the shape \(1,\), but \(1, 4, 3\) is needed"),
        (lambda: ncap.evaluate(7), "a policy is a name, a path or a TrainedPolicy, not int"),
        (lambda: ncap.evaluate("zero", SHORT, seeds=[]), "at least one episode is needed"),
        (lambda: ncap.evaluate("zero", SHORT, seeds=[-2]), "a seed is a number from 0 on, not -2"),
        (
            lambda: ncap.evaluate("untrained", SHORT, command="fast"),
            "a brainstem command is made of numbers, not of 'fast'",
        ),
        (lambda: ncap.evaluate("untrained", SHORT, command=np.nan), r"brainstem command nan is outside \[0, 1\]"),
        (lambda: ncap.lesion("untrained", "V0"), "lesions are a list of names, not the text 'V0'"),
        (lambda: ncap.lesion("untrained", ["V0"], commands=["slow"]), "a brainstem command is made of numbers"),
        (lambda: ncap.lesion("untrained", ["V0"], commands=[2]), r"command 2 is outside \[0, 1\]"),
        (lambda: ncap.lesion("untrained", ["V0"], seeds=[]), "at least one episode is needed"),
        (lambda: ncap.rhythm(None), "a circuit is a name or a CircuitSpec, not NoneType"),
        (lambda: ncap.rhythm(command="fast"), "a brainstem command is made of numbers, not of 'fast'"),
        (lambda: ncap.rhythm(command=[0.1, 0.2]), "a brainstem command is one number from 0 on"),
        (lambda: ncap.rhythm(command=1.5), r"command 1.5 is outside \[0, 1\]"),
        (lambda: ncap.rhythm(seed=-1), "a seed is a number from 0 on, not -1"),
        (lambda: ncap.rhythm(seed="x"), "seeds are whole numbers"),
        (lambda: ncap.rhythm(seconds=np.nan), "a time has numbers that are not finite"),
        (lambda: ncap.rhythm(seconds=0), "a rhythm is measured for 0.0025 s to 3600 s, not 0 after 8"),
        (lambda: ncap.rhythm(seconds=1e12), "a rhythm is measured for 0.0025 s to 3600 s"),
        (lambda: ncap.rhythm(settling=-1), "a time is one number from 0 on, not -1"),
    ],
)
def test_a_mistake_is_answered_by_a_sentence(call, sentence):
    with pytest.raises(ncap.UserError, match=sentence):
        call()
