"""A policy in action whose circuit can be driven, cut and deafferented while it runs. One individual."""

import copy
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import KNOCKOUTS, check_command
from ncap.errors import unknown_name
from ncap.experiments.evaluation import find_controller
from ncap.policies.ncap import NCAPController

Array = NDArray[np.float64]

INTACT: Final = "nothing"
"""What is knocked out when nothing is."""


class Brain:
    """A policy by name, with its own state. Every policy acts; only one with a circuit can be operated on."""

    def __init__(self, name: str, task: str) -> None:
        self.name = name
        self._controller, self.parameters = find_controller(name, task, 1)
        self._whole = self._controller if isinstance(self._controller, NCAPController) else None
        if self._whole is not None:  # the circuit is shared with every controller of the policy: cut a copy
            self._intact = self._whole.circuit
        self._state: Any = None

    @property
    def circuit(self) -> Circuit | None:
        """The circuit as it is now; None for a policy without one."""
        return None if self._whole is None else self._whole.circuit

    @property
    def command(self) -> float | None:
        """Brainstem command; None for a policy without a circuit."""
        return None if self._whole is None else float(self._whole.command[0])

    def drive(self, command: float) -> None:
        """Set the brainstem command in [0, 1]."""
        check_command(command)
        if self._whole is not None:
            self._whole.command = np.array([command])

    def knock_out(self, name: str) -> None:
        """Silence what a name of KNOCKOUTS stands for, and heal everything else. The state goes on."""
        populations, routes = silenced(name)
        if self._whole is None:
            return
        spec = self._intact.spec
        kept = [
            0.0 if {row.source, row.target} & populations or row.route in routes else row.weight
            for row in spec.synapses
        ]
        circuit = copy.copy(self._intact)
        circuit.weights = circuit.weights_from(np.array(kept))
        for population in populations:
            circuit.weights[circuit.columns(population), -1] = 0.0  # no bias either: the neuron falls silent
        self._whole.circuit = circuit

    def set_feedback(self, on: bool) -> None:
        """Connect or cut all afferents: without them the rhythm is the circuit's alone."""
        if self._whole is not None:
            self._whole.feedback = on

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        self._state = self._controller.reset([seed])

    def act(self, observation: Array) -> Array:
        """Action (leg, 3) for an observation (leg, 10)."""
        self._state, action = self._controller.act(self._state, observation[None])
        first: Array = action[0]
        return first

    def signals(self) -> Array:
        """Activity (N + I,) of all neurons and then all inputs, as the circuit orders them; empty without a circuit."""
        if self._whole is None:
            return np.zeros(0)
        signals: Array = self._state.signals[0, :-1].copy()
        return signals


def silenced(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """(populations, routes) that a knock-out silences."""
    if name == INTACT:
        return frozenset(), frozenset()
    if name not in KNOCKOUTS:
        raise unknown_name("knock-out", name, (INTACT, *KNOCKOUTS))
    populations, routes = KNOCKOUTS[name]
    return frozenset(populations), frozenset(routes)
