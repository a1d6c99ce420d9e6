"""D4PG (Barth-Maron et al. 2018), in one file: a deterministic actor climbs a critic that predicts distributions.

The critic gives, for an observation and an action, a distribution of returns on 51 atoms. It learns from n-step returns
out of a replay: the target distribution is shifted and shrunk by them, then projected back onto the atoms (Bellemare
et al. 2017, algorithm 1). Shapes: B samples, K atoms, E environments, n steps.
"""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ncap import seeding
from ncap.errors import UserError
from ncap.files import read_tensors, write_tensors
from ncap.learn.networks import Normaliser, exported, layers, linear_layers, load_tensors, tensors_of
from ncap.learn.vec_env import BatchedVecEnv
from ncap.policies.mlp import MLPPolicy

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]
Mask = NDArray[np.bool_]

DISCOUNT: Final = 0.99


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Numbers of the search. Atoms, returns and discount are the paper's."""

    atoms: int = 51
    lowest: float = 0.0
    highest: float = 150.0
    """The atoms' range of discounted returns."""
    n_step: int = 5
    """Steps of a return before the critic takes over."""
    learning_rate: float = 3e-4
    """Step size of Adam, for both networks."""
    noise: float = 0.2
    """Standard deviation of exploration."""
    batch_size: int = 128
    """Steps in a sample of the replay."""
    updates: int = 4
    """Updates of both networks after every step of all environments."""
    tau: float = 0.005
    """Share of the way that the target networks go to the trained ones at every update."""
    replay_size: int = 1_000_000
    """Steps remembered."""
    warm_up: int = 1
    """Epochs played before the first update, so that learning begins with a normaliser that has seen something."""


def project(probabilities: Tensor, rewards: Tensor, discounts: Tensor, atoms: Tensor) -> Tensor:
    """Distributions (B, K) of rewards (B,) + discounts (B,) · atoms (K,), projected onto the atoms themselves.

    What falls between two atoms is shared by them in proportion to its nearness; what falls beside all goes to the end.
    """
    moved = (rewards[:, None] + discounts[:, None] * atoms).clamp(float(atoms[0]), float(atoms[-1]))
    nearness = (1 - (moved[:, None, :] - atoms[:, None]).abs() / (atoms[1] - atoms[0])).clamp(min=0)  # (B, to, from)
    return torch.bmm(nearness, probabilities[:, :, None])[:, :, 0]


class Return(NamedTuple):
    """n-step returns, (B,) each."""

    reward: Array
    """Discounted sum up to and with the last step."""
    discount: Array
    """Factor of the value after the last step; 0 where the robot fell."""
    last: NDArray[np.int64]
    """The last step, counted from 0: before n - 1 where an episode ended."""


def n_step_return(rewards: Array32, terminated: Mask, ended: Mask) -> Return:
    """Returns from n consecutive steps (n, B). An episode that merely ended goes on in the critic's eyes."""
    n, samples = rewards.shape
    ends = ended.copy()
    ends[-1] = True
    last = ends.argmax(axis=0)
    powers = DISCOUNT ** np.arange(n + 1)
    counted = np.where(np.arange(n)[:, None] <= last, rewards, 0.0)
    fell = terminated[last, np.arange(samples)]
    return Return(powers[:n] @ counted, np.where(fell, 0.0, powers[last + 1]), last)


class Replay:
    """A ring of steps of all environments. Returns are made when sampled, so that steps are stored once and plainly."""

    FIELDS: Final = ("observation", "action", "reward", "following", "terminated", "ended")

    def __init__(self, slots: int, environments: int, observation_size: int, action_size: int) -> None:
        shape = (slots, environments)
        self.slots = slots
        self.observation = np.empty((*shape, observation_size), np.float32)
        self.action = np.empty((*shape, action_size), np.float32)
        self.reward = np.empty(shape, np.float32)
        self.following = np.empty((*shape, observation_size), np.float32)
        self.terminated, self.ended = np.empty(shape, bool), np.empty(shape, bool)
        self.written = 0
        """Slots written since the run began."""

    def add(self, **step: NDArray[np.generic]) -> None:
        """One step of all environments, by field."""
        for name in self.FIELDS:
            getattr(self, name)[self.written % self.slots] = step[name]
        self.written += 1

    def sample(self, rng: np.random.Generator, batch: int, n: int) -> tuple[Array32, Array32, Return, Array32]:
        """(observations, actions, returns, observations after them) of steps that have n successors written."""
        first = max(0, self.written - self.slots)
        starts = rng.integers(first, self.written - n + 1, batch)
        who = rng.integers(self.reward.shape[1], size=batch)
        window = (starts + np.arange(n)[:, None]) % self.slots  # (n, B)
        found = n_step_return(self.reward[window, who], self.terminated[window, who], self.ended[window, who])
        start, last = window[0], window[found.last, np.arange(batch)]
        return self.observation[start, who], self.action[start, who], found, self.following[last, who]


class Networks(nn.Module):
    """Actor and critic, and the slower copies that make the critic's targets."""

    atoms: Tensor

    def __init__(self, observation_size: int, hidden: tuple[int, ...], action_size: int, settings: Settings) -> None:
        super().__init__()
        self.normaliser = Normaliser(observation_size)
        self.actor = layers((observation_size, *hidden, action_size), "relu")
        self.critic = layers((observation_size + action_size, *hidden, settings.atoms), "relu")
        last = linear_layers(self.actor)[-1]
        nn.init.uniform_(last.weight, -3e-3, 3e-3)  # starts near the standing pose
        nn.init.zeros_(last.bias)
        self.target_actor, self.target_critic = deepcopy(self.actor), deepcopy(self.critic)
        self.register_buffer("atoms", torch.linspace(settings.lowest, settings.highest, settings.atoms))

    def act(self, observation: Tensor) -> Tensor:
        """Actions (B, A) without noise."""
        return torch.tanh(self.actor(self.normaliser(observation)))

    def targets(self, following: Tensor, rewards: Tensor, discounts: Tensor) -> Tensor:
        """(B, K) what the critic should have said."""
        seen = self.normaliser(following)
        action = torch.tanh(self.target_actor(seen))
        later = functional.softmax(self.target_critic(torch.cat((seen, action), dim=1)), dim=1)
        return project(later, rewards, discounts, self.atoms)


class D4PGLearner:
    """Epochs of D4PG. Random draws are addressed by seed and epoch."""

    def __init__(self, env: BatchedVecEnv, policy: MLPPolicy, settings: Settings, *, seed: int) -> None:
        torch.manual_seed(seed)
        self.env, self.policy, self.seed, self.settings = env, policy, seed, settings
        observed, acted = env.sizes
        self.networks = Networks(observed, policy.hidden, acted, settings)
        self.optimisers = [
            torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
            for network in (self.networks.actor, self.networks.critic)
        ]
        epochs = max(1, settings.replay_size // (env.num_envs * env.epoch_steps))
        self.kept_epochs = epochs
        self.replay = Replay(epochs * env.epoch_steps, env.num_envs, observed, acted)

    def practise(self, epoch: int) -> None:
        """Play an epoch, learning after every step."""
        env, settings, networks = self.env, self.settings, self.networks
        explore, draw = (seeding.generator(self.seed, name, epoch) for name in ("exploration", "replay"))
        networks.normaliser.refresh()
        env.begin(epoch)
        observation = env.reset()
        for t in range(env.epoch_steps):
            with torch.no_grad():
                means = networks.act(torch.from_numpy(observation)).numpy()
            noise = settings.noise * explore.standard_normal(means.shape)
            action = np.clip(means + noise, -1, 1).astype(np.float32)
            env.step_async(action)
            following, reward, done, infos = env.step_wait()
            truncated = np.array([info.get("TimeLimit.truncated", False) for info in infos])
            before_reset = following.copy()
            for i in np.flatnonzero(done):
                before_reset[i] = infos[i]["terminal_observation"]
            self.replay.add(
                observation=observation,
                action=action,
                reward=reward,
                following=before_reset,
                terminated=done & ~truncated,
                ended=done | (t == env.epoch_steps - 1),  # the next epoch begins new episodes
            )
            networks.normaliser.see(observation)
            observation = following
            if epoch >= settings.warm_up:
                for _ in range(settings.updates):
                    self._update(draw)

    def _update(self, draw: np.random.Generator) -> None:
        """One step of critic and actor, and the targets a little after them."""
        networks, (actor_steps, critic_steps) = self.networks, self.optimisers
        observed, acted, found, after = self.replay.sample(draw, self.settings.batch_size, self.settings.n_step)
        seen, action = networks.normaliser(torch.from_numpy(observed)), torch.from_numpy(acted)
        with torch.no_grad():
            rewards, discounts = (torch.from_numpy(values.astype(np.float32)) for values in found[:2])
            targets = networks.targets(torch.from_numpy(after), rewards, discounts)
        critic_loss = functional.cross_entropy(networks.critic(torch.cat((seen, action), dim=1)), targets)
        critic_steps.zero_grad()
        critic_loss.backward()  # type: ignore[no-untyped-call]
        critic_steps.step()

        chosen = torch.tanh(networks.actor(seen))
        networks.critic.requires_grad_(False)
        values = functional.softmax(networks.critic(torch.cat((seen, chosen), dim=1)), dim=1) @ networks.atoms
        networks.critic.requires_grad_(True)
        actor_steps.zero_grad()
        (-values.mean()).backward()  # type: ignore[no-untyped-call]
        actor_steps.step()

        with torch.no_grad():
            for target, trained in ((networks.target_actor, networks.actor), (networks.target_critic, networks.critic)):
                torch._foreach_lerp_(list(target.parameters()), list(trained.parameters()), self.settings.tau)

    def exported(self) -> tuple[MLPPolicy, Array]:
        """The policy for a file."""
        return exported(self.policy, self.networks.normaliser, self.networks.actor)

    def tensors(self) -> dict[str, Array]:
        """All that the next epoch depends on, beside the replay."""
        return tensors_of(self.networks, self.optimisers) | {"moments": self.networks.normaliser.moments.copy()}

    def restore(self, tensors: dict[str, Array]) -> None:
        """Go back to where `tensors` was called."""
        load_tensors(self.networks, self.optimisers, tensors)
        self.networks.normaliser.moments = tensors["moments"].copy()

    def save_memory(self, folder: Path, epoch: int) -> None:
        """Write the steps of an epoch beside those before it, and forget what the replay has forgotten."""
        folder.mkdir(exist_ok=True)
        steps = self.env.epoch_steps
        slots = (epoch * steps + np.arange(steps)) % self.replay.slots
        kept = {name: getattr(self.replay, name)[slots] for name in Replay.FIELDS}
        write_tensors(_memory_file(folder, epoch), kept, {"epoch": epoch})
        # the checkpoint before the newest may be needed, and with it one epoch more than the replay holds
        _memory_file(folder, epoch - self.kept_epochs - 1).unlink(missing_ok=True)

    def load_memory(self, folder: Path, epoch: int) -> None:
        """Read the steps of the epochs before this one."""
        first = max(0, epoch - self.kept_epochs)
        self.replay.written = first * self.env.epoch_steps
        for number in range(first, epoch):
            try:
                kept, _ = read_tensors(_memory_file(folder, number))
            except UserError as error:
                raise UserError(f"the replay is incomplete, so the run cannot go on as it was: {error}") from None
            for t in range(self.env.epoch_steps):
                self.replay.add(**{name: kept[name][t] for name in Replay.FIELDS})


def _memory_file(folder: Path, epoch: int) -> Path:
    return folder / f"epoch-{epoch:06d}.safetensors"
