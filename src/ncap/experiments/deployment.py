"""Policies deployed to a robot that is not the one they were trained on (the paper's figure "Physical robot").

The robot is a twin in another process, across a range of domain gaps. Everything between policy and motors is what a
real robot gets: messages with checksums over LCM, the network's errors, calibration, safety layer, ramps. Only the time
is simulated: both ends step together, so that an hour of flights takes minutes and ends the same every time.
`python -m ncap.experiments.deployment OUT [POLICY …]` writes OUT/flights.csv, OUT/deployment.png and prints the table
of docs/deploy.md.
"""

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.analysis import plots
from ncap.deploy.gap import Gap
from ncap.deploy.link import Link
from ncap.deploy.loop import Deployment, Schedule
from ncap.deploy.pilot import find_pilot
from ncap.deploy.stepped import stepped_twin
from ncap.deploy.twin import Truth
from ncap.errors import UserError
from ncap.policies.storage import shipped_policies

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
"""Delays are those of either direction."""
SEEDS: Final = (0, 1, 2)
COLLAPSED: Final = 0.15
"""m. A trunk that is lower than this does not stand: it is at 0.34 m in the standing pose."""
SCHEDULE: Final = Schedule(calibration=0.2, low=0.6, stand=0.8, hold=0.3, policy=8.0, halt=0.01, sit=0.01, damping=0.01)


@dataclass(frozen=True, kw_only=True)
class FlightResult:
    """One flight, as the simulator saw it."""

    policy: str
    gap: str
    seed: int
    seconds: float
    """The policy drove, up to a fall or to the end."""
    distance: float
    """m from where the policy began, as the crow flies."""
    fell: bool
    """Tilted beyond 45°, touched the ground with the trunk, or sank to the ground."""
    fault: str
    """What the safety layer damped for, if it did."""
    shake: float
    """rad/s, root mean square of the trunk's roll and pitch rates: how smooth the walk is."""


class TruthfulLink(Link, Protocol):
    """A link to a robot of which more can be known than it says."""

    def truth(self) -> Truth:
        """What really is."""
        ...


class WatchedLink:
    """Another link, of which the truth is kept while the policy drives."""

    def __init__(self, link: TruthfulLink) -> None:
        self._link, self.name = link, link.name
        self.now, self.newest, self.send, self.close = link.now, link.newest, link.send, link.close
        self.flight: Deployment
        self.places: list[Array] = []
        self.ups: list[Array] = []
        self.touched = False

    @property
    def malformed(self) -> int:
        """Of the other link."""
        return self._link.malformed

    @property
    def rivals(self) -> int:
        """Of the other link."""
        return self._link.rivals

    def wait_until(self, moment: float) -> None:
        """Let the twin live until then, and look at it."""
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


def fly(twin: TruthfulLink, policy: str, gap: str, seed: int, schedule: Schedule = SCHEDULE) -> FlightResult:
    """One flight of a policy to a twin that differs by the gap of that name."""
    link = WatchedLink(twin)
    link.flight = Deployment(link, find_pilot(policy), armed=True, schedule=schedule, seed=seed)
    try:
        outcome = link.flight.run()
    except UserError:
        fault = "not calibrated"
    else:
        if outcome.stopped and not link.touched:
            raise KeyboardInterrupt
        fault = "" if outcome.fault is None else outcome.fault.kind
    places, ups = np.array(link.places), np.array(link.ups)
    moved = len(places) > 1
    # the vertical in the trunk's frame moves with roll and pitch, not with yaw
    rates = np.diff(ups[:, :2], axis=0) / 0.002 if moved else np.zeros((1, 2))
    return FlightResult(
        policy=policy,
        gap=gap,
        seed=seed,
        seconds=0.002 * len(places),
        distance=float(np.linalg.norm(places[-1, :2] - places[0, :2])) if moved else 0.0,
        fell=link.touched or fault == "tilt",
        fault=fault,
        shake=float(np.sqrt((rates**2).sum(axis=1).mean())),
    )


def fly_all(policies: Sequence[str], gaps: Sequence[str], seeds: Sequence[int]) -> Iterator[FlightResult]:
    """Every policy across every gap with every seed."""
    for policy, gap, seed in product(policies, gaps, seeds):
        with stepped_twin(GAPS[gap], seed) as twin:
            yield fly(twin, policy, gap, seed)


def write_csv(path: Path, results: Sequence[FlightResult]) -> None:
    """One row per flight."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(FlightResult)])
        writer.writerows(astuple(result) for result in results)


def markdown(results: Sequence[FlightResult]) -> Iterator[str]:
    """The table of docs/deploy.md: mean distance, falls, other faults and mean shake of every policy and gap."""
    policies = list(dict.fromkeys(result.policy for result in results))
    yield "| gap | " + " | ".join(policies) + " |"
    yield "|---|" + "---|" * len(policies)
    for gap in dict.fromkeys(result.gap for result in results):
        cells = []
        for policy in policies:
            flights = [result for result in results if (result.policy, result.gap) == (policy, gap)]
            cell = f"{np.mean([f.distance for f in flights]):.2f} m, {np.mean([f.shake for f in flights]):.2f} rad/s"
            if falls := sum(f.fell for f in flights):
                cell += f", **{falls}/{len(flights)} fell**"
            stopped = sorted({f.fault for f in flights if f.fault and not f.fell})
            cells.append(cell + (f", damped: {', '.join(stopped)}" if stopped else ""))
        yield f"| {gap} | " + " | ".join(cells) + " |"


@plots.styled
def figure(results: Sequence[FlightResult], path: Path) -> None:
    """Distance and shake of every flight against the gap; a cross is a fall, a square a flight that was damped."""
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
    plots.save(fig, path)


def _kind(result: FlightResult) -> str:
    return "fell" if result.fell else "damped" if result.fault else "walked"


def _line(result: FlightResult) -> str:
    end = f"{_kind(result)} {result.fault}"
    return f"{result.policy:<18} {result.gap:<14} {result.seed}  {result.distance:6.2f} m  {end}"


def main(arguments: Sequence[str]) -> None:
    """Fly, write, print."""
    if not arguments:
        raise UserError("say where to write: python -m ncap.experiments.deployment OUT [POLICY …]")
    out, policies = Path(arguments[0]), list(arguments[1:]) or ["untrained", *shipped_policies()]
    for policy in policies:
        find_pilot(policy)
    results = []
    for result in fly_all(policies, list(GAPS), SEEDS):
        results.append(result)
        print(_line(result), file=sys.stderr)
        write_csv(out / "flights.csv", results)
    figure(results, out / "deployment.png")
    print("\n".join(markdown(results)))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (UserError, ConnectionError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; flights.csv has what was flown")
