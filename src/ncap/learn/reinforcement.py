"""Training by gradients, with PPO or D4PG: run directories, test episodes and progress as under evolution.

An epoch is as long as one of evolution's: 16 environments play 15 s each. Draws are addressed by seed and epoch, and
every epoch begins new episodes, so a resumed run ends in the same weights as an unbroken one, to the bit.
"""

import importlib.util
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError, unknown_name
from ncap.learn.best import TEST_SEEDS, Candidate, choose, keep
from ncap.learn.executors import Chunk, LocalExecutor, Played, play
from ncap.learn.search import Search
from ncap.learn.train import policy_of, world_of
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.storage import Policy, describe
from ncap.runs import Checkpoint, Run
from ncap.tasks import Task, find_task

if TYPE_CHECKING:
    from ncap.learn.vec_env import BatchedVecEnv

Array = NDArray[np.float64]

ALGORITHMS: Final = {"ppo": (64, 64), "d4pg": (256, 256)}
"""Hidden layers of the paper's networks."""
MEMORY: Final = "replay"
"""Folder of a run in which D4PG keeps what it has seen, until the run is complete."""


def check_installed() -> None:
    """Complain if the extra is missing."""
    missing = [name for name in ("torch", "stable_baselines3") if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"PPO and D4PG need {' and '.join(missing)}: pip install 'ncap[rl]'")


@dataclass(frozen=True, kw_only=True)
class Reinforcement:
    """Everything that determines the result of a run. What is left to a default is filled in."""

    task: str
    algorithm: str
    """ppo or d4pg."""
    policy: str = "mlp"
    """mlp, mlp:64x64 with the sizes of its hidden layers, or, for PPO, ncap."""
    command: float | None = None
    """Brainstem command; None: the task's."""
    contact: str = "default"
    seed: int = 0
    epochs: int = 60
    environments: int = 16
    episode_seconds: float | None = None
    """Length of an episode; None: the task's."""

    def __post_init__(self) -> None:
        find_task(self.task)
        if self.algorithm not in ALGORITHMS:
            raise unknown_name("algorithm", self.algorithm, ("evolution", *ALGORITHMS))
        if self.epochs < 1 or self.environments < 1:
            raise UserError(
                f"at least one epoch and one environment are needed, not {self.epochs} and {self.environments}"
            )
        policy = self.initial_policy()
        if isinstance(policy, NCAPPolicy):
            object.__setattr__(self, "command", policy.command)
        check_installed()

    @property
    def world(self) -> Task:
        """The task with the contact preset and the length that were asked for."""
        return world_of(self.task, self.contact, self.episode_seconds)

    def initial_policy(self) -> Policy:
        """The architecture; an MLP's first weights are the learner's."""
        policy = policy_of(self.policy, self.task, self.command, ALGORITHMS[self.algorithm])
        if isinstance(policy, NCAPPolicy):
            if self.algorithm != "ppo":
                raise UserError(f"{self.algorithm} trains no {self.policy!r}; valid: mlp, mlp:256x256")
            return policy
        return replace(policy, activation="tanh" if self.algorithm == "ppo" else "relu")


class Learner(Protocol):
    """An algorithm at work on a vector environment."""

    def practise(self, epoch: int) -> None:
        """Play an epoch and learn from it."""
        ...

    def exported(self) -> tuple[Policy, Array]:
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
    """Where a run is, beside what the learner knows."""

    epoch: int = 0
    rollouts: int = 0
    """Training episodes ended."""
    steps: int = 0


def make_learner(training: Reinforcement, threads: int) -> tuple["BatchedVecEnv", Learner]:
    """(environments, learner) before the first epoch."""
    from ncap.learn import d4pg, ppo
    from ncap.learn.vec_env import BatchedVecEnv, Interface, Joints, RhythmDrive

    policy = training.initial_policy()
    interface: Interface = Joints() if isinstance(policy, MLPPolicy) else RhythmDrive(policy, training.environments)
    env = BatchedVecEnv(
        training.world,
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


def train(
    training: Reinforcement,
    run: Run,
    threads: int,
    saved: Checkpoint | None,
    report: Callable[[dict[str, Any]], None],
) -> State:
    """Do the epochs that are left. report(row of progress) is called after each."""
    env, learner = make_learner(training, threads)
    memory, state = run.folder / MEMORY, State()
    if saved is not None:
        state = State(epoch=saved.epoch, rollouts=saved.facts["rollouts"], steps=saved.facts["steps"])
        learner.restore(saved.tensors)
        if state.epoch < training.epochs:
            learner.load_memory(memory, state.epoch)
    run.rewind_progress(state.epoch)
    while state.epoch < training.epochs:
        started, spent = time.perf_counter(), time.process_time()
        candidate, tested = _tested(training, learner, state, threads)
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
        facts = asdict(state)
        run.save(Checkpoint(epoch=facts.pop("epoch"), tensors=learner.tensors(), facts=facts))
        row |= {
            "best_return": best_return,
            "seconds": round(time.perf_counter() - started, 3),
            "cpu_seconds": round(time.process_time() - spent, 3),
        }
        run.append_progress(row)
        report(row)
    last, _ = _tested(training, learner, state, threads)
    keep(run, last)
    choose(run, last, training.world, training.epochs, LocalExecutor(threads))
    shutil.rmtree(memory, ignore_errors=True)
    return state


def _tested(training: Reinforcement, learner: Learner, state: State, threads: int) -> tuple[Candidate, Played]:
    """The policy as it is now, and its test episodes, played without exploration."""
    policy, theta = learner.exported()
    tested = play(
        Chunk(task=training.world, policy=describe(policy), search=Search(mean=theta), seeds=TEST_SEEDS), threads
    )
    about = {"training": asdict(training), "epoch": state.epoch, "test_return": float(tested.returns.mean())}
    return (policy, theta, about), tested
