"""What a flight was like, in a sentence: how long the policy drove, how far it came, how far the trunk tilted."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ncap.deploy.flight import PHASES, read_log
from ncap.recording import IN_FOLDER, Recording
from ncap.rotations import tilt_deg

POLICY: Final = PHASES.index("policy")
SWAY: Final = 0.6
"""Time between two places by which a way is measured, s, about a stride: the trunk sways within one."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The part of a flight in which the policy drove."""

    seconds: float
    """Its length, s."""
    distance: float
    """From its beginning to its end, as the robot's own sensors tell, m."""
    way: float
    """Length of the way between them, m."""
    tilt: float
    """Largest angle between the trunk's vertical and that of the world, degrees."""

    def __str__(self) -> str:
        speed = self.way / self.seconds if self.seconds else 0.0
        return (
            f"the policy drove for {self.seconds:.1f} s: {self.way:.2f} m of way at {speed:.2f} m/s, "
            f"{self.distance:.2f} m from where it began; largest tilt {self.tilt:.0f}°"
        )


def summarise(folder: Path) -> Summary | None:
    """The summary of a flight in a folder; None if the policy never drove."""
    _, log = read_log(folder)
    recording = Recording.load(folder / IN_FOLDER)
    time = np.asarray(log["time"])
    driven = time[log["phase"] == POLICY]
    if not len(driven):
        return None
    steps, dt = len(recording.position), recording.control_dt
    begun = time[-1] - (steps - 1) * dt  # a long flight's recording has its end only
    first, last = np.clip(np.round((driven[[0, -1]] - begun) / dt).astype(int), 0, steps - 1)
    places = recording.position[first : last + 1, :2]
    return Summary(
        seconds=float(driven[-1] - driven[0]),
        distance=float(np.linalg.norm(places[-1] - places[0])),
        way=float(np.linalg.norm(np.diff(places[:: round(SWAY / dt)], axis=0), axis=1).sum()),
        tilt=max(tilt_deg(quaternion) for quaternion in recording.quaternion[first : last + 1]),
    )
