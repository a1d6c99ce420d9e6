"""A whole flight as a command starts it: link, lock, guard, recorder, signals, and the loop in the middle of them."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from ncap.deploy.contract import check_policy, robot_of
from ncap.deploy.flight import FlightRecorder, facts_about
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.guard import Guard
from ncap.deploy.link import LcmLink, Link, SdkLink, TwinLink, lcm_url
from ncap.deploy.lock import CommanderLock
from ncap.deploy.loop import Deployment, Outcome, Schedule, stopped_by_signals
from ncap.errors import UserError
from ncap.sim.robot import Robot
from ncap.trained import TrainedPolicy


def open_link(name: str, seed: int, robot: Robot) -> Link:
    """The link of that name: lcm://…, sdk or twin. Only the twin needs the simulator, the seed and the robot."""
    if name == "sdk":
        return SdkLink()
    if name == "twin":
        from ncap.deploy.twin import Twin

        return TwinLink(Twin(seed=seed, robot=robot))
    return LcmLink(lcm_url(name))


def fly(
    policy: TrainedPolicy,
    plan: FlightPlan,
    report: Callable[[str], None],
    schedule: Schedule | None = None,
) -> tuple[Outcome, Path]:
    """(outcome, folder) of one flight of a policy. `report` gets lines for the operator.

    A schedule replaces the usual durations of the phases, and then the plan's seconds.
    """
    check_policy(policy)
    robot = robot_of(policy, plan.robot)
    with ExitStack() as stack:
        link = open_link(plan.link, plan.seed, robot)
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
            schedule=schedule or Schedule(policy=plan.seconds),
            robot=robot,
            seed=plan.seed,
            recorder=recorder,
            guard=guard,
            lock=lock,
            report=report,
        )
        stack.enter_context(stopped_by_signals(deployment))
        outcome = _run(deployment, lock)
    outcome.unrecorded = recorder.failure
    return outcome, folder


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
