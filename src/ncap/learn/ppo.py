"""PPO by stable-baselines3 on the batched vector environment.

The algorithm is stable-baselines3's own. What is ours is the policy it trains: an actor, which is an MLP or the NCAP
circuit, with Gaussian exploration around it, and an MLP as critic.
"""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import set_random_seed
from torch import Tensor, nn

from ncap import seeding
from ncap.learn.ncap_actor import NCAPActor
from ncap.learn.networks import Normaliser, exported, layers, linear_layers, load_tensors, tensors_of
from ncap.learn.vec_env import BatchedVecEnv
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

Array = NDArray[np.float64]

_HALF_LOG_2PI: Final = 0.5 * float(np.log(2 * np.pi))
DISCOUNT: Final = 0.99
REWARD_SCALE: Final = 1 - DISCOUNT
"""Makes a value the mean of the rewards ahead, within [0, 1], so that neither loss drowns the other."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Numbers of the search, the rest being stable-baselines3's defaults."""

    learning_rate: float = 1e-3
    """Step size of Adam."""
    noise: float = 0.25
    """Standard deviation of exploration at the start; it is learned."""
    rollouts: int = 4
    """Updates in an epoch, each after an equal part of it."""
    n_epochs: int = 10
    """Passes over every rollout, in minibatches as large as one environment's part of it."""
    critic: tuple[int, ...] = (64, 64)
    """Hidden layers of the critic."""


SETTINGS: Final = {"mlp": Settings(), "ncap": Settings(noise=0.1)}
"""For every kind of policy. The circuit walks from the start, which much noise would prevent."""


class MLPActor(nn.Module):
    """tanh hidden layers and a tanh at the end, on normalised observations."""

    def __init__(self, policy: MLPPolicy) -> None:
        super().__init__()
        self.policy = policy
        self.normaliser = Normaliser(policy.inputs)
        self.network = layers((policy.inputs, *policy.hidden, prod(policy.joints)), policy.activation)
        _orthogonal(self.network, last_gain=0.01)  # starts at the standing pose

    def means(self, observation: Tensor, action: Tensor | None = None) -> Tensor:
        """They do not depend on the action."""
        return torch.tanh(self.network(self.normaliser(observation)))

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """(actions, means)."""
        means = self.means(observation)
        return means + noise, means

    def exported(self) -> tuple[MLPPolicy, Array]:
        """The policy for a file."""
        return exported(self.policy, self.normaliser, self.network)


class Walker(BasePolicy):
    """Actor, exploration and critic in the form that stable-baselines3's PPO trains."""

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Box,
        lr_schedule: Any,
        use_sde: bool,
        actor: MLPActor | NCAPActor,
        settings: Settings,
    ) -> None:
        super().__init__(observation_space, action_space)
        size = observation_space.shape[0]
        self.actor = actor
        self.log_std = nn.Parameter(torch.full(action_space.shape, float(np.log(settings.noise))))
        self.normaliser = actor.normaliser if isinstance(actor, MLPActor) else Normaliser(size)
        self.critic = layers((size, *settings.critic, 1), "tanh")
        _orthogonal(self.critic, last_gain=1.0)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=settings.learning_rate, eps=1e-5)
        if isinstance(actor, NCAPActor):
            self.optimizer.register_step_post_hook(lambda *_: actor.keep_signs())

    def forward(self, observation: Tensor, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """(actions, values, log probabilities)."""
        noise = torch.randn(len(observation), *self.log_std.shape) * self.log_std.exp() * (not deterministic)
        actions, means = self.actor.act(observation, noise)
        return actions, self.predict_values(observation), self._log_probability(means, actions)

    def evaluate_actions(self, observation: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(values, log probabilities, entropies) of actions taken."""
        log_probability = self._log_probability(self.actor.means(observation, actions), actions)
        entropy = (self.log_std + 0.5 + _HALF_LOG_2PI).sum()
        return self.predict_values(observation), log_probability, entropy.expand(len(actions))

    def predict_values(self, observation: Tensor) -> Tensor:
        """(B, 1)."""
        values: Tensor = self.critic(self.normaliser(observation))
        return values

    def _predict(self, observation: Any, deterministic: bool = False) -> Tensor:
        return self.forward(observation, deterministic)[0]

    def _log_probability(self, means: Tensor, actions: Tensor) -> Tensor:
        """(B,) of Gaussians, independent along an action."""
        deviations = (actions - means) / self.log_std.exp()
        return -(0.5 * deviations**2 + self.log_std + _HALF_LOG_2PI).sum(dim=1)


class _SeenObservations(BaseCallback):
    """Counts the observations of every rollout into the normaliser."""

    def __init__(self, normaliser: Normaliser) -> None:
        super().__init__()
        self.normaliser = normaliser

    def _on_rollout_end(self) -> None:
        seen = self.locals["rollout_buffer"].observations
        self.normaliser.see(seen.reshape(-1, seen.shape[-1]))

    def _on_step(self) -> bool:
        return True


class PPOLearner:
    """Epochs of PPO. Random draws are addressed by seed and epoch, and nothing but `tensors` is remembered."""

    def __init__(self, env: BatchedVecEnv, policy: MLPPolicy | NCAPPolicy, settings: Settings, *, seed: int) -> None:
        torch.manual_seed(seed)
        self.env, self.seed, self.settings = env, seed, settings
        if isinstance(policy, NCAPPolicy):
            self.actor: MLPActor | NCAPActor = NCAPActor(policy)
        else:
            self.actor = MLPActor(policy)
        steps = max(1, env.epoch_steps // settings.rollouts)
        walker: Any = Walker  # stable-baselines3 asks for one of its own policies, but uses no more than Walker has
        self.model = PPO(
            walker,
            env,
            learning_rate=settings.learning_rate,
            n_steps=steps,
            batch_size=max(2, steps),
            n_epochs=settings.n_epochs,
            gamma=DISCOUNT,
            policy_kwargs={"actor": self.actor, "settings": settings},
            device="cpu",
        )
        self.model.set_logger(Logger(folder=None, output_formats=[]))  # its own one leaves a folder in /tmp every epoch
        self.walker: Walker = self.model.policy  # type: ignore[assignment]

    def practise(self, epoch: int) -> None:
        """Play an epoch and learn from it."""
        set_random_seed(int(seeding.generator(self.seed, "PPO", epoch).integers(2**31)))
        self.walker.normaliser.refresh()
        self.env.begin(epoch)
        rollouts = self.settings.rollouts
        self.model.learn(rollouts * self.model.n_steps * self.env.num_envs, _SeenObservations(self.walker.normaliser))

    def exported(self) -> tuple[MLPPolicy | NCAPPolicy, Array]:
        """The policy for a file."""
        return self.actor.exported()

    def tensors(self) -> dict[str, Array]:
        """All that the next epoch depends on."""
        return tensors_of(self.walker, [self.walker.optimizer]) | {"moments": self.walker.normaliser.moments.copy()}

    def restore(self, tensors: dict[str, Array]) -> None:
        """Go back to where `tensors` was called."""
        load_tensors(self.walker, [self.walker.optimizer], tensors)
        self.walker.normaliser.moments = tensors["moments"].copy()

    def save_memory(self, folder: Path, epoch: int) -> None:
        """PPO learns from an epoch and forgets it."""

    def load_memory(self, folder: Path, epoch: int) -> None:
        """Nothing was kept."""


def _orthogonal(network: nn.Sequential, last_gain: float) -> None:
    """Initial weights as stable-baselines3 gives them to its own policies."""
    *hidden, last = linear_layers(network)
    for layer in (*hidden, last):
        nn.init.orthogonal_(layer.weight, gain=last_gain if layer is last else float(np.sqrt(2)))
        nn.init.zeros_(layer.bias)
