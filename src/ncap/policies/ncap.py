"""The paper's policy: a circuit table that turns senses and a brainstem command into joint targets.

By default it is the animal of ncap.circuits.animal: afferent feedback → rhythm generation → pattern formation, with 112
trained weights; the paper's has 92. Any other table of the same body plan can take its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.circuits.animal import animal, cut, mirrored
from ncap.circuits.circuit import Circuit, CircuitState, initial_numbers
from ncap.circuits.nervous_system import NervousSystem
from ncap.circuits.rhythm import STARTS, check_command, rhythm_starts
from ncap.circuits.spec import CircuitSpec
from ncap.errors import UserError, unknown_name
from ncap.params import ParamSpace
from ncap.policies.controller import (
    Command,
    check_observation,
    check_seeds,
    check_state,
    check_weights,
    numbers,
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

WALK: Final = 0.2
"""Brainstem command of a walk. Tasks name their own."""
MOST_COPIES: Final = 64
MOST_SUBSTEPS: Final = 1000
"""Circuit steps in a control step."""


@dataclass(frozen=True, kw_only=True)
class NCAPPolicy:
    """A circuit and how it is used: an immutable description; `bind` gives it weights."""

    command: float = WALK
    """Brainstem command c in [0, 1], where nobody gives another."""
    circuit: CircuitSpec = field(default_factory=animal)
    """The whole animal as a table."""
    copies: int = 1
    """Overparameterisation: 8 in the paper's training, 1 when compact."""
    control_dt: float = 0.030
    """Control step, s."""

    def __post_init__(self) -> None:
        if not isinstance(self.circuit, CircuitSpec):
            raise UserError(f"the circuit of a policy is a table (CircuitSpec), not {type(self.circuit).__name__}")
        if numbers(self.command, "a brainstem command").ndim:
            raise UserError("the brainstem command of a policy is one number: give others when it acts")
        check_command(self.command)
        if not 1 <= self.copies <= MOST_COPIES:
            raise UserError(f"weights may have 1 to {MOST_COPIES} copies, not {self.copies}")
        steps = self.control_dt / self.circuit.dt
        if not (0.5 < steps <= MOST_SUBSTEPS and abs(steps - round(steps)) < 1e-6):
            raise UserError(
                f"the control step, {self.control_dt:g} s, is no multiple of the circuit's step, {self.circuit.dt:g} s"
            )
        self.system  # noqa: B018 - a table that asks for senses that no body has is refused here

    @cached_property
    def space(self) -> ParamSpace:
        """The trained numbers of the table: 92 for the paper's, 708 with 8 copies."""
        trained = (entry.number for entry in self.circuit.entries if entry.row.trainable)
        return ParamSpace.from_rows(trained, self.copies)

    @cached_property
    def system(self) -> NervousSystem:
        """The compiled table, stepped several times in a control step."""
        plan = self.circuit.plan
        senses = [f"{name}{sign}.{site}" for sign in "-+" for site in plan.sites for name in plan.senses]
        if self.feels_posture:
            senses += [f"{name}.{site}" for site in plan.sites for name in plan.posture]
        return NervousSystem(self.circuit, senses, round(self.control_dt / self.circuit.dt))

    @cached_property
    def feels_posture(self) -> bool:
        """Whether the table asks for more than the paper's legs feel: the posture of the trunk."""
        own = {f"{name}{sign}" for sign in "-+" for name in self.circuit.plan.senses}
        return any(row.kind == "sense" and row.name not in own for row in self.circuit.inputs)

    @cached_property
    def felt(self) -> tuple[Indices, Indices]:
        """(what legs feel themselves, the posture): where each stands in an observation, all legs in a row."""
        plan = self.circuit.plan
        sites, own, posture = len(plan.sites), len(plan.senses), len(plan.posture) if self.feels_posture else 0
        places = np.arange(sites * (own + posture)).reshape(sites, -1)
        return places[:, :own].ravel(), places[:, own:].ravel()

    @property
    def mirrored(self) -> Array:
        """(site, joint) what turns the outputs of motor neurons into actions; see ncap.circuits.animal."""
        return mirrored(self.circuit)

    @property
    def core(self) -> Circuit:
        """The compiled rhythm generator."""
        return self.system.circuit

    def numbers(self, theta: Array) -> Array:
        """(P, K) the numbers of the whole table with trained weights theta (P, D)."""
        trained = [i for i, entry in enumerate(self.circuit.entries) if entry.row.trainable]
        numbers = np.tile(initial_numbers(self.circuit), (len(theta), 1))
        numbers[:, trained] = self.space.compress(theta)
        return numbers

    def commands(self, command: Command | None, individuals: int) -> Array:
        """(P, C) the command inputs of the table from one number, from names of inputs, or from such an array."""
        names, what = self.system.commands, "a brainstem command"
        given: dict[str, float | Array] = {"c": self.command}
        if isinstance(command, Mapping):
            given |= command
        elif command is not None:
            given["c"] = said = numbers(command, what)
            if said.ndim == 2:
                if said.shape != (individuals, len(names)):
                    wanted = (individuals, len(names))
                    raise UserError(f"commands of all inputs are numbers {wanted}, not the shape {said.shape}")
                return _checked(said)
        rest = {row.name: row.rest for row in self.circuit.inputs}
        valid = dict.fromkeys(("c", *(name.rsplit(".", 1)[0] for name in names), *names))
        for name in given.keys() - valid.keys():
            raise unknown_name("command", str(name), valid)
        result = np.empty((individuals, len(names)))
        for i, name in enumerate(names):
            population = name.rsplit(".", 1)[0]
            default = given["c"] if rest[population] is None else rest[population]
            value = numbers(given.get(name, given.get(population, default)), what)
            if value.shape not in ((), (1,), (individuals,)):
                raise UserError(
                    f"a command is one number, or one number for each of {individuals} individuals, "
                    f"not the shape {value.shape}"
                )
            result[:, i] = value
        return _checked(result)

    def with_circuit(self, circuit: CircuitSpec, theta: Array) -> "tuple[NCAPPolicy, Array]":
        """(policy, weights (D,)) with another table: weights of rows that both have are kept, others untrained."""
        other = replace(self, circuit=circuit)
        return other, self.space.carried(theta, other.space)

    def without(self, names: Sequence[str], theta: Array) -> "tuple[NCAPPolicy, Array]":
        """(policy, weights (D,)) after knock-outs by the names of ncap.circuits.animal.cut."""
        return self.with_circuit(cut(self.circuit, names), theta)

    def bind(self, theta: Array) -> "NCAPController":
        """P individuals with weights theta (P, D)."""
        return NCAPController(self, check_weights(theta, self.space))


def _checked(commands: Array) -> Array:
    """Brainstem commands, if all are in [0, 1]."""
    inside = (commands >= 0.0) & (commands <= 1.0)
    if not inside.all():
        raise UserError(f"brainstem command {commands[~inside][0]:g} is outside [0, 1]")
    return commands


class NCAPController:
    """P individuals in action. The state is the rhythm generator's."""

    def __init__(self, policy: NCAPPolicy, theta: Array) -> None:
        self.policy, self.system, self.circuit = policy, policy.system, policy.core
        self._weights = self.system.weights_from(policy.numbers(theta))
        self._own_command = policy.commands(None, len(theta))
        index, plan = self.system.index, policy.circuit.plan
        self._own, self._posture = policy.felt
        self._mirror = policy.mirrored
        self._motors = np.array([[index.get(f"{joint}.{site}", -1) for joint in plan.joints] for site in plan.sites])

    def reset(self, seeds: Sequence[int], command: Command | None = None) -> CircuitState:
        """A state of the rhythm at a random phase of its gait for each individual, picked by its episode's seed.

        They are those of the table's own numbers, also where the rhythm generator is trained.
        """
        seeds, individuals = check_seeds(seeds), len(self._own_command)
        if individuals not in (1, len(seeds)):
            raise UserError(f"there are weights for {individuals} individuals, but seeds of {len(seeds)}")
        commands = self._own_command if command is None else self.policy.commands(command, len(seeds))
        starts = []
        for seed, row in zip(seeds, np.broadcast_to(commands, (len(seeds), commands.shape[1])).tolist(), strict=True):
            pick = int(seeding.generator(seed, "rhythm start").integers(STARTS))
            starts.append(rhythm_starts(self.policy.circuit, tuple(row)).map(lambda part, i=pick: part[i]))
        return starts[0].map(lambda *parts: np.stack(parts), *starts[1:])

    def act(
        self, state: CircuitState, observation: Array, command: Command | None = None
    ) -> tuple[CircuitState, Array]:
        """(next state, action (P, site, joint)) from observations (P, site, sense)."""
        state, board = self.think(state, observation, command)
        return state, self.action(board)

    def think(
        self, state: CircuitState, observation: Array, command: Command | None = None
    ) -> tuple[CircuitState, Array]:
        """(next state, board (P, M)) from observations (P, site, sense); what stands where is in `system.names`."""
        seen = check_observation(observation, len(self._own), len(self._own_command), len(self._posture))
        felt = seen.take(self._own, axis=1)
        check_state(state, CircuitState, len(felt))
        commands = self._own_command if command is None else self.policy.commands(command, len(felt))
        senses = np.maximum(np.concatenate((-felt, felt), axis=1), 0.0)
        if len(self._posture):
            senses = np.concatenate((senses, seen[:, self._posture]), axis=1)
        return self.system.step(state, senses, commands, self._weights)

    def action(self, board: Array) -> Array:
        """(P, site, joint) what the motor neurons on a board (P, M) set."""
        return board.take(self._motors, axis=1) * self._mirror

    def signals(self, state: CircuitState) -> dict[str, Array]:
        """Activity of all neurons of the rhythm generator."""
        return {"neurons": self.circuit.outputs(state)}
