"""What an agent sees of a robot and does to it: all joints, or a rhythm generator that moves them."""

from collections.abc import Sequence
from math import prod
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.animal import JOINTS
from ncap.circuits.circuit import Circuit, CircuitState
from ncap.circuits.units import SumUnit, TanhUnit
from ncap.errors import UserError
from ncap.policies.controller import finite
from ncap.policies.ncap import NCAPPolicy
from ncap.tasks import Task

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]
Indices = NDArray[np.int64]

LARGEST_DRIVE: Final = 10.0
"""Afferent drives are clipped here, far beyond what five reflexes of weight 1 can add up to."""


class Interface(Protocol):
    """What a policy sees of a robot and does to it."""

    observation_size: int
    action_limits: Array32
    """Actions lie within plus and minus these."""

    def start(self, ids: Indices, seeds: Sequence[int]) -> None:
        """Episodes with these seeds begin."""
        ...

    def observation(self, seen: Array, wish: Array) -> Array32:
        """(P, observation_size) from the robots' observations (P, leg, sense) and what is wanted of them (P, …)."""
        ...

    def joints(self, action: Array) -> Array:
        """(P, leg, joint) joint actions from a policy's (P, A)."""
        ...


def check_actions(actions: object, interface: Interface, environments: int | None) -> Array:
    """The actions (P, A) in float64, if they are finite and as many as needed; None: of one environment (A,)."""
    found, wanted = finite(actions, "an action"), len(interface.action_limits)
    shape = (wanted,) if environments is None else (environments, wanted)
    if found.shape != shape:
        of = "an action has" if environments is None else f"{environments} actions have"
        raise UserError(f"{of} the shape {shape}, not {found.shape}")
    return found.reshape(-1, wanted)


class Joints:
    """The policy sees all observations and moves all joints."""

    def __init__(self, task: Task) -> None:
        senses, joints = task.senses, task.joints
        self.observation_size, self._shape, self._per_leg = prod(senses) + task.wish_size, joints, senses[1]
        self.action_limits = np.ones(prod(joints), np.float32)

    def start(self, ids: Indices, seeds: Sequence[int]) -> None:
        """Nothing to remember."""

    def observation(self, seen: Array, wish: Array) -> Array32:
        """All legs in a row, then what is wanted."""
        felt = seen[:, :, : self._per_leg].reshape(len(seen), -1)
        return np.concatenate((felt, wish), axis=1).astype(np.float32)

    def joints(self, action: Array) -> Array:
        """The actions themselves."""
        return action.reshape(-1, *self._shape)


class RhythmDrive:
    """The environment carries the rhythm generator: the policy sees its state too, drives it, and moves the joints.

    Action: what drives the core beside the brainstem (site, afferent sum), an extra drive of every neuron of the core
    if some of its numbers are trained, then the motor neurons (site, joint): those of hips move legs outwards, and
    joints without one are held at 0.
    """

    def __init__(self, policy: NCAPPolicy, environments: int) -> None:
        self.drive = CoreDrive(policy)
        self.action_limits = np.repeat(
            np.array([LARGEST_DRIVE, 1.0], np.float32), [self.drive.n_drives + self.drive.n_extra, self.drive.n_motors]
        )
        sites = policy.circuit.plan.sites
        self._joints = [(sites.index(site), JOINTS.index(joint)) for joint, site in self.drive.motors]
        self._shape = (len(sites), len(JOINTS))
        self._controller = policy.bind(np.tile(policy.space.initial, (1, 1)))
        self._state = self._controller.reset([0] * environments)
        self._senses, self._mirror = sum(len(part) for part in policy.felt), policy.mirrored
        self.observation_size = self._senses + self._state.flat().shape[1]

    def start(self, ids: Indices, seeds: Sequence[int]) -> None:
        """The rhythm begins where it does in any other episode of these seeds."""

        def put(mine: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
            changed = mine.copy()
            changed[ids] = new
            return changed

        self._state = self._state.map(put, self._controller.reset(seeds))

    def observation(self, seen: Array, wish: Array) -> Array32:
        """All observations, then the circuit's state."""
        felt = seen[:, :, : self._senses // seen.shape[1]].reshape(len(seen), -1)
        return np.concatenate((felt, self._state.flat()), axis=1).astype(np.float32)

    def joints(self, action: Array) -> Array:
        """Step the rhythm with the drives; the joints take what is left."""
        drives, motors = np.split(action, [self.drive.n_drives + self.drive.n_extra], axis=1)
        self._state = self.drive.step(self._state, drives)
        joints = np.zeros((len(action), *self._shape))
        for column, (site, joint) in enumerate(self._joints):
            joints[:, site, joint] = motors[:, column]
        return joints * self._mirror


class CoreDrive:
    """The rhythm generator of a policy, driven from outside: what an actor's drives do to it.

    The switches of oscillators have no gradient, so numbers of the core are trained through the drive that they add: an
    extra drive of every neuron, held for a control step, is part of the action.
    """

    def __init__(self, policy: NCAPPolicy) -> None:
        system, spec = policy.system, policy.circuit
        if len(spec.before) > 1 or not spec.after:
            raise UserError(
                "ppo needs afferents that are summed once, and motor neurons: train another table by evolution"
            )
        self.circuit: Circuit = system.circuit
        names = [name for level in spec.before for name in level]
        motors = spec.after[-1]
        for joint in (name for level in spec.after[:-1] for name in level if name in JOINTS):
            raise UserError(f"neuron {joint}: ppo needs motor neurons that all hear the same pools, or none of them")
        self.motors = [(joint, site) for site in spec.plan.sites for joint in motors]
        """(joint, site) of every motor neuron, in the order of actions."""
        for joint in motors:
            if joint not in JOINTS or not isinstance(spec.neuron(joint).unit, TanhUnit):
                raise UserError(
                    f"neuron {joint}: ppo needs motor neurons (tanh) named after joints, {', '.join(JOINTS)}"
                )
        for name in names:
            if not isinstance(spec.neuron(name).unit, SumUnit):
                raise UserError(f"neuron {name}: ppo needs plain sums of afferents")
        self.n_drives, self.n_motors = len(names) * len(spec.plan.sites), len(self.motors)
        self.n_extra = len(self.circuit.neurons) if self.circuit.trained else 0
        drives = {f"{name}.{site}": i for i, (site, name) in enumerate((s, n) for s in spec.plan.sites for n in names)}
        self._commands = dict(zip(system.commands, policy.commands(None, 1)[0], strict=True))
        self._columns = [drives.get(name, -1) for name in self.circuit.inputs]

    def step(self, state: CircuitState, drives: Array) -> CircuitState:
        """The rhythm generator a control step later, with drives (P, site and afferent sum, then extra drives)."""
        weights = None
        if self.n_extra:
            weights = np.repeat(self.circuit.weights[None], len(drives), axis=0)
            weights[:, :, -1] += drives[:, self.n_drives :]
        inputs = np.empty((len(drives), len(self._columns)))
        for i, (name, column) in enumerate(zip(self.circuit.inputs, self._columns, strict=True)):
            inputs[:, i] = self._commands[name] if column < 0 else drives[:, column]
        return self.circuit.step(state, inputs, weights)

    def state_from(self, flat: Array) -> CircuitState:
        """The state that `CircuitState.flat` made (P, numbers) of."""
        like = self.circuit.reset(1)
        parts = [like.signals, *(part for unit in like.units for part in unit)]
        pieces = iter(np.split(flat, np.cumsum([part.shape[1] for part in parts])[:-1], axis=1))
        return like.map(lambda part: _as(part.dtype, next(pieces)))


def _as(kind: np.dtype[Any], values: Array) -> NDArray[Any]:
    return values > 0.5 if kind.kind == "b" else values
