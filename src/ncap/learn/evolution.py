"""Training by evolution: epochs of candidates and test episodes, checkpointed so that a kill loses nothing.

An epoch plays the candidates on its training episodes and the mean on the test episodes, then moves the mean. All draws
are addressed by seed and epoch, so a resumed run ends in the same weights as an unbroken one, to the bit.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.learn.ars import ARS
from ncap.learn.best import TEST_SEEDS, choose, keep
from ncap.learn.executors import CHUNK, Chunk, Executor, Played
from ncap.learn.moments import mean_and_std, no_moments
from ncap.learn.search import Search
from ncap.learn.settings import Training
from ncap.policies.mlp import MLPPolicy
from ncap.runs import Checkpoint, Facts, Run
from ncap.tasks import Task, drawn_variation
from ncap.trained import TrainedPolicy

if TYPE_CHECKING:
    from ncap.learn.settings import Trainee

Array = NDArray[np.float64]

_MEMORY: Final = "search."


@dataclass
class State:
    """How far a run has come. Everything in it goes into a checkpoint."""

    epoch: int
    search: Search
    moments: Array
    """(3, senses): count, sum and sum of squares of the observations so far (MLP only)."""
    rollouts: float = 0.0
    """Training episodes in whole ones: three of a third of the task's length count as one."""
    steps: int = 0
    """Control steps of training episodes."""

    @property
    def theta(self) -> Array:
        """(D,) the weights so far."""
        return self.search.mean

    def to_checkpoint(self) -> Checkpoint:
        """Everything, for the disk."""
        return Checkpoint(
            epoch=self.epoch, tensors=self.tensors(), facts=Facts(rollouts=self.rollouts, steps=self.steps)
        )

    def tensors(self) -> dict[str, Array]:
        """The arrays of a checkpoint, by name."""
        memory = {_MEMORY + name: values for name, values in self.search.memory.items()}
        return {"theta": self.theta, "moments": self.moments} | memory

    @classmethod
    def from_checkpoint(cls, saved: Checkpoint) -> "State":
        """The state that `to_checkpoint` was made of."""
        memory = {name.removeprefix(_MEMORY): v for name, v in saved.tensors.items() if name.startswith(_MEMORY)}
        return cls(
            epoch=saved.epoch,
            search=Search(mean=saved.tensors["theta"], memory=memory),
            moments=saved.tensors["moments"],
            rollouts=saved.facts.rollouts,
            steps=saved.facts.steps,
        )


def evolve(
    training: Training,
    policy: "Trainee",
    run: Run,
    executor: Executor,
    report: Callable[[dict[str, Any]], None],
) -> None:
    """Do the epochs that are left, then choose the best policy. report(row of progress) is called after each epoch."""
    senses = policy.senses if isinstance(policy, MLPPolicy) else 0
    state = State(0, training.evolution.start(policy.space, training.initial_weights(policy)), no_moments(senses))
    saved = run.latest({name: values.shape for name, values in state.tensors().items()})
    if saved is not None:
        state = State.from_checkpoint(saved)
    run.rewind_progress(state.epoch)
    while state.epoch < training.all_epochs:
        started = time.perf_counter()
        current = normalised(policy, state.moments)
        chunks, test = epoch_chunks(training, current, state)
        *candidates, tested = executor.play([*chunks, test])
        best_return = keep(run, _candidate(run, current, state, tested, training.footfall_weight))
        row = _advance(training, policy, state, candidates, tested)
        row |= {"best_return": best_return, "seconds": round(time.perf_counter() - started, 3)}
        run.append_progress(row)
        run.save(state.to_checkpoint())
        report(row)
    current = normalised(policy, state.moments)
    (tested,) = executor.play([epoch_chunks(training, current, state)[1]])
    last = _candidate(run, current, state, tested, training.footfall_weight)
    keep(run, last)
    choose(run, last, training.world, training.all_epochs, executor, training.footfall_weight)


def epoch_chunks(training: Training, policy: "Trainee", state: State) -> tuple[list[Chunk], Chunk]:
    """All candidates in chunks of a fixed size, for every training episode; and the test episodes of the mean."""
    method, epoch = training.evolution, state.epoch
    measured = training.footfall_weight > 0
    test = Chunk(task=training.world, policy=policy, search=state.search, seeds=TEST_SEEDS, footfalls=measured)
    draws = seeding.generator(training.seed, "training episode", epoch)
    everybody = range(method.population)
    chunks = [
        replace(
            test,
            task=training.practice,
            seeds=(episode,) * len(indices),
            method=method,
            seed=training.seed,
            epoch=epoch,
            indices=tuple(indices),
            moments=isinstance(policy, MLPPolicy) and isinstance(method, ARS) and method.normalises,
        )
        for episode in training_seeds(training.practice, draws, training.episodes_in(epoch))
        for indices in (everybody[first : first + CHUNK] for first in everybody[::CHUNK])
    ]
    return chunks, test


def training_seeds(task: Task, draws: np.random.Generator, number: int) -> list[int]:
    """Seeds of training episodes that take the paces of a task by turns, and its friction in equal parts, in any order.

    What a robot can do on slippery ground says little of rough ground, where a foot that is not lifted trips it.
    """
    low, high = task.friction
    edges = np.linspace(low, high, number + 1)
    parts = draws.permutation(number).tolist()
    seeds: list[int] = []
    while len(seeds) < number:
        seed = int(draws.integers(2**31, 2**32))
        if task.paces:
            seed += len(seeds) % len(task.paces) - seed % len(task.paces)
        part = parts[len(seeds)]
        if low == high or edges[part] <= drawn_variation(task, seed).friction <= edges[part + 1]:
            seeds.append(seed)
    return seeds


def _advance(
    training: Training, policy: "Trainee", state: State, candidates: list[Played], tested: Played
) -> dict[str, Any]:
    """Move the mean by one epoch, and return the epoch's row of progress."""

    def by_candidate(values: Iterable[Array]) -> Array:
        """(population,) mean over the episodes of every candidate."""
        mean: Array = np.concatenate(list(values)).reshape(-1, training.evolution.population).mean(axis=0)
        return mean

    returns = by_candidate(played.returns for played in candidates)
    fitness = by_candidate(played.fitness(training.footfall_weight) for played in candidates)
    steps = sum(played.steps for played in candidates)
    row = {
        "epoch": state.epoch,
        "rollouts": state.rollouts,
        "steps": state.steps,
        "test_return": float(tested.returns.mean()),
        "test_return_min": float(tested.returns.min()),
        "test_falls": tested.falls,
        "test_footfall_error": float(tested.footfall_errors.mean()),
        "candidate_return_mean": float(np.nanmean(returns)),
        "candidate_return_max": float(np.nanmax(returns)),
        "candidate_falls": sum(played.falls for played in candidates),
        "played_steps": steps + tested.steps,
        "cpu_seconds": round(sum(played.cpu_seconds for played in (*candidates, tested)), 3),
    }
    state.search = training.evolution.update(policy.space, state.search, training.seed, state.epoch, fitness)
    for played in candidates:
        if played.moments is not None:
            state.moments = state.moments + played.moments
    state.epoch += 1
    share = training.practice.episode_seconds / training.world.episode_seconds
    state.rollouts += round(sum(len(played.returns) for played in candidates) * share, 6)
    state.steps += steps
    return row


def normalised(policy: "Trainee", moments: Array) -> "Trainee":
    """The policy with the mean and standard deviation of the observations so far, if it uses them."""
    if not isinstance(policy, MLPPolicy) or (found := mean_and_std(moments)) is None:
        return policy
    mean, std = found
    return replace(policy, mean=tuple(mean.tolist()), std=tuple(std.tolist()))


def _candidate(run: Run, policy: "Trainee", state: State, tested: Played, weight: float) -> TrainedPolicy:
    fitness = float(tested.fitness(weight).mean())
    about = run.about | {"epoch": state.epoch, "test_return": float(tested.returns.mean()), "test_fitness": fitness}
    return TrainedPolicy(policy=policy, theta=state.theta, about=about)
