"""One policy in action whose command and knock-outs can be changed while it plays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.animal import cut
from ncap.circuits.rhythm import check_command
from ncap.circuits.spec import CircuitSpec
from ncap.errors import UserError
from ncap.policies.brainstem import can_be_driven
from ncap.policies.controller import Command, Controller
from ncap.policies.ncap import NCAPController, NCAPPolicy
from ncap.recording import numbers_in_use
from ncap.trained import TrainedPolicy
from ncap.view.diagram import signal_names

Array = NDArray[np.float64]


class Brain:
    """A policy for one robot, with its state, its brainstem command and its knock-outs.

    A policy without a circuit acts too, but takes neither a command nor knock-outs.
    """

    def __init__(self, trained: TrainedPolicy, command: float | None = None) -> None:
        """`command`: brainstem command; by default the policy's own."""
        self.trained = trained
        """The policy without any knock-out."""
        self.without: tuple[str, ...] = ()
        """Names of what is knocked out now; see ncap.circuits.animal.cut."""
        self.command: float | None = None
        """Brainstem command in [0, 1]; None for a policy without a circuit."""
        policy = trained.policy
        self.table: CircuitSpec | None = None
        """The circuit without any knock-out; None for a policy without one."""
        self.names: tuple[str, ...] = ()
        """Names of the `signals`, whatever is knocked out."""
        if isinstance(policy, NCAPPolicy):
            self.table = policy.circuit
            self.names = signal_names(policy.circuit)
            self.command = policy.command if command is None else check_command(command)
        self.controller: Controller = trained.controller(1)
        """What acts now, after all knock-outs."""
        self._state: Any = None
        self._active: dict[str, float] = {}
        """Activity of the last step by name."""

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.trained.name

    @property
    def numbers(self) -> Array:
        """(K,) numbers of the table after training, none of them knocked out; empty without a circuit."""
        return numbers_in_use(self.trained)

    def drive(self, command: float) -> None:
        """Set the brainstem command in [0, 1]; a policy without a circuit ignores it."""
        check_command(command)
        if self.table is not None:
            self.command = command

    def knock_out(self, names: Sequence[str]) -> None:
        """Silence what these names stand for, and heal everything else. What is left keeps its state."""
        wanted = tuple(dict.fromkeys(names))
        if wanted == self.without:
            return
        controller, before = self.trained.without(wanted).controller(1), self.controller
        if self._state is not None and isinstance(controller, NCAPController) and isinstance(before, NCAPController):
            self._state = controller.circuit.adopt(self._state, before.circuit)
        self.controller, self.without = controller, wanted

    def reset(self, seed: int) -> None:
        """Begin the episode of a seed."""
        self._state = self.controller.reset([seed], self.command)
        self._active = {}

    @property
    def can_be_driven(self) -> bool:
        """Whether its circuit can turn and stop."""
        return self.table is not None and can_be_driven(self.table)

    def act(self, observation: Array, said: Mapping[str, Array] | None = None) -> Array:
        """Action (leg, joint) for an observation (leg, sense). said: what a brainstem says in place of the command."""
        command: Command | None = self.command if said is None else said
        controller = self.controller
        if not isinstance(controller, NCAPController):
            self._state, action = controller.act(self._state, observation[None], command)
            return np.asarray(action[0])
        self._state, board = controller.think(self._state, observation[None], command)
        self._active = dict(zip(controller.system.names, board[0, :-1].tolist(), strict=True))
        return np.asarray(controller.action(board)[0])

    def signals(self) -> Array:
        """(S,) activity of what `names` lists: neurons, motor neurons, sums and inputs; 0 for what is knocked out."""
        if self.table is None or not isinstance(self.controller, NCAPController):
            return np.zeros(0)
        system = self.controller.system
        left = {row.name for row in system.spec.neurons} | {synapse.source for synapse in system.spec.synapses}
        there = {name for name in system.index if name.rpartition(".")[0] in left}
        return np.array([self._active.get(name, 0.0) if name in there else 0.0 for name in self.names])

    def columns(self, population: str) -> list[int] | None:
        """Where the neurons of a population stand in the signals, one for every leg; None if some leg has none."""
        if self.table is None:
            return None
        wanted = [f"{population}.{site}" for site in self.table.plan.sites]
        return [self.names.index(name) for name in wanted] if set(wanted) <= set(self.names) else None


def toggled(table: CircuitSpec, without: Sequence[str], name: str) -> tuple[str, ...]:
    """Knock-outs after a click on a part of the circuit: it is silenced, or, if it is silent, healed.

    A part that is silent because it belongs to a larger knock-out is healed by healing all of that.
    """
    cut(table, [name])  # an unknown name is refused
    single = _left(table, name)
    reasons = [other for other in without if other == name or (single and not _left(cut(table, [other]), name))]
    return tuple(other for other in without if other not in reasons) if reasons else (*without, name)


def valid_knock_outs(table: CircuitSpec | None, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the names that can be knocked out of a table; None can lose nothing."""
    if table is None:
        return ()
    kept = []
    for name in names:
        try:
            cut(table, [name])
        except UserError:
            continue
        kept.append(name)
    return tuple(kept)


def _left(table: CircuitSpec, name: str) -> bool:
    """Whether a table has this single neuron, synapse row, or input that reaches something."""
    singles = {f"{row.name}.{site}" for row in table.neurons for site in table.sites_of(row)}
    return name in singles | {row.key for row in table.synapses} | {row.source for row in table.synapses}
