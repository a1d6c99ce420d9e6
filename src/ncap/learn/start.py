"""Training of either kind, evolution or by gradients: from its settings to a finished run directory."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from ncap.errors import UserError
from ncap.learn import reinforcement
from ncap.learn import train as evolution
from ncap.learn.executors import Executor
from ncap.learn.reinforcement import Reinforcement
from ncap.learn.train import Training, default_command
from ncap.runs import Checkpoint, Run, read_config

AnyTraining = Training | Reinforcement


def run_name(training: AnyTraining) -> str:
    """What a run's folder is called: TASK-POLICY-SEED, with what is unusual about it in between."""
    words = [training.task, training.policy.replace(":", "-")]
    if isinstance(training, Reinforcement):
        words.insert(1, training.algorithm)
    if training.command not in (None, default_command(training.task)):
        words.append(f"c{training.command:g}")
    if isinstance(training, Training) and training.target_speed is not None:
        words.append(f"{training.target_speed:g}ms")
    return "-".join((*words, str(training.seed)))


def read_training(folder: Path) -> AnyTraining:
    """The training that a run directory was made for."""
    config = read_config(folder)
    kind = Reinforcement if "algorithm" in config else Training
    known = {setting.name for setting in fields(kind)}
    if strange := sorted(set(config) - known):
        raise UserError(f"{folder} was made by another version, with settings unknown here: {', '.join(strange)}")
    if missing := sorted(known - set(config)):
        raise UserError(f"{folder} was made by another version, without the settings {', '.join(missing)}")
    return kind(**config)


def go_on(
    training: AnyTraining,
    run: Run,
    saved: Checkpoint | None,
    executor: Executor,
    threads: int,
    report: Callable[[dict[str, Any]], None],
) -> evolution.State | reinforcement.State:
    """Do what is left of a run from a checkpoint, or from the start. The executor plays evolution's episodes."""
    if isinstance(training, Reinforcement):
        return reinforcement.train(training, run, threads, saved, report)
    state = None if saved is None else evolution.State.from_checkpoint(saved)
    return evolution.train(training, run, executor, state, report)
