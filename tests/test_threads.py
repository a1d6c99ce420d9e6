"""BLAS and torch have one thread within our functions and as many as before outside of them."""

import os
import subprocess
import sys

import pytest

from ncap.threads import _VARIABLES

THREADS = f"""
import os, sys, threadpoolctl
def threads():
    return {{library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}}
def three():
    import numpy, scipy.linalg
    threadpoolctl.threadpool_limits(3, user_api="blas")
def variables():
    return {{name: os.environ.get(name) for name in {_VARIABLES!r}}}
"""


def run_python(program: str) -> list[str]:
    """Lines that a fresh process prints, in whose environment no threads are pinned."""
    environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", THREADS + program], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip().splitlines()


def test_importing_ncap_changes_no_environment_variable():
    assert run_python("before = dict(os.environ)\nimport ncap\nprint(before == os.environ)") == ["True"]


def test_whatever_is_imported_from_it_no_thread_setting_changes():
    before, after = run_python("""
three()
print(threads(), variables())
import ncap
for name in ncap.__all__:
    try:
        getattr(ncap, name)
    except (ImportError, AttributeError):
        pass
print(threads(), variables())
""")
    assert before.startswith("{3}"), "BLAS was not found, so the test shows nothing"
    assert before == after


def test_importing_the_learners_leaves_torch_as_it_is():
    pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    before, after = run_python("""
import torch
torch.set_num_threads(3)
print(torch.get_num_threads(), variables())
import ncap, ncap.learn.ppo, ncap.learn.d4pg, ncap.learn.training
print(torch.get_num_threads(), variables())
""")
    assert before.startswith("3 ")
    assert before == after


def test_a_rollout_has_one_blas_thread_and_gives_the_others_back():
    before, within, after = run_python("""
from dataclasses import replace
from ncap.policies.controller import ZeroController
from ncap.rollouts import rollout
from ncap.tasks import TASKS
seen = []
class Watches(ZeroController):
    def act(self, state, observation, command=None):
        seen.append(threads())
        return super().act(state, observation, command)
three()
print(threads())
rollout(replace(TASKS["flat-walk"], episode_seconds=0.06), Watches((4, 3)), [0])
print(seen[-1])
print(threads())
""")
    assert (before, within, after) == ("{3}", "{1}", "{3}")


def test_a_failing_rollout_gives_the_threads_back_too():
    assert run_python("""
from ncap.policies.controller import ZeroController
from ncap.rollouts import rollout
from ncap.tasks import TASKS
three()
try:
    rollout(TASKS["flat-walk"], ZeroController((4, 2)), [0])
except Exception:
    print(threads())
""") == ["{3}"]


def test_training_by_gradients_has_one_torch_thread_and_gives_the_others_back():
    torch = pytest.importorskip("torch")
    from ncap.learn.networks import one_torch_thread

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_torch_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("first", ["import numpy, scipy.linalg", "import ncap.threads"])
def test_a_program_of_ours_is_pinned_as_a_whole_whether_numpy_is_there_or_not(first):
    (printed,) = run_python(f"""
{first}
import ncap.threads
ncap.threads.pin_process()
import numpy, scipy.linalg
print(threads())
""")
    assert printed == "{1}"
