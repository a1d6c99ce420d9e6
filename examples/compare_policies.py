"""Compare two policies on the same episodes, and keep a replay of each.

Run it with `python examples/compare_policies.py untrained ncap-flat-walk`; names are those of `ncap evaluate`.
"""

from pathlib import Path
from typing import Annotated

import tyro

import ncap


def main(
    policies: Annotated[tuple[str, str], tyro.conf.Positional] = ("untrained", "ncap-flat-walk"),
    task: str = "flat-walk",
    episodes: int = 5,
    out: Path = Path("compared"),
) -> None:
    """Print return, speed, cost and gait of both, and write a page for each to look at side by side."""
    for name in policies:
        policy = ncap.load(name)
        result = ncap.evaluate(policy, task, range(episodes), threads=2)
        cost = "–" if result.cost_of_transport is None else f"{result.cost_of_transport:.2f}"
        print(
            f"{name}: {policy.parameters} weights, return {result.return_mean:.3f}, {result.falls} falls, "
            f"{result.speed_mean:.2f} m/s, cost of transport {cost}, {result.gait.label}"
        )
        page = out / f"{Path(name).name}.html"
        ncap.write_replay(ncap.record(policy, task, seed=0), page)
        print(f"replay: {page}")


if __name__ == "__main__":
    tyro.cli(main)
