"""Cost of closed-loop episodes beside stepping the same models alone, and beside the authors' code.

`python -m benchmarks.engine --plot` only measures where the time of a control step goes and draws docs/step-time.png.
"""

import multiprocessing
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import mujoco.batch
import numpy as np

from benchmarks.deploy import resident_bytes
from benchmarks.stopwatch import timed
from ncap.bench import (
    AUTHORS,
    POPULATION,
    WALKING,
    best_of,
    bound,
    closed_loop_rate,
    engine_rate,
    rated_task,
)
from ncap.policies.mlp import MLPPolicy
from ncap.rollouts import Arena
from ncap.sim.simulation import Simulation

REPETITIONS = 3
STEPS = {16: 60, POPULATION: 30, 256: 8}
"""Control steps of one measure, by population."""
SHARES = {"paper": 0.95, "fast": 0.85}
"""Targets of the closed loop over the raw engine, by physics preset."""
MEMORY = {"flat": 2, "bumpy": 4}
"""Targets of the memory of an individual, MB, by ground."""
MANY = 2048
COLOURS = {
    "physics": "#BBBBBB",
    "circuit": "#0072B2",
    "observation": "#56B4E9",
    "measuring and rewards": "#D55E00",
    "rest": "#E69F00",
}
"""Colours of the parts of a control step in the picture."""
PARTS = tuple(COLOURS)
PICTURE = Path(__file__).parents[1] / "docs" / "step-time.png"


def main() -> None:
    print_rates()
    print_shares()
    print_populations()
    print_memory()
    print_parts({physics: parts(physics) for physics in SHARES})


def print_rates() -> None:
    print(f"control steps per CPU-second, one thread, {POPULATION} individuals, best of {REPETITIONS} in turns")
    print("(target with fast physics: 50 times the authors' rate on the plane and 40 times on bumps)")
    print("  ground physics contact       raw   with NCAP   times the authors'")
    presets = (("paper", "default"), ("paper", "elliptic"), ("paper", "released"), ("fast", "default"))
    for ground in AUTHORS:
        for physics, contact in presets:
            task = replace(rated_task(ground), physics=physics, contact=contact)
            rate = engine_rate(task, WALKING, POPULATION, steps=STEPS[POPULATION], repetitions=REPETITIONS)
            print(
                f"  {ground:<6} {physics:<7} {contact:<9} {rate.raw:7.0f} {rate.closed:11.0f}"
                f" {rate.closed / AUTHORS[ground]:20.1f}",
                flush=True,
            )


def print_shares() -> None:
    print("closed loop over raw engine on the plane")
    for physics, target in SHARES.items():
        task = replace(rated_task("flat"), physics=physics)
        shares = {
            individuals: engine_rate(task, WALKING, individuals, steps=steps, repetitions=REPETITIONS).share
            for individuals, steps in STEPS.items()
        }
        found = "   ".join(f"{share:.2f} at {individuals}" for individuals, share in shares.items())
        print(f"  NCAP, {physics + ' physics:':<14} {found}   (target {target})", flush=True)
    mlp = engine_rate(
        rated_task("flat"), MLPPolicy(), POPULATION, steps=STEPS[POPULATION], repetitions=REPETITIONS
    ).share
    print(f"  MLP (256, 256), weights per individual, paper physics: {mlp:.2f} at {POPULATION}   (target 0.75)")


def print_populations() -> None:
    print("cost of a rollout against the population, paper physics (target: within 10 % from 16 to 1024)")
    task, sizes = rated_task("flat"), (16, 64, 256, 1024)
    rates = best_of(REPETITIONS, [partial(closed_loop_rate, task, WALKING, n, max(4, 2048 // n)) for n in sizes])
    for size, rate in zip(sizes, rates, strict=True):
        print(f"  population {size:<5} {rate:7.0f} steps per CPU-second   {rates[0] / rate:.2f} of the cost at 16")


def print_memory() -> None:
    """Print the memory of an individual on either ground, measured in a process each."""
    print(f"memory of {MANY} individuals, each in an episode of its own, MB per individual")
    for ground, target in MEMORY.items():
        with multiprocessing.get_context("spawn").Pool(1) as fresh:
            found = fresh.apply(memory_growth, (ground,))
        print(f"  {ground:<6} {found:.3f}   (target: at most {target})", flush=True)


def memory_growth(ground: str) -> float:
    """Growth of this process with many individuals, MB per individual. What all of them share is there before."""
    task, everybody = rated_task(f"{ground}_fast"), range(MANY)
    closed_loop_rate(task, WALKING, 1, 1)
    before = resident_bytes()
    arena, controller = Arena(task, MANY), bound(WALKING, MANY)
    arena.start(np.array(everybody), everybody)
    _, action = controller.act(controller.reset(everybody), arena.observation())
    arena.step(np.array(everybody), action)
    return (resident_bytes() - before) / MANY / 2**20


def parts(physics: str) -> dict[str, float]:
    """CPU µs per individual of every part of a control step on the plane, in the best of several measures."""
    task, steps = replace(rated_task("flat"), physics=physics), STEPS[POPULATION]
    controller = type(bound(WALKING, 1))
    found = []
    for _ in range(REPETITIONS):
        with (
            timed(mujoco.batch.Batch, "step") as physics_calls,
            timed(Simulation, "step") as moving,
            timed(Arena, "step") as playing,
            timed(Arena, "observation") as observing,
            timed(controller, "act") as acting,
        ):
            whole = 1e6 / closed_loop_rate(task, WALKING, POPULATION, steps)
        stepping, moved, played, observed, acted = (
            1e6 * sum(calls) / POPULATION / steps for calls in (physics_calls, moving, playing, observing, acting)
        )
        split = (stepping, acted, observed, played - moved, whole - stepping - acted - observed - (played - moved))
        found.append(dict(zip(PARTS, split, strict=True)))
    return min(found, key=lambda split: sum(split.values()))


def print_parts(found: dict[str, dict[str, float]]) -> None:
    print(f"a control step at population {POPULATION} on the plane, CPU µs per individual")
    print(f"  {'':<22}" + "".join(f"{physics:>8} {'share':>6}" for physics in found))
    for part in PARTS:
        cells = (f"{split[part]:8.1f} {split[part] / sum(split.values()):6.3f}" for split in found.values())
        print(f"  {part:<22}" + "".join(cells))
    print(f"  {'all':<22}" + "".join(f"{sum(split.values()):8.1f} {1:6.3f}" for split in found.values()))


def draw(found: dict[str, dict[str, float]]) -> None:
    """Draw the parts of a control step as stacked bars, and again without the physics, whose bar dwarfs the others."""
    from ncap.analysis.plots import figure, save, styled

    @styled
    def picture() -> None:
        fig, axes = figure(["whole", "beside"], (7.5, 4.2), (1, 1))
        for panel, shown in ((axes["whole"], PARTS), (axes["beside"], PARTS[1:])):
            lefts, rows = np.zeros(len(found)), range(len(found))
            widest = max(sum(split[part] for part in shown) for split in found.values())
            for part in shown:
                widths = np.array([split[part] for split in found.values()])
                bars = panel.barh(rows, widths, left=lefts, color=COLOURS[part], label=part)
                labels = [f"{width:.1f}" if width > 0.04 * widest else "" for width in widths]
                panel.bar_label(bars, labels, label_type="center", color="white" if part == "circuit" else "black")
                lefts += widths
            panel.bar_label(bars, [f"{left:.0f} in all" for left in lefts], padding=4)
            panel.set_yticks(rows, [f"{physics} physics" for physics in found])
            panel.invert_yaxis()
            panel.margins(x=0.12)
            panel.tick_params(axis="y", length=0)
            panel.set_xlabel("CPU µs per individual")
        axes["whole"].set_title(f"A control step of 30 ms on the plane, {POPULATION} individuals")
        axes["beside"].set_title("The same without the physics")
        fig.legend(
            *axes["whole"].get_legend_handles_labels(), loc="outside lower center", ncols=len(PARTS), frameon=False
        )
        save(fig, PICTURE)

    picture()
    print(f"wrote docs/{PICTURE.name}")


if __name__ == "__main__":
    if "--plot" in sys.argv[1:]:
        measured = {physics: parts(physics) for physics in SHARES}
        print_parts(measured)
        draw(measured)
    else:
        main()
