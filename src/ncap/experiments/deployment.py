"""Policies deployed to a robot that is not the one they were trained on (the paper's figure "Physical robot").

The robot is a twin in another process, across a range of domain gaps. Everything between policy and motors is what a
real robot gets: messages with checksums over LCM, the network's errors, calibration, safety layer, ramps. Only the time
is simulated: both ends step together, so that an hour of flights takes minutes and ends the same every time. Finished
flights are kept in flights.csv and not flown again.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.deploy.contract import TICK, check_policy, checksum, robot_of
from ncap.deploy.flight_plan import check_seed
from ncap.deploy.gap import Gap
from ncap.deploy.link import Link
from ncap.deploy.loop import Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.stepped import stepped_twin
from ncap.deploy.twin import Truth
from ncap.errors import UserError, unknown_name
from ncap.experiments.library import Library, Scale
from ncap.files import read_text, write_whole
from ncap.report.tables import write_table
from ncap.sim.a1 import A1
from ncap.trained import TrainedPolicy, find_policy, load, shipped_policies

Array = NDArray[np.float64]

GAPS: Final = {
    "none": Gap(),
    "delay 10 ms": Gap(latency=0.010),
    "delay 20 ms": Gap(latency=0.020),
    "delay 50 ms": Gap(latency=0.050),
    "delay 100 ms": Gap(latency=0.100),
    "jitter 10 ms": Gap(jitter=0.010),
    "jitter 30 ms": Gap(jitter=0.030),
    "loss 1 %": Gap(loss=0.01),
    "loss 5 %": Gap(loss=0.05),
    "loss 20 %": Gap(loss=0.20),
    "doubled 20 %": Gap(duplication=0.20),
    "noise 1": Gap(noise=1.0),
    "noise 3": Gap(noise=3.0),
    "bias 1": Gap(bias=1.0),
    "bias 3": Gap(bias=3.0),
    "feet +40 N": Gap(foot_force_offset=40.0),
    "mass × 0.7": Gap(mass=0.7),
    "mass × 1.5": Gap(mass=1.5),
    "mass × 2": Gap(mass=2.0),
    "friction 0.5": Gap(friction=0.5),
    "friction 0.3": Gap(friction=0.3),
    "gains × 0.5": Gap(gains=0.5),
    "gains × 1.5": Gap(gains=1.5),
    "motors × 0.7": Gap(strength=0.7),
    "motors × 0.5": Gap(strength=0.5),
    "all, mild": Gap(
        latency=0.010, jitter=0.005, loss=0.02, noise=1.0, bias=1.0, mass=1.2, friction=0.7, strength=0.85
    ),
    "all, hard": Gap(latency=0.020, jitter=0.010, loss=0.05, noise=2.0, bias=2.0, mass=1.4, friction=0.5, strength=0.7),
}
"""Gaps by name. Delays are those of either direction."""
SEEDS: Final = (0, 1, 2)
"""Seeds of the flights across every gap."""
COLLAPSED: Final = 0.15
"""Height of the trunk below which a robot does not stand, m; in the standing pose it is 0.34."""
SCHEDULE: Final = Schedule(calibration=0.2, low=0.6, stand=0.8, hold=0.3, policy=8.0, halt=0.01, sit=0.01, damping=0.01)
"""Phases of a flight, s."""


@dataclass(frozen=True, kw_only=True)
class FlightResult:
    """Results of one flight, as the simulator saw it."""

    policy: str
    """Name of the policy, with its knock-outs."""
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


class TruthfulLink(Link, Protocol):
    """A link to a twin, of which the simulated state is known as well as what it sends."""

    def truth(self) -> Truth:
        """The simulated state now."""
        ...


class WatchedLink:
    """Another link, which keeps the simulated states while the policy drives, and stops a flight that fell."""

    def __init__(self, link: TruthfulLink) -> None:
        self._link, self.name = link, link.name
        self.now, self.newest, self.send, self.close = link.now, link.newest, link.send, link.close
        self.flight: Deployment
        self.places: list[Array] = []
        """(3,) of the trunk at every tick, m."""
        self.ups: list[Array] = []
        """(3,) the vertical in the trunk's frame at every tick."""
        self.touched = False
        """Whether the trunk touched the ground."""

    @property
    def malformed(self) -> int:
        """How many malformed datagrams the other link dropped."""
        return self._link.malformed

    @property
    def rivals(self) -> int:
        """How many commands of other senders the other link heard."""
        return self._link.rivals

    def wait_until(self, moment: float) -> None:
        """Let the twin simulate until a moment in s, and keep its state."""
        self._link.wait_until(moment)
        if self.flight.outcome.phases[-1][0] != "policy" or self.touched:
            return
        truth = self._link.truth()
        self.places.append(truth.position)
        self.ups.append(truth.up)
        if truth.trunk_touches or truth.position[2] < COLLAPSED:
            self.touched = True
            for _ in range(2):
                self.flight.stop()


def fly(
    twin: TruthfulLink,
    policy: TrainedPolicy,
    gap: str,
    seed: int,
    schedule: Schedule = SCHEDULE,
    command: float | None = None,
) -> FlightResult:
    """The results of one flight of a policy to a twin that differs by the gap of that name.

    A policy that can be driven walks slowly, unless a command is given.
    """
    link = WatchedLink(twin)
    link.flight = Deployment(link, policy, armed=True, schedule=schedule, seed=seed, command=command)
    try:
        outcome = link.flight.run()
    except UserError:
        if "calibration" not in dict(link.flight.outcome.phases):
            raise
        fault = "not calibrated"
    else:
        if outcome.stopped and not link.touched:
            raise KeyboardInterrupt
        fault = "" if outcome.fault is None else outcome.fault.kind
    places, ups = np.array(link.places), np.array(link.ups)
    moved = len(places) > 1
    # the vertical in the trunk's frame moves with roll and pitch, not with yaw
    rates = np.diff(ups[:, :2], axis=0) / TICK if moved else np.zeros((1, 2))
    return FlightResult(
        policy=policy.name,
        checksum=checksum(policy),
        gap=gap,
        seed=seed,
        planned=schedule.policy,
        seconds=TICK * len(places),
        distance=float(np.linalg.norm(places[-1, :2] - places[0, :2])) if moved else 0.0,
        fell=link.touched or fault == "tilt",
        fault=fault,
        shake=float(np.sqrt((rates**2).sum(axis=1).mean())),
    )


def fly_once(
    policy: str,
    gap: str = "none",
    seed: int = 0,
    *,
    circuit: str | None = None,
    without: Sequence[str] = (),
    command: float | None = None,
    schedule: Schedule = SCHEDULE,
) -> FlightResult:
    """The results of a single flight of a policy by its name, with a circuit, knock-outs or a command of choice."""
    if gap not in GAPS:
        raise unknown_name("gap", gap, GAPS)
    found = find_policy(policy, circuit=circuit, without=without, command=command)
    check_policy(found)
    return _fly_to_new_twin(found, gap, check_seed(seed), schedule, command)


def _fly_to_new_twin(
    policy: TrainedPolicy, gap: str, seed: int, schedule: Schedule, command: float | None = None
) -> FlightResult:
    """One flight to a twin in another process over LCM."""
    try:
        with stepped_twin(GAPS[gap], seed, robot_of(policy)) as twin:
            return fly(twin, policy, gap, seed, schedule, command)
    except ConnectionError as error:
        raise UserError(f"{error}: start the same command again, finished flights are kept") from None


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
        """Add a finished flight, beside those that another process may have added meanwhile."""
        writer = csv.writer(text := io.StringIO(), lineterminator="\n")
        writer.writerow([field.name for field in fields(FlightResult)])
        writer.writerows(astuple(flight) for flight in (*self.flights(), result))
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


def fly_all(
    book: FlightBook,
    policies: Sequence[TrainedPolicy],
    gaps: Sequence[str],
    seeds: Sequence[int],
    schedule: Schedule = SCHEDULE,
    say: Callable[[str], None] = lambda _: None,
) -> list[FlightResult]:
    """Results of every policy across every gap with every seed; what the book has is not flown again."""
    for policy in policies:
        check_policy(policy)
    results = []
    for policy, gap, seed in product(policies, gaps, seeds):
        result = book.find(policy, gap, seed, schedule)
        if result is None:
            result = _fly_to_new_twin(policy, gap, seed, schedule)
            book.add(result)
            say(_line(result))
        results.append(result)
    return results


def cells(results: Sequence[FlightResult]) -> list[dict[str, object]]:
    """A row per gap, a column per policy: mean distance, mean shake, falls and other faults."""
    policies = list(dict.fromkeys(result.policy for result in results))
    rows: list[dict[str, object]] = []
    for gap in dict.fromkeys(result.gap for result in results):
        row: dict[str, object] = {"gap": gap}
        for policy in policies:
            flights = [result for result in results if (result.policy, result.gap) == (policy, gap)]
            cell = f"{np.mean([f.distance for f in flights]):.2f} m, {np.mean([f.shake for f in flights]):.2f} rad/s"
            if falls := sum(f.fell for f in flights):
                cell += f", {falls}/{len(flights)} fell"
            stopped = sorted({f.fault for f in flights if f.fault and not f.fell})
            row[policy] = cell + (f", damped: {', '.join(stopped)}" if stopped else "")
        rows.append(row)
    return rows


def markdown(results: Sequence[FlightResult]) -> Iterator[str]:
    """The lines of the table in docs/how-to/deploy.md, with falls in bold."""
    rows = cells(results)
    yield f"| {' | '.join(rows[0])} |"
    yield "|---" * len(rows[0]) + "|"
    for row in rows:
        yield re.sub(r"\d+/\d+ fell", r"**\g<0>**", f"| {' | '.join(map(str, row.values()))} |")


@plots.styled
def figure(results: Sequence[FlightResult], path: Path) -> None:
    """Draw distance and shake of every flight against the gap; a cross is a fall, a square a flight that was damped."""
    gaps = list(dict.fromkeys(result.gap for result in results))
    policies = list(dict.fromkeys(result.policy for result in results))
    fig, axes = plots.figure(["distance shake"], size=(11, 0.28 * len(gaps) + 1.8), heights=(1,))
    fig.suptitle(f"Deployed to a twin across {len(gaps)} gaps (× fell, □ damped)")
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
    for i, policy in enumerate(policies):
        colour = colours[i % len(colours)]
        for kind, marker in (("walked", "o"), ("fell", "x"), ("damped", "s")):
            chosen = [r for r in results if r.policy == policy and _kind(r) == kind]
            rows = [gaps.index(r.gap) + 0.22 * (i - (len(policies) - 1) / 2) for r in chosen]
            for name in ("distance", "shake"):
                values = [asdict(r)[name] for r in chosen]
                face = "none" if kind == "damped" else colour
                axes[name].scatter(values, rows, marker=marker, s=22, color=colour, facecolor=face, linewidths=1)
        axes["distance"].scatter([], [], c=colour, s=22, label=policy)
    for name, label in (("distance", "distance (m)"), ("shake", "roll and pitch rate, rms (rad/s)")):
        axes[name].set(xlabel=label, ylim=(len(gaps) - 0.4, -0.6))
        axes[name].set_xlim(left=0)
        axes[name].set_yticks(range(len(gaps)), gaps if name == "distance" else [""] * len(gaps))
        axes[name].grid(color="#E5E5E5", linewidth=0.6)
        axes[name].set_axisbelow(True)
    fig.legend(loc="outside lower center", ncols=len(policies), frameon=False)
    plots.save_both(fig, path)


def _kind(result: FlightResult) -> str:
    return "fell" if result.fell else "damped" if result.fault else "walked"


def _line(result: FlightResult) -> str:
    end = f"{_kind(result)} {result.fault}"
    return f"{result.policy:<18} {result.gap:<14} {result.seed}  {result.distance:6.2f} m  {end}"


def walkers() -> list[TrainedPolicy]:
    """The untrained circuit and the shipped policies that were trained to walk with an A1, whose messages are flown."""
    shipped = (load(name) for name in shipped_policies() if name.endswith("-walk"))
    return [load("untrained"), *(policy for policy in shipped if robot_of(policy).name == A1.name)]


def run(library: Library, scale: Scale, out: Path) -> None:
    """Fly what is missing, then write the table (CSV, Markdown) and the figure.

    At a scale whose test episodes are shorter than a flight, only the untrained circuit flies, once, for that long.
    """
    whole = scale.test_seconds >= SCHEDULE.policy
    results = fly_all(
        FlightBook(out / "flights.csv"),
        walkers() if whole else [load("untrained")],
        list(GAPS) if whole else ["none"],
        SEEDS if whole else SEEDS[:1],
        SCHEDULE if whole else replace(SCHEDULE, policy=scale.test_seconds),
        library.say,
    )
    write_table(out / "deployment.csv", cells(results))
    write_whole(out / "deployment.md", ("\n".join(markdown(results)) + "\n").encode())
    figure(results, out / "deployment.png")
