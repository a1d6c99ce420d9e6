"""Training by evolution: epochs of candidates and test episodes, checkpointed so that a kill loses nothing.

An epoch plays the candidates on one training episode and the mean on the test episodes, then moves the mean. All draws
are addressed by seed and epoch, so a resumed run ends in the same weights as an unbroken one, to the bit.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError, unknown_name
from ncap.learn import es
from ncap.learn.executors import CHUNK, Chunk, Executor, Played
from ncap.policies.mlp import INPUTS, MLPPolicy
from ncap.policies.ncap import COMMANDS, NCAPPolicy
from ncap.policies.storage import Policy, describe, save_policy
from ncap.runs import Checkpoint, Run
from ncap.tasks import Task, find_task

Array = NDArray[np.float64]

TEST_SEEDS: Final = tuple(range(1_000_000, 1_000_005))
"""Test episodes after every epoch, the same for every run. `ncap evaluate` counts its own from 0."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Everything that determines the result of a run."""

    task: str
    policy: str = "ncap"
    """ncap, mlp, or mlp:64x64 with the sizes of its hidden layers."""
    preset: str = "default"
    """Settings of evolution: default, paper or released."""
    command: float | None = None
    """Brainstem command; None: the task's."""
    contact: str = "default"
    seed: int = 0
    epochs: int = 60
    pairs: int | None = None
    """Antithetic pairs of candidates; None: the preset's."""
    sigma: float | None = None
    """Mutation and step size; None: the preset's."""
    episode_seconds: float | None = None
    """Length of an episode; None: the task's."""

    def __post_init__(self) -> None:
        find_task(self.task)
        if self.preset not in es.PRESETS:
            raise unknown_name("preset", self.preset, es.PRESETS)
        if self.epochs < 1:
            raise UserError(f"at least one epoch is needed, not {self.epochs}")
        self.initial_policy()
        self.evolution  # noqa: B018 - complains about impossible settings before anything is written

    @property
    def world(self) -> Task:
        """The task with the contact preset and the length that were asked for."""
        task = replace(find_task(self.task), contact=self.contact)
        return task if self.episode_seconds is None else replace(task, episode_seconds=self.episode_seconds)

    @property
    def evolution(self) -> es.Evolution:
        """Settings of the search for this kind of policy."""
        settings = es.PRESETS[self.preset][self.policy.split(":")[0]]
        if self.pairs is not None:
            settings = replace(settings, pairs=self.pairs)
        if self.sigma is not None:
            settings = replace(settings, sigma=self.sigma, rate=self.sigma)
        return settings

    def initial_policy(self) -> Policy:
        """The policy before training."""
        policy = policy_of(self.policy, self.task, self.command, (256, 256))
        return replace(policy, copies=self.evolution.copies) if isinstance(policy, NCAPPolicy) else policy


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
    """The brainstem command for a task, chosen by the untrained returns (docs/results.md)."""
    return COMMANDS[task.split("-")[-1]]


@dataclass
class State:
    """Where a run is. Everything in it goes into a checkpoint."""

    epoch: int
    theta: Array
    best_theta: Array
    best_return: float
    moments: Array
    """(3, 40): count, sum and sum of squares of the observations so far (MLP only)."""
    rollouts: int = 0
    steps: int = 0

    def to_checkpoint(self) -> Checkpoint:
        """For the disk."""
        return Checkpoint(
            epoch=self.epoch,
            tensors={"theta": self.theta, "best_theta": self.best_theta, "moments": self.moments},
            facts={"best_return": self.best_return, "rollouts": self.rollouts, "steps": self.steps},
        )

    @classmethod
    def from_checkpoint(cls, saved: Checkpoint) -> "State":
        """From the disk."""
        tensors, facts = saved.tensors, saved.facts
        return cls(
            epoch=saved.epoch,
            theta=tensors["theta"],
            best_theta=tensors["best_theta"],
            best_return=facts["best_return"],
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
        initial = policy.space.initial
        state = State(0, initial, initial, -np.inf, np.zeros((3, INPUTS)))
    run.rewind_progress(state.epoch)
    while state.epoch < training.epochs:
        started = time.perf_counter()
        current = normalised(policy, state.moments)
        *candidates, tested = executor.play(epoch_chunks(training, current, state))
        _keep_best(training, run, current, state, tested)
        row = _advance(training, policy, state, candidates, tested)
        run.save(state.to_checkpoint())
        row |= {"best_return": state.best_return, "seconds": round(time.perf_counter() - started, 3)}
        run.append_progress(row)
        report(row)
    last = normalised(policy, state.moments)
    (tested,) = executor.play(epoch_chunks(training, last, state)[-1:])
    _keep_best(training, run, last, state, tested)
    about = _about(training, state, float(tested.returns.mean()))
    save_policy(run.folder / "last.safetensors", last, state.theta, about)
    return state


def _keep_best(training: Training, run: Run, policy: Policy, state: State, tested: Played) -> None:
    """Write the policy if its test return is the best so far."""
    test_return = float(tested.returns.mean())
    if test_return > state.best_return:
        state.best_return, state.best_theta = test_return, state.theta
        save_policy(run.folder / "best.safetensors", policy, state.theta, _about(training, state, test_return))


def epoch_chunks(training: Training, policy: Policy, state: State) -> list[Chunk]:
    """The candidates in chunks of a fixed size, and last the test episodes of the mean."""
    settings, epoch = training.evolution, state.epoch
    test = Chunk(task=training.world, policy=describe(policy), mean=state.theta, seeds=TEST_SEEDS)
    episode = int(seeding.generator(training.seed, "training episode", epoch).integers(2**31, 2**32))
    everybody = range(settings.candidates)
    chunks = [
        replace(
            test,
            seeds=(episode,) * len(indices),
            evolution=settings,
            seed=training.seed,
            epoch=epoch,
            indices=tuple(indices),
            moments=isinstance(policy, MLPPolicy),
        )
        for indices in (everybody[first : first + CHUNK] for first in everybody[::CHUNK])
    ]
    return [*chunks, test]


def _advance(
    training: Training, policy: Policy, state: State, candidates: list[Played], tested: Played
) -> dict[str, Any]:
    """Move the mean by one epoch, and say what happened."""
    returns = np.concatenate([played.returns for played in candidates])
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
    }
    state.theta = es.update(training.evolution, policy.space, state.theta, training.seed, state.epoch, returns)
    for played in candidates:
        if played.moments is not None:
            state.moments = state.moments + played.moments
    state.epoch += 1
    state.rollouts += len(returns)
    state.steps += steps
    return row


def normalised(policy: Policy, moments: Array) -> Policy:
    """The policy with the mean and standard deviation of the observations so far, if it uses them."""
    if not isinstance(policy, MLPPolicy) or moments[0, 0] == 0:
        return policy
    mean = moments[1] / moments[0]
    std = np.sqrt(np.maximum(moments[2] / moments[0] - mean**2, 1e-4))
    return replace(policy, mean=tuple(mean.tolist()), std=tuple(std.tolist()))


def resume(folder: Path) -> tuple[Training, Run, State | None, list[str]]:
    """(training, run, state, complaints) of a run directory, to go on with."""
    run = Run.open(folder)
    training = Training(**run.config)
    saved, complaints = run.latest()
    return training, run, (None if saved is None else State.from_checkpoint(saved)), complaints


def config_of(training: Training) -> dict[str, Any]:
    """What goes into config.json."""
    return asdict(training)


def _about(training: Training, state: State, test_return: float) -> dict[str, Any]:
    return {"training": asdict(training), "epoch": state.epoch, "test_return": test_return}
