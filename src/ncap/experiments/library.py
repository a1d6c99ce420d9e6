"""Runs and evaluations that experiments share, kept in a folder: what is finished is never done again.

Several processes may work in one folder: a run belongs to the one that holds its lock, the others take the next.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.errors import UserError
from ncap.experiments.evaluation import Evaluation, GaitSummary, evaluate, find_controller
from ncap.learn.executors import Executor
from ncap.learn.reinforcement import ALGORITHMS, Reinforcement
from ncap.learn.start import AnyTraining, go_on, read_training, run_name
from ncap.learn.train import Training
from ncap.policies.storage import write_whole
from ncap.runs import BusyError, Run, read_progress
from ncap.tasks import TASKS, Task

MARK: Final = 0.90
"""The test return at which a policy counts as having learned its task."""
WAIT: Final = 2.0
"""s between two looks at runs that other processes are doing."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much of an experiment is done."""

    seeds: int
    ncap: dict[str, Any]
    """Settings of Training for the circuit."""
    mlp: dict[str, Any]
    rl: dict[str, dict[str, Any]]
    """Settings of Reinforcement for every algorithm."""
    episodes: int
    """Held-out episodes of an evaluation."""
    points: int
    """Values along each axis of the generalisation."""
    sizes: tuple[int, ...]
    """MLP sizes of the parameter experiment."""
    tasks: tuple[str, ...] = tuple(TASKS)
    test_seconds: float = 15.0
    """Length of an episode in which the speed changes."""
    states: int = 32
    """Initial states of the rhythm generator."""

    def trainings(self, task: str, policy: str, algorithm: str = "evolution") -> Sequence[AnyTraining]:
        """One per seed."""
        what: dict[str, Any] = {"task": task, "policy": policy}
        if algorithm == "evolution":
            what |= self.ncap if policy == "ncap" else self.mlp
            return [Training(seed=seed, **what) for seed in range(self.seeds)]
        what |= self.rl[algorithm]
        return [Reinforcement(seed=seed, algorithm=algorithm, **what) for seed in range(self.seeds)]


SCALES: Final = {
    "smoke": Scale(
        seeds=2,
        ncap={"epochs": 2, "population": 4, "episodes": 1, "episode_seconds": 1.5},
        mlp={"epochs": 2, "population": 4, "episode_seconds": 1.5},
        rl={name: {"epochs": 2, "environments": 4, "episode_seconds": 1.5} for name in ALGORITHMS},
        episodes=1,
        points=2,
        sizes=(4, 16, 256),
        test_seconds=1.5,
        states=4,
    ),
    "laptop": Scale(
        seeds=3,
        ncap={"epochs": 60},
        mlp={"epochs": 40},
        rl={"ppo": {"epochs": 60}, "d4pg": {"epochs": 20}},
        episodes=10,
        points=7,
        sizes=(4, 16, 256),
        states=32,
    ),
    "paper": Scale(
        seeds=10,
        ncap={"preset": "paper", "epochs": 500},
        mlp={"preset": "paper", "epochs": 500},
        rl={"ppo": {"epochs": 1250}, "d4pg": {"epochs": 125}},  # 10 and 1 million steps
        episodes=50,
        points=11,
        sizes=(4, 8, 16, 32, 64, 128, 256),
        states=200,
    ),
}


class Library:
    """Runs and evaluations in a folder."""

    def __init__(self, folder: Path, executor: Executor, threads: int, say: Callable[[str], None]) -> None:
        self.folder, self.executor, self.threads, self.say = folder, executor, threads, say

    def place(self, training: AnyTraining) -> Path:
        """Where the run of a training is or will be."""
        return self.folder / "runs" / run_name(training)

    def finished(self, training: AnyTraining) -> bool:
        """Whether there is nothing left to train."""
        place = self.place(training)
        if not (place / "last.safetensors").exists():
            return False
        if read_training(place) != training:
            raise UserError(
                f"{place} was trained with other settings: use another --out, or the scale it was made with"
            )
        return True

    def train(self, trainings: Sequence[AnyTraining]) -> list[Path]:
        """Do what is left of some runs, leaving those that another process holds to it. Returns all their folders."""
        left = [training for training in trainings if not self.finished(training)]
        while left:
            worked = False
            for training in left:
                try:
                    self._train(training, f"{len(left)} of {len(trainings)} runs left")
                except BusyError:
                    continue
                worked = True
                break
            left = [training for training in left if not self.finished(training)]
            if left and not worked:
                time.sleep(WAIT)
        return [self.place(training) for training in trainings]

    def _train(self, training: AnyTraining, left: str) -> None:
        place = self.place(training)
        begun = (place / "config.json").exists()
        run = Run.open(place) if begun else Run.create(place, asdict(training))

        def report(row: dict[str, Any]) -> None:
            self.say(
                f"{left}: {place.name}  epoch {row['epoch'] + 1}/{training.epochs}  return {row['test_return']:.3f}"
            )

        with run:
            if read_training(place) != training:
                raise UserError(f"{place} was begun with other settings: use another --out, or the scale it began with")
            saved, _ = run.latest()
            go_on(training, run, saved, self.executor, self.threads, report)

    def evaluation(self, policy: str, task: Task, episodes: int) -> Evaluation:
        """A policy, by name or path, on held-out episodes of a task."""
        path = Path(policy) / "best.safetensors"
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else policy
        key = {"policy": content, "task": str(task), "episodes": episodes}
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]
        kept = self.folder / "evaluations" / f"{digest}.json"
        if kept.exists():
            return _from_json(json.loads(kept.read_text("utf-8")))
        self.say(f"evaluating {Path(policy).name} on {task.name}")
        controller, parameters = find_controller(policy, task.name, episodes)
        found = evaluate(task, policy, parameters, controller, range(episodes), self.threads)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, json.dumps(asdict(found)).encode())
        return found


def _from_json(data: dict[str, Any]) -> Evaluation:
    return replace(Evaluation(**data), gait=GaitSummary(**data["gait"]))


def curves(runs: Sequence[Path], column: str = "test_return") -> tuple[np.ndarray, np.ndarray]:
    """(environment steps (T,), curves (run, T)) of runs of equal length; steps are the mean over runs."""
    tables = [read_progress(run) for run in runs]
    length = min(len(table) for table in tables)
    steps = np.mean([[row["steps"] for row in table[:length]] for table in tables], axis=0)
    return steps, np.array([[row[column] for row in table[:length]] for table in tables])
