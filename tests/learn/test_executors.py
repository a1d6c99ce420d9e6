"""Training on a Ray cluster gives the same weights as here, also when workers and nodes die."""

import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncap.errors import UserError
from ncap.learn import executors
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

    def play_or_die(chunks):
        (chunk,) = chunks
        mark = marks / f"killed-in-epoch-{chunk.epoch}"
        if chunk.indices and chunk.indices[0] == 16 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return play(chunks)

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


@pytest.fixture
def server(monkeypatch):
    """A port of this host, and how whoever listens there answers."""
    monkeypatch.setattr(executors, "ANSWER_SECONDS", 0.5)
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(data: bytes | None) -> str:
        def serve():
            connection, _ = listening.accept()
            with connection, suppress(ConnectionError):
                if data is not None:
                    connection.sendall(data)
                connection.recv(1000)  # the greeting
                connection.recv(1000)  # until the other side has gone

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listening.getsockname()[1]}"

    yield answer
    listening.close()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [(None, "nobody has answered within 0.5 s"), (b"HTTP/1.1 400 Bad Request\r\n", "something else answers there")],
)
def test_what_listens_at_a_port_but_is_no_cluster_is_refused_at_once(server, data, complaint):
    started = time.monotonic()
    with pytest.raises(UserError, match=complaint):
        RayExecutor(server(data))
    assert time.monotonic() - started < 5  # most of it is the import of Ray


def test_what_greets_as_ray_does_may_be_one(server):
    executors.check_answer(server(bytes((0, 0, 24, 4, 0, 0, 0, 0, 0)) + bytes(24)))  # settings, as a server sends them


def test_a_port_where_nobody_listens_and_names_that_are_never_found_are_refused(monkeypatch):
    monkeypatch.setattr(executors, "ANSWER_SECONDS", 0.2)
    with pytest.raises(UserError, match=r"no Ray cluster at '127\.0\.0\.1:1': Connection refused"):
        executors.check_answer("127.0.0.1:1")

    def look_up(*_):
        time.sleep(1)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", look_up)
    with pytest.raises(UserError, match=r"nobody has answered within 0\.2 s"):
        executors.check_answer("ray://far.example:10001")


@pytest.mark.parametrize("address", ["", "head", ":6379", "head:", "head:0", "head:65536", "head:x", "ray://", "höd:1"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(UserError, match="a cluster is local, auto, HOST:PORT or ray://HOST:PORT, not"):
        executors.check_answer(address)


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match="--cluster needs the extra cluster: "):
        RayExecutor("local")
