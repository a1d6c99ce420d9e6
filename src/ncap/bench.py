"""How fast this machine plays episodes: what `ncap bench` shows, and the measures that `benchmarks/` is made of.

Rates are control steps of 30 ms per CPU-second on one thread. A ratio compares measures that were taken in turns.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.circuits.circuit import Circuit
from ncap.circuits.rhythm import rhythm_inputs, rhythm_spec
from ncap.policies.controller import Controller
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.rollouts import Arena
from ncap.sim.a1 import A1
from ncap.sim.robot import Robot
from ncap.tasks import TASKS, Task
from ncap.threads import one_blas_thread

Array = NDArray[np.float64]

AUTHORS: Final = {"flat": 78.0, "bumpy": 51.5}
"""Control steps per second and core of the authors' code, by ground: the middle of 71–85 and of 51–52."""
WALKING: Final = NCAPPolicy(command=0.2)
"""The policy of the closed loop: the untrained circuit, walking."""
POPULATION: Final = 48
"""Individuals at which kinds of ground and policies are compared."""
STEPS: Final = {16: 40, POPULATION: 20, 256: 5}
"""Control steps of one measure, by population."""


@dataclass(frozen=True, kw_only=True)
class EngineRate:
    """Closed-loop episodes beside the raw engine, control steps per CPU-second."""

    raw: float
    """Physics alone, with the controls of the closed loop."""
    closed: float
    """Closed loop with a policy."""

    @property
    def share(self) -> float:
        """Closed loop over raw: 1 when observing, acting and rewarding cost nothing."""
        return self.closed / self.raw


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Closed loop over raw engine on flat-walk."""

    ncap: dict[int, float]
    """With the circuit in the paper's physics, by population."""
    ncap_fast: dict[int, float]
    """With the circuit in the fast physics, by population."""
    mlp: float
    """With an MLP (256, 256) for each of POPULATION individuals, in the paper's physics."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What `ncap bench --json` prints."""

    steps_per_cpu_second: dict[str, float]
    """Closed loop with the circuit at POPULATION individuals, by the names that `rated_task` knows."""
    closed_loop_share: Shares


def rated_task(name: str, robot: Robot = A1) -> Task:
    """The walk of a robot on a ground in a physics preset: flat, bumpy, flat_fast or bumpy_fast."""
    ground, _, physics = name.partition("_")
    return replace(TASKS[f"{ground}-walk"], robot=robot, physics=physics or "paper")


def bound(policy: NCAPPolicy | MLPPolicy, individuals: int) -> Controller:
    """That many untrained individuals, ready to act."""
    return policy.bind(np.tile(policy.space.initial, (individuals, 1)))


def targets_of(task: Task, policy: NCAPPolicy | MLPPolicy, individuals: int, steps: int) -> Array:
    """(steps, P, joints) targets of an untrained policy, rad, for a raw engine that moves like the closed loop."""
    arena, controller = Arena(task, individuals), bound(policy, individuals)
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


def engine_rate(
    task: Task, policy: NCAPPolicy | MLPPolicy, individuals: int, *, steps: int, repetitions: int
) -> EngineRate:
    """Raw and closed-loop rates of a task, in turns."""
    targets = targets_of(task, policy, individuals, steps)
    raw, closed = best_of(
        repetitions,
        (lambda: raw_rate(task, targets), lambda: closed_loop_rate(task, policy, individuals, steps)),
    )
    return EngineRate(raw=raw, closed=closed)


def circuit_microseconds(population: int, steps: int) -> float:
    """CPU time of the rhythm generator per individual and circuit step, µs."""
    circuit = Circuit(rhythm_spec())
    state = circuit.reset(population, np.random.default_rng(0))
    inputs = rhythm_inputs(circuit, np.full(population, 0.5))
    started = time.process_time()
    for _ in range(steps):
        state = circuit.step(state, inputs)
    return (time.process_time() - started) / population / steps * 1e6


@one_blas_thread()
def measure(robot: Robot = A1, *, steps: Mapping[int, int] = STEPS, repetitions: int = 3) -> Bench:
    """The short list of `ncap bench`, about 20 seconds. steps: control steps of one measure, by population."""
    tasks = {name: rated_task(name, robot) for name in ("flat", "bumpy", "flat_fast", "bumpy_fast")}
    flat, flat_fast = (
        {
            individuals: engine_rate(tasks[name], WALKING, individuals, steps=count, repetitions=repetitions)
            for individuals, count in steps.items()
        }
        for name in ("flat", "flat_fast")
    )
    bumpy, bumpy_fast = best_of(
        repetitions,
        [
            partial(closed_loop_rate, tasks[name], WALKING, POPULATION, steps[POPULATION])
            for name in ("bumpy", "bumpy_fast")
        ],
    )
    mlp = engine_rate(tasks["flat"], MLPPolicy(), POPULATION, steps=steps[POPULATION], repetitions=repetitions)
    return Bench(
        steps_per_cpu_second={
            "flat": flat[POPULATION].closed,
            "bumpy": bumpy,
            "flat_fast": flat_fast[POPULATION].closed,
            "bumpy_fast": bumpy_fast,
        },
        closed_loop_share=Shares(
            ncap={individuals: rate.share for individuals, rate in flat.items()},
            ncap_fast={individuals: rate.share for individuals, rate in flat_fast.items()},
            mlp=mlp.share,
        ),
    )


def table(found: Bench) -> list[tuple[str, float]]:
    """Rows of the table of `ncap bench`, (what, measured): what was found, and the cost of the circuit."""
    rows = []
    for name, rate in found.steps_per_cpu_second.items():
        place = name.replace("_", ", ")
        rows.append((f"{place}: control steps per CPU-second with NCAP", rate))
        rows.append((f"{place}: times the authors' rate", rate / AUTHORS[name.partition("_")[0]]))
    shares = found.closed_loop_share
    for where, by_population in (("flat", shares.ncap), ("flat, fast", shares.ncap_fast)):
        for individuals, share in by_population.items():
            rows.append((f"{where}: share of the raw engine with NCAP at population {individuals}", share))
    rows.append((f"flat: share of the raw engine with an MLP at population {POPULATION}", shares.mlp))
    for individuals in (1, 256):
        cost = min(circuit_microseconds(individuals, max(50, 20_000 // individuals)) for _ in range(3))
        rows.append((f"circuit: µs per individual and step at population {individuals}", cost))
    return rows
