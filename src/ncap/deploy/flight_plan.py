"""What a person decides about a flight, as data that the command line reads; without NumPy, so that --help is quick."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ncap.deploy.wishes import DRIVES, SLOW_WALK, STAND, Wish, check_wish
from ncap.errors import UserError, unknown_name

LONGEST_FLIGHT: Final = 86_400.0
"""Longest flight, s: a day."""
USUAL_SECONDS: Final = 15.0
"""Time for which a policy drives that nobody drives, s."""


@dataclass(frozen=True, kw_only=True)
class FlightPlan:
    """Where a policy flies, for how long, and whether commands are sent."""

    link: str
    """lcm://GROUP:PORT?ttl=1 (or just lcm:// on this host), dds://INTERFACE or dds://INTERFACE?domain=1 (a Go2), go1://
    or go1://HOST:PORT?local=PORT (a Go1), sdk, or twin (a simulated robot in this process, on its belly; twin:back,
    twin:left and twin:right lie otherwise)."""
    robot: str | None = None
    """a1, go1, go2, a data sheet (.json), or a Python file that registers a robot; by default the policy's own."""
    arm: bool = False
    """Send commands: the robot will move."""
    rearm: bool = False
    """Take back the fault that ended the last flight, after you have looked at the robot."""
    right: bool = False
    """Turn a robot that lies on its back or side onto its belly before it rises."""
    seconds: float | None = None
    """Time for which the policy drives, s; by default 15, and with --drive until the driver ends it."""
    drive: str = "none"
    """Who drives a policy that can turn: none (a constant wish), keyboard (I, K, J, L or arrows, space stands, q ends)
    or remote (the robot's own)."""
    speed: float | None = None
    """Wanted speed in [0, 1] m/s of a policy that can be driven; by default 0.3, and 0 with --drive keyboard."""
    yaw: float | None = None
    """Wanted yaw rate in [-0.6, 0.6] rad/s, positive to the left; by default 0."""
    seed: int = 0
    """Seed of the rhythm's start, and of the twin if there is one."""
    simulator: bool = False
    """Over DDS there is a simulator such as unitree_mujoco, which may leave out tick, checksum and motion service; its
    clock is then the time at which DDS says that a state was written. Never for a robot."""
    give_back: bool = False
    """After a flight without a fault, let the robot's own controller go on that was active before (DDS only): it may
    stand up."""
    limp: bool = False
    """Over go1:// make the motors limp in a dry run, too: a Go1 tells its state only to a computer that commands it. A
    robot that stands falls."""
    out: Path | None = None
    """Folder of the flight's log and recording; by default flights/DATE-TIME."""

    def __post_init__(self) -> None:
        check_seconds(self.policy_seconds, "the policy must run")
        check_seed(self.seed)
        if self.drive not in DRIVES:
            raise unknown_name("driver", self.drive, DRIVES)
        if self.drive == "remote" and self.wishes:
            raise UserError("--speed and --yaw say what the sticks of --drive remote say: leave out one of them")
        check_wish(self.wish)
        if "\0" in str(self.out):
            raise UserError(f"a folder cannot have the name {str(self.out)!r}")

    @property
    def policy_seconds(self) -> float:
        """Time for which the policy drives, s."""
        if self.seconds is not None:
            return self.seconds
        return USUAL_SECONDS if self.drive == "none" else LONGEST_FLIGHT

    @property
    def wishes(self) -> bool:
        """Whether a speed or a yaw rate is asked for."""
        return self.speed is not None or self.yaw is not None

    @property
    def wish(self) -> Wish:
        """What is wanted at the beginning, and all the time if nobody drives."""
        begin = SLOW_WALK if self.drive == "none" else STAND
        return Wish(begin.speed if self.speed is None else self.speed, self.yaw or 0.0)


def check_seconds(seconds: float, what: str) -> float:
    """The time in s, if something can take so long: `what` begins the sentence for a time that is not."""
    if not 0 < seconds <= LONGEST_FLIGHT:
        raise UserError(f"{what} for more than 0 s and at most {LONGEST_FLIGHT:g} s, not {seconds:g}")
    return seconds


def check_seed(seed: int) -> int:
    """The seed, if it is one: a seed is a whole number from 0 on."""
    if seed < 0:
        raise UserError(f"seed {seed} is negative: seeds are 0, 1, 2, …")
    return seed
