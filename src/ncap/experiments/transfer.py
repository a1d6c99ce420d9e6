"""One circuit, several bodies: how weights that were trained on one robot walk on another, at once and after practice.

A start is the untrained circuit or a shipped walk. It is played on every robot as it is, and after so many rollouts of
training there; a rollout is an episode of full length, or three of a third of it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.experiments.library import Library, Scale, measured
from ncap.learn.settings import Training
from ncap.report.tables import write_table
from ncap.sim.robot import find_robot
from ncap.tasks import TASKS, with_robot

TASK: Final = "flat-walk"
STARTS: Final = {"untrained": None, "ncap-flat-walk": "a1", "ncap-go1-walk": "go1", "ncap-go2-walk": "go2"}
"""Whose weights are tried, and the robot that they were trained on."""
ROBOTS: Final = ("a1", "go1", "go2")
"""Robots that they are tried on, unless one is asked for."""
CANDIDATES: Final = 10
"""Candidates of an epoch. Each plays three episodes of a third of the length, so that an epoch is ten rollouts."""
EPOCHS: Final = (2, 8)
"""20 and 80 rollouts."""
COLOURS: Final = dict(zip(STARTS, ("#777777", "#0072B2", "#E69F00", "#D55E00"), strict=True))


def run(library: Library, scale: Scale, out: Path) -> None:
    """Play and train what is missing, then write the table and the figure of docs/reference/robots.md."""
    rows = []
    for name in (scale.robot,) if scale.robot else ROBOTS:
        task = with_robot(TASKS[TASK], find_robot(name))
        for start, own in STARTS.items():
            about = {"robot": name, "start": start}
            rows.append(about | {"rollouts": 0, "seed": 0} | measured(library.evaluation(start, task, scale.straight)))
            for epochs in EPOCHS if own != name else ():
                places = library.within(f"transfer/{start}-{epochs}").train(trainings(name, start, epochs, scale))
                for seed, place in enumerate(places):
                    found = library.evaluation(str(place), task, scale.straight)
                    rows.append(about | {"rollouts": CANDIDATES * epochs, "seed": seed} | measured(found))
    write_table(out / "transfer.csv", rows)
    _figure(rows, out / "transfer.png")


def trainings(robot: str, start: str, epochs: int, scale: Scale) -> list[Training]:
    """One training per seed of a robot from some weights, for so many epochs."""
    settings: dict[str, Any] = {"epochs": epochs, "population": CANDIDATES}
    if (seconds := scale.ncap.get("episode_seconds")) is not None:  # a scale with short episodes
        settings |= {
            "episode_seconds": seconds,
            "training_seconds": seconds / 3,
            "population": scale.ncap["population"],
        }
    begin = None if STARTS[start] is None else start
    whole = Training(task=TASK, robot=robot, start=begin, **settings)
    return [replace(whole, seed=seed).filled() for seed in range(scale.seeds)]


@plots.styled
def _figure(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Return against rollouts of training on this body, a panel per robot, a line per start: the mean of its seeds."""
    robots = list(dict.fromkeys(row["robot"] for row in rows))
    fig, axes = plots.figure([" ".join(robots)], size=(3.0 * len(robots) + 0.6, 3.1), heights=(1,))
    for robot in robots:
        for start in STARTS:
            mine = [row for row in rows if (row["robot"], row["start"]) == (robot, start)]
            steps = sorted({row["rollouts"] for row in mine})
            mean = [np.mean([row["return"] for row in mine if row["rollouts"] == step]) for step in steps]
            axes[robot].plot(steps, mean, "o-", color=COLOURS[start], linewidth=1.2, markersize=4, label=start)
        axes[robot].set(title=f"on {robot}", xlabel="rollouts on this body", ylim=(0.0, 1.02))
        axes[robot].set_xticks([0, *(CANDIDATES * epochs for epochs in EPOCHS)])
    axes[robots[0]].set_ylabel(f"return on {TASK}")
    handles, labels = axes[robots[0]].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=len(STARTS), frameon=False)
    plots.save_both(fig, path)
