"""Cost of closed-loop episodes beside stepping the same models with constant controls, and beside the authors' code."""

import gc
import resource
from dataclasses import replace

import numpy as np

from ncap.bench import (
    AUTHORS,
    WALKING,
    best_of,
    bound,
    closed_loop_rate,
    engine_rate,
    raw_rate,
    walking_targets,
)
from ncap.policies.mlp import MLPPolicy
from ncap.rollouts import Arena
from ncap.tasks import TASKS


def main() -> None:
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    arena = Arena(TASKS["bumpy-walk"], 2048)
    arena.start(np.arange(2048), [0] * 2048)
    controller = bound(WALKING, 2048)
    controller.act(controller.reset(range(2048)), arena.observation())
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory: {used / 2048:.3f} MB per individual at 2048 on bumps (target: at most 2)")

    steps, individuals = 60, 32
    print(f"control steps per CPU-second, one thread, {individuals} individuals, best of 3 in turns")
    rates = {}
    for name in ("flat-walk", "bumpy-walk"):
        for contact in ("default", "elliptic", "released"):
            rate = engine_rate(replace(TASKS[name], contact=contact), individuals=individuals, steps=steps)
            rates[rate.ground, contact] = rate.ncap
            print(
                f"  {rate.ground:<6} contact {contact:<9} raw {rate.raw:7.0f}   with NCAP {rate.ncap:7.0f}"
                f" = {rate.share:.2f} of raw = {rate.times_authors:5.1f}× the authors' {AUTHORS[rate.ground]:g}"
            )
    print(f"  a bumpy step costs {rates['flat', 'default'] / rates['bumpy', 'default']:.2f} flat steps")

    task = TASKS["flat-walk"]
    targets = walking_targets(task, individuals, steps)
    raw, mlp = best_of(
        3, (lambda: raw_rate(task, targets), lambda: closed_loop_rate(task, MLPPolicy(), individuals, steps))
    )
    print(f"  MLP(256, 256), weights per individual: {mlp:.0f} = {mlp / raw:.2f} of raw (target 0.75)")

    print("cost of a rollout against the population (target: within 10 % from 16 to 1024)")
    sizes = (16, 64, 256, 1024)
    costs = best_of(3, [lambda n=n: closed_loop_rate(task, WALKING, n, max(4, 2048 // n)) for n in sizes])
    for size, rate in zip(sizes, costs, strict=True):
        print(f"  population {size:<5} {rate:7.0f}   {costs[0] / rate:.2f} of the cost at 16")


if __name__ == "__main__":
    main()
