"""What steers a swimmer to a target: commands to turn and to swim, from where the target is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ncap.circuits.spec import CircuitSpec
from ncap.policies.brainstem import Array, Brainstem


@dataclass(frozen=True, kw_only=True)
class Seeker:
    """Turns to the side on which the target is, and swims while it is far ahead or behind. It remembers nothing."""

    aside: float = 0.1
    """Distance to a side from which on it turns, m."""
    far: float = 0.12
    """Distance ahead or behind from which on it swims, m."""

    def start(self, individuals: int) -> None:
        """Nothing to remember."""

    def step(
        self, state: None, wanted: Sequence[Array], felt: tuple[Array, Array], dt: float
    ) -> tuple[None, dict[str, Array]]:
        """(None, commands of the circuit, (P,) each) for goals as in ncap.rewards.Goal: ahead and left are its last."""
        ahead, left = wanted[-2:]
        said = {"c": np.abs(ahead) > self.far, "right": left < -self.aside, "left": left > self.aside}
        return None, {name: value.astype(np.float64) for name, value in said.items()}


Guide = Brainstem | Seeker
"""What follows the wishes of a task: it has `start` and `step`, and gives a circuit its commands."""


def can_seek(circuit: CircuitSpec) -> bool:
    """Whether a table has the commands by which a target is steered to."""
    return {"right", "left", "speed"} <= {row.name for row in circuit.inputs if row.kind == "command"}
