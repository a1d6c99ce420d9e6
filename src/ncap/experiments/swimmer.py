"""Swimmer NCAP: what four weights are worth before training, after a few rollouts, on other bodies, and beside MLPs."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.experiments.curves import Curve, read_curve
from ncap.experiments.library import Library, Scale
from ncap.learn.settings import Training
from ncap.report.tables import merge_table, read_table, write_table
from ncap.sim.swimmer import FEWEST, MOST
from ncap.tasks import TASKS, with_robot

TASK: Final = "swim"
GOALS: Final = (0.6, 0.9)
"""Test returns of which it is told when they are first reached."""
SEARCH: Final[dict[str, Any]] = {"preset": "few", "episodes": 1, "training_seconds": 10.0, "epochs": 22}
"""Settings of evolution for circuits, until 56 rollouts are played."""
MLP_STEPS: Final = 500_000
"""Control steps that MLPs are given."""
CONTENDERS: Final[dict[str, dict[str, Any]]] = {
    "ncap": SEARCH,
    "ncap-unshared": SEARCH | {"circuit": "swimmer-unshared"},
    "mlp-ppo": {"algorithm": "ppo", "policy": "mlp:64x64"},
    "mlp-evolution": {"policy": "mlp:64x64", "training_seconds": 30.0},
}
"""Settings of Training by the names in the tables."""
NAMES: Final = {
    "ncap": "NCAP, 4 weights",
    "ncap-unshared": "NCAP, 30 weights",
    "mlp-ppo": "MLP, PPO",
    "mlp-evolution": "MLP, evolution",
}
COLOURS: Final = dict(zip(NAMES, ("#0072B2", "#56B4E9", "#D55E00", "#777777"), strict=True))
RUNS: Final = "swimmer.csv"
CURVES: Final = "swimmer-curves.csv"
LENGTHS: Final = "swimmer-links.csv"
RUN: Final = ("policy", "seed")
"""Columns that name a run in the first two tables."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, one seed of each after the other, and write tables and figure after every run."""
    _measure_lengths(library, scale, out, "untrained")
    for seed in range(scale.seeds):
        for name, training in trainings(scale).items():
            own = library.within(f"swimmer/{name}")
            (place,) = own.train([replace(training, seed=seed)])
            curve, key = read_curve(place), dict(zip(RUN, (name, seed), strict=True))
            found = library.evaluation(str(place), training.world, scale.straight)
            row: dict[str, object] = {"weights": found.parameters, "rollouts": curve.rollouts[-1]}
            row |= {f"rollouts_to_{goal:g}": _until(curve, goal, "rollouts") for goal in GOALS}
            row |= {f"steps_to_{goal:g}": _until(curve, goal, "steps") for goal in GOALS}
            row |= {"steps": curve.steps[-1], "cpu_minutes": curve.cpu_seconds[-1] / 60}
            row |= {"episodes": found.episodes, "return": found.return_mean, "speed": found.speed_mean}
            merge_table(out / RUNS, [key | row], RUN)
            points = zip(curve.rollouts, curve.steps, curve.returns, strict=True)
            new = [key | {"rollouts": r, "steps": n, "test_return": value} for r, n, value in points]
            merge_table(out / CURVES, new, RUN)
            if name == "ncap":
                _measure_lengths(library, scale, out, f"seed {seed}", str(place))
            draw(out)


def trainings(scale: Scale) -> dict[str, Training]:
    """The training of every contender; MLPs have as many epochs as the control steps allow."""
    short = scale.ncap.get("episode_seconds")
    found = {}
    for name, settings in CONTENDERS.items():
        less: dict[str, Any] = {} if short is None else {"episode_seconds": short, "epochs": 2}
        if less and "training_seconds" in settings:
            less["training_seconds"] = short
        one = Training(task=TASK, **settings | less)
        if "epochs" not in settings and short is None:
            robots = one.evolution.population * one.candidate_episodes if name == "mlp-evolution" else one.environments
            one = replace(one, epochs=1 + MLP_STEPS // (robots * one.practice.steps))
        found[name] = one.filled()
    return found


def _until(curve: Curve, goal: float, spent: str) -> float | str:
    """What was spent when the test return was first at a goal."""
    reached = np.flatnonzero(curve.returns >= goal)
    return float(getattr(curve, spent)[reached[0]]) if len(reached) else "never"


def _measure_lengths(library: Library, scale: Scale, out: Path, name: str, policy: str = "untrained") -> None:
    """The same weights on swimmers of every length."""
    rows = []
    for links in range(FEWEST, MOST + 1):
        found = library.evaluation(policy, with_robot(TASKS[TASK], f"swimmer-{links}"), scale.straight)
        rows.append(
            {"weights": name, "links": links, "episodes": found.episodes, "return": found.return_mean,
             "low": found.return_interval[0], "high": found.return_interval[1], "speed": found.speed_mean}
        )  # fmt: skip
    path = out / LENGTHS
    kept = [row for row in read_table(path) if row["weights"] != name] if path.exists() else []
    write_table(path, [*kept, *rows])


def draw(tables: Path) -> None:
    """Draw swimmer.png from the tables in a folder."""
    _figure(read_table(tables / CURVES), read_table(tables / LENGTHS), tables / "swimmer.png")


@plots.styled
def _figure(points: list[dict[str, str]], lengths: list[dict[str, str]], path: Path) -> None:
    """Test returns while learning, a line per seed, and returns by the number of links, a line per set of weights."""
    fig, axes = plots.figure(["learning links"], size=(9.5, 3.6), heights=(1,))
    learning, links = axes["learning"], axes["links"]
    for name in NAMES:
        for seed in dict.fromkeys(point["seed"] for point in points if point["policy"] == name):
            mine = [point for point in points if (point["policy"], point["seed"]) == (name, seed)]
            steps, returns = ([float(point[column]) for point in mine] for column in ("steps", "test_return"))
            steps = [max(n, 1000.0) for n in steps]  # the scale has no 0
            learning.plot(
                steps, returns, color=COLOURS[name], linewidth=1.2, label=NAMES[name] if seed == "0" else None
            )
    learning.set(xscale="log", xlabel="control steps", ylabel="test return", ylim=(0, 1.02), title="6 links")
    learning.xaxis.set_major_formatter(lambda steps, _: f"{steps:,.0f}")
    learning.legend(frameon=False, fontsize=8, loc="center left")
    names = list(dict.fromkeys(row["weights"] for row in lengths))
    trained = next((name for name in names if name != "untrained"), None)
    for name in names:
        mine = [row for row in lengths if row["weights"] == name]
        untrained = name == "untrained"
        label = "all weights ±1" if untrained else "trained with 6 links" if trained == name else None
        colour, line = ("#777777", "--") if untrained else (COLOURS["ncap"], "-")
        values = [float(row["return"]) for row in mine]
        numbers = [int(row["links"]) for row in mine]
        links.plot(numbers, values, f"o{line}", markersize=3, linewidth=1.2, label=label, color=colour)
    links.axvline(6, color="#999999", linestyle=":", linewidth=1)
    links.set(xlabel="links", ylabel="return", ylim=(0, 1.02), title="the same 4 weights")
    links.set_xticks(range(FEWEST, MOST + 1))
    links.legend(frameon=False, fontsize=8, loc="lower right")
    plots.save_both(fig, path)
