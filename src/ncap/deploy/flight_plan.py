"""What a person decides about a flight, as data that the command line reads; without NumPy, so that --help is quick."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ncap.errors import UserError

LONGEST_FLIGHT: Final = 86_400.0
"""Longest flight, s: a day."""


@dataclass(frozen=True, kw_only=True)
class FlightPlan:
    """Where a policy flies, for how long, and whether commands are sent."""

    link: str
    """lcm://GROUP:PORT?ttl=1 (or just lcm:// on this host), sdk, or twin (a simulated robot in this process)."""
    robot: str | None = None
    """a1, go1, go2, a data sheet (.json), or a Python file that registers a robot; by default the policy's own."""
    arm: bool = False
    """Send commands: the robot will move."""
    rearm: bool = False
    """Take back the fault that ended the last flight, after you have looked at the robot."""
    seconds: float = 15.0
    """Time for which the policy drives, s."""
    seed: int = 0
    """Seed of the rhythm's start, and of the twin if there is one."""
    out: Path | None = None
    """Folder of the flight's log and recording; by default flights/DATE-TIME."""

    def __post_init__(self) -> None:
        check_seconds(self.seconds, "the policy must run")
        check_seed(self.seed)
        if "\0" in str(self.out):
            raise UserError(f"a folder cannot have the name {str(self.out)!r}")


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
