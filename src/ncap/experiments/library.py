"""Runs and evaluations that experiments share, kept in a folder: what is finished is never done again.

Several processes may work in one folder: a run belongs to the one that holds its lock, the others take the next.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from ncap.errors import UserError
from ncap.evaluation import Evaluation, evaluate
from ncap.files import decode, read_json, write_whole
from ncap.learn.executors import Executor
from ncap.learn.settings import Training
from ncap.learn.training import read_training, run_name, train
from ncap.runs import BusyError
from ncap.sim.bodies import describe_body
from ncap.tasks import PAPER_TASKS, Task
from ncap.trained import load, shipped_policies

WAIT: Final = 2.0
"""Time between two looks at runs that other processes are doing, s."""


CONTENDERS: Final[dict[str, dict[str, Any]]] = {
    "ncap": {"policy": "ncap"},
    "ncap-paper": {"policy": "ncap", "circuit": "paper"},
    "mlp-evolution": {"policy": "mlp"},
    "mlp-ppo": {"policy": "mlp", "algorithm": "ppo"},
    "mlp-d4pg": {"policy": "mlp", "algorithm": "d4pg"},
    "ncap-ppo": {"policy": "ncap", "algorithm": "ppo"},
}
"""Settings of Training of what is compared, by the names in tables."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much of an experiment is done."""

    seeds: int
    """Runs of every kind."""
    ncap: dict[str, Any]
    """Settings of Training for evolution of the circuit."""
    mlp: dict[str, Any]
    """The same for evolution of an MLP."""
    rl: dict[str, dict[str, Any]]
    """The same for every algorithm of reinforcement learning."""
    runs: dict[str, int] = field(default_factory=dict)
    """Another number of seeds for some contenders."""
    contenders: tuple[str, ...] = ("ncap", "ncap-paper", "mlp-evolution", "mlp-ppo", "mlp-d4pg")
    """What is compared on the paper's tasks."""
    episodes: int
    """Held-out episodes of an evaluation."""
    points: int
    """Values along each axis of the generalisation."""
    variations: int = 20
    """Episodes at each of them."""
    sizes: tuple[int, ...]
    """MLP sizes of the parameter experiment."""
    tasks: tuple[str, ...] = PAPER_TASKS
    test_seconds: float = 15.0
    """Length of an episode in which the speed changes, s."""
    states: int = 32
    """Initial states of the rhythm generator."""
    robot: str | None = None
    """The robot that is trained and measured; None: the tasks' own."""
    rollouts: int = 256
    """Episodes of full length that every optimiser is given in the comparison of optimisers."""
    straight: int = 20
    """Episodes straight ahead."""
    trials: int = 50
    """Episodes of rough ground, and pushes of every impulse."""
    mlp_steps: int = 2_000_000
    """Control steps that an MLP is given in the comparison of its settings."""
    drive_steps: int = 600_000
    """Control steps that every policy is given to learn to drive."""

    def trainings(self, task: str, contender: str) -> list[Training]:
        """One training per seed of a contender, or of an MLP of another size by evolution, such as mlp:16x16."""
        settings = CONTENDERS.get(contender, {"policy": contender})
        algorithm = settings.get("algorithm", "evolution")
        kind = "ncap" if settings["policy"] == "ncap" else "mlp"
        usual = {"ncap": self.ncap, "mlp": self.mlp}[kind] if algorithm == "evolution" else self.rl[algorithm]
        whole = Training(task=task, robot=self.robot, **settings, **usual).filled()
        return [replace(whole, seed=seed) for seed in range(self.runs.get(contender, self.seeds))]


SCALES: Final = {
    "smoke": Scale(
        seeds=1,
        runs={"ncap": 2},
        contenders=("ncap", "mlp-evolution", "mlp-ppo"),
        ncap={"epochs": 2, "population": 4, "episodes": 1, "episode_seconds": 1.5},
        mlp={"epochs": 2, "population": 4, "episode_seconds": 1.5},
        rl={name: {"epochs": 2, "environments": 4, "episode_seconds": 1.5} for name in ("ppo", "d4pg")},
        episodes=1,
        points=2,
        variations=1,
        sizes=(4, 16, 256),
        test_seconds=1.5,
        states=4,
        rollouts=16,
        straight=1,
        trials=2,
        mlp_steps=3_000,
        drive_steps=10_000,
    ),
    "laptop": Scale(
        seeds=3,
        ncap={"epochs": 60},
        mlp={"epochs": 360},
        rl={"ppo": {"epochs": 60}, "d4pg": {"epochs": 20}},
        episodes=10,
        points=7,
        sizes=(4, 16, 256),
        states=32,
        rollouts=96,
    ),
    "full": Scale(
        seeds=5,
        runs={"ncap": 10, "mlp-d4pg": 3},
        ncap={"epochs": 60},
        mlp={"epochs": 375},  # 2 million steps
        rl={"ppo": {"epochs": 125}, "d4pg": {"epochs": 40}},  # 1 and 0.3 million
        episodes=50,
        points=9,
        sizes=(4, 8, 16, 32, 64, 128, 256),
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
        """`say`: gets a line about what is being done now."""
        self.folder, self.executor, self.threads, self.say = folder, executor, threads, say

    def within(self, name: str) -> "Library":
        """A library like this one in a folder of its own, for runs whose names would be equal to those of others."""
        return Library(self.folder / name, self.executor, self.threads, self.say)

    def place(self, training: Training) -> Path:
        """Where the run of a training is or will be."""
        return self.folder / "runs" / run_name(training)

    def finished(self, training: Training) -> bool:
        """Whether there is nothing left to train."""
        place = self.place(training)
        if (place / "config.json").exists() and read_training(place) != training.filled():
            raise UserError(f"{place} was begun with other settings: use another --out, or the scale it began with")
        return (place / "last.safetensors").exists()

    def train(self, trainings: Sequence[Training]) -> list[Path]:
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

    def _train(self, training: Training, left: str) -> None:
        place = self.place(training)

        def report(row: dict[str, Any]) -> None:
            self.say(
                f"{left}: {place.name}  epoch {row['epoch'] + 1}/{training.epochs}  return {row['test_return']:.3f}"
            )

        train(training, place, executor=self.executor, threads=self.threads, report=report)

    def evaluation(self, policy: str, task: Task, episodes: int, *, first: int = 0) -> Evaluation:
        """A policy, by name or path, on held-out episodes of a task; `first`: the seed of the first of them."""
        path = shipped_policies().get(policy, Path(policy))
        path = path / "best.safetensors" if path.is_dir() else path
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else policy
        key: dict[str, object] = {"policy": content, "task": describe_task(task), "episodes": episodes}
        key |= {"first": first} if first else {}
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]
        kept = self.folder / "evaluations" / f"{digest}.json"
        with suppress(UserError):  # one that is damaged, of an earlier version or not there is made anew
            return decode(Evaluation, read_json(kept), str(kept))
        self.say(f"evaluating {Path(policy).name} on {task.name}")
        found = evaluate(load(policy).on(task), task, range(first, first + episodes), threads=self.threads)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, json.dumps(asdict(found)).encode())
        return found


def measured(found: Evaluation) -> dict[str, object]:
    """Cells of a table: what a walker did on held-out episodes."""
    return {
        "episodes": found.episodes,
        "return": found.return_mean,
        "low": found.return_interval[0],
        "high": found.return_interval[1],
        "falls": found.falls,
        "speed": found.speed_mean,
        "cost_of_transport": found.cost_of_transport,
        "gait": found.walk.label,
        "commanded_share": found.walk.commanded_share,
    }


def describe_task(task: Task) -> dict[str, Any]:
    """The task as JSON data: equal for equal tasks, in this process and in any other."""
    data = {setting.name: getattr(task, setting.name) for setting in fields(task)}
    target = data.pop("target")
    return data | {
        **({} if target is None else {"target": asdict(target)}),
        "robot": describe_body(task.robot),
        "terrain": {"kind": type(task.terrain).__name__} | asdict(task.terrain),  # type: ignore[call-overload]
        "paces": [asdict(pace) for pace in task.paces],
        "drive": None if task.drive is None else asdict(task.drive),
        "rewards": [term.name for term in task.rewards],
        "variation": asdict(task.variation),
    }
