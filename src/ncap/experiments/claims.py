"""What the paper says, beside the numbers of our tables: one with its interval for every sentence that can be tested.

The comparison is the paper's: the circuit beside an MLP (256, 256), both by evolution. Everything comes from the tables
of the other experiments, so it is drawn up anew in a moment; what a table lacks is "not tested yet".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import stats
from ncap.experiments import flights, generalization, parameters, performance
from ncap.experiments.curves import LEARNED
from ncap.experiments.library import Library, Scale
from ncap.report.tables import read_table, write_table

Array = NDArray[np.float64]
Rows = Sequence[dict[str, str]]

TABLE: Final = "claims.csv"
CIRCUITS: Final = {"ncap-paper": "as in the paper", "ncap": "with a rhythm that leads"}
"""The circuits about which the sentences are tested, by their names in tables."""
MLP: Final = "mlp-evolution"
ALIKE: Final = 0.05
"""Returns that differ by less are comparable."""
FEWEST: Final = 3
"""Seeds from which on a spread or a share of runs is judged."""
HOLDS, IN_PART, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "not tested yet"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the tables say about a sentence."""

    value: stats.Estimate
    seeds: int
    """Runs of the kind of which there are fewer."""
    verdict: str


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of a folder that claims need; empty where there is none."""

    curves: Rows
    final: Rows
    sizes: Rows
    worlds: Rows
    flights: Rows

    def returns(self, policy: str) -> dict[str, Array]:
        """Held-out returns (run,) of a policy by task."""
        tasks = sorted({row["task"] for row in self.final})
        found = {
            task: [float(r["return_mean"]) for r in self.final if (r["task"], r["policy"]) == (task, policy)]
            for task in tasks
        }
        return {task: np.array(runs) for task, runs in found.items() if runs}

    def learning(self, policy: str) -> dict[str, list[tuple[Array, Array]]]:
        """(steps (T,), test returns (T,)) of every run of a policy by task."""
        runs: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for row in self.curves:
            if row["policy"] == policy:
                point = float(row["steps"]), float(row["test_return"])
                runs.setdefault(row["task"], {}).setdefault(row["seed"], []).append(point)
        return {
            task: [(np.array(points)[:, 0], np.array(points)[:, 1]) for points in of_seed.values()]
            for task, of_seed in runs.items()
        }


def read(folder: Path) -> Tables:
    """The tables in a folder."""

    def rows(name: str) -> Rows:
        return read_table(folder / name) if (folder / name).exists() else []

    return Tables(
        curves=rows(performance.CURVES),
        final=rows(performance.FINAL),
        sizes=rows(parameters.TABLE),
        worlds=rows(generalization.TABLE),
        flights=rows(f"{flights.FLIGHTS}.csv"),
    )


def _judged(per_task: Sequence[bool]) -> str:
    return HOLDS if all(per_task) else IN_PART if any(per_task) else FAILS


def _difference(ours: dict[str, Array], theirs: dict[str, Array], holds: Callable[[float], bool]) -> Finding | None:
    """The mean over the tasks that both have of the difference of mean returns; it is judged task by task."""
    tasks = sorted(ours.keys() & theirs.keys())
    if not tasks:
        return None
    gaps = [float(ours[task].mean() - theirs[task].mean()) for task in tasks]
    value = stats.difference([(ours[task], theirs[task]) for task in tasks])
    seeds = min(len(runs[task]) for runs in (ours, theirs) for task in tasks)
    return Finding(value=value, seeds=seeds, verdict=_judged([holds(gap) for gap in gaps]))


def starts_better(tables: Tables, circuit: str) -> Finding | None:
    """Test return before training, circuit minus MLP."""
    ours, theirs = (
        {task: np.array([returns[0] for _, returns in runs]) for task, runs in tables.learning(policy).items()}
        for policy in (circuit, MLP)
    )
    return _difference(ours, theirs, lambda gap: gap > ALIKE)


def ends_alike(tables: Tables, circuit: str) -> Finding | None:
    """Held-out return after training, circuit minus MLP."""
    return _difference(tables.returns(circuit), tables.returns(MLP), lambda gap: gap > -ALIKE)


def ends_lower_on_the_plane(tables: Tables, circuit: str) -> Finding | None:
    """The same on the plane, where the paper finds the MLP a little ahead."""
    ours, theirs = (
        {task: runs for task, runs in tables.returns(policy).items() if task.startswith("flat")}
        for policy in (circuit, MLP)
    )
    return _difference(ours, theirs, lambda gap: gap < 0.0)


def learns_sooner(tables: Tables, circuit: str) -> Finding | None:
    """Median steps to a test return of 0.90 on bumps, MLP over circuit; from the one task to the other.

    An MLP that never has it counts with all of its steps, so the ratio is larger in truth; a circuit that never has it
    makes it 0. Tasks that neither learns are left out.
    """

    def needed(runs: list[tuple[Array, Array]]) -> float:
        reached = [(steps, np.flatnonzero(returns >= LEARNED)) for steps, returns in runs]
        return float(np.median([steps[hits[0]] if len(hits) else np.inf for steps, hits in reached]))

    ours, theirs = tables.learning(circuit), tables.learning(MLP)
    tasks, ratios = [], []
    for task in sorted(ours.keys() & theirs.keys()):
        mine, other = needed(ours[task]), needed(theirs[task])
        if task.startswith("bumpy") and np.isfinite([mine, other]).any():
            given = np.median([steps[-1] for steps, _ in theirs[task]])
            tasks.append(task)
            ratios.append(min(other, given) / max(1.0, mine))
    if not tasks:
        return None
    middle = float(np.prod(ratios) ** (1 / len(ratios)))
    value = stats.Estimate(middle, min(ratios), max(ratios))
    seeds = min(len(runs[task]) for runs in (ours, theirs) for task in tasks)
    return Finding(value=value, seeds=seeds, verdict=_judged([ratio > 1.0 for ratio in ratios]))


def varies_less(tables: Tables, circuit: str) -> Finding | None:
    """Standard deviation of held-out returns over seeds, MLP over circuit; from the lowest task to the highest."""
    ours, theirs = tables.returns(circuit), tables.returns(MLP)
    tasks = [task for task in sorted(ours.keys() & theirs.keys()) if min(len(ours[task]), len(theirs[task])) >= FEWEST]
    if not tasks:
        return None
    ratios = np.array([theirs[task].std(ddof=1) / max(1e-6, ours[task].std(ddof=1)) for task in tasks])
    value = stats.Estimate(float(np.exp(np.log(ratios).mean())), float(ratios.min()), float(ratios.max()))
    seeds = min(len(runs[task]) for runs in (ours, theirs) for task in tasks)
    return Finding(value=value, seeds=seeds, verdict=_judged((ratios > 1.0).tolist()))


def walks_naturally(tables: Tables, circuit: str) -> Finding | None:
    """Runs on flat-walk whose strides are regular and have a gait with a name in most episodes: a share."""

    def natural(policy: str) -> list[bool]:
        rows = [row for row in tables.final if (row["task"], row["policy"]) == ("flat-walk", policy)]
        return [row["gait"] not in ("", "none") and float(row["regular_share"] or 0) > 0.5 for row in rows]

    ours, theirs = natural(circuit), natural(MLP)
    if min(len(ours), len(theirs)) < FEWEST:
        return None
    share = stats.share_interval(sum(ours), len(ours))
    better = sum(ours) / len(ours) > sum(theirs) / len(theirs)
    return Finding(value=share, seeds=min(len(ours), len(theirs)), verdict=_judged([better]))


def small_ones_are_worse(tables: Tables, circuit: str) -> Finding | None:
    """Held-out return of the smallest MLP minus that of the largest."""
    ends: list[dict[str, Array]] = [{}, {}]
    for task in sorted({row["task"] for row in tables.sizes}):
        mlps = [row for row in tables.sizes if row["task"] == task and row["policy"] != "ncap"]
        sizes = sorted({int(row["parameters"]) for row in mlps})
        if len(sizes) > 1:
            for end, size in zip(ends, (sizes[0], sizes[-1]), strict=True):
                end[task] = np.array([float(row["return_mean"]) for row in mlps if int(row["parameters"]) == size])
    return _difference(ends[0], ends[1], lambda gap: gap < -ALIKE)


def generalises(tables: Tables, circuit: str) -> Finding | None:
    """Mean return over all other worlds, circuit minus MLP; judged axis by axis."""
    found: list[dict[str, Array]] = []
    for policy in (circuit, MLP):
        own: dict[str, dict[str, list[float]]] = {}
        for row in tables.worlds:
            if row["policy"] == policy:
                own.setdefault(row["axis"], {}).setdefault(row["seed"], []).append(float(row["return"]))
        found.append({axis: np.array([np.mean(runs) for runs in seeds.values()]) for axis, seeds in own.items()})
    return _difference(found[0], found[1], lambda gap: gap > -ALIKE / 2)


def walks_on_the_robot(tables: Tables, circuit: str) -> Finding | None:
    """Share of flights to an A1's twin across the gaps that end without a fall, circuit minus MLP."""
    shares: list[Array] = []
    for policy in (circuit, MLP):
        upright: dict[str, list[bool]] = {}
        for row in tables.flights:
            if row["policy"] == policy:
                upright.setdefault(row["seed"], []).append(row["fell"] == "False")
        shares.append(np.array([np.mean(flown) for flown in upright.values()]))
    if not all(map(len, shares)):
        return None
    verdict = _judged([bool(shares[0].mean() > 0.5), bool(shares[1].mean() < 0.5)])
    value = stats.difference([(shares[0], shares[1])])
    return Finding(value=value, seeds=min(map(len, shares)), verdict=verdict)


CLAIMS: Final[dict[str, Callable[[Tables, str], Finding | None]]] = {
    "Before training it is better than an MLP": starts_better,
    "After training it is as good as an MLP": ends_alike,
    "On the plane the MLP ends a little higher": ends_lower_on_the_plane,
    "On bumps it learns from fewer steps": learns_sooner,
    "It differs less from seed to seed": varies_less,
    "It walks in natural gaits more often than an MLP": walks_naturally,
    "Small MLPs are worse than large ones": small_ones_are_worse,
    "In other worlds it is as good or better": generalises,
    "On the robot it walks on most trials and the MLP falls": walks_on_the_robot,
}
"""The paper's sentences in our words, and what tests them."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Write claims.csv from what the other experiments have left in the folder."""
    write(out)


def write(folder: Path) -> None:
    """Write claims.csv from the other tables of a folder."""
    tables, rows = read(folder), list[dict[str, object]]()
    for sentence, test in CLAIMS.items():
        for circuit, words in CIRCUITS.items():
            found = test(tables, circuit)
            row: dict[str, object] = {
                "claim": sentence,
                "circuit": words,
                "measure": (test.__doc__ or "").splitlines()[0].rstrip("."),
            }
            if found is None:
                rows.append(row | {"value": "", "low": "", "high": "", "seeds": 0, "verdict": UNTESTED})
            else:
                rows.append(row | {**found.value._asdict(), "seeds": found.seeds, "verdict": found.verdict})
    write_table(folder / TABLE, rows)
