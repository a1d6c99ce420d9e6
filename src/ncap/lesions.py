"""Lesions in the body: how a policy walks with its whole circuit, and after each of some knock-outs.

Every circuit, the intact one and each cut one, plays the same episodes at the same commands. Weights stay as they were
trained.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.ticker import MaxNLocator

from ncap.analysis import plots
from ncap.circuits.rhythm import check_command
from ncap.errors import UserError
from ncap.evaluation import foot_gaits, own_command, summarise_gaits
from ncap.policies.controller import check_seeds, numbers
from ncap.policies.ncap import NCAPPolicy
from ncap.policies.seeker import Seeker
from ncap.rollouts import rollout
from ncap.tasks import Task
from ncap.trained import TrainedPolicy

INTACT: Final = ""
"""What `without` says of the intact circuit."""


@dataclass(frozen=True, kw_only=True)
class LesionRow:
    """How a circuit, whole or cut, walks at a command, over some episodes."""

    without: str
    """Name of the knock-out; empty for the intact circuit."""
    command: float
    """Brainstem command in [0, 1]."""
    episodes: int
    return_mean: float
    falls: int
    speed_mean: float
    """Mean forward speed in the robot's frame until the episode's end or fall, m/s."""
    gait: str | None
    """The commonest gait over all episodes; None for a body without feet."""
    gait_share: float | None
    """Share of the episodes that have it."""
    left_right_phase: tuple[float, float] | None
    """Fore, hind: mean of the episodes with this gait; None where the legs do not step."""


def lesion(
    trained: TrainedPolicy,
    task: Task,
    without: Sequence[str],
    commands: Sequence[float] = (),
    seeds: Sequence[int] = range(10),
    *,
    threads: int = 1,
    report: Callable[[LesionRow], None] = lambda _: None,
) -> list[LesionRow]:
    """One row for the intact circuit and one for each knock-out, at every command, with an episode per seed.

    without: names as ncap.circuits.animal.cut takes them, each a lesion of its own. commands: brainstem commands in
    [0, 1]; by default the policy's own. report: gets every row as soon as it is known.
    """
    if not isinstance(trained.policy, NCAPPolicy):
        raise UserError(f"{trained.name} has no circuit, so there is nothing to cut")
    own, seeds = own_command(trained, task), check_seeds(seeds)
    if isinstance(own, Seeker) and len(commands):
        raise UserError(f"{task.name} gives its own commands: leave out others")
    if isinstance(without, str):
        raise UserError(f"lesions are a list of names, not the text {without!r}")
    said = [check_command(c) for c in np.atleast_1d(numbers(commands, "a brainstem command")).tolist()] or [
        own if isinstance(own, float) else trained.policy.command
    ]
    players = {INTACT: trained} | {name: trained.without([name]) for name in without}
    rows = []
    for name, player in players.items():
        for command in said:
            guide = own if isinstance(own, Seeker) else None
            rows.append(_play(player, task, name, command, seeds, threads, guide))
            report(rows[-1])
    return rows


def _play(
    player: TrainedPolicy,
    task: Task,
    without: str,
    command: float,
    seeds: Sequence[int],
    threads: int,
    guide: Seeker | None,
) -> LesionRow:
    controller, task = player.controller(len(seeds)), replace(task, paces=())  # one speed, as in an evaluation
    said, record = command if guide is None else guide, ("foot_force", "velocity")
    played = rollout(task, controller, seeds, command=said, threads=threads, record=record)
    gaits = foot_gaits(task, played)
    summary = summarise_gaits(gaits) if gaits else None
    return LesionRow(
        without=without,
        command=command,
        episodes=len(seeds),
        return_mean=float(played.returns.mean()),
        falls=int(played.fell.sum()),
        speed_mean=float(np.nanmean(played.signals["velocity"][..., 0])),
        gait=None if summary is None else summary.label,
        gait_share=None if summary is None else float(np.mean([gait.label == summary.label for gait in gaits])),
        left_right_phase=None if summary is None else summary.left_right_phase,
    )


@plots.styled
def draw_lesions(rows: Sequence[LesionRow], path: Path, title: str) -> None:
    """A line per row: its gait with its share, then bars for speed, falls and return, in the colour of the gait."""
    lines, height = len(rows), np.arange(len(rows))[::-1]
    walks = any(row.gait is not None for row in rows)
    panels = "gait speed falls return" if walks else "speed falls return"
    fig, axes = plots.figure([panels], size=(11, 1.3 + 0.36 * lines), heights=(1,))
    fig.suptitle(title)
    bars = {
        "speed": ("Mean speed (m/s)", [row.speed_mean for row in rows]),
        "falls": ("Share of falls", [row.falls / row.episodes for row in rows]),
        "return": ("Mean return", [row.return_mean for row in rows]),
    }
    for name, (heading, values) in bars.items():
        _draw_bars(axes[name], rows, values)
        axes[name].set(title=heading, yticks=())
        least = 1.0 if name != "speed" else 0.2 if walks else 0.01
        axes[name].set_xlim(min(0.0, *values), 1.2 * max(least, *values))
    if walks:
        _draw_bars(axes["gait"], rows, [row.gait_share or 0.0 for row in rows], alpha=0.35, numbers=False)
        for y, row in zip(height, rows, strict=True):
            axes["gait"].text(0.02, y, f"{row.gait} {row.gait_share:.0%}", va="center")
        axes["gait"].set(title="Commonest gait, its share", xlim=(0, 1.02))
    several = len({row.command for row in rows}) > 1
    names = [f"without {row.without}" if row.without else "intact" for row in rows]
    labels = [f"{name}, c = {row.command:g}" if several else name for name, row in zip(names, rows, strict=True)]
    axes[panels.split()[0]].set_yticks(height, labels)
    for here in axes.values():
        here.set_ylim(-0.6, lines - 0.4)
        here.xaxis.set_major_locator(MaxNLocator(3, steps=(1, 2, 5, 10)))
        for y, (above, row) in zip(height, pairwise(rows), strict=False):
            if row.without != above.without:
                here.axhline(y - 0.5, color="#CCCCCC", linewidth=0.8)
    plots.save(fig, path)


def _draw_bars(
    axes: Any, rows: Sequence[LesionRow], values: Sequence[float], alpha: float = 1.0, numbers: bool = True
) -> None:
    """A bar for every row from the top down, with its number at its end."""
    height = np.arange(len(rows))[::-1]
    axes.barh(height, values, color=[plots.GAIT_COLOURS[row.gait or "none"] for row in rows], height=0.7, alpha=alpha)
    for y, value in zip(height, values if numbers else (), strict=False):
        axes.text(max(value, 0.0), y, f" {round(value, 2) + 0.0:.2f}", va="center", fontsize=8)
    axes.tick_params(axis="y", length=0)
