"""The search that made the rhythm generator's default numbers: CMA-ES over its weights, biases and time constants.

It starts from the released numbers. What it asks for: the gait of every command, from random initial states, with and
without noise, at half the circuit step; a frequency that rises evenly, and that afferents cannot raise much further;
what knock-outs do. It has stages: first the gaits alone, in coarse circuit steps; then everything, in ever smaller
mutations and in the end from more initial states. A search is a folder with one line per generation; going on after an
interruption replays those lines, so it ends in the same numbers as an unbroken one.
"""

import json
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any, Final, Literal, Self

import cmaes
import numpy as np
from numpy.typing import NDArray

from ncap.circuits.animal import animal
from ncap.circuits.rhythm import (
    released_numbers,
    respecified,
    rhythm_spec,
)
from ncap.circuits.spec import Synapse
from ncap.circuits.tables import save_circuit
from ncap.errors import UserError
from ncap.experiments.rhythm_objective import Numbers, objective
from ncap.experiments.search_folder import SearchFolder
from ncap.files import write_whole
from ncap.params import Number, ParamSpace

Array = NDArray[np.float64]

LARGEST_WEIGHT: Final = 3.0
LARGEST_BIAS: Final = 1.0
OSCILLATOR_RANGE: Final = (0.3, 3.0)
"""Of the oscillator's numbers, relative to the start."""
FIXED: Final = ("tonic_drive",)
"""Numbers of the oscillator that are not searched."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Generations of a search that share an objective. Each stage begins at the mean of the one before."""

    generations: int
    step: float
    """Initial standard deviation: absolute for weights and biases, relative for the oscillator's numbers."""
    states: int = 4
    """Random initial states per command, drawn anew each generation."""
    care: Literal["rough", "usual", "thorough"] = "usual"
    """What counts: rough are gaits and frequencies only, in coarse circuit steps, where walk, trot and bound are found
    first; thorough is everything, with knock-outs at every command, after which flexors must still be able to burst."""


STAGES: Final = (
    Stage(generations=200, step=0.2, care="rough"),
    Stage(generations=120, step=0.06),
    Stage(generations=110, step=0.02),
    Stage(generations=80, step=0.03, states=8, care="thorough"),
)


@dataclass(frozen=True, kw_only=True)
class Search:
    """Everything that determines the result of a search."""

    seed: int = 0
    generations: int = sum(stage.generations for stage in STAGES)
    """Generations in all; fewer leave out the last of the stages."""
    population: int = 40
    validate_every: int = 10
    """Generations between two validations of the distribution's mean. The start is validated too; the best is kept."""
    validation_states: int = 100

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"a seed is a number from 0 on, not {self.seed}")
        if self.generations < 1:
            raise UserError(f"a search needs at least one generation, not {self.generations}")
        if self.generations > (most := sum(stage.generations for stage in STAGES)):
            raise UserError(f"a search has up to {most} generations, not {self.generations}")

    def validates(self, generation: int) -> bool:
        """Whether the mean of the distribution is validated in a generation."""
        return generation == 0 or generation % self.validate_every == self.validate_every - 1

    def plan(self) -> list[tuple[Stage, bool]]:
        """For every generation its stage, and whether the stage begins there."""
        every = [(stage, number == 0) for stage in STAGES for number in range(stage.generations)]
        return every[: self.generations]


def search_space(start: Numbers) -> ParamSpace:
    """The numbers that are searched, in the order of the start. Signs are kept by the bounds.

    The oscillator's are relative to the start, so that one step size suits all.
    """
    entries = rhythm_spec().entries
    synapses = {entry.row.key: entry.number for entry in entries if isinstance(entry.row, Synapse)}
    weights = [
        replace(
            synapses[key],
            block="weights",
            label=(key,),
            initial=value,
            low=max(synapses[key].low, -LARGEST_WEIGHT),
            high=min(synapses[key].high, LARGEST_WEIGHT),
        )
        for key, value in start["weights"].items()
    ]
    biases = [
        Number(block="biases", label=(name,), initial=value, low=-LARGEST_BIAS, high=LARGEST_BIAS)
        for name, value in start["biases"].items()
    ]
    low, high = OSCILLATOR_RANGE
    oscillator = [
        Number(block="oscillator", label=(name,), initial=1.0, low=low, high=high)
        for name in start["oscillator"]
        if name not in FIXED
    ]
    return ParamSpace.from_rows([*weights, *biases, *oscillator])


def named_numbers(space: ParamSpace, vector: Array, start: Numbers) -> Numbers:
    """Named numbers from a vector (D,) of the search space, rounded to the four decimals that a file keeps."""
    result: Numbers = {group: dict(rows) for group, rows in start.items()}
    for block, values in zip(space.blocks, space.unpack(vector).values(), strict=True):
        for name, value in zip(block.labels[0], values.tolist(), strict=True):
            scale = start[block.name][name] if block.name == "oscillator" else 1.0
            result[block.name][name] = round(value * scale, 4) + 0.0
    return result


def write_numbers(numbers: Numbers, folder: Path) -> tuple[Path, Path]:
    """Write rhythm.json, the numbers as the package keeps its own, and circuit.json, the animal with them."""
    rhythm, circuit = folder / "rhythm.json", folder / "circuit.json"
    write_whole(rhythm, (json.dumps(numbers, indent=1) + "\n").encode())
    save_circuit(respecified(numbers, animal()), circuit)
    return rhythm, circuit


class Workers:
    """Processes that evaluate candidates. They end with this process, however it ends, and at once when told to."""

    def __init__(self, number: int) -> None:
        context = get_context("spawn")
        listening, self._alive = context.Pipe(duplex=False)
        self._others = set(active_children())
        self._pool = ProcessPoolExecutor(
            number, mp_context=context, initializer=_end_with_parent, initargs=(listening,)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:  # nobody wants the results that they work on
            for worker in set(active_children()) - self._others:
                worker.kill()
        self._pool.shutdown(cancel_futures=True)
        self._alive.close()

    def losses(self, candidates: Sequence[Numbers], states: int, entropy: tuple[int, ...], care: str) -> list[float]:
        """The objective of every candidate."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for us: workers inherit the mask
        try:
            jobs = [self._pool.submit(objective, numbers, states, entropy, care) for numbers in candidates]
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        try:
            return [sum(job.result().values()) for job in jobs]
        except BrokenProcessPool:
            raise UserError("a worker of the search was ended from outside: the same command goes on") from None


def _end_with_parent(alive: Connection) -> None:
    """End this worker as soon as nobody holds the other end of the pipe: its parent has closed it, or is dead."""

    def wait() -> None:
        with suppress(EOFError):
            alive.recv_bytes()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def search(
    settings: Search,
    folder: Path,
    workers: int,
    report: Callable[[int, dict[str, Any]], None],
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Numbers, dict[str, float]]:
    """Run or go on with a search in a folder. Returns the best validated numbers and the terms of their validation.

    report(generation, record) is called once per generation, also for those that an earlier process had finished. tell:
    gets a sentence about every damaged file that was set aside.
    """
    if workers < 1:
        raise UserError(f"at least one worker is needed, not {workers}")
    start = released_numbers()
    space = search_space(start)
    mean, optimiser = space.initial, None
    best: tuple[float, Numbers, dict[str, float]] | None = None
    header = asdict(settings) | {"generations": None}
    with SearchFolder(folder, header, settings.validates, tell) as kept, Workers(workers) as crew:
        done = iter(kept.records)
        for generation, (stage, begins) in enumerate(settings.plan()):
            if begins or optimiser is None:
                optimiser = cmaes.CMA(
                    mean=mean.copy(),
                    sigma=stage.step,
                    bounds=np.stack((space.low, space.high), axis=1),
                    seed=settings.seed,
                    population_size=settings.population,
                )
            candidates = [optimiser.ask() for _ in range(settings.population)]
            numbers = named_numbers(space, optimiser.mean, start)
            record = next(done, None)
            if record is None:
                numbers_of = [named_numbers(space, candidate, start) for candidate in candidates]
                losses = crew.losses(numbers_of, stage.states, (settings.seed, generation), stage.care)
                record = {"generation": generation, "losses": losses}
                if settings.validates(generation):
                    record["numbers"] = numbers
                    record["terms"] = objective(numbers, settings.validation_states, (settings.seed, 1 << 20))
                kept.append(record)
            optimiser.tell(list(zip(candidates, record["losses"], strict=True)))
            mean = optimiser.mean
            if "terms" in record and (best is None or sum(record["terms"].values()) < best[0]):
                best = sum(record["terms"].values()), numbers, record["terms"]
            report(generation, record)
    assert best is not None  # the first generation is validated
    return best[1], best[2]
