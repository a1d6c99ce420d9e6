"""Which of a run's policies is its best. Five test episodes an epoch do not see a fall that happens once in minutes.

So a run keeps the few policies that did best in them, and at its end plays these, and its last one, on more episodes.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.learn.executors import CHUNK, Chunk, Executor
from ncap.learn.search import Search
from ncap.policies.storage import Policy, describe, load_policy, save_policy
from ncap.runs import Run
from ncap.tasks import Task

Candidate = tuple[Policy, NDArray[np.float64], dict[str, Any]]
"""A policy, its weights (D,), and what is known about it: its "epoch", its "test_return"."""

TEST_SEEDS: Final = tuple(range(1_000_000, 1_000_005))
"""Test episodes after every epoch, the same for every run. `ncap evaluate` counts its own from 0."""
FINAL_SEEDS: Final = tuple(range(1_000_005, 1_000_035))
"""Episodes of the final choice: as many of them as the run has epochs, so that a short run ends soon."""
KEPT: Final = 4
"""Policies that a run keeps for its final choice, beside the last."""


def keep(run: Run, candidate: Candidate) -> float:
    """Keep a policy if its test return is among the highest of the run so far. Returns the highest."""
    new = run.folder / "finalists" / f"epoch-{candidate[2]['epoch']:06d}.safetensors"
    new.parent.mkdir(exist_ok=True)
    save_policy(new, *candidate)
    found = {path: float(load_policy(path)[2]["test_return"]) for path in _finalists(run)}
    ranked = sorted(found, key=lambda path: -found[path])
    for path in ranked[KEPT:]:
        path.unlink()
    if ranked[0] == new:
        save_policy(run.folder / "best.safetensors", *candidate)
    return found[ranked[0]]


def choose(
    run: Run,
    last: Candidate,
    task: Task,
    epochs: int,
    executor: Executor,
) -> None:
    """Write the run's best and its last policy: the best has the highest mean return in the final episodes.

    epochs: of the run.
    """
    seeds = FINAL_SEEDS[:epochs]
    candidates = {candidate[2]["epoch"]: candidate for candidate in (*map(load_policy, _finalists(run)), last)}
    returns = {}
    for epoch, (policy, theta, _) in candidates.items():
        chunks = [
            Chunk(task=task, policy=describe(policy), search=Search(mean=theta), seeds=seeds[first:][:CHUNK])
            for first in range(0, len(seeds), CHUNK)
        ]
        returns[epoch] = float(np.concatenate([played.returns for played in executor.play(chunks)]).mean())
    policy, theta, about = candidates[max(returns, key=lambda epoch: returns[epoch])]
    best = about | {"final_return": returns[about["epoch"]]}
    save_policy(run.folder / "best.safetensors", policy, theta, best)
    save_policy(run.folder / "last.safetensors", *last)


def _finalists(run: Run) -> list[Path]:
    return sorted((run.folder / "finalists").glob("epoch-*.safetensors"))
