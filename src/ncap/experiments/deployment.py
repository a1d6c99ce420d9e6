"""Policies deployed to a robot that is not the one they were trained on (the paper's figure "Physical robot").

The robot is a twin across a range of domain gaps, in another process. Everything between policy and motors is what a
real robot gets: messages with checksums (a Go2's over DDS, an A1's over LCM for all other robots), the network's
errors, calibration, safety layer, ramps. Only the time is simulated: both ends step together, so
that an hour of flights takes minutes and ends the same every time. Finished flights are kept in a CSV file and not
flown again.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ncap.deploy.contract import TICK, check_policy, checksum, robot_of
from ncap.deploy.dds_end import check_installed
from ncap.deploy.flight_plan import check_seed
from ncap.deploy.gap import Gap
from ncap.deploy.link import Link
from ncap.deploy.loop import Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.stepped import stepped_twin
from ncap.deploy.twin import Truth
from ncap.errors import UserError, unknown_name
from ncap.experiments.flights import FLIGHTS, FlightBook, FlightResult, draw, line
from ncap.experiments.library import Library, Scale
from ncap.experiments.performance import player
from ncap.sim.robot import Robot, find_robot
from ncap.trained import TrainedPolicy, find_policy, load

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
TASK: Final = "bumpy-walk"
"""What policies are trained for, as in the paper."""
UNTRAINED: Final = "untrained"
SPEAKS_DDS: Final = "go2"
"""How names of robots begin that have a Go2's messages, over DDS; all others are given an A1's, over LCM."""
SEEDS: Final = (0, 1, 2)
"""Seeds of the runs that fly, and of their flights across every gap."""
COLLAPSED: Final = 0.15
"""Height of the trunk below which a robot does not stand, m; in the standing pose it is 0.34."""
SCHEDULE: Final = Schedule(calibration=0.2, low=0.6, stand=0.8, hold=0.3, policy=8.0, halt=0.01, sit=0.01, damping=0.01)
"""Phases of a flight, s."""


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
    robot: Robot | None = None,
) -> FlightResult:
    """The results of one flight of a policy to a twin that differs by the gap of that name.

    A policy that can be driven walks slowly, unless a command is given. The robot is the policy's own if none is given.
    """
    link = WatchedLink(twin)
    link.flight = Deployment(
        link, policy, armed=True, schedule=schedule, seed=seed, command=command, robot=robot or robot_of(policy)
    )
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
    robot: str | None = None,
) -> FlightResult:
    """The results of a single flight of a policy by its name, with a circuit, knock-outs or a command of choice.

    The robot is the policy's own if none is given.
    """
    if gap not in GAPS:
        raise unknown_name("gap", gap, GAPS)
    found = find_policy(policy, circuit=circuit, without=without, command=command)
    check_policy(found)
    body = None if robot is None else find_robot(robot)
    return _fly_to_new_twin(found, gap, check_seed(seed), schedule, command, body)


def _fly_to_new_twin(
    policy: TrainedPolicy,
    gap: str,
    seed: int,
    schedule: Schedule,
    command: float | None = None,
    robot: Robot | None = None,
) -> FlightResult:
    """One flight to a twin of a robot, by default the policy's own, in another process."""
    body = robot or robot_of(policy)
    try:
        with stepped_twin(GAPS[gap], seed, body, dds=_speaks_dds(body)) as twin:
            return fly(twin, policy, gap, seed, schedule, command, body)
    except ConnectionError as error:
        raise UserError(f"{error}: start the same command again, finished flights are kept") from None


def _speaks_dds(robot: Robot) -> bool:
    return robot.name.startswith(SPEAKS_DDS)


def fly_all(
    book: FlightBook,
    pilots: Sequence[tuple[TrainedPolicy, int]],
    gaps: Sequence[str],
    schedule: Schedule = SCHEDULE,
    say: Callable[[str], None] = lambda _: None,
    robot: Robot | None = None,
) -> list[FlightResult]:
    """Results of every policy across every gap, with the seed beside it; what the book has is not flown again."""
    for policy, _ in pilots:
        check_policy(policy)
    results = []
    for (policy, seed), gap in product(pilots, gaps):
        result = book.find(policy, gap, seed, schedule)
        if result is None:
            result = _fly_to_new_twin(policy, gap, seed, schedule, robot=robot)
            book.add(result)
            say(line(result))
        results.append(result)
    return results


def pilots(library: Library, scale: Scale, out: Path) -> list[tuple[TrainedPolicy, int]]:
    """What flies, with the seeds of the flights: the untrained circuit, and of every contender run i with seed i.

    Runs that the performance experiment has kept beside the tables are not trained again.
    """
    trainings = [(policy, run) for policy in scale.contenders for run in scale.trainings(TASK, policy)[: len(SEEDS)]]
    trained = [(load(player(library, run, policy, out)), policy, run.seed) for policy, run in trainings]
    untrained = [(load(UNTRAINED), UNTRAINED, seed) for seed in SEEDS]
    return [(replace(pilot, name=name), seed) for pilot, name, seed in (*untrained, *trained)]


def run(library: Library, scale: Scale, out: Path) -> None:
    """Train and fly what is missing, then write the tables and the figure, with the name of a robot behind theirs.

    At a scale whose test episodes are shorter than a flight, only the untrained circuit flies, once, for that long.
    """
    whole = scale.test_seconds >= SCHEDULE.policy
    suffix = "" if scale.robot is None else f"-{Path(scale.robot).stem}"
    robot = None if scale.robot is None else find_robot(scale.robot)
    if robot is not None and _speaks_dds(robot):
        check_installed()  # said now, not after the training
    fly_all(
        FlightBook(out / f"{FLIGHTS}{suffix}.csv"),
        pilots(library, scale, out) if whole else [(load(UNTRAINED), 0)],
        list(GAPS) if whole else ["none"],
        SCHEDULE if whole else replace(SCHEDULE, policy=scale.test_seconds),
        library.say,
        robot,
    )
    draw(out)
