"""Compare two policies on the same episodes, and keep a replay of each.

Run it with `python examples/compare_policies.py untrained ncap-flat-walk`; names are those of `ncap evaluate`.
"""

from pathlib import Path
from typing import Annotated

import tyro

from ncap.experiments.evaluation import evaluate, find_controller
from ncap.recording import record
from ncap.tasks import find_task
from ncap.view.replay import write_replay


def main(
    policies: Annotated[tuple[str, str], tyro.conf.Positional] = ("untrained", "ncap-flat-walk"),
    task: str = "flat-walk",
    episodes: int = 5,
    out: Path = Path("compared"),
) -> None:
    """Print return, speed, cost and gait of both, and write a page for each to look at side by side."""
    found = find_task(task)
    for name in policies:
        controller, parameters = find_controller(name, task, episodes)
        result = evaluate(found, name, parameters, controller, range(episodes), 2)
        cost = "–" if result.cost_of_transport is None else f"{result.cost_of_transport:.2f}"
        print(
            f"{name}: {parameters} weights, return {result.return_mean:.3f}, {result.falls} falls, "
            f"{result.speed_mean:.2f} m/s, cost of transport {cost}, {result.gait.label}"
        )
        page = out / f"{Path(name).name}.html"
        write_replay(record(found, find_controller(name, task, 1)[0], 0, f"{name} on {task}"), page)
        print(f"replay: {page}")


if __name__ == "__main__":
    tyro.cli(main)
