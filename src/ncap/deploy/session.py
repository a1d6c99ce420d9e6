"""A whole flight as a command starts it: link, lock, guard, recorder, signals, and the loop in the middle of them."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from ncap.deploy.contract import check_policy, robot_of
from ncap.deploy.driving import ConstantDriver, Driver, check_drivable
from ncap.deploy.flight import FlightRecorder, facts_about
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.guard import Guard
from ncap.deploy.keyboard import HINT, KeyboardDriver, Terminal
from ncap.deploy.link import LcmLink, Link, SdkLink, TwinLink, lcm_url
from ncap.deploy.lock import CommanderLock
from ncap.deploy.loop import Deployment, stopped_by_signals
from ncap.deploy.phases import Outcome, Schedule
from ncap.deploy.remote import RemoteDriver
from ncap.errors import UserError
from ncap.sim.robot import Robot
from ncap.trained import TrainedPolicy


def open_link(name: str, seed: int, robot: Robot, *, paced: bool = False) -> Link:
    """The link of that name: lcm://…, sdk, twin, or twin:back (left, right).

    Only the twin needs the simulator, the seed and the robot. paced: a twin's time is no faster than the clock.
    """
    if name == "sdk":
        return SdkLink()
    kind, _, lying = name.partition(":")
    if kind == "twin":
        from ncap.deploy.twin import Twin

        return TwinLink(Twin(seed=seed, robot=robot, lying=lying or "belly"), paced=paced)
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
    terminal, driver = _driver(policy, plan, command)
    robot = robot_of(policy, plan.robot)
    with ExitStack() as stack:
        link = open_link(plan.link, plan.seed, robot, paced=terminal is not None)
        stack.callback(link.close)
        lock = stack.enter_context(CommanderLock(link.name, rearm=plan.rearm)) if plan.arm else None
        guard = stack.enter_context(Guard(link.name)) if plan.arm and isinstance(link, LcmLink) else None
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
    outcome.unrecorded = recorder.failure
    return outcome, folder


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
