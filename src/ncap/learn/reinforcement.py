"""Training by gradients, with PPO or D4PG: run directories, test episodes and progress as under evolution.

An epoch is as long as one of evolution's: 16 environments play 15 s each. Draws are addressed by seed and epoch, and
every epoch begins new episodes, so a resumed run ends in the same weights as an unbroken one, to the bit.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.learn.best import TEST_SEEDS, choose, keep
from ncap.learn.executors import Chunk, LocalExecutor, Played, play
from ncap.learn.search import Search
from ncap.learn.settings import Training
from ncap.policies.mlp import MLPPolicy
from ncap.runs import Checkpoint, Facts, Run
from ncap.trained import TrainedPolicy

if TYPE_CHECKING:
    from ncap.learn.settings import Trainee
    from ncap.learn.vec_env import BatchedVecEnv

Array = NDArray[np.float64]

REPLAY: Final = "replay"
"""Folder of a run in which D4PG keeps what it has seen, until the run is complete."""


class Learner(Protocol):
    """An algorithm at work on a vector environment."""

    def practise(self, epoch: int) -> None:
        """Play an epoch and learn from it."""
        ...

    def exported(self) -> "tuple[Trainee, Array]":
        """The policy as it is now, with its weights (D,)."""
        ...

    def tensors(self) -> dict[str, Array]:
        """Weights, optimiser and normaliser."""
        ...

    def restore(self, tensors: dict[str, Array]) -> None:
        """Go back to where `tensors` was called."""
        ...

    def save_memory(self, folder: Path, epoch: int) -> None:
        """Write what later epochs will learn from this one again."""
        ...

    def load_memory(self, folder: Path, epoch: int) -> None:
        """Read what the epochs before this one have left."""
        ...


@dataclass
class State:
    """How far a run has come, beside what the learner knows."""

    epoch: int = 0
    rollouts: int = 0
    """Training episodes ended."""
    steps: int = 0


def make_learner(training: Training, policy: "Trainee", threads: int) -> tuple["BatchedVecEnv", Learner]:
    """(environments, learner) before the first epoch."""
    from ncap.learn import d4pg, ppo
    from ncap.learn.interfaces import Interface, Joints, RhythmDrive
    from ncap.learn.vec_env import BatchedVecEnv

    world = training.practice
    interface: Interface = Joints(world)
    if not isinstance(policy, MLPPolicy):
        interface = RhythmDrive(policy, training.environments)
    env = BatchedVecEnv(
        world,
        training.environments,
        interface,
        seed=training.seed,
        reward_scale=ppo.REWARD_SCALE if training.algorithm == "ppo" else 1.0,
        threads=threads,
    )
    if training.algorithm == "ppo":
        settings = ppo.SETTINGS["mlp" if isinstance(policy, MLPPolicy) else "ncap"]
        return env, ppo.PPOLearner(env, policy, settings, seed=training.seed)
    assert isinstance(policy, MLPPolicy)
    return env, d4pg.D4PGLearner(env, policy, d4pg.Settings(), seed=training.seed)


def reinforce(
    training: Training,
    policy: "Trainee",
    run: Run,
    threads: int,
    report: Callable[[dict[str, Any]], None],
) -> None:
    """Do the epochs that are left, then choose the best policy. report(row of progress) is called after each epoch."""
    env, learner = make_learner(training, policy, threads)
    memory, state = run.folder / REPLAY, State()
    saved = run.latest({name: values.shape for name, values in learner.tensors().items()})
    if saved is not None:
        state = State(epoch=saved.epoch, rollouts=round(saved.facts.rollouts), steps=saved.facts.steps)
        learner.restore(saved.tensors)
        if state.epoch < training.all_epochs:
            learner.load_memory(memory, state.epoch)
    run.rewind_progress(state.epoch)
    while state.epoch < training.all_epochs:
        started, spent = time.perf_counter(), time.process_time()
        candidate, tested = _tested(training, run, learner, state, threads)
        best_return = keep(run, candidate)
        learner.practise(state.epoch)
        learner.save_memory(memory, state.epoch)
        practice = env.practice()
        row = {
            "epoch": state.epoch,
            "rollouts": state.rollouts,
            "steps": state.steps,
            "test_return": float(tested.returns.mean()),
            "test_return_min": float(tested.returns.min()),
            "test_falls": tested.falls,
            "training_return_mean": float(np.mean(practice.returns)) if practice.returns else float("nan"),
            "training_falls": practice.falls,
            "played_steps": practice.steps + tested.steps,
        }
        state.epoch += 1
        state.rollouts += len(practice.returns)
        state.steps += practice.steps
        row |= {
            "best_return": best_return,
            "seconds": round(time.perf_counter() - started, 3),
            "cpu_seconds": round(time.process_time() - spent, 3),
        }
        run.append_progress(row)
        facts = Facts(rollouts=state.rollouts, steps=state.steps)
        run.save(Checkpoint(epoch=state.epoch, tensors=learner.tensors(), facts=facts))
        report(row)
    last, _ = _tested(training, run, learner, state, threads)
    keep(run, last)
    choose(run, last, training.world, training.all_epochs, LocalExecutor(threads))
    shutil.rmtree(memory, ignore_errors=True)


def _tested(training: Training, run: Run, learner: Learner, state: State, threads: int) -> tuple[TrainedPolicy, Played]:
    """The policy as it is now, and its test episodes, played without exploration."""
    policy, theta = learner.exported()
    (tested,) = play([Chunk(task=training.world, policy=policy, search=Search(mean=theta), seeds=TEST_SEEDS)], threads)
    about = run.about | {"epoch": state.epoch, "test_return": float(tested.returns.mean())}
    return TrainedPolicy(policy=policy, theta=theta, about=about), tested
