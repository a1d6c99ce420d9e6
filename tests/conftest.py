from pathlib import Path

import numpy as np
import pytest

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
