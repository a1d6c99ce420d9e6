"""What the shipped policies of the paper's tasks do, and the untrained circuit, on episodes that no choice has seen."""

from pathlib import Path
from typing import Final

from ncap.evaluation import Evaluation
from ncap.experiments.library import Library, Scale
from ncap.report.tables import merge_table
from ncap.tasks import TASKS
from ncap.trained import load, shipped_policies

UNTRAINED: Final = "untrained"
FIRST: Final = 5000
"""Seed of the first episode: training, tests and choices use others."""
TABLE: Final = "shipped.csv"
ROW: Final = ("task", "policy")
"""Columns that name a row."""


def run(library: Library, scale: Scale, out: Path) -> None:
    """Measure what the folder of evaluations does not have yet, and write the table after every policy."""
    trained_for = {name: str(load(name).about.get("task")) for name in shipped_policies()}
    for task in scale.tasks:
        for policy in (UNTRAINED, *(name for name, theirs in trained_for.items() if theirs == task)):
            if load(policy).about.get("robot", TASKS[task].robot.name) != TASKS[task].robot.name:
                continue  # of another robot
            found = library.evaluation(policy, TASKS[task], scale.episodes, first=FIRST)
            merge_table(out / TABLE, [{"task": task, "policy": policy} | cells(found)], ROW)


def cells(found: Evaluation) -> dict[str, object]:
    """Cells of a row: what `ncap evaluate` reports of a policy with legs."""
    gait = found.walk
    row: dict[str, object] = {"weights": found.parameters, "episodes": found.episodes, "return": found.return_mean}
    row |= dict(zip(("low", "high"), found.return_interval, strict=True))
    row |= {"falls": found.falls, "speed": found.speed_mean, "cost_of_transport": found.cost_of_transport}
    row |= {"gait": gait.label, "gait_share": gait.share, "commanded": gait.commanded}
    row |= {"commanded_share": gait.commanded_share, "regular_share": gait.regular_share}
    row |= {"concentration": gait.concentration, "rhythm_ratio": gait.rhythm_ratio, "duty": gait.duty}
    row |= {"touchdowns_per_stride": gait.touchdowns_per_stride, "roll_deg": found.roll_rms_deg}
    return row | {"pitch_deg": found.pitch_rms_deg, "action_rate": found.action_rate, "smoothness": found.smoothness}
