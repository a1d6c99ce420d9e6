"""Commands about the circuit by itself."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from ncap.cli.app import Json, OutFigure, OutFile, OutFolder, Seed, States, Words, Workers, app
from ncap.cli.terminal import complain, names_in, numbers_in, print_json, print_table, progress_bar
from ncap.errors import UserError

if TYPE_CHECKING:
    from ncap.circuits.spec import CircuitSpec


@app.command
def rhythm(
    circuit: str = "default",
    commands: Annotated[tuple[str, ...], tyro.conf.arg(metavar="C … | FROM:TO:STEP")] = ("0:1:0.05",),
    states: States = 32,
    seed: Seed = 0,
    without: Words = (),
    ramp: bool = False,
    out: OutFigure | None = None,
    json: Json = False,
) -> None:
    """Which gait the rhythm generator has at which brainstem command: a table and a figure.

    Examples: `ncap rhythm`, `ncap rhythm --without V0v --commands 0 0.5 1`, `ncap rhythm --circuit my.json --ramp`.

    Args:
        circuit: Circuit table: default, released, or a file that `ncap circuit --save` wrote.
        commands: Brainstem commands in [0, 1], single ones or a range with both ends.
        states: Random initial states for each command.
        seed: Seed of the initial states.
        without: Knock out pathways (V0, V0d, V0v, V3, diagonal, homolateral, afferents), populations, or synapses
            ("cross_V0d>flexor cross").
        ramp: Also report a slow ramp of the command up and down, with its hysteresis.
        out: Figure to write (png, svg, pdf). Default: rhythm.png, or none with --json.
        json: Print one JSON row per command instead of the table.

    """
    from ncap.circuits.rhythm import check_command
    from ncap.experiments import gaits

    chosen = [check_command(c) for c in numbers_in(commands)]
    spec = _table(circuit, without).rhythm()
    figure = out or (None if json else Path("rhythm.png"))
    measured = {}
    with progress_bar() as progress:
        for command in progress.track(chosen, description="commands"):
            measured[command] = gaits.measure_states(spec, command, states=states, seed=seed)
        ramps = None
        if ramp or figure:
            task = progress.add_task("ramp", total=None)
            ramps = gaits.sweep(spec, seconds=gaits.RAMP_SECONDS, seed=seed)
            progress.update(task, total=1, completed=1)
    rows = [gaits.summarise(command, found) for command, found in measured.items()]
    if figure and ramps:
        gaits.figure(measured, ramps, figure, _title("Rhythm generator", circuit, without))
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
                _pair(row.left_right_phase),
                _pair(row.fore_hind_phase),
                "–" if row.diagonal_phase is None else f"{row.diagonal_phase:.2f}",
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


@app.command(name="circuit")
def show_circuit(
    circuit: str = "default",
    links: int | None = None,
    without: Words = (),
    save: OutFile | None = None,
    dot: bool = False,
    out: OutFigure | None = None,
) -> None:
    """Print the whole animal's table of neurons, synapses and inputs, save it to be edited, or draw its wiring.

    Examples: `ncap circuit --without V0v --save my.json`, `ncap circuit --circuit my.json --out my.svg`,
    `ncap circuit --circuit swimmer --links 4`.

    Args:
        circuit: Circuit table: default, drive, paper, released; swimmer, swimmer-turning, swimmer-unshared; or a file
            that `ncap circuit --save` wrote.
        links: Of a swimmer's circuit: links of the body that it is for, 3 to 13.
        without: Knock out pathways (V0, V0d, V0v, V3, diagonal, homolateral, afferents), populations, single neurons
            (flexor.FL) or synapses ("cross_V0d>flexor cross").
        save: Write the table as a file (.json) that --circuit takes everywhere.
        dot: Print Graphviz text instead of the table.
        out: Draw the wiring diagram into this file (svg, png, pdf).

    """
    from ncap.circuits.tables import save_circuit

    spec = _table(circuit, without, links)
    if save:
        if save.suffix != ".json":
            raise UserError(f"a circuit table is a .json file, not {save.name!r}")
        save_circuit(spec, save)
        print(f"table: {save}", file=sys.stderr if dot else sys.stdout)
    if dot or out:
        from ncap.analysis import wiring

        if dot:
            print(wiring.to_dot(spec))
        if out:
            wiring.draw(spec, out, _title("Circuit", circuit, without))
            print(f"figure: {out}", file=sys.stderr if dot else sys.stdout)
    elif not save:
        print(spec)


def _table(circuit: str, without: Sequence[str], links: int | None = None) -> "CircuitSpec":
    """The table of that name, of a swimmer with so many links, after the knock-outs."""
    from ncap.circuits.animal import cut, find_circuit
    from ncap.sim.swimmer import Swimmer

    spec = find_circuit(circuit)
    return cut(spec if links is None else spec.on(Swimmer(links=links).plan), names_in(without))


def _title(what: str, circuit: str, without: Sequence[str]) -> str:
    known = f"preset {circuit}" if Path(circuit).suffix == "" else Path(circuit).name
    return f"{what}, {known}" + (f", without {', '.join(names_in(without))}" if without else "")


def _pair(phases: tuple[float, float] | None) -> str:
    return "–" if phases is None else "{:.2f} {:.2f}".format(*phases)


@app.command
def units(out: OutFigure = Path("units.png")) -> None:
    """Draw how the two neuron models respond to constant, pulse and periodic input.

    Args:
        out: Figure to write (png, svg, pdf).

    """
    from ncap.experiments import units as experiment

    experiment.figure(out)
    print(f"figure: {out}")


@app.command(name="tune-rhythm")
def tune_rhythm(out: OutFolder, seed: Seed = 0, generations: int = 510, workers: Workers = 2) -> None:
    """Search the rhythm generator's default numbers from the released ones. An hour on two cores; can be interrupted.

    The same folder goes on where it stopped. The results are OUT/rhythm.json, the numbers in the form of the package's
    own preset, and OUT/circuit.json, the whole animal's table with them, which --circuit takes everywhere.

    Args:
        out: Folder of the search.
        seed: Seed of the search.
        generations: Generations in all, up to 510; fewer leave out the last stages.
        workers: Processes; they do not change the result.

    """
    from ncap.experiments import rhythm_tuning

    settings = rhythm_tuning.Search(seed=seed, generations=generations)
    with progress_bar() as progress:
        task = progress.add_task("loss", total=generations)

        def report(generation: int, record: dict[str, Any]) -> None:
            progress.update(task, completed=generation + 1, description=f"loss {min(record['losses']):.3f}")

        try:
            numbers, terms = rhythm_tuning.search(settings, out, workers, report, complain)
        except KeyboardInterrupt:
            print(f"stopped; the same command goes on from {out}", file=sys.stderr)
            raise SystemExit(130) from None
    numbers_file, circuit_file = rhythm_tuning.write_numbers(numbers, out)
    print_table(("term", "loss"), [(name, f"{value:.4f}") for name, value in terms.items()])
    print(f"numbers: {numbers_file}   table: {circuit_file}   (next: ncap rhythm --circuit {circuit_file})")
