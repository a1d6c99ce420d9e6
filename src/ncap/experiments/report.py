"""One self-contained HTML page about a run: what it learned, how it walks, what changed in its weights."""

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.errors import UserError
from ncap.experiments.evaluation import STANCE_FORCE, Evaluation, evaluate, find_controller
from ncap.experiments.page import html_table, svg_of, write_page
from ncap.experiments.weights import circuit_weights
from ncap.learn.start import AnyTraining, read_training
from ncap.legs import LEGS
from ncap.policies.ncap import HALF_CENTRES, NCAPPolicy
from ncap.policies.storage import load_policy, shipped_policies
from ncap.rollout import rollout
from ncap.runs import read_progress

Array = NDArray[np.float64]

EPISODES: Final = 10
WINDOW: Final = (9.0, 12.0)
"""Seconds of an episode that are drawn."""
_PLAYED: Final = {"candidate_return_mean": "candidates, mean", "training_return_mean": "training episodes, mean"}
"""Columns of progress under evolution and under gradients."""


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A few seconds of one episode."""

    time: Array
    foot_force: Array
    """(T, leg) N."""
    neurons: Array | None
    """(T, N) activity."""


@plots.styled
def write_report(run: Path, out: Path, threads: int) -> None:
    """Evaluate the run's best policy beside the untrained one and the zero policy, and write the page."""
    training = read_training(run)
    progress = read_progress(run)
    if not progress:
        raise UserError(f"{run} has not finished an epoch yet: train it first, with ncap train --resume {run}")
    policy, theta, _ = load_policy(run / "best.safetensors")
    compared = {"trained": str(run), "untrained": "untrained", "zero": "zero"}
    if (shipped := f"mlp-{training.task}") in shipped_policies():
        compared["shipped MLP"] = shipped
    rows = {name: _evaluate(training, which, threads) for name, which in compared.items()}
    walks = {name: _walk(training, compared[name]) for name in ("untrained", "trained")}
    trained = rows["trained"]
    title = f"{training.policy} on {training.task}, {training.world.target_speed:g} m/s"
    body = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p><span class=big>{trained.return_mean:.3f}</span> mean return of {trained.episodes} held-out episodes "
        f"after {progress[-1]['rollouts']:.0f} rollouts, with {policy.space.size} weights.</p>",
        _table(rows),
        "<h2>Learning</h2>",
        svg_of(_learning_figure(progress)),
        "<h2>Footfalls, shaded by pressure</h2>",
        svg_of(_footfall_figure(walks)),
    ]
    if isinstance(policy, NCAPPolicy):
        body += [
            "<h2>Half-centres of the rhythm generator, trained</h2>",
            svg_of(_neuron_figure(policy, walks["trained"])),
        ]
        body += ["<h2>Weights before and after</h2>", svg_of(circuit_weights(policy, theta))]
    write_page(out, f"ncap: {title}", body)


def _evaluate(training: AnyTraining, which: str, threads: int) -> Evaluation:
    controller, parameters = find_controller(which, training.task, EPISODES)
    return evaluate(training.world, which, parameters, controller, range(EPISODES), threads)


def _walk(training: AnyTraining, which: str) -> Walk:
    controller, _ = find_controller(which, training.task, 1)
    has_neurons = bool(controller.signals(controller.reset([0])))
    record = ("foot_force", "neurons") if has_neurons else ("foot_force",)
    episode = rollout(training.world, controller, [0], record=record)
    first, last = (round(seconds / training.world.control_dt) for seconds in WINDOW)
    part = slice(first, last)
    return Walk(
        time=np.arange(last - first, dtype=np.float64) * training.world.control_dt,
        foot_force=np.nan_to_num(episode.signals["foot_force"][0, part]),
        neurons=np.nan_to_num(episode.signals["neurons"][0, part]) if has_neurons else None,
    )


def _table(rows: dict[str, Evaluation]) -> str:
    head = ("", "return", "falls", "speed (m/s)", "cost of transport", "gait", "Hz", "regularity R")
    cells = [
        (
            name,
            f"{row.return_mean:.3f}",
            f"{row.falls} of {row.episodes}",
            f"{row.speed_mean:.2f}",
            "–" if row.cost_of_transport is None else f"{row.cost_of_transport:.2f}",
            row.gait.label,
            f"{row.gait.frequency_hz:.1f}",
            f"{row.gait.concentration:.2f}",
        )
        for name, row in rows.items()
    ]
    return html_table(head, cells)


def _learning_figure(progress: list[dict[str, float]]) -> Figure:
    fig, named = plots.figure(["curve"], size=(9, 3.2), heights=(1,))
    axes, rollouts = named["curve"], [row["rollouts"] for row in progress]
    column, label = next(pair for pair in _PLAYED.items() if pair[0] in progress[0])
    axes.plot(rollouts, [row[column] for row in progress], color="#BBBBBB", label=label)
    axes.plot(rollouts, [row["test_return"] for row in progress], color=plots.LEG_COLOURS[0], label="test episodes")
    axes.axhline(0.5, color="#999999", linestyle=":", linewidth=1)
    axes.text(rollouts[-1], 0.505, "standing still", ha="right", va="bottom", fontsize=8, color="#777777")
    axes.set(xlabel="rollouts (episodes of 15 s)", ylabel="return", ylim=(0, 1.02), xlim=(0, max(1, rollouts[-1])))
    axes.legend(frameon=False, loc="lower right")
    return fig


def _footfall_figure(walks: dict[str, Walk]) -> Figure:
    fig, named = plots.figure(list(walks), size=(9, 3.6), heights=(1,) * len(walks))
    for name, walk in walks.items():
        plots.pressure_strips(named[name], walk.time, walk.foot_force, STANCE_FORCE)
        named[name].set_title(name)
    named[name].set_xlabel("time (s)")
    return fig


def _neuron_figure(policy: NCAPPolicy, walk: Walk) -> Figure:
    fig, named = plots.figure(list(LEGS), size=(9, 4.2), heights=(1,) * 4)
    assert walk.neurons is not None
    for leg in LEGS:
        for name, colour in zip(HALF_CENTRES, (plots.LEG_COLOURS[2], plots.LEG_COLOURS[0]), strict=True):
            column = policy.circuit.neurons.index(f"{name}.{leg}")
            named[leg].plot(walk.time, walk.neurons[:, column], color=colour, label=name)
        named[leg].set(ylabel=leg, ylim=(-0.05, 1.05), yticks=(0, 1), xlim=(0, walk.time[-1]))
        if leg != LEGS[-1]:
            named[leg].set_xticklabels([])
    named[LEGS[0]].legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    named[LEGS[-1]].set_xlabel("time (s)")
    return fig
