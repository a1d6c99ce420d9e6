"""Learning curves of runs, and when a run has learned its task."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.runs import read_progress

Array = NDArray[np.float64]

LEARNED: Final = 0.90
"""Test return from which on a policy counts as having learned its task."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Test returns of one run, (T,) before each of its epochs, and what was spent until then."""

    rollouts: Array
    """Episodes of full length; three of a third of it count as one."""
    steps: Array
    """Control steps."""
    cpu_seconds: Array
    """CPU time of learning and testing together, over all threads."""
    returns: Array

    def until_learned(self, spent: str) -> float:
        """Rollouts, steps or cpu_seconds until the test return is first at LEARNED; infinite if it never is."""
        reached = np.flatnonzero(self.returns >= LEARNED)
        return float(getattr(self, spent)[reached[0]]) if len(reached) else np.inf


def read_curve(place: Path) -> Curve:
    """The curve of a run directory."""
    rows = read_progress(place)
    return Curve(
        rollouts=np.array([row["rollouts"] for row in rows]),
        steps=np.array([row["steps"] for row in rows]),
        cpu_seconds=np.cumsum([0.0] + [row["cpu_seconds"] for row in rows[:-1]]),
        returns=np.array([row["test_return"] for row in rows]),
    )
