"""How long the phases of a flight take, and what is known of a flight when it has ended."""

from dataclasses import dataclass, field

from ncap.deploy.safety import Fault


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Durations of a flight's phases, s."""

    calibration: float = 0.5
    low: float = 2.0
    stand: float = 2.0
    hold: float = 1.0
    policy: float = 15.0
    stop: float = 4.0
    """At most, for a robot that can be driven, until it stands: in mid-stride the way back to the standing pose is a
    fall for some."""
    halt: float = 1.0
    """Back to the standing pose: a robot that sits down in mid-stride falls on its nose."""
    sit: float = 2.0
    damping: float = 3.0


@dataclass(kw_only=True)
class Outcome:
    """Results of a flight."""

    phases: list[tuple[str, float]] = field(default_factory=list)
    """Phases in order, each with its begin by the link's clock, s."""
    fault: Fault | None = None
    stopped: str = ""
    """Why it ended early, if a person or the end of another process caused it; otherwise empty."""
    sent: int = 0
    """Commands that were sent."""
    malformed: int = 0
    """Malformed states that were dropped."""
    warm: bool = False
    """Whether a motor was ever warm enough for a warning."""
    unrecorded: str = ""
    """Why the flight's log or recording is not complete; empty if it is."""
