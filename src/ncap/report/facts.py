"""What a page about a run says of itself: where it comes from, and what its words mean."""

import html
import shlex
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from ncap import __version__
from ncap.errors import UserError
from ncap.evaluation import GAIT_FROM, STANCE_FORCE
from ncap.files import read_json
from ncap.learn.settings import Training
from ncap.report.page import html_table
from ncap.rewards import SPEED
from ncap.tasks import Task

_UNTOLD: Final = ("task", "circuit", "start")
"""Settings that a command names otherwise, or by files that may be gone."""


def training_command(training: Training) -> str:
    """The command that trains alike: every setting that is not the default of its task."""
    plain = Training(task=training.task)
    alike = replace(plain, algorithm=training.algorithm)
    usual = replace(alike, policy=training.policy).filled()
    usual = replace(usual, algorithm=plain.algorithm, policy=alike.filled().policy)
    words = ["ncap", "train", training.task]
    for field in fields(Training):
        value = getattr(training, field.name)
        always = field.name == "seed"
        told = field.name not in _UNTOLD and (always or value != getattr(usual, field.name))
        if told and value is not None:
            words += [f"--{field.name.replace('_', '-')}", *map(str, value if isinstance(value, tuple) else (value,))]
    return shlex.join(words)


def origin(run: Path, training: Training, episodes: int) -> str:
    """A table of where a page about a run comes from: commands, seed, versions, dates."""
    try:
        made = read_json(run / "provenance.json")
    except UserError:  # a run of which it was lost is still a run
        made = {}
    packages = made.get("packages") if isinstance(made.get("packages"), dict) else {}
    versions = [f"{name} {version}" for name, version in packages.items() if version]
    rows = [
        ("trained with", training_command(training)),
        ("seed", str(training.seed)),
        ("begun", _said(made, "started")),
        ("by", f"ncap {_said(made, 'ncap')}, commit {_said(made, 'commit')}"),
        ("with", ", ".join([f"Python {_said(made, 'python')}", *versions])),
        ("evaluated", f"episodes of seeds 0 to {episodes - 1}, none of which the training has seen"),
        ("this page", f"ncap report {shlex.quote(str(run))}, ncap {__version__}, {time.strftime('%Y-%m-%d')}"),
    ]
    return '<div class="facts">' + html_table(("", ""), rows) + "</div>"


def _said(made: dict[str, Any], name: str) -> str:
    value = made.get(name)
    return value if isinstance(value, str) and value else "unknown"


def definitions(task: Task) -> str:
    """What the columns of the table mean."""
    entries = [
        ("return", f"the reward of a whole episode over that of a perfect one: 1 is the best; {_reward(task)}."),
        ("cost of transport", "mean power of all motors over weight times speed: less is better."),
    ]
    if task.robot.feet:
        entries += [
            ("falls", f"episodes with a trunk that tilted by more than {task.fall_deg:g}° or met the ground."),
            (
                "gait",
                f"the order in which feet touch the ground (more than {STANCE_FORCE:g} N) after {GAIT_FROM:g} s, and "
                "the share of episodes that have it. Hz: strides in a second.",
            ),
            ("regular in", "episodes in which R of the least regular pair of legs is at least 0.8."),
            ("R", "how well two legs keep their phase: 1 always the same, 0 any."),
            ("commanded gait in", "episodes whose feet do what the circuit alone does at this command."),
        ]
    return _list([*entries, ("untrained, zero", "the same circuit before training, and a robot that holds still.")])


def _reward(task: Task) -> str:
    if SPEED in task.rewards:
        slow, fast = task.target_speed, 2 * task.target_speed
        return f"a step has all of it from {slow:g} to {fast:g} m/s, half of it for standing still, less for turning"
    return f"its terms are {', '.join(term.name for term in task.rewards)}"


def _list(entries: Sequence[tuple[str, str]]) -> str:
    lines = (f"<dt>{html.escape(word)}</dt><dd>{html.escape(text)}</dd>" for word, text in entries)
    return f"<dl>{''.join(lines)}</dl>"
