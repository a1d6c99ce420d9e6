"""The search that made the rhythm generator's default numbers: CMA-ES over its weights, biases and time constants.

What it asks for: the gait of every command, from random initial states, with and without noise, at half the circuit
step; a frequency that rises; what knock-outs do. A search is a folder with one line per generation; going on after an
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
from typing import Any, Final, Self

import cmaes
import numpy as np
from numpy.typing import NDArray

from ncap.analysis.gaits import Gait, circular_distance, measure_gait
from ncap.circuits.animal import animal, cut
from ncap.circuits.rhythm import (
    EXTENSOR_STANCE,
    RHYTHM_SETTLING,
    default_numbers,
    extensor_activity,
    random_adaptation,
    respecified,
    rhythm_spec,
)
from ncap.circuits.spec import CircuitSpec, Synapse
from ncap.circuits.tables import save_circuit
from ncap.errors import UserError
from ncap.experiments.search_folder import SearchFolder
from ncap.files import write_whole
from ncap.params import Number, ParamSpace

Array = NDArray[np.float64]
Numbers = dict[str, dict[str, float]]
"""Weights, biases and the oscillator's numbers by name: see ncap.circuits.rhythm.respecified."""

IDEAL_PHASES: Final = {  # (left-right, fore after hind)
    "walk": (0.5, 0.25),
    "trot": (0.5, 0.5),
    "bound": (0.0, 0.5),
}

COMMANDS: Final = tuple(c / 100 for c in range(0, 101, 5))
"""Brainstem commands at which the objective asks for a gait; below, those of its other terms."""
NOISY_COMMANDS: Final = (0.0, 0.1, 0.2, 0.25, 0.4, 0.7, 0.85)
FINE_COMMANDS: Final = (0.0, 0.05, 0.15, 0.25, 0.4, 0.7, 0.85)
KNOCKOUT_COMMANDS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
AFFERENT_NOISE: Final = 0.1
"""Amplitude of white noise on all afferents."""
LARGEST_WEIGHT: Final = 3.0
LARGEST_BIAS: Final = 1.0
OSCILLATOR_RANGE: Final = (0.3, 3.0)
"""Of the oscillator's numbers, relative to the start."""
MOST_GENERATIONS: Final = 100_000
FIXED: Final = ("tonic_drive",)
"""Numbers of the oscillator that are not searched."""


def wanted_gait(command: float) -> str | None:
    """The gait that the paper's claim asks for at a brainstem command; None between the gaits' ranges."""
    if command <= 0.25:
        return "walk"
    if 0.40 <= command <= 0.70:
        return "trot"
    return "bound" if command >= 0.85 else None


@dataclass(frozen=True, kw_only=True)
class Search:
    """Everything that determines the result of a search."""

    seed: int = 0
    generations: int = 15
    population: int = 20
    step: float = 0.006
    """Initial standard deviation: absolute for weights and biases, relative for the oscillator's numbers."""
    states: int = 8
    """Random initial states per command, drawn anew each generation."""
    validate_every: int = 5
    """Generations between two validations of the distribution's mean. The start is validated too; the best is kept."""
    validation_states: int = 24

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"a seed is a number from 0 on, not {self.seed}")
        if self.generations < 1:
            raise UserError(f"a search needs at least one generation, not {self.generations}")
        if self.generations > MOST_GENERATIONS:
            raise UserError(f"a search has up to {MOST_GENERATIONS:,} generations, not {self.generations}")

    def validates(self, generation: int) -> bool:
        """Whether the mean of the distribution is validated in a generation."""
        return generation == 0 or generation % self.validate_every == self.validate_every - 1


# --- the objective -------------------------------------------------------------------------------------------------


def run(
    spec: CircuitSpec,
    commands: Array,
    rng: np.random.Generator,
    noise: Array | float = 0.0,
    dt: float | None = None,
) -> list[Gait]:
    """The gaits of a rhythm generator at commands (P,), each from a random initial state. dt: circuit step, s."""
    dt = spec.dt if dt is None else dt
    start = random_adaptation(spec, len(commands), rng)
    activity = extensor_activity(spec, commands, start, seconds=2 * RHYTHM_SETTLING, dt=dt, noise=noise, rng=rng)
    return [measure_gait(one, dt, EXTENSOR_STANCE) for one in activity[:, round(RHYTHM_SETTLING / dt) :]]


def gait_loss(gait: Gait, wanted: str | None, tolerance: float, regularity: float) -> float:
    """How far a gait is from the wanted one, 0 … 4.5: its label, its phases beyond a tolerance, its concentration."""
    irregular = float(np.clip(4 * (regularity - gait.concentration), 0, 1))
    if wanted is None or gait.frequency_hz == 0:
        return irregular if wanted is None else 4.5
    left_right, fore_hind = IDEAL_PHASES[wanted]
    left_right_tolerance = min(tolerance, 0.02) if wanted == "bound" else tolerance
    error = max(
        float(circular_distance(np.array(gait.left_right_phase), left_right).max()) - left_right_tolerance,
        float(circular_distance(np.array(gait.fore_hind_phase), fore_hind).max()) - tolerance,
    )
    return 2.0 * (gait.label != wanted) + float(np.clip(50 * error, 0, 1.5)) + irregular


def intact_losses(spec: CircuitSpec, states: int, rng: np.random.Generator) -> dict[str, float]:
    """Gaits with and without noise, and the rise of the frequency."""
    quiet, noisy = np.repeat(COMMANDS, states), np.repeat(NOISY_COMMANDS, max(1, states // 2))
    commands = np.concatenate((quiet, noisy))
    gaits = run(spec, commands, rng, noise=np.where(np.arange(len(commands)) < len(quiet), 0.0, AFFERENT_NOISE))
    losses = [gait_loss(g, wanted_gait(c), 0.078, 0.97) for g, c in zip(gaits, quiet, strict=False)]
    noisy_losses = [gait_loss(g, wanted_gait(c), 0.10, 0.86) for g, c in zip(gaits[len(quiet) :], noisy, strict=True)]
    by_command = np.array(losses).reshape(len(COMMANDS), states).mean(1)
    frequency = np.array([g.frequency_hz for g in gaits[: len(quiet)]]).reshape(len(COMMANDS), states).mean(1)
    falls = np.clip(0.01 - np.diff(frequency), 0, None).sum()
    ends = np.clip(abs(frequency[0] - 1.2) - 0.1, 0, None) + np.clip(3.15 - frequency[-1], 0, None)
    return {
        "gaits": float(2 * by_command.mean() + by_command.max()),
        "noise": float(np.mean(noisy_losses)),
        "frequency": float(ends + 5 * falls),
    }


def fine_step_loss(spec: CircuitSpec, states: int, rng: np.random.Generator) -> float:
    """The same gaits at half the circuit step."""
    commands = np.repeat(FINE_COMMANDS, max(1, states // 2))
    gaits = run(spec, commands, rng, dt=spec.dt / 2)
    return float(np.mean([gait_loss(g, wanted_gait(c), 0.085, 0.95) for g, c in zip(gaits, commands, strict=True)]))


def knockout_losses(spec: CircuitSpec, states: int, rng: np.random.Generator) -> dict[str, float]:
    """Danner's predictions: without V0 left-right synchrony, without V0v no trot, without V3 still walk and trot."""
    commands = np.repeat(KNOCKOUT_COMMANDS, max(1, states // 2))

    def without(name: str, commands: Array) -> list[Gait]:
        return run(cut(spec, [name]), commands, rng)

    def asynchrony(gait: Gait) -> float:
        if gait.frequency_hz == 0:
            return 1.0
        distance = circular_distance(np.array(gait.left_right_phase), 0.0).max()
        return float(np.clip(5 * (distance - 0.02), 0, 1) + np.clip(0.95 - gait.concentration, 0, 1))

    def trot_likeness(gait: Gait) -> float:
        if gait.label != "trot":
            return 0.0
        return 1.0 + 5 * float(0.1 - circular_distance(np.array(gait.diagonal_phase), 0.0).max())

    v3 = np.repeat((0.1, 0.5), max(1, states // 2))
    return {
        "without V0": float(np.mean([asynchrony(g) for g in without("V0", commands)])),
        "without V0v": float(np.mean([trot_likeness(g) for g in without("V0v", commands)])),
        "without V3": 0.3
        * float(np.mean([gait_loss(g, wanted_gait(c), 0.08, 0.9) for g, c in zip(without("V3", v3), v3, strict=True)])),
    }


def objective(numbers: Numbers, states: int, entropy: tuple[int, ...]) -> dict[str, float]:
    """Named terms, each at least 0, whose sum the search minimises. Initial states and noise come from the entropy."""
    spec, rng = respecified(numbers), np.random.default_rng(entropy)
    terms = intact_losses(spec, states, rng)
    terms["half step"] = fine_step_loss(spec, states, rng)
    return terms | knockout_losses(spec, states, rng)


# --- the search ----------------------------------------------------------------------------------------------------


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

    def losses(self, candidates: Sequence[Numbers], states: int, entropy: tuple[int, ...]) -> list[float]:
        """The objective of every candidate."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for us: workers inherit the mask
        try:
            jobs = [self._pool.submit(objective, numbers, states, entropy) for numbers in candidates]
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
    start = default_numbers()
    space = search_space(start)
    optimiser = cmaes.CMA(
        mean=space.initial.copy(),
        sigma=settings.step,
        bounds=np.stack((space.low, space.high), axis=1),
        seed=settings.seed,
        population_size=settings.population,
    )
    best: tuple[float, Numbers, dict[str, float]] | None = None
    header = asdict(settings) | {"generations": None}
    with SearchFolder(folder, header, settings.validates, tell) as kept, Workers(workers) as crew:
        done = iter(kept.records)
        for generation in range(settings.generations):
            candidates = [optimiser.ask() for _ in range(settings.population)]
            numbers = named_numbers(space, optimiser.mean, start)
            record = next(done, None)
            if record is None:
                numbers_of = [named_numbers(space, candidate, start) for candidate in candidates]
                losses = crew.losses(numbers_of, settings.states, (settings.seed, generation))
                record = {"generation": generation, "losses": losses}
                if settings.validates(generation):
                    record["numbers"] = numbers
                    record["terms"] = objective(numbers, settings.validation_states, (settings.seed, 1 << 20))
                kept.append(record)
            optimiser.tell(list(zip(candidates, record["losses"], strict=True)))
            if "terms" in record and (best is None or sum(record["terms"].values()) < best[0]):
                best = sum(record["terms"].values()), numbers, record["terms"]
            report(generation, record)
    assert best is not None  # the first generation is validated
    return best[1], best[2]
