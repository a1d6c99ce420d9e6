from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("ncap", deadline=None)  # how long an example takes is the machine's business
settings.load_profile("ncap")

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def reference_traces():
    """The released rhythm generator, computed by its authors' program in float64."""
    with np.load(DATA / "rg_released_float64.npz") as data:
        return dict(data)


@pytest.fixture(scope="session")
def reference_trajectories():
    """The authors' environment on the plane: actions and joint positions, legs in Unitree's order."""
    with np.load(DATA / "env_flat_float64.npz") as data:
        return dict(data)


@pytest.fixture(scope="session")
def lcm_network():
    """LCM datagrams really pass on this host, otherwise what needs them is skipped."""
    lcm = pytest.importorskip("lcm", reason="needs the package lcm")
    heard = []
    try:
        ends = [lcm.LCM("udpm://239.255.76.67:7799?ttl=0") for _ in range(2)]
    except RuntimeError:
        pytest.skip("needs multicast on this host")
    ends[0].subscribe("TEST", lambda *_: heard.append(1))
    ends[1].publish("TEST", b"x")
    ends[0].handle_timeout(500)
    if not heard:
        pytest.skip("needs multicast on this host")
