"""The command line. Every command is a thin function: it checks words, calls the library, and shows the result.

Imports of anything heavy stand inside the commands, so that `ncap --help` answers at once.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.extras import SubcommandApp

from ncap.errors import UserError
from ncap.terminal import names_in, numbers_in, print_json, print_table, progress_bar, training_report

app = SubcommandApp()

Words = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME …")]


@app.command
def rhythm(
    preset: str = "default",
    commands: Annotated[tuple[str, ...], tyro.conf.arg(metavar="C … | FROM:TO:STEP")] = ("0:1:0.05",),
    states: int = 32,
    seed: int = 0,
    without: Words = (),
    ramp: bool = False,
    out: Path | None = None,
    json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Which gait the rhythm generator has at which brainstem command: a table and a figure.

    Examples: `ncap rhythm`, `ncap rhythm --without V0v --commands 0 0.5 1`, `ncap rhythm --ramp`.

    Args:
        preset: Numbers of the circuit: default or released.
        commands: Brainstem commands in [0, 1], single ones or a range with both ends.
        states: Random initial states for each command.
        seed: Seed of the initial states.
        without: Knock out populations or pathways: V0, V0d, V0v, V3, diagonal, homolateral, or a single population.
        ramp: Also report a slow ramp of the command up and down, with its hysteresis.
        out: Figure to write (png, svg, pdf). Default: rhythm.png, or none with --json.
        json: Print one JSON row per command instead of the table.

    """
    from ncap.circuits.rhythm import check_command, rhythm_dt, rhythm_spec
    from ncap.experiments import gaits

    chosen = [check_command(c) for c in numbers_in(commands)]
    spec, dt = rhythm_spec(preset, names_in(without)), rhythm_dt(preset)
    figure = out or (None if json else Path("rhythm.png"))
    measured = {}
    with progress_bar() as progress:
        for command in progress.track(chosen, description="commands"):
            measured[command] = gaits.measure_states(spec, command, states=states, seed=seed, dt=dt)
        ramps = None
        if ramp or figure:
            task = progress.add_task("ramp", total=None)
            ramps = gaits.sweep(spec, seconds=60.0, seed=seed, dt=dt)
            progress.update(task, total=1, completed=1)
    rows = [gaits.summarise(command, found) for command, found in measured.items()]
    if figure and ramps:
        title = f"Rhythm generator, preset {preset}" + (f", without {', '.join(names_in(without))}" if without else "")
        gaits.figure(measured, ramps, figure, title)
    if json:
        document: Any = [asdict(row) for row in rows]
        if ramp and ramps:
            document = {
                "rows": document,
                "ramp": {k: r.transitions() for k, r in zip(("up", "down"), ramps, strict=True)},
            }
        print_json(document)
        return
    print_table(
        ("c", "gait", "share", "Hz", "left–rt", "fore–hd", "diag", "duty", "R"),
        [
            (
                f"{row.command:.2f}",
                row.gait,
                f"{row.share:.0%}",
                f"{row.frequency_hz:.2f}",
                "{:.2f} {:.2f}".format(*row.left_right_phase),
                "{:.2f} {:.2f}".format(*row.fore_hind_phase),
                f"{row.diagonal_phase:.2f}",
                f"{row.duty:.2f}",
                f"{row.concentration:.3f}",
            )
            for row in rows
        ],
    )
    if ramp and ramps:
        for name, sweep in zip(("up", "down"), ramps, strict=True):
            print(f"ramp {name:<4}", " → ".join(f"{gait} ({c:.2f})" for gait, c in sweep.transitions()))
    if figure:
        print(f"figure: {figure}")


@app.command
def circuit(preset: str = "default", without: Words = (), dot: bool = False, out: Path | None = None) -> None:
    """Print the rhythm generator's table of neurons and synapses, or draw its wiring.

    Args:
        preset: Numbers of the circuit: default or released.
        without: Knock out populations or pathways, as in `ncap rhythm`.
        dot: Print Graphviz text instead of the table.
        out: Draw the wiring diagram into this file (svg, png, pdf).

    """
    from ncap.circuits.rhythm import rhythm_spec

    spec = rhythm_spec(preset, names_in(without))
    if dot or out:
        from ncap.experiments import circuit_diagram

        if dot:
            print(circuit_diagram.to_dot(spec))
        if out:
            circuit_diagram.draw(spec, out, f"Rhythm generator, preset {preset}")
            print(f"figure: {out}", file=sys.stderr if dot else sys.stdout)
    else:
        print(spec)


@app.command
def units(out: Path = Path("units.png")) -> None:
    """Draw how the two neuron models respond to constant, pulse and periodic input.

    Args:
        out: Figure to write (png, svg, pdf).

    """
    from ncap.experiments import units as experiment

    experiment.figure(out)
    print(f"figure: {out}")


@app.command(name="tune-rhythm")
def tune_rhythm(out: Path, seed: int = 0, generations: int = 15, workers: int = 2) -> None:
    """Search the rhythm generator's default numbers with CMA-ES. Three minutes on two cores; can be interrupted.

    The same folder goes on where it stopped. The result is OUT/rhythm.json, in the form of the package's own preset.

    Args:
        out: Folder of the search.
        seed: Seed of the search.
        generations: Generations in all.
        workers: Processes; they do not change the result.

    """
    from ncap.experiments import rhythm_tuning

    settings = rhythm_tuning.Search(seed=seed, generations=generations)
    with progress_bar() as progress:
        task = progress.add_task("loss", total=generations)

        def report(generation: int, record: dict[str, Any]) -> None:
            progress.update(task, completed=generation + 1, description=f"loss {min(record['losses']):.3f}")

        try:
            numbers, terms = rhythm_tuning.search(settings, out, workers, report)
        except KeyboardInterrupt:
            print(f"stopped; the same command goes on from {out}", file=sys.stderr)
            raise SystemExit(130) from None
    (out / "rhythm.json").write_text(rhythm_tuning.preset_text(numbers), "utf-8")
    print_table(("term", "loss"), [(name, f"{value:.4f}") for name, value in terms.items()])
    print(f"preset: {out / 'rhythm.json'}")


@app.command
def train(
    task: Annotated[str, tyro.conf.Positional] = "flat-walk",
    policy: str = "ncap",
    preset: str = "default",
    command: float | None = None,
    contact: str = "default",
    seed: int = 0,
    epochs: int = 60,
    pairs: int | None = None,
    sigma: float | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    threads: int = 2,
    cluster: str | None = None,
    json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Train a policy on a task by evolution. Ctrl-C, or even kill -9, loses nothing: go on with --resume.

    Examples: `ncap train flat-walk`, `ncap train bumpy-run --seed 3 --out runs/mine`, `ncap train --resume runs/mine`.

    Args:
        task: flat-walk, flat-run, bumpy-walk or bumpy-run.
        policy: ncap, mlp, or mlp:64x64 with the sizes of its hidden layers.
        preset: Settings of evolution: default, paper or released.
        command: Brainstem command in [0, 1]; by default the task's.
        contact: Contact preset: default, elliptic or released.
        seed: Seed of the run. The same seed gives the same weights, bit for bit.
        epochs: Epochs in all.
        pairs: Antithetic pairs of candidates in an epoch; by default the preset's.
        sigma: Size of mutations and steps; by default the preset's.
        out: Run directory; by default runs/TASK-POLICY-SEED.
        resume: Go on with this run; its own settings are used.
        threads: Simulation threads; they do not change the result.
        cluster: Play episodes on a Ray cluster: local, or an address. The result is the same, bit for bit.
        json: Print a JSON summary at the end.

    """
    from ncap.learn import train as learning
    from ncap.learn.executors import Executor, LocalExecutor, RayExecutor
    from ncap.runs import Run

    if resume is not None:
        training, run, state, complaints = learning.resume(resume)
        for complaint in complaints:
            print(f"ncap: {complaint}; the checkpoint before it is used", file=sys.stderr)
    else:
        training = learning.Training(
            task=task,
            policy=policy,
            preset=preset,
            command=command,
            contact=contact,
            seed=seed,
            epochs=epochs,
            pairs=pairs,
            sigma=sigma,
        )
        folder = out or Path("runs") / f"{task}-{policy.replace(':', '-')}-{seed}"
        run, state = Run.create(folder, learning.config_of(training)), None
    with run, training_report(training.epochs) as report:
        executor: Executor = RayExecutor(cluster) if cluster else LocalExecutor(threads)
        try:
            final = learning.train(training, run, executor, state, report)
        except KeyboardInterrupt:
            print(f"\nstopped; nothing is lost. Go on with: ncap train --resume {run.folder}", file=sys.stderr)
            raise SystemExit(130) from None
        finally:
            executor.close()
    if json:
        print_json(
            {
                "run": str(run.folder),
                "epochs": final.epoch,
                "rollouts": final.rollouts,
                "steps": final.steps,
                "best_return": final.best_return,
                "parameters": training.initial_policy().space.size,
            }
        )
    else:
        print(f"best test return {final.best_return:.3f} after {final.rollouts} rollouts")
        print(f"run: {run.folder}   (next: ncap evaluate {run.folder} --task {training.task})")


@app.command
def report(run: Annotated[Path, tyro.conf.Positional], out: Path | None = None, threads: int = 2) -> None:
    """Write one self-contained HTML page about a run: learning curve, footfalls, neurons, weights, gait numbers.

    Args:
        run: A run directory.
        out: Page to write; by default RUN/report.html.
        threads: Simulation threads.

    """
    from ncap.experiments.report import write_report

    page = out or run / "report.html"
    write_report(run, page, threads)
    print(f"report: {page}")


@app.command
def params(json: Annotated[bool, tyro.conf.arg(name="json")] = False) -> None:
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
    json: Annotated[bool, tyro.conf.arg(name="json")] = False,
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
        ("return", f"{found.return_mean:.3f}  ({min(found.returns):.3f} … {max(found.returns):.3f})"),
        ("falls", f"{found.falls} of {found.episodes}"),
        ("speed", f"{found.speed_mean:.2f} m/s"),
        ("cost of transport", cost),
        ("gait", f"{gait.label}, {gait.frequency_hz:.1f} Hz, duty {gait.duty:.2f}, R {gait.concentration:.2f}"),
    ]
    print_table((f"{found.policy} on {found.task}", ""), rows)


@app.command
def doctor(json: Annotated[bool, tyro.conf.arg(name="json")] = False) -> None:
    """Show versions, cores, rendering back ends and extras of this machine.

    Args:
        json: Print JSON.

    """
    from ncap import doctor as room

    found = room.diagnose()
    if json:
        print_json(asdict(found))
        return
    rows = [("Python", found.python), ("system", found.system), ("cores", str(found.cores))]
    rows += [(name, version or "missing") for name, version in found.packages.items()]
    for name, works in found.rendering.items():
        rows.append((f"rendering {name}", "found" if works else f"missing: install {room.BACK_ENDS[name]}"))
    for name, missing in found.extras.items():
        state = f"missing {', '.join(missing)}: pip install 'ncap[{name}]'" if missing else "present"
        rows.append((f"extra {name}", state))
    print_table(("what", "found"), rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. A user's mistake is one line and exit code 2, never a traceback."""
    try:
        app.cli(
            args=arguments, prog="ncap", description="Neural circuit architectural priors for quadruped locomotion."
        )
    except UserError as error:
        print(f"ncap: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader, for instance `head`, has seen enough
        sys.stderr.close()
