"""Figures of the performance experiment, from its two tables alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from ncap.analysis import plots, stats
from ncap.experiments.curves import LEARNED
from ncap.report.tables import read_table, write_table
from ncap.tasks import PAPER_TASKS

Array = NDArray[np.float64]

STANDING: Final = 0.5
"""Return of a robot that stands still."""
COST: Final = {"steps": ("environment steps (thousand)", 1e3), "cpu_seconds": ("CPU-minutes", 60.0)}
"""Columns of the curves that a figure has along its axis, with label and unit."""
POINTS: Final = 200
"""Points of a mean curve."""


def draw(tables: Path) -> None:
    """Draw performance.png and aggregate.png from the tables in a folder.

    Beside them come three tables of what the runs say together: performance-summary.csv, a row per task and policy,
    performance-overall.csv, a row per policy, and power.csv.
    """
    curves, final = read_table(tables / "performance.csv"), read_table(tables / "final.csv")
    _curves_figure([row for row in curves if row["policy"] != "ncap-ppo"], tables / "performance.png")
    scores = scores_of(final)
    write_table(tables / "performance-summary.csv", summary(curves, final))
    write_table(tables / "performance-overall.csv", overall(scores))
    write_table(tables / "power.csv", power(scores))
    _aggregate_figure(scores, tables / "aggregate.png")


def draw_algorithms(tables: Path) -> None:
    """Draw algorithms.png, the curves of all algorithms on the two Walk tasks, from the same table."""
    rows = read_table(tables / "performance.csv")
    shown = [row for row in rows if row["task"].endswith("-walk") and row["policy"] != "ncap-paper"]
    _curves_figure(shown, tables / "algorithms.png")


def scores_of(final: Sequence[dict[str, str]]) -> dict[str, dict[str, Array]]:
    """Held-out returns of all runs by policy and task."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in final:
        found.setdefault(row["policy"], {}).setdefault(row["task"], []).append(float(row["return_mean"]))
    order = [policy for policy in plots.POLICY_NAMES if policy in found]
    return {policy: {task: np.array(runs) for task, runs in sorted(found[policy].items())} for policy in order}


def summary(curves: Sequence[dict[str, str]], final: Sequence[dict[str, str]]) -> list[dict[str, object]]:
    """A row per task and policy over its seeds: held-out return, falls, gaits, and what it took to learn the task.

    A run's gait is that of most of its episodes. Shares, rhythm ratios and costs are medians over runs.
    """
    rows: list[dict[str, object]] = []
    for task in _in_order(row["task"] for row in final):
        for policy in plots.POLICY_NAMES:
            mine = [row for row in final if (row["task"], row["policy"]) == (task, policy)]
            if not mine:
                continue
            found = stats.estimate(np.array([float(row["return_mean"]) for row in mine]))
            row: dict[str, object] = {"task": task, "policy": policy, "name": plots.POLICY_NAMES[policy]}
            row |= {"seeds": len(mine), "return_mean": found.value}
            row |= {"low": found.low, "high": found.high, "worst": min(float(row["return_mean"]) for row in mine)}
            row |= {name: sum(int(row[name]) for row in mine) for name in ("falls", "episodes")}
            gaits = Counter(r["gait"] for r in mine).most_common()
            row["gaits"] = ", ".join(f"{runs} {gait}" for gait, runs in gaits)
            for name in ("gait_share", "rhythm_ratio", "cost_of_transport"):
                known = [float(r[name]) for r in mine if r[name]]
                row[name] = np.median(known) if known else ""
            rows.append(row | _spent([row for row in curves if (row["task"], row["policy"]) == (task, policy)]))
    return rows


def _spent(rows: Sequence[dict[str, str]]) -> dict[str, object]:
    """Medians over runs of what was spent until the test return was first at LEARNED, and how many runs it was."""
    runs: dict[str, dict[str, float]] = {}
    for row in rows:
        run = runs.setdefault(row["seed"], {})
        run["steps"] = float(row["steps"])
        if float(row["test_return"]) >= LEARNED and "learned" not in run:
            run |= {"learned": float(row["steps"]), "cpu_minutes": float(row["cpu_seconds"]) / 60}
    cells: dict[str, object] = {"learned": sum("learned" in run for run in runs.values())}
    for name, cell in (("learned", "steps_to_0.9"), ("cpu_minutes", "cpu_minutes_to_0.9")):
        middle = float(np.median([run.get(name, np.inf) for run in runs.values()])) if runs else np.inf
        cells[cell] = middle if np.isfinite(middle) else "never"
    return cells | {"steps": float(np.median([run["steps"] for run in runs.values()])) if runs else 0.0}


def overall(scores: dict[str, dict[str, Array]]) -> list[dict[str, object]]:
    """Over all tasks of each policy: mean, interquartile mean, and how often a run of NCAP beats one of it."""
    rows: list[dict[str, object]] = []
    for policy, of_task in scores.items():
        runs = list(of_task.values())
        row: dict[str, object] = {
            "policy": policy,
            "name": plots.POLICY_NAMES[policy],
            "tasks": len(runs),
            "runs": sum(len(one) for one in runs),
        }
        for name, statistic in (("mean", stats.mean), ("iqm", stats.interquartile_mean)):
            found = stats.estimate_ragged(runs, statistic)
            row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        shared = [task for task in of_task if task in scores.get("ncap", {})]
        if policy != "ncap" and shared:
            pairs = [(scores["ncap"][task], of_task[task]) for task in shared]
            found = stats.improvement(pairs)
            row |= {"ncap_better": found.value, "ncap_better_low": found.low, "ncap_better_high": found.high}
        rows.append(row)
    return rows


def power(scores: dict[str, dict[str, Array]]) -> list[dict[str, object]]:
    """NCAP beside every other policy, task by task: the difference, and how many seeds it takes to be sure of it."""
    rows: list[dict[str, object]] = []
    for policy, of_task in scores.items():
        for task, theirs in of_task.items():
            ours = scores.get("ncap", {}).get(task, theirs[:0])
            if policy == "ncap" or not len(ours):
                continue
            gap = stats.difference([(ours, theirs)])
            row: dict[str, object] = {
                "task": task,
                "policy": policy,
                "seeds": len(ours),
                "seeds_of_policy": len(theirs),
            }
            row |= {"difference": gap.value}
            row |= {"low": gap.low, "high": gap.high}
            spread = min(len(ours), len(theirs)) > 1  # of one run nobody knows it
            rows.append(row | {"seeds_needed": stats.seeds_needed(ours, theirs) if spread else ""})
    return rows


@plots.styled
def _curves_figure(rows: Sequence[dict[str, str]], path: Path) -> None:
    """A row of panels for steps and one for CPU time, a column per task."""
    tasks = _in_order(row["task"] for row in rows)
    policies = [policy for policy in plots.POLICY_NAMES if any(row["policy"] == policy for row in rows)]
    mosaic = [" ".join(f"{cost}:{task}" for task in tasks) for cost in COST]
    fig, axes = plots.figure(mosaic, size=(3.1 * len(tasks) + 0.6, 6.2), heights=(1, 1))
    shown: dict[str, int] = {}
    for cost, (label, unit) in COST.items():
        for task in tasks:
            here = axes[f"{cost}:{task}"]
            for policy in policies:
                mine = [row for row in rows if row["task"] == task and row["policy"] == policy]
                if not mine:
                    continue
                x, returns = _common(mine, cost)
                shown[policy] = max(shown.get(policy, 0), len(returns))
                plots.curve_band(here, x / unit, *stats.curve_band(returns), policy)
            here.axhline(STANDING, color="#999999", linestyle=":", linewidth=1)
            here.set(ylim=(0.3, 1.02), xlabel=label, title=task if cost == "steps" else "")
            here.set_xscale("symlog", linthresh=10 if cost == "steps" else 0.1)
            here.set_xlim(left=0)
            here.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes[f"{cost}:{tasks[0]}"].set_ylabel("test return")
    handles = [Line2D([], [], color=plots.POLICY_COLOURS[policy]) for policy in policies]
    labels = [f"{plots.POLICY_NAMES[policy]} ({_counted(shown[policy], 'seed')})" for policy in policies]
    fig.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    plots.save_both(fig, path)


def _in_order(tasks: Iterable[str]) -> list[str]:
    """Tasks without repetition, the paper's in its order and then others."""
    found = list(dict.fromkeys(tasks))
    return [*(task for task in PAPER_TASKS if task in found), *(task for task in found if task not in PAPER_TASKS)]


def _counted(number: object, what: str) -> str:
    return f"{number} {what}" if number in (1, "1") else f"{number} {what}s"


def _common(rows: Sequence[dict[str, str]], cost: str) -> tuple[Array, Array]:
    """(x (T,), returns (run, T)): curves of runs at the same costs, up to the end of the shortest."""
    runs: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        runs.setdefault(row["seed"], []).append(row)
    curves = [
        (np.array([float(row[cost]) for row in run]), np.array([float(row["test_return"]) for row in run]))
        for run in runs.values()
    ]
    x = np.linspace(0, min(spent[-1] for spent, _ in curves), POINTS) if len(curves) > 1 else curves[0][0]
    return x, np.array([np.interp(x, spent, returns) for spent, returns in curves])


@plots.styled
def _aggregate_figure(scores: dict[str, dict[str, Array]], path: Path) -> None:
    """Interquartile means, shares of runs above every return, and how often NCAP is better, each over all tasks."""
    fig, axes = plots.figure(["iqm profile better"], size=(12, 3.4), heights=(1,))
    rows = {str(row["policy"]): row for row in overall(scores)}
    names = list(rows)[::-1]
    thresholds = np.linspace(0.4, 1, 301)
    for height, policy in enumerate(names):
        colour, row = plots.POLICY_COLOURS[policy], rows[policy]
        _interval(axes["iqm"], row, "iqm", height, colour)
        runs = list(scores[policy].values())
        share = np.mean([stats.performance_profile(one, thresholds) for one in runs], axis=0)
        axes["profile"].plot(thresholds, share, color=colour)
        if "ncap_better" in row:
            _interval(axes["better"], row, "ncap_better", height, colour)
    sizes = [", ".join(_counted(rows[policy][f"{what}s"], what) for what in ("run", "task")) for policy in names]
    labels = [f"{plots.POLICY_NAMES[policy]}\n{size}" for policy, size in zip(names, sizes, strict=True)]
    axes["iqm"].set_yticks(range(len(names)), labels)
    axes["iqm"].set(title="interquartile mean", xlabel="held-out return")
    axes["profile"].set(title="performance profile", xlabel="held-out return τ", ylabel="share of runs ≥ τ")
    axes["profile"].set(ylim=(0, 1.02), xlim=(0.4, 1))
    axes["better"].set(title="how often a run of NCAP is better", xlabel="probability", xlim=(-0.02, 1.02))
    axes["better"].set_yticks(range(len(names)), [""] * len(names))
    axes["better"].set_ylim(axes["iqm"].get_ylim())
    axes["better"].axvline(0.5, color="#999999", linestyle=":", linewidth=1)
    plots.save_both(fig, path)


def _interval(axes: Axes, row: dict[str, object], name: str, height: int, colour: str) -> None:
    value, low, high = (float(str(row[key])) for key in (name, f"{name}_low", f"{name}_high"))
    axes.plot([low, high], [height, height], color=colour, linewidth=7, alpha=0.3, solid_capstyle="butt")
    axes.plot([value], [height], "o", color=colour)
