"""One self-contained HTML page about a run: what it learned, how it walks, what changed in its weights."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.analysis.gait_summary import GaitSummary
from ncap.circuits.animal import HALF_CENTRES
from ncap.errors import UserError
from ncap.evaluation import STANCE_FORCE, Evaluation, evaluate, own_command
from ncap.learn.training import read_training
from ncap.policies.ncap import NCAPPolicy
from ncap.report.facts import definitions, origin
from ncap.report.page import html_table, picture_of, write_page
from ncap.report.poses import draw_poses
from ncap.report.weights import circuit_weights
from ncap.rollouts import rollout
from ncap.runs import read_progress
from ncap.tasks import Task, build
from ncap.trained import TrainedPolicy, load, shipped_policies, untrained

Array = NDArray[np.float64]

EPISODES: Final = 10
"""Held-out episodes of every policy on the page."""
WINDOW: Final = (9.0, 12.0)
"""Part of an episode that is drawn, s; of a shorter episode, as much at its end."""
SIDES: Final = ("untrained", "trained")
"""Policies whose walks are drawn side by side."""
SHOWN_SEED: Final = 0
"""Seed of the episode that is drawn."""
_MOTION: Final = ("position", "quaternion", "joint_position")
_NEEDED: Final = ("rollouts", "test_return")
"""Columns of progress that the page shows, beside one of the following."""
_PLAYED: Final = {"candidate_return_mean": "candidates, mean", "training_return_mean": "training episodes, mean"}
"""Columns of progress under evolution and under gradients."""


@dataclass(frozen=True, kw_only=True)
class Walk:
    """What is drawn of one episode: foot forces and neurons in the window."""

    time: Array
    foot_force: Array
    """(T, leg) foot forces, N."""
    neurons: Array | None
    """(T, N) activity of all neurons of the rhythm generator; None for a policy without a circuit."""
    motion: tuple[Array, Array, Array]
    """Position (T, 3) and orientation (T, 4) of the trunk, and joint positions (T, leg, 3)."""


@plots.styled
def write_report(
    run: Path, out: Path, threads: int, told: Callable[[str, int, int], None] = lambda what, done, parts: None
) -> None:
    """Evaluate the run's best policy beside the untrained one and the zero policy, and write the page.

    told: is called before every part of the work with what is done now, how many parts are done, and how many there
    are.
    """
    training = read_training(run)
    progress = read_progress(run)
    if not progress:
        raise UserError(f"{run} has not finished an epoch yet: train it first, with ncap train --resume {run}")
    for missing in (name for name in _NEEDED if name not in progress[0]):
        raise UserError(f"{run}: its progress has no column {missing}")
    found = load(run)
    task = training.world
    before = untrained(found.policy) if isinstance(found.policy, NCAPPolicy) else load("untrained").on(task)
    compared = {"trained": found, "untrained": before, "zero": load("zero").on(task)}
    if (shipped := f"mlp-{training.task}") in shipped_policies():
        compared["shipped MLP"] = load(shipped)
    rows: dict[str, Evaluation] = {}
    parts = len(compared) + 2
    for name, player in compared.items():
        told(f"evaluating: {name}", len(rows), parts)
        rows[name] = evaluate(player, task, range(EPISODES), threads=threads)
    told("playing walks", parts - 2, parts)
    walks = {name: _walk(compared[name], task) for name in SIDES} if task.robot.feet else {}
    told("drawing", parts - 1, parts)
    trained = rows["trained"]
    title = f"{training.kind} on {training.task}, {task.target_speed:g} m/s"
    body = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p><span class=big>{trained.return_mean:.3f}</span> mean return of {trained.episodes} held-out episodes "
        f"after {progress[-1]['rollouts']:.0f} rollouts, with {found.parameters} weights.</p>",
    ]
    if task.robot.feet:
        body += ["<h2>The walk before and after training</h2>"]
        body += [picture_of(_walks_figure(walks, rows, task), "poses and footfalls, untrained and trained")]
        body += [
            "<p>Poses every 0.12 s, seen from the right; below, when each foot is on the ground, darker where it "
            f"presses harder. Both play the episode of seed {SHOWN_SEED}.</p>"
        ]
    figure = _learning_figure(progress, task.episode_seconds, bool(task.robot.feet))
    body += [_table(rows), "<h2>Learning</h2>", picture_of(figure, "learning curve")]
    if isinstance(found.policy, NCAPPolicy) and task.robot.feet:
        body += ["<h2>Half-centres of the rhythm generator, trained</h2>"]
        body += [picture_of(_neuron_figure(found.policy, walks["trained"]), "half-centres")]
    if isinstance(found.policy, NCAPPolicy):
        body += ["<h2>Weights before and after</h2>"]
        body += [picture_of(circuit_weights(found.policy, found.theta), "weights")]
    body += ["<h2>What the words mean</h2>", definitions(task)]
    body += ["<h2>Where this comes from</h2>", origin(run, training, EPISODES)]
    write_page(out, f"ncap: {title}", body)
    told("done", parts, parts)


def _walk(player: TrainedPolicy, task: Task) -> Walk:
    """The window of one episode that the page draws."""
    controller, command = player.controller(1), own_command(player, task)
    has_neurons = bool(controller.signals(controller.reset([0])))
    record = ("foot_force", *_MOTION, *(("neurons",) if has_neurons else ()))
    episode = rollout(task, controller, [SHOWN_SEED], command=command, record=record)
    begin, end = (round(seconds / task.control_dt) for seconds in WINDOW)
    last = min(end, task.steps)
    first = max(0, last - (end - begin))
    part = slice(first, last)
    return Walk(
        time=np.arange(last - first, dtype=np.float64) * task.control_dt,
        foot_force=np.nan_to_num(episode.signals["foot_force"][0, part]),
        neurons=np.nan_to_num(episode.signals["neurons"][0, part]) if has_neurons else None,
        motion=tuple(episode.signals[name][0, part] for name in _MOTION),  # type: ignore[arg-type]
    )


def _table(rows: dict[str, Evaluation]) -> str:
    walks = any(row.gait is not None for row in rows.values())
    head = ("", "return", "falls", "speed (m/s)", "cost of transport")
    gait_head = ("gait", "Hz", "regular in", "commanded gait in") if walks else ("undulation",)
    cells = [
        (
            name,
            f"{row.return_mean:.3f}",
            f"{row.falls} of {row.episodes}",
            f"{row.speed_mean:.{2 if walks else 3}f}",
            "–" if row.cost_of_transport is None else f"{row.cost_of_transport:.2f}",
            *(_gait_cells(row.gait) if row.gait else (_undulation_cell(row),)),
        )
        for name, row in rows.items()
    ]
    return html_table((*head, *gait_head), cells)


def _gait_cells(gait: GaitSummary) -> tuple[str, ...]:
    return (
        f"{gait.label} ({gait.share:.0%})",
        f"{gait.frequency_hz:.1f}",
        f"{gait.regular_share:.0%}",
        "–" if gait.commanded is None else f"{gait.commanded}: {gait.commanded_share:.0%}",
    )


def _undulation_cell(row: Evaluation) -> str:
    wave = row.undulation
    return "–" if wave is None else f"{wave.frequency_hz:.2f} Hz, up to {wave.amplitude_deg:.0f}°"


def _learning_figure(progress: list[dict[str, float]], seconds: float, walks: bool) -> Figure:
    fig, named = plots.figure(["curve"], size=(9, 3.2), heights=(1,))
    axes, rollouts = named["curve"], [row["rollouts"] for row in progress]
    for column, label in _PLAYED.items():
        if column in progress[0]:
            axes.plot(rollouts, [row[column] for row in progress], color="#BBBBBB", label=label)
    axes.plot(rollouts, [row["test_return"] for row in progress], color=plots.LEG_COLOURS[0], label="test episodes")
    if walks:
        axes.axhline(0.5, color="#999999", linestyle=":", linewidth=1)
        axes.text(rollouts[-1], 0.505, "standing still", ha="right", va="bottom", fontsize=8, color="#777777")
    axes.set(
        xlabel=f"rollouts (episodes of {seconds:g} s)", ylabel="return", ylim=(0, 1.02), xlim=(0, max(1, rollouts[-1]))
    )
    axes.legend(frameon=False, loc="lower right")
    return fig


def _walks_figure(walks: dict[str, Walk], rows: dict[str, Evaluation], task: Task) -> Figure:
    """Both walks side by side: what the numbers are, poses, and footfalls."""
    mosaic = [" ".join(f"{name}-{part}" for name in walks) for part in ("poses", "feet")]
    fig, named = plots.figure(mosaic, size=(11, 3.4), heights=(1, 1.3))
    for name, walk in walks.items():
        draw_poses(named[f"{name}-poses"], build(task), walk.motion, task.control_dt)
        row = rows[name]
        gait = "no gait" if row.gait is None else f"{row.gait.label} in {row.gait.share:.0%}"
        falls = f"{row.falls} of {row.episodes} fell"
        words = f"{name}: return {row.return_mean:.2f}, {row.speed_mean:.2f} m/s, {gait}, {falls}"
        named[f"{name}-poses"].set_title(words, fontsize=10)
        plots.pressure_strips(named[f"{name}-feet"], walk.time, walk.foot_force, STANCE_FORCE)
        named[f"{name}-feet"].set_xlabel("time (s)")
    return fig


def _neuron_figure(policy: NCAPPolicy, walk: Walk) -> Figure:
    sites, neurons = policy.circuit.plan.sites, policy.core.neurons
    fig, named = plots.figure(list(sites), size=(9, 4.2), heights=(1,) * len(sites))
    assert walk.neurons is not None
    for site in sites:
        for name, colour in zip(HALF_CENTRES, (plots.LEG_COLOURS[2], plots.LEG_COLOURS[0]), strict=True):
            if f"{name}.{site}" in neurons:  # a table without it has nothing to draw here
                column = neurons.index(f"{name}.{site}")
                named[site].plot(walk.time, walk.neurons[:, column], color=colour, label=name)
        named[site].set(ylabel=site, ylim=(-0.05, 1.05), yticks=(0, 1), xlim=(0, walk.time[-1]))
        if site != sites[-1]:
            named[site].set_xticklabels([])
    handles, labels = named[sites[0]].get_legend_handles_labels()
    named[sites[0]].legend(handles, labels, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    named[sites[-1]].set_xlabel("time (s)")
    return fig
