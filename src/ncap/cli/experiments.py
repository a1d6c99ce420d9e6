"""Commands that measure lesions, write reports and redo the figures of the paper."""

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Final

import tyro

from ncap.cli.app import Episodes, Json, OutFigure, OutFile, OutFolder, Seed, Threads, Words, app, count_of
from ncap.cli.choice import BodyWords, Brain, chosen
from ncap.cli.terminal import names_in, numbers_in, print_json, print_table, progress_bar, status_line
from ncap.errors import UserError, unknown_name

MOST_SEEDS: Final = 1000
"""Runs of each kind in a reproduction."""


@app.command
def lesion(
    policy: Annotated[str, tyro.conf.Positional],
    without: Words,
    body: BodyWords,
    commands: Annotated[tuple[str, ...], tyro.conf.arg(metavar="C … | FROM:TO:STEP")] = (),
    episodes: Episodes = 10,
    seed: Seed = 0,
    circuit: str | None = None,
    threads: Threads = 2,
    out: OutFigure | None = None,
    json: Json = False,
) -> None:
    """Measure how a policy walks with its whole circuit and after each knock-out: gait, speed, falls, return.

    Examples: `ncap lesion ncap-flat-walk --without V0 V0v V3`,
    `ncap lesion ncap-flat-speeds --without V0v V3 --commands 0.1 0.45 0.9 --out lesion.svg`.

    Args:
        policy: untrained, a shipped one such as ncap-flat-walk, a run directory (its best) or a file.
        without: Lesions, each measured by itself: pathways (V0, V0d, V0v, V3, diagonal, homolateral, afferents),
            populations, single neurons (flexor.FL) or synapses ("cross_V0d>flexor cross").
        body: The task and the robot.
        commands: Brainstem commands in [0, 1], single ones or a range with both ends; by default the policy's own.
        episodes: Episodes of every row, each with its own friction, terrain and start.
        seed: The episodes' seeds count up from this one.
        circuit: Another circuit table: default, released, or a file that `ncap circuit --save` wrote.
        threads: Simulation threads; they do not change the result.
        out: Figure to write (png, svg, pdf). Default: lesion.png, or none with --json.
        json: Print JSON instead of the table.

    """
    from ncap.lesions import LesionRow, draw_lesions
    from ncap.lesions import lesion as measure

    trained, task = chosen(policy, Brain(circuit=circuit), body)
    names, said = names_in(without), numbers_in(commands) if commands else []
    if not names:
        raise UserError("at least one lesion is needed, such as --without V0")
    seeds = range(seed, seed + episodes)
    with progress_bar() as progress:
        line = progress.add_task("lesions", total=(1 + len(dict.fromkeys(names))) * max(1, len(said)))

        def report(row: LesionRow) -> None:
            progress.advance(line)

        rows = measure(trained, task, names, said, seeds, threads=threads, report=report)
    figure = out or (None if json else Path("lesion.png"))
    if figure:
        draw_lesions(rows, figure, f"{policy} on {task.name}, {episodes} episodes")
    if json:
        print_json({"policy": policy, "task": task.name, "rows": [asdict(row) for row in rows]})
        return
    print_table(
        ("without", "c", "gait", "share", "left–right", "speed", "falls", "return"),
        [
            (
                row.without or "(intact)",
                f"{row.command:g}",
                row.gait or "no feet",
                "–" if row.gait_share is None else f"{row.gait_share:.0%}",
                "–" if row.left_right_phase is None else "{:.2f} {:.2f}".format(*row.left_right_phase),
                f"{row.speed_mean:.2f}",
                f"{row.falls} of {row.episodes}",
                f"{row.return_mean:.3f}",
            )
            for row in rows
        ],
    )
    print(f"figure: {figure}")


@app.command
def report(run: Annotated[Path, tyro.conf.Positional], out: OutFile | None = None, threads: Threads = 2) -> None:
    """Write one self-contained HTML page about a run: learning curve, footfalls, neurons, weights, gait numbers.

    Given the folder of a reproduction instead, the page has all its figures and tables.

    Args:
        run: A run directory, or what ncap reproduce has written.
        out: Page to write; by default report.html in that folder.
        threads: Simulation threads.

    """
    from ncap.report import write_overview, write_report

    page = out or run / "report.html"
    if (run / "config.json").exists():
        with progress_bar() as progress:
            line = progress.add_task("reading", total=None)
            write_report(
                run,
                page,
                threads,
                lambda what, done, parts: progress.update(line, description=what, completed=done, total=parts),
            )
    else:
        write_overview(run, page)
    print(f"report: {page}")


@app.command
def reproduce(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME …")] = ("all",),
    scale: str = "smoke",
    tasks: tuple[str, ...] = (),
    robot: str | None = None,
    seeds: Annotated[int, count_of("seed", MOST_SEEDS)] | None = None,
    policies: tuple[str, ...] = (),
    out: OutFolder | None = None,
    draw: bool = False,
    threads: Threads = 2,
    cluster: str | None = None,
) -> None:
    """Redo figures of the paper: train what is missing, measure, draw. Finished parts are kept, so it can be stopped.

    Names: gaits, units, performance, footfalls, parameters, generalization, weights, variable-speed, algorithms; or
    all of these. More are done only when they are named: leading, evolution, mlp-evolution and physics compare ways of
    training, driving, posture and righting go beyond the paper, bodies measures poses and gains of robots, transfer
    trains weights of one robot on another, walks trains Go1 and Go2 on plane and bumps, gains trains a Go2 whose gains
    are not known, swimmer trains Swimmer NCAP and MLPs, shipped measures the shipped policies, deployment flies
    policies on a twin of the robot. Start it in several terminals with the same folder, and they share the work.

    Args:
        names: Experiments, by default all.
        scale: smoke (two minutes), laptop (two cores and a night), full (two cores and some days: enough seeds), or
            paper (the paper's protocol).
        tasks: Only what is about these tasks; by default all four.
        robot: Train and measure on another robot: a1, go1, go2, or a data sheet (.json). Not every experiment can.
        seeds: Runs of each kind; by default the scale's. More can be added later in the same folder.
        policies: Only these in performance, footfalls, generalization and deployment: ncap, ncap-paper, mlp-evolution,
            mlp-ppo, mlp-d4pg; by default all.
        out: Folder of results; by default out/reproduce-SCALE, with the robot behind it.
        draw: Only draw figures anew, from the tables in the folder.
        threads: Simulation threads.
        cluster: Play training episodes on a Ray cluster: local, or an address.

    """
    from ncap.experiments.library import CONTENDERS, Library
    from ncap.experiments.reproduce import EXPERIMENTS, chosen, find_scale, redraw
    from ncap.learn.executors import Executor, LocalExecutor, RayExecutor
    from ncap.sim.robot import find_robot
    from ncap.tasks import find_task

    settings = find_scale(scale)
    if tasks:
        settings = replace(settings, tasks=tuple(find_task(name).name for name in tasks))
    if seeds is not None:
        settings = replace(settings, seeds=seeds, runs={})
    if policies:
        for policy in policies:
            if policy not in CONTENDERS:
                raise unknown_name("policy", policy, CONTENDERS)
        settings = replace(settings, contenders=policies)
    if robot is not None:
        find_robot(robot)  # a wrong name is said now, not after hours
        settings = replace(settings, robot=robot)
    folder = out or Path("out") / "-".join(["reproduce", scale, *([Path(robot).stem] if robot else [])])
    if draw:
        print(f"drawn: {', '.join(redraw(names, folder))} in {folder}")
        return
    todo = chosen(names, settings.tasks, robot)
    executor: Executor = RayExecutor(cluster) if cluster else LocalExecutor(threads)
    with status_line() as say:
        library = Library(folder, executor, threads, say)
        try:
            for name in todo:
                say(name)
                EXPERIMENTS[name].run(library, settings, folder)
                print(f"{name}: {folder}")
        except KeyboardInterrupt:
            print(f"stopped; the same command goes on from {folder}", file=sys.stderr)
            raise SystemExit(130) from None
        finally:
            executor.close()
