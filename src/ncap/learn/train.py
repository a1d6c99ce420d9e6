"""Training by evolution: epochs of candidates and test episodes, checkpointed so that a kill loses nothing.

An epoch plays the candidates on its training episodes and the mean on the test episodes, then moves the mean. All draws
are addressed by seed and epoch, so a resumed run ends in the same weights as an unbroken one, to the bit.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError, unknown_name
from ncap.learn.ars import ARS
from ncap.learn.best import TEST_SEEDS, Candidate, choose, keep
from ncap.learn.cma import CMA
from ncap.learn.es import EPISODES, PRESETS
from ncap.learn.executors import CHUNK, Chunk, Executor, Played
from ncap.learn.search import Search
from ncap.policies.mlp import INPUTS, MLPPolicy
from ncap.policies.ncap import COMMANDS, NCAPPolicy
from ncap.policies.storage import Policy, describe, find_policy
from ncap.runs import Checkpoint, Run
from ncap.tasks import Task, find_task

Array = NDArray[np.float64]

_MEMORY: Final = "search."


@dataclass(frozen=True, kw_only=True)
class Training:
    """Everything that determines the result of a run. What is left to a default is filled in."""

    task: str
    policy: str = "ncap"
    """ncap, mlp, or mlp:64x64 with the sizes of its hidden layers."""
    preset: str = "default"
    """Settings of evolution: default, ars, paper or released."""
    command: float | None = None
    """Brainstem command; None: the task's."""
    target_speed: float | None = None
    """m/s; None: the task's."""
    start: str | None = field(default=None, compare=False)
    """A circuit with the weights to begin from: a shipped one, a run, a file; None: the priors. It does not count when
    trainings are compared, as folders move."""
    contact: str = "default"
    seed: int = 0
    epochs: int = 60
    population: int | None = None
    """Candidates in an epoch; None: the preset's."""
    episodes: int | None = None
    """Training episodes that every candidate plays in an epoch, the same for all; None: the method's."""
    training_seconds: float | None = None
    """Length of a training episode; None: the method's, or the task's if that is shorter."""
    sigma: float | None = None
    """Size of mutations, with CMA-ES of the first ones; None: the preset's."""
    episode_seconds: float | None = None
    """Length of a test episode; None: the task's."""

    def __post_init__(self) -> None:
        find_task(self.task)
        if self.preset not in PRESETS:
            raise unknown_name("preset", self.preset, PRESETS)
        if self.epochs < 1:
            raise UserError(f"at least one epoch is needed, not {self.epochs}")
        if self.episodes is not None and self.episodes < 1:
            raise UserError(f"candidates need at least one training episode, not {self.episodes}")
        if self.training_seconds is not None and not self.world.control_dt <= self.training_seconds < np.inf:
            raise UserError(f"training episodes need at least one control step, not {self.training_seconds:g} s")
        policy, method = self.initial_policy(), self.evolution
        filled: dict[str, Any] = {"population": method.population, "sigma": method.sigma}
        episodes, seconds = EPISODES[type(method)]
        if self.episodes is None:
            filled["episodes"] = episodes
        if self.training_seconds is None:
            whole = self.world.episode_seconds
            filled["training_seconds"] = whole if seconds is None else min(seconds, whole)
        if isinstance(policy, NCAPPolicy):
            filled["command"] = policy.command
        for name, value in filled.items():
            object.__setattr__(self, name, value)

    @property
    def world(self) -> Task:
        """The task with the contact preset, the length and the speed that were asked for."""
        world = world_of(self.task, self.contact, self.episode_seconds)
        return world if self.target_speed is None else replace(world, target_speed=self.target_speed)

    @property
    def practice_seconds(self) -> float:
        """Length of a training episode."""
        assert self.training_seconds is not None  # a default was filled in
        return self.training_seconds

    @property
    def evolution(self) -> ARS | CMA:
        """Method and settings of the search for this kind of policy."""
        method = PRESETS[self.preset][self.policy.split(":")[0]]
        if self.population is not None:
            method = replace(method, population=self.population)
        if self.sigma is not None:
            method = replace(method, sigma=self.sigma)
        return method

    def initial_policy(self) -> Policy:
        """The policy before training."""
        policy = policy_of(self.policy, self.task, self.command, (256, 256))
        if not isinstance(policy, NCAPPolicy):
            return policy
        return replace(policy, copies=self.evolution.copies)

    def initial_weights(self) -> Array:
        """(D,) the weights before training."""
        policy = self.initial_policy()
        if self.start is None:
            return policy.space.initial
        found, theta, _ = find_policy(self.start)
        if not isinstance(policy, NCAPPolicy) or not isinstance(found, NCAPPolicy):
            raise UserError(f"only a circuit can begin from another, not an MLP: {self.start}")
        if len(theta) != policy.space.size:
            raise UserError(f"{self.start} has {len(theta)} weights, but {policy.space.size} are needed")
        return theta


def world_of(task: str, contact: str, episode_seconds: float | None) -> Task:
    """The task with a contact preset and a length; None: its own."""
    world = replace(find_task(task), contact=contact)
    return world if episode_seconds is None else replace(world, episode_seconds=episode_seconds)


def policy_of(words: str, task: str, command: float | None, hidden: tuple[int, ...]) -> Policy:
    """The untrained policy called ncap, mlp (with these hidden layers) or mlp:64x64; command None: the task's."""
    kind, _, sizes = words.partition(":")
    if kind == "ncap" and not sizes:
        return NCAPPolicy(command=default_command(task) if command is None else command)
    if kind == "mlp":
        try:
            return MLPPolicy(hidden=tuple(int(size) for size in sizes.split("x")) if sizes else hidden)
        except ValueError:
            raise UserError(f"hidden layers are written like mlp:64x64, not {words!r}") from None
    raise UserError(f"unknown policy {words!r}; valid: ncap, mlp, mlp:64x64")


def default_command(task: str) -> float:
    """The brainstem command for a task (see docs/results.md)."""
    return COMMANDS[task.split("-")[-1]]


@dataclass
class State:
    """Where a run is. Everything in it goes into a checkpoint."""

    epoch: int
    search: Search
    moments: Array
    """(3, 40): count, sum and sum of squares of the observations so far (MLP only)."""
    rollouts: float = 0.0
    """Training episodes in whole ones: three of a third of the task's length count as one."""
    steps: int = 0

    @property
    def theta(self) -> Array:
        """(D,) the weights so far."""
        return self.search.mean

    def to_checkpoint(self) -> Checkpoint:
        """For the disk."""
        tensors = {"theta": self.theta, "moments": self.moments}
        return Checkpoint(
            epoch=self.epoch,
            tensors=tensors | {_MEMORY + name: values for name, values in self.search.memory.items()},
            facts={"rollouts": self.rollouts, "steps": self.steps},
        )

    @classmethod
    def from_checkpoint(cls, saved: Checkpoint) -> "State":
        """From the disk."""
        tensors, facts = saved.tensors, saved.facts
        memory = {name.removeprefix(_MEMORY): v for name, v in tensors.items() if name.startswith(_MEMORY)}
        return cls(
            epoch=saved.epoch,
            search=Search(mean=tensors["theta"], memory=memory),
            moments=tensors["moments"],
            rollouts=facts["rollouts"],
            steps=facts["steps"],
        )


def train(
    training: Training, run: Run, executor: Executor, state: State | None, report: Callable[[dict[str, Any]], None]
) -> State:
    """Do the epochs that are left. report(row of progress) is called after each."""
    policy = training.initial_policy()
    if state is None:
        state = State(0, training.evolution.start(training.initial_weights()), np.zeros((3, INPUTS)))
    elif set(state.search.memory) != set(training.evolution.start(state.theta).memory):
        raise UserError(f"the checkpoint in {run.folder} was made by another method of evolution")
    run.rewind_progress(state.epoch)
    while state.epoch < training.epochs:
        started = time.perf_counter()
        current = normalised(policy, state.moments)
        chunks, test = epoch_chunks(training, current, state)
        *candidates, tested = executor.play([*chunks, test])
        best_return = keep(run, _candidate(training, current, state, tested))
        row = _advance(training, policy, state, candidates, tested)
        run.save(state.to_checkpoint())
        row |= {"best_return": best_return, "seconds": round(time.perf_counter() - started, 3)}
        run.append_progress(row)
        report(row)
    current = normalised(policy, state.moments)
    (tested,) = executor.play([epoch_chunks(training, current, state)[1]])
    last = _candidate(training, current, state, tested)
    keep(run, last)
    choose(run, last, training.world, training.epochs, executor)
    return state


def epoch_chunks(training: Training, policy: Policy, state: State) -> tuple[list[Chunk], Chunk]:
    """All candidates in chunks of a fixed size, for every training episode; and the test episodes of the mean."""
    method, epoch = training.evolution, state.epoch
    test = Chunk(task=training.world, policy=describe(policy), search=state.search, seeds=TEST_SEEDS)
    draws = seeding.generator(training.seed, "training episode", epoch)
    everybody = range(method.population)
    chunks = [
        replace(
            test,
            task=replace(test.task, episode_seconds=training.practice_seconds),
            seeds=(int(episode),) * len(indices),
            method=method,
            seed=training.seed,
            epoch=epoch,
            indices=tuple(indices),
            moments=isinstance(policy, MLPPolicy),
        )
        for episode in draws.integers(2**31, 2**32, training.episodes)
        for indices in (everybody[first : first + CHUNK] for first in everybody[::CHUNK])
    ]
    return chunks, test


def _advance(
    training: Training, policy: Policy, state: State, candidates: list[Played], tested: Played
) -> dict[str, Any]:
    """Move the mean by one epoch, and say what happened."""
    played_returns = np.concatenate([played.returns for played in candidates])
    returns = played_returns.reshape(-1, training.evolution.population).mean(axis=0)
    steps = sum(played.steps for played in candidates)
    row = {
        "epoch": state.epoch,
        "rollouts": state.rollouts,
        "steps": state.steps,
        "test_return": float(tested.returns.mean()),
        "test_return_min": float(tested.returns.min()),
        "test_falls": tested.falls,
        "candidate_return_mean": float(np.nanmean(returns)),
        "candidate_return_max": float(np.nanmax(returns)),
        "candidate_falls": sum(played.falls for played in candidates),
        "played_steps": steps + tested.steps,
        "cpu_seconds": round(sum(played.cpu_seconds for played in (*candidates, tested)), 3),
    }
    state.search = training.evolution.update(policy.space, state.search, training.seed, state.epoch, returns)
    for played in candidates:
        if played.moments is not None:
            state.moments = state.moments + played.moments
    state.epoch += 1
    state.rollouts += round(len(played_returns) * training.practice_seconds / training.world.episode_seconds, 6)
    state.steps += steps
    return row


def normalised(policy: Policy, moments: Array) -> Policy:
    """The policy with the mean and standard deviation of the observations so far, if it uses them."""
    if not isinstance(policy, MLPPolicy) or moments[0, 0] == 0:
        return policy
    mean = moments[1] / moments[0]
    std = np.sqrt(np.maximum(moments[2] / moments[0] - mean**2, 1e-4))
    return replace(policy, mean=tuple(mean.tolist()), std=tuple(std.tolist()))


def _candidate(training: Training, policy: Policy, state: State, tested: Played) -> Candidate:
    about = {"training": asdict(training), "epoch": state.epoch, "test_return": float(tested.returns.mean())}
    return policy, state.theta, about
