"""The NCAP circuit as an actor for policy gradients: its weights in torch, its rhythm generator in NumPy."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ncap.circuits.circuit import Stage, initial_numbers
from ncap.circuits.units import RectifierUnit, SumUnit, TanhUnit, Unit
from ncap.errors import UserError
from ncap.learn.interfaces import CoreDrive
from ncap.learn.networks import as_array
from ncap.policies.ncap import NCAPPolicy

Array = NDArray[np.float64]


class NCAPActor(nn.Module):
    """The trained numbers of a circuit. Its rhythm generator is stepped in NumPy, and needs no gradient.

    An action is drawn in two parts. What drives the core is drawn around the afferent sums; then the rhythm generator
    is stepped with the drives that were drawn, as the environment will do; then the joint actions are drawn around the
    motor neurons' outputs. The probability of the pair is the product of the two, and each factor has an ordinary
    gradient with respect to its own weights: PPO's gradient is exact, with nothing approximated in the circuit.

    Trained numbers of the core itself act through an extra drive of its neurons: what they have changed since the
    start, times the signals at the beginning of the control step. The policy for a file has them in the circuit, where
    they act at every circuit step; how well the two agree shows in the test episodes.
    """

    low: Tensor
    high: Tensor
    numbers: Tensor

    def __init__(self, policy: NCAPPolicy) -> None:
        super().__init__()
        self.policy, self.core = policy, CoreDrive(policy)
        space, system = policy.space, policy.system
        self.theta = nn.Parameter(torch.tensor(space.initial, dtype=torch.float32))
        self.register_buffer("low", torch.tensor(space.low, dtype=torch.float32), persistent=False)
        self.register_buffer("high", torch.tensor(space.high, dtype=torch.float32), persistent=False)
        numbers = torch.tensor(initial_numbers(policy.circuit), dtype=torch.float32)
        self.register_buffer("numbers", numbers, persistent=False)
        self._trained = torch.tensor([i for i, entry in enumerate(policy.circuit.entries) if entry.row.trainable])
        self._n_drives = self.core.n_drives + self.core.n_extra
        self._before = [stage for _, stage in system.before]
        self._after = list(system.after)
        self._size, self._senses, self._core_slot = len(system.names) + 1, system.n_senses, system.core_slot
        self._felt = sum(len(part) for part in policy.felt)
        self._commands = torch.tensor(policy.commands(None, 1)[0], dtype=torch.float32)
        self._core_index = torch.from_numpy(self.core.circuit.weight_index)

    def _numbers(self) -> Tensor:
        """(K + 1,) the numbers of the whole table, and a 0 for what is not there."""
        return torch.cat((self.numbers.index_copy(0, self._trained, self.theta), torch.zeros(1)))

    def _respond(self, stage: Stage, board: Tensor) -> Tensor:
        """Outputs (B, site times neuron) of a stage's neurons, as `Stage.respond` gives them."""
        numbers = self._numbers()
        weights, biases = (numbers[torch.from_numpy(index)] for index in (stage.weight_index, stage.bias_index))
        arriving = board[:, torch.from_numpy(stage.arriving % self._size)]
        drive = torch.einsum("snk,bsk->bsn", weights, arriving) + biases
        units = [self.policy.circuit.neuron(name).unit for name in stage.names]
        return torch.stack([_response(unit, drive[..., i]) for i, unit in enumerate(units)], dim=-1).flatten(1)

    def _board(self, observation: Tensor) -> Tensor:
        """(B, M) signals of the senses and commands; see NervousSystem."""
        own, posture = (observation[:, torch.from_numpy(part)] for part in self.policy.felt)
        board = torch.zeros(len(observation), self._size)
        board[:, : self._senses] = torch.cat((torch.relu(torch.cat((-own, own), dim=1)), posture), dim=1)
        board[:, self._senses : self._senses + len(self._commands)] = self._commands
        return board

    def drives(self, observation: Tensor) -> Tensor:
        """Mean drives of the core (B, site times afferent sum, then extra drives of its neurons if it is trained)."""
        parts = [self._respond(stage, self._board(observation)) for stage in self._before]
        if self.core.n_extra:
            changed = self._numbers() - torch.cat((self.numbers, torch.zeros(1)))
            signals = observation[:, self._felt : self._felt + self._core_index.shape[1]]
            parts.append(torch.einsum("nm,bm->bn", changed[self._core_index], signals))
        return torch.cat((observation.new_zeros(len(observation), 0), *parts), dim=1)

    def pattern(self, observation: Tensor, drives: Tensor) -> Tensor:
        """Mean joint actions (B, site times joint) after a step of the rhythm with these drives."""
        state = self.core.state_from(observation[:, self._felt :].numpy().astype(np.float64))
        after = self.core.step(state, drives.numpy().astype(np.float64))
        board = self._board(observation)
        board[:, self._core_slot] = torch.from_numpy(self.core.circuit.outputs(after).astype(np.float32))
        for slot, stage in self._after[:-1]:
            board = torch.cat((board[:, : slot.start], self._respond(stage, board), board[:, slot.stop :]), dim=1)
        return self._respond(self._after[-1][1], board)

    def means(self, observation: Tensor, action: Tensor) -> Tensor:
        """Drives from the observation, joint actions from the rhythm that the drives taken lead to."""
        drives = action[:, : self._n_drives]
        return torch.cat((self.drives(observation), self.pattern(observation, drives)), dim=1)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """(actions, means), without gradient."""
        mean_drives = self.drives(observation).detach()
        drives = mean_drives + noise[:, : self._n_drives]
        mean_pattern = self.pattern(observation, drives)
        actions = torch.cat((drives, mean_pattern + noise[:, self._n_drives :]), dim=1)
        return actions, torch.cat((mean_drives, mean_pattern), dim=1)

    def keep_signs(self) -> None:
        """Put weights that have left their bounds back onto them."""
        with torch.no_grad():
            self.theta.copy_(torch.minimum(torch.maximum(self.theta, self.low), self.high))

    def exported(self) -> tuple[NCAPPolicy, Array]:
        """The policy for a file."""
        return self.policy, as_array(self.theta)


def _response(unit: Unit, drive: Tensor) -> Tensor:
    """The output of a unit without memory, as its group in ncap.circuits.units gives it."""
    if isinstance(unit, TanhUnit):
        return torch.tanh(drive)
    if isinstance(unit, RectifierUnit):
        return drive.clamp(0.0, 1.0)
    if isinstance(unit, SumUnit):
        return drive if unit.limit is None else unit.limit * torch.tanh(drive / unit.limit)
    raise UserError(f"ppo knows no gradient of neurons of the type {type(unit).__name__}")
