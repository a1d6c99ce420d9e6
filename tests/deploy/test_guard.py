"""The guard process damps exactly when a commander died in flight, and its own death is seen."""

import io
import os
import signal
import time

import pytest

from ncap.deploy import guard as guards
from ncap.deploy.guard import Guard, watch
from ncap.deploy.lcm_udp import LcmEnd
from ncap.deploy.messages import COMMAND_CHANNEL, decode_command


def url_of(port: int) -> str:
    return f"udpm://239.255.76.67:{port}?ttl=0"


@pytest.mark.parametrize(
    ("said", "damps"),
    [
        (b"", False),  # died before the first command: somebody else may drive the robot
        (b"engaged\n", True),
        (b"engaged\ndone\n", False),
        (b"done\n", False),
        (b"garbage", False),
    ],
)
def test_it_damps_only_a_robot_that_was_left_in_flight(multicast, lcm_port, monkeypatch, capsys, said, damps):
    monkeypatch.setattr(guards, "SECONDS", 0.1)
    heard = []
    with LcmEnd(url_of(lcm_port), COMMAND_CHANNEL, lambda data: heard.append(decode_command(data))) as ear:
        assert watch(url_of(lcm_port), io.BytesIO(said)) == damps
        ear.wait_until(time.monotonic() + 0.05)
    assert (len(heard) > 0) == damps  # some fifty, or fewer on a busy machine
    assert all(command.is_damping for command in heard)
    assert len(heard) < 60  # one every 2 ms


def test_a_guard_lives_until_the_end_or_until_it_is_killed(multicast, lcm_port):
    with Guard(url_of(lcm_port)) as guard:
        assert guard.alive
        guard.engage()
        os.kill(guard._process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 5.0
        while guard.alive and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not guard.alive
        guard.release()  # to nobody, which is no error
    with Guard(url_of(lcm_port)) as guard:
        guard.engage()
        guard.release()
        process = guard._process
    assert process.returncode == 0


def test_a_guard_that_hangs_does_not_keep_the_commander(multicast, lcm_port, monkeypatch):
    monkeypatch.setattr(guards, "PATIENCE", -0.5)
    with Guard(url_of(lcm_port)) as guard:
        os.kill(guard._process.pid, signal.SIGSTOP)
        began = time.monotonic()
    assert 0.4 < time.monotonic() - began < 3.0
    assert guard._process.returncode == -signal.SIGKILL
