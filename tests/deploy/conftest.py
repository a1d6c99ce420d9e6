import os
import time

import numpy as np
import pytest

from ncap.deploy.lcm_udp import LcmEnd
from ncap.deploy.messages import State
from ncap.errors import UserError


@pytest.fixture
def a_state():
    """Builds the state of a robot that stands still, with whatever is asked for changed."""

    def build(**changes) -> State:
        standing = State(
            tick=1000,
            quaternion=np.array([1.0, 0.0, 0.0, 0.0]),
            angular_velocity=np.zeros(3),
            acceleration=np.array([0.0, 0.0, 9.81]),
            joint_position=np.tile([0.0, 0.7, -1.2], (4, 1)),
            joint_velocity=np.zeros((4, 3)),
            torque=np.zeros((4, 3)),
            temperature=np.full((4, 3), 30.0),
            foot_force=np.full(4, 30.0),
        )
        return standing._replace(**changes)

    return build


@pytest.fixture(scope="session")
def lcm_port():
    """A port of this process alone: tests run side by side, and multicast is heard by all of them."""
    return 10_000 + os.getpid() % 10_000


@pytest.fixture(scope="session")
def multicast(lcm_port):
    """Datagrams really pass on this host by our own reader and writer, otherwise what needs them is skipped."""
    heard = []
    try:
        ends = [LcmEnd(f"udpm://239.255.76.67:{lcm_port}?ttl=0", "TEST", heard.append) for _ in range(2)]
        ends[1].publish("TEST", b"x")
        ends[0].wait_until(time.monotonic() + 0.2)
    except (UserError, OSError):
        pytest.skip("needs multicast on this host")
    for end in ends:
        end.close()
    if not heard:
        pytest.skip("needs multicast on this host")


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path, monkeypatch):
    """Locks of robots are kept apart from the user's own, and those of every test from each other."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
