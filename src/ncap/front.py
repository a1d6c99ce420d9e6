"""The functions of `import ncap` that take names where the rooms behind them take things."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap import rollouts, seeding
from ncap.analysis.gaits import Gait, measure_gait
from ncap.analysis.rhythm import settled_stance
from ncap.circuits.animal import cut, find_circuit
from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import EXTENSOR_STANCE, check_command, rhythm_inputs
from ncap.circuits.spec import CircuitSpec
from ncap.errors import UserError
from ncap.evaluation import Evaluation, known_task, own_command, task_for
from ncap.evaluation import evaluate as evaluate_player
from ncap.policies.controller import Command, Controller, check_seeds, finite
from ncap.policies.seeker import Guide
from ncap.rollouts import Episodes
from ncap.tasks import Task
from ncap.trained import TrainedPolicy, load

if TYPE_CHECKING:
    from ncap.learn.settings import Training
    from ncap.lesions import LesionRow
    from ncap.recording import Recording

Array = NDArray[np.float64]

LONGEST: Final = 3600.0
"""Longest time for which a rhythm is measured, s."""

PolicyOrName = str | Path | TrainedPolicy
"""A policy, or its name, run directory or file."""


def _loaded(policy: PolicyOrName) -> TrainedPolicy:
    if not isinstance(policy, str | Path | TrainedPolicy):
        raise UserError(f"a policy is a name, a path or a TrainedPolicy, not {type(policy).__name__}")
    return policy if isinstance(policy, TrainedPolicy) else load(policy)


def rollout(
    task: str | Task,
    policy: PolicyOrName | Controller,
    seeds: Sequence[int] = range(5),
    *,
    command: Command | Guide | None = None,
    threads: int = 1,
    record: Sequence[str] = (),
) -> Episodes:
    """Play one episode of a task per seed; see ncap.rollouts.rollout for what can be recorded."""
    seeds = check_seeds(seeds)
    if isinstance(policy, str | Path | TrainedPolicy):
        player = _loaded(policy)
        world = task_for(player, task)
        player = player.on(world)
        command = own_command(player, world) if command is None else command
        controller = player.controller(len(seeds))
    else:
        if not (hasattr(policy, "reset") and hasattr(policy, "act")):
            raise UserError(f"a policy is a name, a path, a TrainedPolicy or a controller, not {type(policy).__name__}")
        world, controller = known_task(task), policy
    return rollouts.rollout(world, controller, seeds, command=command, threads=threads, record=record)


def evaluate(
    policy: PolicyOrName,
    task: str | Task | None = None,
    seeds: Sequence[int] = range(5),
    *,
    command: Command | None = None,
    threads: int = 1,
) -> Evaluation:
    """Measure a policy on a task, by default the one that it was trained for: return, falls, speed, cost, gait."""
    player = _loaded(policy)
    world = task_for(player, task)
    return evaluate_player(player.on(world), world, seeds, command=command, threads=threads)


def train(training: "Training", folder: str | Path, *, threads: int = 2) -> TrainedPolicy:
    """Train in a folder, or go on with the training that was begun there. Returns the best policy."""
    from ncap.learn.training import train as train_in

    return train_in(training, Path(folder), threads=threads)


def lesion(
    policy: PolicyOrName,
    without: Sequence[str],
    *,
    commands: Sequence[float] = (),
    task: str | Task | None = None,
    seeds: Sequence[int] = range(10),
    threads: int = 1,
) -> "list[LesionRow]":
    """Measure how a policy walks with its whole circuit and after each knock-out; see ncap.lesions.lesion."""
    from ncap.lesions import lesion as measure

    player = _loaded(policy)
    world = task_for(player, task)
    return measure(player.on(world), world, without, commands, seeds, threads=threads)


def write_replay(recording: "Recording", path: str | Path) -> None:
    """Write a recording as one HTML page that needs nothing else."""
    from ncap.view.replay import write_replay as write

    write(recording, Path(path))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rhythm:
    """What a circuit does without a body at one command."""

    command: float
    """Brainstem command."""
    dt: float
    """Time between two samples, s."""
    stance: Array
    """(T, leg) activity of the extensors, which predict when a foot stands."""
    gait: Gait
    """The gait of these footfalls."""

    def draw(self, axes: Any) -> None:
        """Draw the predicted footfalls and their gait into matplotlib's axes."""
        from ncap.analysis import plots

        plots.footfalls(axes, np.arange(len(self.stance)) * np.float64(self.dt), self.stance, EXTENSOR_STANCE)
        axes.set_title(f"c = {self.command:g}: {self.gait.label}, {self.gait.frequency_hz:.1f} Hz")
        axes.set_xlabel("time (s)")


def rhythm(
    circuit: str | CircuitSpec = "default",
    command: float = 0.5,
    *,
    without: Sequence[str] = (),
    seconds: float = 4.0,
    settling: float = 8.0,
    seed: int = 0,
) -> Rhythm:
    """Run a circuit's rhythm generator without a body, from a random start, and measure its gait.

    circuit: a table, a preset or a file; it needs neurons called extensor. `seconds` are kept, after `settling` ones.
    """
    if not isinstance(circuit, str | CircuitSpec):
        raise UserError(f"a circuit is a name or a CircuitSpec, not {type(circuit).__name__}")
    command, seconds, settling = (
        _positive(value, what)
        for value, what in ((command, "a brainstem command"), (seconds, "a time"), (settling, "a time"))
    )
    spec = cut(find_circuit(circuit) if isinstance(circuit, str) else circuit, without)
    if not spec.dt <= seconds <= LONGEST or settling > LONGEST:
        raise UserError(f"a rhythm is measured for {spec.dt:g} s to {LONGEST:g} s, not {seconds:g} after {settling:g}")
    core = Circuit(spec)
    state = core.reset(1, seeding.generator(check_seeds([seed])[0], "rhythm"))
    inputs = rhythm_inputs(core, np.array([check_command(command)]))
    (stance,) = settled_stance(core, state, inputs, settling, seconds)
    return Rhythm(command=command, dt=core.dt, stance=stance, gait=measure_gait(stance, core.dt, EXTENSOR_STANCE))


def _positive(value: float, what: str) -> float:
    """One finite number from 0 on, as a float."""
    found = finite(value, what)
    if found.ndim or found < 0:
        raise UserError(f"{what} is one number from 0 on, not {value}")
    return float(found)
