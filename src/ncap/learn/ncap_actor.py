"""The NCAP circuit as an actor for policy gradients: its weights in torch, its rhythm generator in NumPy."""

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ncap.learn.networks import as_array
from ncap.learn.vec_env import DRIVES, OBSERVED, driven, unflat_state
from ncap.policies.ncap import GIRDLES, HALF_CENTRES, NCAPPolicy

Array = NDArray[np.float64]

_GIRDLE_OF_LEG: Final = [0, 0, 1, 1]


class NCAPActor(nn.Module):
    """Afferent and pattern weights of the circuit; the rhythm between them is frozen, and needs no gradient.

    An action is drawn in two parts. The afferent drives (8) are drawn around AF · signals; then the rhythm generator is
    stepped with the drives that were drawn, as the environment will do; then the joint actions (8) are drawn around
    tanh(PF · rhythm + bias). The probability of the pair is the product of the two, and each factor has an ordinary
    gradient with respect to its own weights: PPO's gradient is exact, with nothing approximated in the circuit.
    """

    signs: Tensor

    def __init__(self, policy: NCAPPolicy) -> None:
        super().__init__()
        self.policy, self.circuit = policy, policy.circuit
        self.theta = nn.Parameter(torch.tensor(policy.space.initial, dtype=torch.float32))
        self.register_buffer("signs", torch.tensor(policy.space.signs, dtype=torch.float32))
        self._columns = np.stack([self.circuit.columns(name) for name in HALF_CENTRES], axis=-1)

    def _per_leg(self, name: str) -> Tensor:
        """(leg, …) of a pair of blocks."""
        found, start = {}, 0
        for block in self.policy.space.blocks:
            found[block.name] = self.theta[start : start + block.size].view(block.initial.shape)
            start += block.size
        return torch.stack([found[name.format(girdle)] for girdle in GIRDLES])[_GIRDLE_OF_LEG]

    def drives(self, observation: Tensor) -> Tensor:
        """Mean afferent drives (B, 8) by leg and half-centre."""
        seen = observation[:, :OBSERVED].view(-1, 4, 10)
        signals = torch.relu(torch.cat((-seen, seen), dim=-1))
        return torch.einsum("lhs,bls->blh", self._per_leg("AF.{}"), signals).reshape(-1, DRIVES)

    def pattern(self, observation: Tensor, drives: Tensor) -> Tensor:
        """Mean joint actions (B, 8) by leg, thigh and calf, after a step of the rhythm with these drives."""
        state = unflat_state(self.circuit, observation[:, OBSERVED:].numpy().astype(np.float64))
        after = driven(self.circuit, self.policy.command, state, drives.numpy().astype(np.float64))
        rhythm = torch.from_numpy(self.circuit.outputs(after)[:, self._columns].astype(np.float32))  # (B, leg, half)
        summed = torch.einsum("ljh,blh->blj", self._per_leg("PF.{}"), rhythm) + self._per_leg("PF.{}.bias")
        return torch.tanh(summed).reshape(-1, 8)

    def means(self, observation: Tensor, action: Tensor) -> Tensor:
        """Drives from the observation, joint actions from the rhythm that the drives taken lead to."""
        return torch.cat((self.drives(observation), self.pattern(observation, action[:, :DRIVES])), dim=1)

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """(actions, means), without gradient."""
        mean_drives = self.drives(observation).detach()
        drives = mean_drives + noise[:, :DRIVES]
        mean_pattern = self.pattern(observation, drives)
        return torch.cat((drives, mean_pattern + noise[:, DRIVES:]), dim=1), torch.cat((mean_drives, mean_pattern), 1)

    def keep_signs(self) -> None:
        """Put weights that have lost their sign to 0."""
        with torch.no_grad():
            self.theta.masked_fill_(self.signs * self.theta < 0, 0.0)

    def exported(self) -> tuple[NCAPPolicy, Array]:
        """The policy for a file."""
        return self.policy, as_array(self.theta)
