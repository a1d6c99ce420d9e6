"""The paths on the ground of the live page: where the robot went, and where the last wish would have led it."""

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.rotations import heading_of

Array = NDArray[np.float64]

EVERY: Final = 5
"""Control steps between two points of a path."""
POINTS: Final = 300
"""Points of a path that are kept."""


class Paths:
    """Both paths of one robot, as points (2,): x and y in the world, m."""

    def __init__(self, position: Array, quaternion: Array) -> None:
        """They begin at a trunk's position (3,), m, and orientation (4,)."""
        self.went: deque[Array] = deque(maxlen=POINTS)
        self._steps = 0
        self.wish_anew(position, quaternion)

    def wish_anew(self, position: Array, quaternion: Array) -> None:
        """What is wanted from now on begins where the robot is."""
        self._pose = np.array([*position[:2], *heading_of(quaternion[None])])
        self.wanted: deque[Array] = deque([self._pose[:2]], maxlen=POINTS)

    def step(self, position: Array, speed: float, yaw_rate: float, dt: float) -> None:
        """A control step of dt s ends at a position (3,); speed, m/s, and yaw rate, rad/s, were wanted in it."""
        x, y, heading = self._pose
        way = speed * dt
        self._pose = np.array([x + way * np.cos(heading), y + way * np.sin(heading), heading + yaw_rate * dt])
        self._steps += 1
        if self._steps % EVERY == 0:
            self.went.append(position[:2].copy())
            self.wanted.append(self._pose[:2])
