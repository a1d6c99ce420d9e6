"""Performance and data efficiency (figure 3 of the paper): circuits and MLPs on the four tasks, seed after seed.

Two tables hold everything that the figures need: the learning curves (performance.csv) and what was measured on
held-out episodes (final.csv). They are written anew after every seed, so that a computation that is stopped leaves what
it has, and what stands in them is not done again, whoever did it. The trained policies are kept beside them, those of
large networks for the best seed only.
"""

from pathlib import Path
from typing import Final

from ncap.experiments.curves import read_curve
from ncap.experiments.library import Library, Scale
from ncap.experiments.performance_figures import draw
from ncap.files import write_whole
from ncap.learn.settings import Training
from ncap.report.tables import merge_table, read_table
from ncap.trained import load

CURVES: Final = "performance.csv"
FINAL: Final = "final.csv"
RUN: Final = ("task", "policy", "seed")
"""Columns that name a run in both tables."""
POLICIES: Final = "policies"
"""Folder of the trained policies."""
LARGE: Final = 100_000
"""Bytes from which on a policy is kept for the best seed of its task only."""
WALKS: Final = ("flat-walk", "bumpy-walk")
"""The tasks on which algorithms of reinforcement learning are compared: D4PG takes long."""


def trainings(scale: Scale) -> dict[tuple[str, str, int], Training]:
    """All runs of the experiment by task, policy and seed: the first seed of everything, then the second, and so on."""
    wanted = {
        (task, policy, training.seed): training
        for policy in scale.contenders
        for task in scale.tasks
        if task in WALKS or policy not in ("mlp-d4pg", "ncap-ppo")
        for training in scale.trainings(task, policy)
    }
    return dict(sorted(wanted.items(), key=lambda item: item[0][2]))


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train what is missing, then write the tables and draw the figures."""
    train_and_tabulate(library, scale, out)
    draw(out)


def train_and_tabulate(library: Library, scale: Scale, out: Path) -> None:
    """Train what is not in the tables, one seed of every policy and task after the other, and write them after each."""
    done, everything = _tabulated(out, scale.episodes), trainings(scale)
    for training in everything.values():
        library.finished(training)  # one of other settings is refused now, whether it is done or not
    wanted = {key: training for key, training in everything.items() if key not in done}
    for seed in sorted({key[2] for key in wanted}):
        library.train([training for key, training in wanted.items() if key[2] == seed])
        tabulate(library, scale, out)


def _tabulated(out: Path, episodes: int) -> set[tuple[str, str, int]]:
    """Task, policy and seed of the runs in a folder's tables that were measured in as many episodes."""
    rows = read_table(out / FINAL) if (out / FINAL).exists() else []
    return {(row["task"], row["policy"], int(row["seed"])) for row in rows if int(row["episodes"]) == episodes}


def tabulate(library: Library, scale: Scale, out: Path) -> None:
    """Write the tables of all finished runs. Rows of runs that are not in the library stay."""
    curves: list[dict[str, object]] = []
    final: list[dict[str, object]] = []
    for (task, policy, seed), training in trainings(scale).items():
        if not library.finished(training):
            continue
        run = {"task": task, "policy": policy, "seed": seed}
        curve = read_curve(library.place(training))
        points = zip(curve.steps, curve.cpu_seconds, curve.returns, strict=True)
        curves += [
            run | {"steps": int(steps), "cpu_seconds": round(float(seconds), 3), "test_return": float(found)}
            for steps, seconds, found in points
        ]
        best = library.place(training) / "best.safetensors"
        kept = kept_policy(out, task, policy, seed)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, best.read_bytes())
        held_out = library.evaluation(str(library.place(training)), training.world, scale.episodes)
        final.append(
            run
            | {
                "episodes": held_out.episodes,
                "return_mean": held_out.return_mean,
                "falls": held_out.falls,
                "gait": held_out.walk.label,
                "gait_share": held_out.walk.share,
                "regular_share": held_out.walk.regular_share,
                "rhythm_ratio": held_out.walk.rhythm_ratio,
                "cost_of_transport": held_out.cost_of_transport,
                "speed_mean": held_out.speed_mean,
            }
        )
    for name, rows in ((CURVES, curves), (FINAL, final)):
        merge_table(out / name, rows, RUN)
    _drop_large(out)


def kept_policy(out: Path, task: str, policy: str, seed: int) -> Path:
    """Where the trained policy of a run is kept."""
    return out / POLICIES / f"{task}-{policy}-{seed}.safetensors"


def player(library: Library, training: Training, policy: str, out: Path) -> str:
    """The file of a trained policy that is kept in a folder of results; otherwise its run, trained if need be."""
    kept = kept_policy(out, training.task, policy, training.seed)
    if kept.exists() and load(kept).robot == training.world.robot.name:
        return str(kept)
    return str(library.train([training])[0])


def _drop_large(out: Path) -> None:
    """Remove large policies that are not the best of their task."""
    ranked: dict[tuple[str, str], list[tuple[float, Path]]] = {}
    for row in read_table(out / FINAL):
        kept = kept_policy(out, row["task"], row["policy"], int(row["seed"]))
        if kept.exists() and kept.stat().st_size >= LARGE:
            ranked.setdefault((row["task"], row["policy"]), []).append((float(row["return_mean"]), kept))
    for found in ranked.values():
        for _, kept in sorted(found)[:-1]:
            kept.unlink()
