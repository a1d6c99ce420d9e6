"""Commands that train and measure policies."""

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import tyro

from ncap.cli.app import Json, app
from ncap.errors import UserError
from ncap.terminal import print_json, print_table, status_line, training_report


@app.command
def train(
    task: Annotated[str, tyro.conf.Positional] = "flat-walk",
    algorithm: str = "evolution",
    policy: str | None = None,
    preset: str = "default",
    command: float | None = None,
    target_speed: float | None = None,
    start: str | None = None,
    contact: str = "default",
    seed: int = 0,
    epochs: int = 60,
    population: int | None = None,
    episodes: int | None = None,
    training_seconds: float | None = None,
    sigma: float | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    threads: int = 2,
    cluster: str | None = None,
    json: Json = False,
) -> None:
    """Train a policy on a task. Ctrl-C, or even kill -9, loses nothing: go on with --resume.

    Examples: `ncap train flat-walk`, `ncap train bumpy-run --seed 3 --out runs/mine`, `ncap train --resume runs/mine`,
    `ncap train flat-walk --algorithm ppo --policy mlp:64x64`,
    `ncap train flat-run --start ncap-flat-run --target-speed 1.5`.

    Args:
        task: flat-walk, flat-run, bumpy-walk or bumpy-run.
        algorithm: evolution, ppo or d4pg.
        policy: ncap, mlp, or mlp:64x64 with the sizes of its hidden layers; by default ncap, or mlp for ppo and d4pg.
        preset: Settings of evolution: default (CMA-ES for ncap, ARS for an MLP), ars, paper or released.
        command: Brainstem command in [0, 1]; by default the task's.
        target_speed: Speed in m/s that evolution rewards; by default the task's.
        start: A trained circuit whose weights evolution begins with: a shipped one, a run or a file; by default the
            untrained one.
        contact: Contact preset: default, elliptic or released.
        seed: Seed of the run. The same seed gives the same weights, bit for bit.
        epochs: Epochs in all: of 16 episodes for ppo and d4pg, of population times episodes for evolution.
        population: Candidates in an epoch of evolution; by default the preset's.
        episodes: Training episodes that each candidate of evolution plays in an epoch; by default 3 with CMA-ES, 1 with
            ARS. More make a steadier policy.
        training_seconds: Length of these episodes; by default 5 with CMA-ES, 15 with ARS. Tests always take 15 s.
        sigma: Size of evolution's mutations, with CMA-ES of the first ones; by default the preset's.
        out: Run directory; by default runs/TASK-POLICY-SEED, with the algorithm before the policy unless evolution, and
            with an unusual command or target speed before the seed.
        resume: Go on with this run; its own settings are used.
        threads: Simulation threads; they do not change the result.
        cluster: Play evolution's episodes on a Ray cluster: local, or an address. The result is the same, bit for bit.
        json: Print a JSON summary at the end.

    """
    from ncap.learn.executors import Executor, LocalExecutor, RayExecutor
    from ncap.learn.reinforcement import Reinforcement
    from ncap.learn.start import AnyTraining, go_on, read_training, run_name
    from ncap.learn.train import Training
    from ncap.policies.storage import load_policy
    from ncap.runs import Run

    training: AnyTraining
    if resume is not None:
        training = read_training(resume)
        run = Run.open(resume)
        saved, complaints = run.latest()
        for complaint in complaints:
            print(f"ncap: {complaint}; the checkpoint before it is used", file=sys.stderr)
    else:
        if algorithm == "evolution":
            policy = policy or "ncap"
            training = Training(
                task=task,
                policy=policy,
                preset=preset,
                command=command,
                target_speed=target_speed,
                start=start,
                contact=contact,
                seed=seed,
                epochs=epochs,
                population=population,
                episodes=episodes,
                training_seconds=training_seconds,
                sigma=sigma,
            )
            training.initial_weights()  # a wrong start is refused before there is a folder
        else:
            policy = policy or "mlp"
            training = Reinforcement(
                task=task,
                algorithm=algorithm,
                policy=policy,
                command=command,
                contact=contact,
                seed=seed,
                epochs=epochs,
            )
            asked = {
                "--preset": preset != "default",
                "--target-speed": target_speed is not None,
                "--start": start is not None,
                "--population": population is not None,
                "--episodes": episodes is not None,
                "--training-seconds": training_seconds is not None,
                "--sigma": sigma is not None,
            }
            if any(asked.values()):
                wrong = ", ".join(name for name, given in asked.items() if given)
                raise UserError(f"{wrong}: a setting of evolution, not of {algorithm}")
            if cluster:
                raise UserError(f"--cluster plays the episodes of evolution only, not of {algorithm}")
        run, saved = Run.create(out or Path("runs") / run_name(training), asdict(training)), None
    with run, training_report(training.epochs) as report:
        try:
            executor: Executor = RayExecutor(cluster) if cluster else LocalExecutor(threads)
            try:
                final = go_on(training, run, saved, executor, threads, report)
            finally:
                executor.close()
        except KeyboardInterrupt:
            print(f"\nstopped; nothing is lost. Go on with: ncap train --resume {run.folder}", file=sys.stderr)
            raise SystemExit(130) from None
    best = load_policy(run.folder / "best.safetensors")[2]
    if json:
        print_json(
            {
                "run": str(run.folder),
                "epochs": final.epoch,
                "rollouts": round(final.rollouts),
                "steps": final.steps,
                "best_return": best["final_return"],
                "best_epoch": best["epoch"],
                "parameters": training.initial_policy().space.size,
            }
        )
    else:
        print(f"best policy: after {best['epoch']} of {final.epoch} epochs, return {best['final_return']:.3f}")
        print(f"run: {run.folder}   (next: ncap evaluate {run.folder} --task {training.task})")


@app.command
def report(run: Annotated[Path, tyro.conf.Positional], out: Path | None = None, threads: int = 2) -> None:
    """Write one self-contained HTML page about a run: learning curve, footfalls, neurons, weights, gait numbers.

    Given the folder of a reproduction instead, the page has all its figures and tables.

    Args:
        run: A run directory, or what ncap reproduce has written.
        out: Page to write; by default report.html in that folder.
        threads: Simulation threads.

    """
    from ncap.experiments.overview import write_overview
    from ncap.experiments.report import write_report

    page = out or run / "report.html"
    if (run / "config.json").exists():
        write_report(run, page, threads)
    else:
        write_overview(run, page)
    print(f"report: {page}")


@app.command
def reproduce(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME …")] = ("all",),
    scale: str = "smoke",
    tasks: tuple[str, ...] = (),
    seeds: int | None = None,
    out: Path | None = None,
    threads: int = 2,
    cluster: str | None = None,
) -> None:
    """Redo figures of the paper: train what is missing, measure, draw. Finished parts are kept, so it can be stopped.

    Names: gaits, units, performance, footfalls, parameters, generalization, weights, variable-speed, algorithms; or
    all of them. Start it in several terminals with the same folder, and they share the work.

    Args:
        names: Experiments, by default all.
        scale: smoke (some minutes), laptop (two cores and a night), or paper (the paper's protocol).
        tasks: Only what is about these tasks; by default all four.
        seeds: Runs of each kind; by default the scale's. More can be added later in the same folder.
        out: Folder of results; by default out/reproduce-SCALE.
        threads: Simulation threads.
        cluster: Play training episodes on a Ray cluster: local, or an address.

    """
    from ncap.experiments.library import Library
    from ncap.experiments.reproduce import EXPERIMENTS, chosen, find_scale
    from ncap.learn.executors import Executor, LocalExecutor, RayExecutor
    from ncap.tasks import find_task

    settings = find_scale(scale)
    if tasks:
        settings = replace(settings, tasks=tuple(find_task(name).name for name in tasks))
    if seeds is not None:
        if seeds < 1:
            raise UserError(f"at least one seed is needed, not {seeds}")
        settings = replace(settings, seeds=seeds)
    todo = chosen(names, settings.tasks)
    folder = out or Path("out") / f"reproduce-{scale}"
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


@app.command
def params(json: Json = False) -> None:
    """Show how many weights each architecture has.

    Args:
        json: Print JSON.

    """
    from ncap.policies.mlp import MLPPolicy
    from ncap.policies.ncap import NCAPPolicy

    sizes = (4, 8, 16, 32, 64, 128, 256)
    counts = {
        "ncap, compact": NCAPPolicy(command=0.0).space.size,
        "ncap, overparameterised": NCAPPolicy(command=0.0, copies=8).space.size,
    } | {f"mlp:{size}x{size}": MLPPolicy(hidden=(size, size)).space.size for size in sizes}
    if json:
        print_json(counts)
    else:
        print_table(("architecture", "weights"), [(name, f"{count:,}") for name, count in counts.items()])


@app.command
def evaluate(
    policy: Annotated[str, tyro.conf.Positional],
    task: str = "flat-walk",
    episodes: int = 5,
    seed: int = 0,
    contact: str = "default",
    threads: int = 2,
    json: Json = False,
) -> None:
    """Measure a policy on a task: return, falls, speed, cost of transport, gait.

    Args:
        policy: zero, random, untrained, a shipped one such as ncap-flat-walk, a run directory (its best) or a file.
        task: flat-walk, flat-run, bumpy-walk or bumpy-run.
        episodes: Episodes of 15 s, each with its own friction, terrain and start.
        seed: The episodes' seeds count up from this one.
        contact: Contact preset: default, elliptic or released.
        threads: Simulation threads; they do not change the result.
        json: Print JSON.

    """
    import numpy as np

    from ncap.analysis import stats
    from ncap.experiments import evaluation
    from ncap.tasks import find_task

    if episodes < 1:
        raise UserError(f"at least one episode is needed, not {episodes}")
    seeds = range(seed, seed + episodes)
    controller, parameters = evaluation.find_controller(policy, task, len(seeds))
    found = evaluation.evaluate(
        replace(find_task(task), contact=contact), policy, parameters, controller, seeds, threads
    )
    if json:
        print_json(asdict(found))
        return
    gait = found.gait
    cost = "–" if found.cost_of_transport is None else f"{found.cost_of_transport:.2f}"
    rows = [
        ("mean return", f"{stats.estimate(np.array(found.returns))}, 95 % interval"),
        ("returns", f"{min(found.returns):.3f} … {max(found.returns):.3f}"),
        ("falls", f"{found.falls} of {found.episodes}"),
        ("speed", f"{found.speed_mean:.2f} m/s"),
        ("cost of transport", cost),
        ("gait", f"{gait.label}, {gait.frequency_hz:.1f} Hz, duty {gait.duty:.2f}, R {gait.concentration:.2f}"),
    ]
    print_table((f"{found.policy} on {found.task}", ""), rows)
