"""Cost of closed-loop episodes beside stepping the same models with constant controls, and beside the authors' code.

All figures are control steps (30 physics steps) per CPU-second on one thread; a ratio compares runs that alternate.
"""

import gc
import resource
import time
from collections.abc import Callable
from dataclasses import replace

import mujoco.batch
import numpy as np

from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.policy import Controller
from ncap.rollout import Arena
from ncap.tasks import TASKS, Task

AUTHORS = {"flat": 78.0, "bumpy": 51.5}  # control steps per second and core, the middle of 71–85 and of 51–52
COMMAND = 0.2


def bound(policy: NCAPPolicy | MLPPolicy, individuals: int) -> Controller:
    return policy.bind(np.tile(policy.space.initial, (individuals, 1)))


def walking_targets(task: Task, individuals: int, steps: int) -> np.ndarray:
    """What the untrained circuit does: the same joint targets for the raw engine and for the closed loop."""
    arena, controller = Arena(task, individuals), bound(NCAPPolicy(command=COMMAND), individuals)
    alive, state = np.arange(individuals), controller.reset(range(individuals))
    arena.start(alive, [0] * individuals)
    targets = []
    for _ in range(steps):
        state, action = controller.act(state, arena.observation())
        targets.append(task.robot.targets(action).reshape(individuals, -1))
        arena.step(alive, action)
    return np.array(targets)


def raw_rate(task: Task, targets: np.ndarray) -> float:
    """Batch.step alone, with the controls of a walk written beforehand."""
    steps, individuals, _ = targets.shape
    arena = Arena(task, individuals)
    arena.start(np.arange(individuals), [0] * individuals)
    batch: mujoco.batch.Batch = arena.simulation._batch
    controls = batch.bind("ctrl")
    started = time.process_time()
    for t in range(steps):
        controls[:] = targets[t]
        batch.step(nstep=arena.simulation.substeps)
    return individuals * steps / (time.process_time() - started)


def closed_loop_rate(task: Task, policy: NCAPPolicy | MLPPolicy, individuals: int, steps: int) -> float:
    """Observe, act, step, reward: everything that an episode does."""
    arena, controller = Arena(task, individuals), bound(policy, individuals)
    alive, state = np.arange(individuals), controller.reset(range(individuals))
    arena.start(alive, [0] * individuals)
    started = time.process_time()
    for _ in range(steps):
        state, action = controller.act(state, arena.observation())
        arena.step(alive, action)
    return individuals * steps / (time.process_time() - started)


def best_of(repetitions: int, *measures: Callable[[], float]) -> list[float]:
    """The best of several repetitions of each measure, taken in turns."""
    results = [[measure() for measure in measures] for _ in range(repetitions)]
    return [max(column) for column in zip(*results, strict=True)]


def main() -> None:
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    circuit = NCAPPolicy(command=COMMAND)
    arena = Arena(TASKS["bumpy-walk"], 2048)
    arena.start(np.arange(2048), [0] * 2048)
    controller = bound(circuit, 2048)
    controller.act(controller.reset(range(2048)), arena.observation())
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory: {used / 2048:.3f} MB per individual at 2048 on bumps (target: at most 2)")

    steps, individuals = 60, 32
    print(f"control steps per CPU-second, one thread, {individuals} individuals, best of 3 in turns")
    rates = {}
    for name in ("flat-walk", "bumpy-walk"):
        ground = name.split("-")[0]
        for contact in ("default", "elliptic", "released"):
            task = replace(TASKS[name], contact=contact)
            targets = walking_targets(task, individuals, steps)
            raw, ncap = best_of(
                3,
                lambda task=task, targets=targets: raw_rate(task, targets),
                lambda task=task: closed_loop_rate(task, circuit, individuals, steps),
            )
            rates[ground, contact] = ncap
            print(
                f"  {ground:<6} contact {contact:<9} raw {raw:7.0f}   with NCAP {ncap:7.0f} = {ncap / raw:.2f} of raw"
                f" = {ncap / AUTHORS[ground]:5.1f}× the authors' {AUTHORS[ground]:g}"
            )
    print(f"  a bumpy step costs {rates['flat', 'default'] / rates['bumpy', 'default']:.2f} flat steps")

    task = TASKS["flat-walk"]
    targets = walking_targets(task, individuals, steps)
    raw, mlp = best_of(3, lambda: raw_rate(task, targets), lambda: mlp_rate(task, individuals, steps))
    print(f"  MLP(256, 256), weights per individual: {mlp:.0f} = {mlp / raw:.2f} of raw (target 0.75)")

    print("cost of a rollout against the population (target: within 10 % from 16 to 1024)")
    sizes = (16, 64, 256, 1024)
    costs = best_of(3, *[lambda n=n: closed_loop_rate(task, circuit, n, max(4, 2048 // n)) for n in sizes])
    for size, rate in zip(sizes, costs, strict=True):
        print(f"  population {size:<5} {rate:7.0f}   {costs[0] / rate:.2f} of the cost at 16")


def mlp_rate(task: Task, individuals: int, steps: int) -> float:
    return closed_loop_rate(task, MLPPolicy(), individuals, steps)


if __name__ == "__main__":
    main()
