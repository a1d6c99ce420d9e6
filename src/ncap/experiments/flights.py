"""Results of flights across domain gaps: a book of those that are finished, the tables of them, and the figure."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from ncap.analysis import plots
from ncap.deploy.contract import checksum
from ncap.deploy.phases import Schedule
from ncap.errors import UserError
from ncap.files import read_text, write_whole
from ncap.report.tables import write_table
from ncap.trained import TrainedPolicy

FLIGHTS: Final = "flights"
"""How the names of books of flights begin; the robot's follows, unless it is an A1."""


@dataclass(frozen=True, kw_only=True)
class FlightResult:
    """Results of one flight, as the simulator saw it."""

    policy: str
    """Name of the policy with its knock-outs; in the experiment the name of its kind, such as mlp-ppo."""
    checksum: str
    """Checksum of the policy's description and weights."""
    gap: str
    """One of GAPS."""
    seed: int
    planned: float
    """Time for which the policy was to drive, s."""
    seconds: float
    """Time for which the policy drove, up to a fall or to the end, s."""
    distance: float
    """Straight distance from where the policy began, m."""
    fell: bool
    """Whether it tilted beyond 45°, touched the ground with the trunk, or sank to the ground."""
    fault: str
    """Kind of the fault for which the safety layer damped; empty if there was none."""
    shake: float
    """Root mean square of the trunk's roll and pitch rates, rad/s: small for a smooth walk."""


class FlightBook:
    """Finished flights in a CSV file, one row each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.flights()

    def flights(self) -> list[FlightResult]:
        """All flights in the file."""
        if not self.path.exists():
            return []
        try:
            return [_result(row) for row in csv.DictReader(io.StringIO(read_text(self.path)))]
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{self.path} is no table of flights ({error}): use another --out") from None

    def find(self, policy: TrainedPolicy, gap: str, seed: int, schedule: Schedule) -> FlightResult | None:
        """The flight of this policy, gap, seed and length; None if it is not finished."""
        wanted = (policy.name, checksum(policy), gap, seed, schedule.policy)
        for flight in self.flights():
            if (flight.policy, flight.checksum, flight.gap, flight.seed, flight.planned) == wanted:
                return flight
        return None

    def add(self, result: FlightResult) -> None:
        """Add a finished flight to those of this and other processes; the same flight of two of them is one."""
        writer = csv.writer(text := io.StringIO(), lineterminator="\n")
        writer.writerow([field.name for field in fields(FlightResult)])
        writer.writerows(astuple(flight) for flight in dict.fromkeys((*self.flights(), result)))
        write_whole(self.path, text.getvalue().encode())


def _result(row: dict[str, Any]) -> FlightResult:
    return FlightResult(
        policy=row["policy"],
        checksum=row["checksum"],
        gap=row["gap"],
        seed=int(row["seed"]),
        planned=float(row["planned"]),
        seconds=float(row["seconds"]),
        distance=float(row["distance"]),
        fell={"True": True, "False": False}[row["fell"]],
        fault=row["fault"],
        shake=float(row["shake"]),
    )


def cells(results: Sequence[FlightResult]) -> list[dict[str, object]]:
    """A row per gap, a column per policy: mean distance, falls and other faults."""
    rows: list[dict[str, object]] = []
    for gap in dict.fromkeys(result.gap for result in results):
        row: dict[str, object] = {"gap": gap}
        for policy in dict.fromkeys(result.policy for result in results):
            flights = [result for result in results if (result.policy, result.gap) == (policy, gap)]
            cell = f"{np.mean([f.distance for f in flights]):.2f} m"
            if falls := sum(f.fell for f in flights):
                cell += f", {falls}/{len(flights)} fell"
            stopped = sorted({f.fault for f in flights if kind(f) == "damped"})
            row[policy] = cell + (f", damped: {', '.join(stopped)}" if stopped else "")
        rows.append(row)
    return rows


def totals(results: Sequence[FlightResult]) -> list[dict[str, object]]:
    """A row per policy over all of its flights."""
    rows: list[dict[str, object]] = []
    for policy in dict.fromkeys(result.policy for result in results):
        flights = [result for result in results if result.policy == policy]
        rows.append(
            {
                "policy": policy,
                "name": plots.POLICY_NAMES.get(policy, policy),
                "runs": len({flight.checksum for flight in flights}),
                "flights": len(flights),
                "falls": sum(flight.fell for flight in flights),
                "gaps_with_falls": len({flight.gap for flight in flights if flight.fell}),
                "damped": sum(kind(flight) == "damped" for flight in flights),
                "distance": np.mean([flight.distance for flight in flights]),
                "shake": np.mean([flight.shake for flight in flights]),
            }
        )
    return rows


def draw(tables: Path) -> None:
    """Write the tables by gap and by policy, and the figure, from the flights of every robot in a folder."""
    for path in sorted(tables.glob(f"{FLIGHTS}*.csv")):
        results, robot = FlightBook(path).flights(), path.stem.removeprefix(FLIGHTS)
        write_table(tables / f"deployment{robot}.csv", cells(results))
        write_table(tables / f"deployment{robot}-total.csv", totals(results))
        _figure(results, tables / f"deployment{robot}.png")


@plots.styled
def _figure(results: Sequence[FlightResult], path: Path) -> None:
    """Distance and shake of every flight against the gap; a cross is a fall, a square a flight that was damped."""
    gaps = list(dict.fromkeys(result.gap for result in results))
    policies = list(dict.fromkeys(result.policy for result in results))
    fig, axes = plots.figure(["distance shake"], size=(11, 0.32 * len(gaps) + 1.8), heights=(1,))
    fig.suptitle(f"Deployed to a twin across {len(gaps)} gaps (× fell, □ damped)", x=0.01, ha="left")
    for i, policy in enumerate(policies):
        colour = plots.POLICY_COLOURS.get(policy, "black")
        for end, marker in (("walked", "o"), ("fell", "x"), ("damped", "s")):
            chosen = [r for r in results if r.policy == policy and kind(r) == end]
            rows = [gaps.index(r.gap) + 0.72 * ((i + 0.5) / len(policies) - 0.5) for r in chosen]
            for name in ("distance", "shake"):
                values = [asdict(r)[name] for r in chosen]
                face = "none" if end == "damped" else colour
                axes[name].scatter(values, rows, marker=marker, s=16, color=colour, facecolor=face, linewidths=1)
        axes["distance"].scatter([], [], c=colour, s=22, label=plots.POLICY_NAMES.get(policy, policy))
    for name, label in (("distance", "distance (m)"), ("shake", "roll and pitch rate, rms (rad/s)")):
        axes[name].set(xlabel=label, ylim=(len(gaps) - 0.4, -0.6))
        axes[name].set_xlim(left=0)
        axes[name].set_yticks(range(len(gaps)), gaps if name == "distance" else [""] * len(gaps))
        for gap in range(0, len(gaps), 2):
            axes[name].axhspan(gap - 0.5, gap + 0.5, color="#F2F2F2", linewidth=0, zorder=0)
    fig.legend(loc="outside lower center", ncols=min(len(policies), 5), frameon=False)
    plots.save_both(fig, path)


def kind(result: FlightResult) -> str:
    """How a flight ended: walked, fell or damped."""
    return "fell" if result.fell else "damped" if result.fault else "walked"


def line(result: FlightResult) -> str:
    """One line about a flight, for the terminal."""
    end = f"{kind(result)} {result.fault}"
    return f"{result.policy:<18} {result.gap:<14} {result.seed}  {result.distance:6.2f} m  {end}"
