"""A whole flight as a command starts it: link, lock, guard, recorder, signals, and the loop in the middle of them."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from ncap.deploy.contract import check_policy, robot_of
from ncap.deploy.dds_link import DdsLink, is_dds
from ncap.deploy.driving import ConstantDriver, Driver, check_drivable
from ncap.deploy.flight import FlightRecorder, facts_about
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.go1_link import Go1Link, is_go1
from ncap.deploy.guard import Guard
from ncap.deploy.keyboard import HINT, KeyboardDriver, Terminal
from ncap.deploy.link import LcmLink, Link, SdkLink, TwinLink, lcm_url
from ncap.deploy.lock import CommanderLock
from ncap.deploy.loop import Deployment
from ncap.deploy.motion_service import MotionService, check_legs_folded
from ncap.deploy.phases import Outcome, Schedule
from ncap.deploy.remote import RemoteDriver
from ncap.deploy.signals import stopped_by_signals
from ncap.errors import UserError
from ncap.sim.robot import Robot
from ncap.trained import TrainedPolicy


def open_link(
    name: str, seed: int, robot: Robot, *, paced: bool = False, simulator: bool = False, limp: bool = False
) -> Link:
    """The link of that name: lcm://…, dds://…, go1://…, sdk, twin, or twin:back (left, right).

    Only the twin needs the simulator, the seed and the robot. paced: a twin's time is no faster than the clock.
    simulator: what is there over DDS may leave out tick and checksum. limp: a Go1's motors may be made limp at once.
    """
    if name == "sdk":
        return SdkLink()
    kind, _, lying = name.partition(":")
    if kind == "twin":
        from ncap.deploy.twin import Twin

        return TwinLink(Twin(seed=seed, robot=robot, lying=lying or "belly"), paced=paced)
    if is_dds(name):
        return DdsLink(name, simulator=simulator)
    if is_go1(name):
        return Go1Link(name, limp=limp)
    return LcmLink(lcm_url(name))


def fly(
    policy: TrainedPolicy,
    plan: FlightPlan,
    report: Callable[[str], None],
    schedule: Schedule | None = None,
    *,
    command: float | None = None,
) -> tuple[Outcome, Path]:
    """(outcome, folder) of one flight of a policy. `report` gets lines for the operator.

    A schedule replaces the usual durations of the phases, and then the plan's seconds. A command is given to the
    circuit all the time, in place of what a brainstem makes of wishes.
    """
    check_policy(policy)
    if (plan.simulator or plan.give_back) and not is_dds(plan.link):
        raise UserError("--simulator and --give-back are for dds:// links only")
    if plan.limp and not is_go1(plan.link):
        raise UserError("--limp is for go1:// links only")
    terminal, driver = _driver(policy, plan, command)
    robot = robot_of(policy, plan.robot)
    body = "go2" if is_dds(plan.link) else "go1" if is_go1(plan.link) else robot.name
    if plan.robot is None and not robot.name.startswith(body):
        raise UserError(
            f"{policy.name} would fly with the data sheet of {robot.name}, but {plan.link} is a {body}'s link:"
            f" say --robot {body}, or --robot {robot.name} if that is there"
        )
    with ExitStack() as stack:
        paced, limp = terminal is not None, plan.arm or plan.limp
        link = open_link(plan.link, plan.seed, robot, paced=paced, simulator=plan.simulator, limp=limp)
        stack.callback(link.close)
        lock = stack.enter_context(CommanderLock(link.name, rearm=plan.rearm)) if plan.arm else None
        service = MotionService(link.end) if isinstance(link, DdsLink) else None
        released = _take_over(service, link, plan, report) if service is not None else ""
        networked = isinstance(link, LcmLink | DdsLink | Go1Link)
        guard = stack.enter_context(Guard(link.name)) if plan.arm and networked else None
        folder = plan.out or Path("flights") / time.strftime("%Y-%m-%d-%H%M%S")
        facts = facts_about(policy, robot, link=link.name, armed=plan.arm, seed=plan.seed)
        recorder = stack.enter_context(FlightRecorder(folder, facts))
        deployment = Deployment(
            link,
            policy,
            armed=plan.arm,
            right=plan.right,
            schedule=schedule or Schedule(policy=plan.policy_seconds),
            robot=robot,
            seed=plan.seed,
            command=command,
            driver=driver,
            recorder=recorder,
            guard=guard,
            lock=lock,
            report=report,
        )
        stack.enter_context(stopped_by_signals(deployment))
        if terminal is not None:
            stack.enter_context(terminal)
            report(HINT)
        outcome = _run(deployment, lock)
        if service is not None and released and plan.give_back and outcome.fault is None:
            given = service.select(released)
            report(f"motion service: {'given back to' if given else 'does not take back'} {released!r}")
    outcome.unrecorded = recorder.failure
    return outcome, folder


def _take_over(service: MotionService, link: Link, plan: FlightPlan, report: Callable[[str], None]) -> str:
    """The name of the robot's own mode that was released, if one was. Only an armed flight releases it."""
    if plan.simulator:
        report("simulator: states need neither tick nor checksum; their clock is the time at which they were written")
    mode = service.mode()
    if mode is None:
        if plan.arm and not plan.simulator:
            raise UserError(
                f"the robot's motion service does not answer on {link.name}: is it the right interface, and is the"
                " robot on? Nothing was sent; a simulator without that service needs --simulator"
            )
        report("motion service: no answer")
        return ""
    report(f"motion service: {f'the own controller {mode!r} is active' if mode else 'no own controller is active'}")
    if mode and plan.arm:
        check_legs_folded(link)
        service.release()
        report(f"motion service: {mode!r} is released")
    return mode if plan.arm else ""


def _driver(policy: TrainedPolicy, plan: FlightPlan, command: float | None) -> tuple[Terminal | None, Driver | None]:
    """(terminal, driver) that a plan asks for; a driver only where the policy can be driven or should be."""
    if plan.drive == "none" and not plan.wishes:
        return None, None
    check_drivable(policy)
    if command is not None:
        raise UserError("--command says what the brainstem says for --drive, --speed and --yaw: leave out one of them")
    if plan.drive == "keyboard":
        terminal = Terminal()
        return terminal, KeyboardDriver(terminal, plan.wish)
    return None, RemoteDriver() if plan.drive == "remote" else ConstantDriver(plan.wish)


def _run(deployment: Deployment, lock: CommanderLock | None) -> Outcome:
    """Fly, and keep in the lock how it ended: nothing after a good end, a fault after any other one."""
    fault = ""
    try:
        outcome = deployment.run()
        if outcome.fault is not None:
            fault = f"{outcome.fault.kind}: {outcome.fault.detail}"
        return outcome
    except OSError as error:
        fault = f"the link failed: {error}"
        raise UserError(f"the link to the robot failed: {error}") from None
    except BaseException as error:
        fault = f"the program failed: {type(error).__name__}"
        raise
    finally:
        if lock is not None and deployment.outcome.sent:
            with suppress(UserError):  # on a full disk it still says that the flight was not finished
                lock.latch(fault)
