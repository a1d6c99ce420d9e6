"""A whole flight as a command starts it: link, lock, guard, recorder, signals, and the loop in the middle of them."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from ncap.deploy.flight import FlightFacts, FlightRecorder
from ncap.deploy.guard import Guard
from ncap.deploy.link import LcmLink, Link, SdkLink, TwinLink, lcm_url
from ncap.deploy.lock import CommanderLock
from ncap.deploy.loop import Deployment, Outcome, Schedule, stopped_by_signals
from ncap.deploy.pilot import find_pilot
from ncap.errors import UserError


def open_link(name: str, seed: int) -> Link:
    """The link of that name: lcm://…, sdk or twin. Only the twin needs the simulator."""
    if name == "sdk":
        return SdkLink()
    if name == "twin":
        from ncap.deploy.twin import Twin

        return TwinLink(Twin(seed=seed))
    return LcmLink(lcm_url(name))


def fly(
    policy: str,
    link_name: str,
    *,
    armed: bool,
    rearm: bool,
    seconds: float,
    seed: int,
    out: Path | None,
    report: Callable[[str], None],
    schedule: Schedule | None = None,
) -> tuple[Outcome, Path]:
    """Fly a policy by name on a link by name. Returns what it came to and the flight's folder."""
    if not seconds > 0:
        raise UserError(f"the policy must run for more than 0 s, not {seconds:g}")
    pilot = find_pilot(policy)
    with ExitStack() as stack:
        link = open_link(link_name, seed)
        stack.callback(link.close)
        lock = stack.enter_context(CommanderLock(link.name, rearm=rearm)) if armed else None
        if armed and isinstance(link, LcmLink):
            stack.enter_context(Guard(link.name))
        folder = out or Path("flights") / time.strftime("%Y-%m-%d-%H%M%S")
        facts = FlightFacts(
            title=f"{policy} on {link.name}{'' if armed else ', dry run'}",
            task=pilot.task,
            policy_checksum=pilot.checksum,
            link=link.name,
            armed=armed,
            seed=seed,
            neuron_names=pilot.neuron_names,
        )
        recorder = stack.enter_context(FlightRecorder(folder, facts))
        deployment = Deployment(
            link,
            pilot,
            armed=armed,
            schedule=schedule or Schedule(policy=seconds),
            seed=seed,
            recorder=recorder,
            report=report,
        )
        stack.enter_context(stopped_by_signals(deployment))
        try:
            outcome = deployment.run()
        except UserError:
            raise
        except BaseException as error:
            if lock is not None:
                lock.latch(f"the program failed: {type(error).__name__}")
            raise
        if lock is not None and outcome.fault is not None:
            lock.latch(f"{outcome.fault.kind}: {outcome.fault.detail}")
        return outcome, folder
