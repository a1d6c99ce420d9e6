"""Commands about a robot: deploy a policy, simulate a robot, make a flight's recording."""

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import tyro

from ncap.cli.app import app
from ncap.cli.choice import Brain, BrainWords
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.gap import Gap
from ncap.errors import UserError, unknown_name

OWN: Final = Brain()
NO_GAP: Final = Gap()


@app.command
def deploy(
    policy: Annotated[str, tyro.conf.Positional],
    plan: Annotated[FlightPlan, tyro.conf.OmitArgPrefixes],
    brain: BrainWords = OWN,
) -> None:
    """Drive a robot with a policy. A dry run unless --arm is given: it reads, computes, and sends nothing.

    Ctrl-C sits the robot down, a second one damps it at once. Read docs/how-to/deploy.md before you arm.

    Examples: `ncap deploy untrained --link twin --arm`, `ncap deploy ncap-flat-walk --link lcm://?ttl=1`,
    `ncap deploy untrained --robot go2 --link dds://eth0`, `ncap deploy ncap-flat-walk --link twin --without V0v --arm`,
    `ncap deploy ncap-drive --link twin --drive keyboard --arm`.

    Args:
        policy: zero, untrained, a shipped one such as ncap-flat-walk, a run directory (its best) or a file.
        plan: Where the policy flies, and whether commands are sent.
        brain: How the policy's circuit differs from what its file says.

    """
    from ncap.deploy.session import fly

    _say("ARMED: the robot will move" if plan.arm else "dry run: nothing is sent; --arm sends")
    outcome, folder = fly(brain.find(policy), plan, report=_say, command=brain.command)
    _say(f"{outcome.sent} commands sent, {outcome.malformed} malformed datagrams dropped; flight: {folder}")
    _sum_up(folder)
    if outcome.unrecorded:
        _complain(f"the flight's record is not complete: {outcome.unrecorded}")
    if outcome.fault is not None:
        _complain(f"damped by a fault, {outcome.fault.kind}: {outcome.fault.detail}")
        raise SystemExit(1)
    if outcome.stopped:
        _complain(outcome.stopped)
        raise SystemExit(130)
    if outcome.unrecorded:
        raise SystemExit(1)


def _sum_up(folder: Path) -> None:
    """Say what a flight was like, as far as it was recorded."""
    from ncap.deploy.summary import summarise

    try:
        found = summarise(folder)
    except UserError:  # which the flight's own outcome tells
        return
    _say("the policy never drove" if found is None else str(found))
    _say(f"look at it: ncap replay {shlex.quote(str(folder))} --out flight.html")


def _say(line: str) -> None:
    """Print a line for the operator. A terminal that is gone, or a full disk behind it, must not end a flight."""
    try:
        print(line, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is still in its buffer must not fail at the end


def _complain(line: str) -> None:
    with suppress(OSError):
        print(f"ncap: {line}", file=sys.stderr, flush=True)


@app.command
def twin(
    link: str = "lcm://",
    seconds: float | None = None,
    seed: int = 0,
    robot: str = "a1",
    gap: Annotated[Gap, tyro.conf.OmitArgPrefixes] = NO_GAP,
    fault: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME@SECONDS …")] = (),
    remote: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME@SECONDS …")] = (),
    lying: str = "belly",
    mode: str = "",
) -> None:
    """Simulate a robot on an LCM or DDS network in real time, as different from the trained one as you like.

    Examples: `ncap twin`, `ncap twin --latency 0.02 --loss 0.05 --mass 1.2`, `ncap twin --fault silence@12`,
    `ncap twin --robot go2 --link dds://lo --mode normal`.

    Args:
        link: lcm:// or lcm://GROUP:PORT?ttl=1 (an A1's messages), dds://INTERFACE or dds://INTERFACE?domain=1 (Go2's).
        seconds: Time to run, s; by default until Ctrl-C.
        seed: Seed of noise, bias and lost messages.
        robot: a1, go1, go2, a data sheet (.json), or a Python file that registers a robot.
        gap: How this robot differs from the simulated one of training.
        fault: What goes wrong, and when; a wrong name lists the valid ones.
        remote: What its remote says, and from when on: centre, forward, left, right, stop or silent.
        lying: What it lies on: belly, back, left or right.
        mode: The robot's own controller that is active until somebody releases it, over DDS: normal, ai, advanced, mcf.

    """
    from ncap.deploy.dds_end import find_dds_address
    from ncap.deploy.dds_link import is_dds
    from ncap.deploy.flight_plan import check_seconds
    from ncap.deploy.link import lcm_url
    from ncap.deploy.motion_service import MODES
    from ncap.deploy.remote import NAMED
    from ncap.deploy.serving import WIRES, serve
    from ncap.deploy.twin import Twin
    from ncap.sim.robot import find_robot

    if seconds is not None:
        check_seconds(seconds, "a twin runs")
    faults = [_at(word, "a fault is written like silence@12") for word in fault]
    said = [_at(word, "what a remote says is written like forward@12") for word in remote]
    for _, name in said:
        if name not in NAMED:
            raise unknown_name("word of a remote", name, NAMED)
    if mode and not is_dds(link):
        raise UserError("--mode is for dds:// links only")
    if mode and mode not in MODES:
        raise unknown_name("mode of a robot", mode, MODES)
    address = find_dds_address(link).url if is_dds(link) else lcm_url(link)
    script, wire = [(moment, NAMED[name]) for moment, name in said], WIRES[is_dds(link)]
    body = Twin(gap, seed=seed, robot=find_robot(robot), faults=faults, remote=script, lying=lying, wire=wire)
    _say(f"a twin lies on its {lying} at {link}")
    serve(body, address, seconds, mode=mode)
    _say(
        f"{body.heard} commands heard; dropped: {body.malformed} malformed, {body.refused} not finite, {body.noise}"
        f" that were no messages; gains limited in {body.limited}"
    )


def _at(word: str, form: str) -> tuple[float, str]:
    """(time in s, name) in a word like silence@12."""
    name, _, moment = word.partition("@")
    try:
        return float(moment), name
    except ValueError:
        raise UserError(f"{form}, not {word!r}") from None


@app.command
def flight(folder: Annotated[Path, tyro.conf.Positional]) -> None:
    """Make the recording of a flight from its log, also of a flight that was cut short.

    Args:
        folder: A flight's folder, as `ncap deploy` names it.

    """
    from ncap.deploy.flight import write_recording

    print(f"recording: {write_recording(folder)}")
