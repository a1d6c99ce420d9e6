"""The choice of a run's best policy. Five test episodes an epoch do not see a fall that happens once in minutes.

So a run keeps the few policies that did best in them, and at its end plays these, and its last one, on more episodes.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ncap.errors import UserError
from ncap.files import decode_value
from ncap.learn.executors import CHUNK, Chunk, Executor, Played
from ncap.learn.search import Search
from ncap.runs import Run
from ncap.tasks import Task
from ncap.trained import TrainedPolicy, read_policy

TEST_SEEDS: Final = (1_000_055, 1_000_096, 1_000_057, 1_000_033, 1_000_024)
"""Test episodes after every epoch, the same for every run: one in each fifth of the range of friction, and one at each
of five paces. `ncap evaluate` counts its own from 0."""
FINAL_SEEDS: Final = tuple(range(1_000_100, 1_000_160))
"""Episodes of the final choice: as many of them as the run has epochs, so that a short run ends soon."""
FIRST_ROUND: Final = 10
"""Of these, episodes that all play; the others only those who did best in them."""
SECOND_ROUND: Final = 3
"""Policies that play on."""
KEPT: Final = 8
"""Policies that a run keeps for its final choice, beside the last."""


def keep(run: Run, candidate: TrainedPolicy) -> float:
    """Keep a policy if its fitness in the tests is among the highest of the run so far. Returns the fittest's return.

    The candidate's `about` has its "epoch", its "test_return" and, if that is something else, its "test_fitness".
    """
    new = run.folder / "finalists" / f"epoch-{candidate.about['epoch']:06d}.safetensors"
    new.parent.mkdir(exist_ok=True)
    candidate.save(new)
    found = {path: one.about for path, one in _finalists(run).items()}
    ranked = sorted(found, key=lambda path: -found[path].get("test_fitness", found[path]["test_return"]))
    for path in ranked[KEPT:]:
        path.unlink()
    if ranked[0] == new:
        candidate.save(run.folder / "best.safetensors")
    return float(found[ranked[0]]["test_return"])


def choose(
    run: Run,
    last: TrainedPolicy,
    task: Task,
    epochs: int,
    executor: Executor,
    footfall_weight: float = 0.0,
) -> None:
    """Write the run's best and its last policy: the best has the highest mean fitness in the final episodes.

    They are played in two rounds: by all, then by those who did best. epochs: of the run. footfall_weight: see
    `Played.fitness`.
    """
    seeds = FINAL_SEEDS[:epochs]
    candidates = {one.about["epoch"]: one for one in (*_finalists(run).values(), last)}
    results: dict[int, list[Played]] = {epoch: [] for epoch in candidates}

    def fitness(epoch: int) -> float:
        return float(np.concatenate([one.fitness(footfall_weight) for one in results[epoch]]).mean())

    playing = list(candidates)
    for episodes in filter(None, (seeds[:FIRST_ROUND], seeds[FIRST_ROUND:])):
        chunks = {
            (epoch, first): Chunk(
                task=task,
                policy=candidates[epoch].policy,
                search=Search(mean=candidates[epoch].theta),
                seeds=episodes[first : first + CHUNK],
                footfalls=footfall_weight > 0,
            )
            for epoch in playing
            for first in range(0, len(episodes), CHUNK)
        }
        for (epoch, _), played in zip(chunks, executor.play(list(chunks.values())), strict=True):
            results[epoch].append(played)
        playing = sorted(playing, key=fitness, reverse=True)[:SECOND_ROUND]
    best = candidates[playing[0]]
    final_return = float(np.concatenate([one.returns for one in results[playing[0]]]).mean())
    replace(best, about=best.about | {"final_return": final_return}).save(run.folder / "best.safetensors")
    last.save(run.folder / "last.safetensors")


def _finalists(run: Run) -> dict[Path, TrainedPolicy]:
    """The policies that were kept, by their files. A damaged one is set aside: the run can do without it."""
    found = {}
    for path in sorted((run.folder / "finalists").glob("epoch-*.safetensors")):
        try:
            one = read_policy(path)
            for name, kind in (("epoch", int), ("test_return", float)):
                decode_value(kind, one.about.get(name), f"{path}: {name}")
            decode_value(float, one.about.get("test_fitness", 0.0), f"{path}: test_fitness")
        except UserError as error:
            run.set_aside(path, str(error))
        else:
            found[path] = one
    return found
