"""Commands about the circuit by itself."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro

from ncap.cli.app import Json, Words, app
from ncap.terminal import names_in, numbers_in, print_json, print_table, progress_bar


@app.command
def rhythm(
    preset: str = "default",
    commands: Annotated[tuple[str, ...], tyro.conf.arg(metavar="C … | FROM:TO:STEP")] = ("0:1:0.05",),
    states: int = 32,
    seed: int = 0,
    without: Words = (),
    ramp: bool = False,
    out: Path | None = None,
    json: Json = False,
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
