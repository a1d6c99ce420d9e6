"""Training of any kind, by evolution or by gradients: from its settings to a finished run directory."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from ncap.circuits.animal import find_circuit
from ncap.circuits.tables import save_circuit
from ncap.errors import UserError
from ncap.files import shown
from ncap.learn.evolution import evolve
from ncap.learn.executors import Executor, LocalExecutor
from ncap.learn.settings import Training, training_from
from ncap.runs import Run, holds_run, read_config
from ncap.tasks import find_task
from ncap.trained import TrainedPolicy, read_policy

_BEST, _LAST = "best.safetensors", "last.safetensors"
_CIRCUIT: Final = "circuit.json"
"""The table that a run began with, kept beside its configuration: where it came from may change."""


def run_name(training: Training) -> str:
    """The name of a run's folder: TASK-POLICY-SEED, with what is unusual about it in between."""
    words = [Path(training.task).stem, training.kind.replace(":", "-")]
    if training.algorithm != "evolution":
        words.insert(1, training.algorithm)
    if training.circuit not in (None, "default"):
        words.append(Path(training.circuit).stem)
    words += [f"no-{name}" for name in training.without]
    if training.trainable:
        words.append("+".join(training.trainable))
    if training.robot is not None:
        words.append(Path(training.robot).stem)
    if training.links is not None:
        words.append(f"{training.links}-links")
    if training.command not in (None, find_task(training.task).command):
        words.append(f"c{training.command:g}")
    if training.target_speed is not None:
        words.append(f"{training.target_speed:g}ms")
    return "-".join((*words, str(training.seed))).replace(" ", "_").replace("/", "_")


def read_training(folder: Path, trusted: Sequence[str | None] = ()) -> Training:
    """The training that a run directory was made for, with the circuit that is kept there.

    A task or robot in a Python file is run only if its name is trusted: a run directory may come from somebody else.
    """
    config, table = read_config(folder), folder / _CIRCUIT
    for name in ("task", "robot"):
        if str(config.get(name)).endswith(".py") and config[name] not in trusted:
            word = shown(config[name])
            raise UserError(f"{folder}: its {name} is in the Python file {word}, which is run only if you name it too")
    config.setdefault("physics", "paper")  # a run that was begun when there was no other
    if table.exists():
        config["circuit"] = str(table)
    return training_from(config, f"{folder}: config.json").filled()


def train(
    training: Training,
    folder: Path,
    *,
    executor: Executor | None = None,
    threads: int = 2,
    report: Callable[[dict[str, Any]], None] = lambda _: None,
    complain: Callable[[str], None] = lambda _: None,
) -> TrainedPolicy:
    """Train in a run directory, or do what is left of a run that was begun there. Returns the best policy.

    executor: where evolution's episodes are played; by default here, on so many threads. report: gets the row of
    progress after each epoch. complain: gets a sentence about each damaged file that was passed over. More epochs than
    the run was begun with make it longer. A folder that holds a run with other settings is refused, and so is one in
    which another process is at work.
    """
    training = training.filled()
    if threads < 1:
        raise UserError(f"at least one thread is needed, not {threads}")
    policy = training.initial_policy()
    begun = holds_run(folder)
    if training.algorithm == "evolution" and not begun:
        training.initial_weights(policy)  # a wrong start is refused before there is a folder
    with Run.open(folder, complain) if begun else Run.create(folder, asdict(training), complain) as run:
        if training.circuit is not None and not (folder / _CIRCUIT).exists():
            save_circuit(find_circuit(training.circuit).on(training.world.robot.plan), folder / _CIRCUIT)
        kept = read_training(folder, (training.task, training.robot))
        if replace(kept, epochs=training.epochs) != training or kept.initial_policy() != policy:
            raise UserError(f"{folder} holds a run with other settings: choose another folder, or go on with its own")
        if training.all_epochs < kept.all_epochs:
            raise UserError(f"{folder} is a run of {kept.all_epochs} epochs, which cannot become {training.all_epochs}")
        if training.all_epochs > kept.all_epochs:
            run.configure(read_config(folder) | {"epochs": training.epochs})
        config = read_config(folder)
        run.about = {"task": training.task, "robot": training.robot or training.world.robot.name, "training": config}
        if run.complete and read_policy(folder / _LAST).about.get("epoch") == training.all_epochs:
            return read_policy(folder / _BEST)
        if training.algorithm == "evolution":
            evolve(training, policy, run, executor or LocalExecutor(threads), report)
        else:
            from ncap.learn.networks import one_torch_thread
            from ncap.learn.reinforcement import reinforce

            with one_torch_thread():
                reinforce(training, policy, run, threads, report)
    return read_policy(folder / _BEST)
