"""Commands about a robot: deploy a policy, be a simulated robot, look at a flight."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from ncap.cli.app import app
from ncap.errors import UserError


@app.command
def deploy(
    policy: Annotated[str, tyro.conf.Positional],
    link: str,
    arm: bool = False,
    rearm: bool = False,
    seconds: float = 15.0,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Drive a robot with a policy. A dry run unless --arm is given: it reads, computes, and sends nothing.

    Ctrl-C sits the robot down, a second one damps it at once. Read docs/deploy.md before you arm.

    Examples: `ncap deploy untrained --link twin --arm`, `ncap deploy ncap-flat-walk --link lcm://?ttl=1`.

    Args:
        policy: zero, untrained, a shipped one such as ncap-flat-walk, a run directory (its best) or a file.
        link: lcm://GROUP:PORT?ttl=1 (or just lcm:// on this host), sdk, or twin (a simulated robot in this process).
        arm: Send commands: the robot will move.
        rearm: Take back the fault that ended the last flight, after you have looked at the robot.
        seconds: How long the policy drives.
        seed: Which of the rhythm's starts is taken.
        out: Folder of the flight's log and recording; by default flights/DATE-TIME.

    """
    from ncap.deploy.session import fly

    print("ARMED: the robot will move" if arm else "dry run: nothing is sent; --arm sends", flush=True)
    outcome, folder = fly(
        policy,
        link,
        armed=arm,
        rearm=rearm,
        seconds=seconds,
        seed=seed,
        out=out,
        report=lambda line: print(line, flush=True),
    )
    print(f"{outcome.sent} commands sent, {outcome.malformed} malformed states dropped; flight: {folder}")
    if outcome.fault is not None:
        print(f"ncap: damped by a fault, {outcome.fault.kind}: {outcome.fault.detail}", file=sys.stderr)
        raise SystemExit(1)
    if outcome.stopped:
        print(f"ncap: {outcome.stopped}", file=sys.stderr)
        raise SystemExit(130)


@app.command
def twin(
    link: str = "lcm://",
    seconds: float | None = None,
    seed: int = 0,
    latency: float = 0.0,
    jitter: float = 0.0,
    loss: float = 0.0,
    duplication: float = 0.0,
    noise: float = 0.0,
    bias: float = 0.0,
    foot_force_offset: float = 0.0,
    mass: float = 1.0,
    friction: float = 1.0,
    gains: float = 1.0,
    strength: float = 1.0,
    fault: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME@SECONDS …")] = (),
) -> None:
    """Be a simulated A1 on an LCM network in real time, as different from the trained one as you like.

    Examples: `ncap twin`, `ncap twin --latency 0.02 --loss 0.05 --mass 1.2`, `ncap twin --fault silence@12`.

    Args:
        link: lcm:// or lcm://GROUP:PORT?ttl=1.
        seconds: How long to live; by default until Ctrl-C.
        seed: Seed of noise, bias and lost messages.
        latency: Seconds that every message takes, in either direction.
        jitter: Seconds by which a message may take longer.
        loss: Share of messages that are lost.
        duplication: Share of messages that arrive twice.
        noise: Of the sensors; 1 is 0.01 rad, 0.5 rad/s, 1 N m and 3 N.
        bias: Of the sensors, constant; 1 is 0.03 rad and 1 N m.
        foot_force_offset: Newton that every foot reports without load.
        mass: Factor on the trunk's mass.
        friction: Of the feet on the ground.
        gains: Factor on the motors' gains.
        strength: Factor on the motors' torque.
        fault: What goes wrong, and when; a wrong name lists the valid ones.

    """
    from ncap.deploy.gap import Gap
    from ncap.deploy.link import lcm_url
    from ncap.deploy.twin import Twin, check_fault, serve

    gap = Gap(
        latency=latency,
        jitter=jitter,
        loss=loss,
        duplication=duplication,
        noise=noise,
        bias=bias,
        foot_force_offset=foot_force_offset,
        mass=mass,
        friction=friction,
        gains=gains,
        strength=strength,
    )
    faults = []
    for word in fault:
        name, _, moment = word.partition("@")
        try:
            faults.append((float(moment), check_fault(name)))
        except ValueError:
            raise UserError(f"a fault is written like silence@12, not {word!r}") from None
    robot = Twin(gap, seed=seed, faults=faults)
    print(f"a twin lies on its belly at {link}", flush=True)
    serve(robot, lcm_url(link), seconds)
    print(f"{robot.heard} commands heard, {robot.malformed} malformed ones dropped")


@app.command
def flight(folder: Annotated[Path, tyro.conf.Positional]) -> None:
    """Make the recording of a flight from its log, also of a flight that was cut short.

    Args:
        folder: A flight's folder, as `ncap deploy` names it.

    """
    from ncap.deploy.flight import write_recording

    print(f"recording: {write_recording(folder)}")
