"""Training on a Ray cluster gives the same weights as here, also when workers and nodes die."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncap.errors import UserError
from ncap.learn.executors import LocalExecutor, RayExecutor, play
from ncap.learn.settings import Training
from ncap.learn.training import train
from ncap.tasks import TASKS
from ncap.trained import read_policy

TRAINING = Training(task="flat-walk", population=64, epochs=3, seed=2, episodes=1, training_seconds=0.6)


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    monkeypatch.setitem(TASKS, "flat-walk", replace(TASKS["flat-walk"], episode_seconds=0.6))


def weights(folder: Path, executor, report=lambda row: None) -> np.ndarray:
    train(TRAINING, folder, executor=executor, report=report)
    return read_policy(folder / "last.safetensors").theta


def dying_once(marks: Path):
    """`play`, but the worker that gets the second chunk of an epoch is killed the first time."""

    def play_or_die(chunk):
        mark = marks / f"killed-in-epoch-{chunk.epoch}"
        if chunk.indices and chunk.indices[0] == 16 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return play(chunk)

    return play_or_die


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_cluster_that_loses_workers_and_a_node_ends_in_the_same_weights_as_here(tmp_path):
    ray = pytest.importorskip("ray")
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    expected = weights(tmp_path / "local", LocalExecutor(1))
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    executor = RayExecutor(cluster.address)
    try:
        assert sum(node["Alive"] for node in ray.nodes()) == 2
        executor._play = ray.remote(num_cpus=1, max_retries=-1)(dying_once(tmp_path))

        def lose_the_node(row):
            if row["epoch"] == 0:
                cluster.remove_node(second, allow_graceful=False)

        theta = weights(tmp_path / "cluster", executor, lose_the_node)
        assert len(list(tmp_path.glob("killed-in-epoch-*"))) == 3
        assert np.array_equal(theta, expected)
    finally:
        executor.close()
        cluster.shutdown()


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'ncap\[cluster\]'"):
        RayExecutor("local")
