"""How fast this machine plays episodes: what `ncap bench` shows, and the measures that `benchmarks/` is made of.

Rates are control steps, of 30 physics steps each, per CPU-second on one thread. A ratio compares measures that were
taken in turns.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import rhythm_inputs, rhythm_spec
from ncap.policies.controller import Controller
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import Arena
from ncap.tasks import TASKS, Task

Array = NDArray[np.float64]

AUTHORS: Final = {"flat": 78.0, "bumpy": 51.5}
"""Control steps per second and core of the authors' code: the middle of 71–85 and of 51–52."""
WALKING: Final = NCAPPolicy(command=0.2)
"""The policy of the closed loop: the untrained circuit, walking."""


@dataclass(frozen=True, kw_only=True)
class EngineRate:
    """Closed-loop episodes beside the raw engine on one kind of ground."""

    ground: str
    raw: float
    """Control steps per CPU-second of the physics alone, with a walk's controls."""
    ncap: float
    """The same in closed loop with the circuit."""

    @property
    def share(self) -> float:
        """Closed loop over raw: 1 when observing, thinking and rewarding cost nothing."""
        return self.ncap / self.raw

    @property
    def times_authors(self) -> float:
        """Closed loop over the authors' rate."""
        return self.ncap / AUTHORS[self.ground]


def bound(policy: NCAPPolicy | MLPPolicy, individuals: int) -> Controller:
    """That many untrained individuals, ready to act."""
    return policy.bind(np.tile(policy.space.initial, (individuals, 1)))


def walking_targets(task: Task, individuals: int, steps: int) -> Array:
    """(steps, P, joints) targets of the untrained circuit, rad, for a raw engine that moves like the closed loop."""
    arena, controller = Arena(task, individuals), bound(WALKING, individuals)
    alive, state = np.arange(individuals), controller.reset(range(individuals))
    arena.start(alive, [0] * individuals)
    targets = []
    for _ in range(steps):
        state, action = controller.act(state, arena.observation())
        targets.append(task.robot.targets(action).reshape(individuals, -1))
        arena.step(alive, action)
    return np.array(targets)


def raw_rate(task: Task, targets: Array) -> float:
    """Control steps per CPU-second of the physics alone."""
    steps, individuals, _ = targets.shape
    arena = Arena(task, individuals)
    arena.start(np.arange(individuals), [0] * individuals)
    batch = arena.simulation._batch
    controls = batch.bind("ctrl")
    started = time.process_time()
    for t in range(steps):
        controls[:] = targets[t]
        batch.step(nstep=arena.simulation.substeps)
    return float(individuals * steps / (time.process_time() - started))


def closed_loop_rate(task: Task, policy: NCAPPolicy | MLPPolicy, individuals: int, steps: int) -> float:
    """Control steps per CPU-second of everything that an episode does: observe, act, step, reward."""
    arena, controller = Arena(task, individuals), bound(policy, individuals)
    alive, state = np.arange(individuals), controller.reset(range(individuals))
    arena.start(alive, [0] * individuals)
    started = time.process_time()
    for _ in range(steps):
        state, action = controller.act(state, arena.observation())
        arena.step(alive, action)
    return float(individuals * steps / (time.process_time() - started))


def best_of(repetitions: int, measures: Sequence[Callable[[], float]]) -> list[float]:
    """The best of several repetitions of each measure, taken in turns."""
    results = [[measure() for measure in measures] for _ in range(repetitions)]
    return [max(column) for column in zip(*results, strict=True)]


def engine_rate(task: Task, *, individuals: int = 32, steps: int = 60, repetitions: int = 3) -> EngineRate:
    """Raw and closed-loop rates of a task, in turns."""
    targets = walking_targets(task, individuals, steps)
    raw, ncap = best_of(
        repetitions,
        (lambda: raw_rate(task, targets), lambda: closed_loop_rate(task, WALKING, individuals, steps)),
    )
    return EngineRate(ground=task.name.split("-")[0], raw=raw, ncap=ncap)


def circuit_microseconds(population: int, steps: int) -> float:
    """CPU time of the rhythm generator per individual and circuit step, µs."""
    circuit = Circuit(rhythm_spec())
    state = circuit.reset(population, np.random.default_rng(0))
    inputs = rhythm_inputs(circuit, np.full(population, 0.5))
    started = time.process_time()
    for _ in range(steps):
        state = circuit.step(state, inputs)
    return (time.process_time() - started) / population / steps * 1e6


def measure() -> dict[str, float]:
    """The short list of `ncap bench`, about ten seconds."""
    found: dict[str, float] = {}
    for name in ("flat-walk", "bumpy-walk"):
        rate = engine_rate(TASKS[name], repetitions=2)
        found[f"{rate.ground}: control steps per CPU-second, physics alone"] = rate.raw
        found[f"{rate.ground}: control steps per CPU-second, with NCAP"] = rate.ncap
        found[f"{rate.ground}: share of the raw engine"] = rate.share
        found[f"{rate.ground}: times the authors' rate"] = rate.times_authors
    for population in (1, 256):
        cost = min(circuit_microseconds(population, max(50, 20_000 // population)) for _ in range(3))
        found[f"circuit: µs per individual and step at population {population}"] = cost
    return found
