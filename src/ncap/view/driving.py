"""What a person wants of the robot of the live page, what a brainstem makes of it, and the paths on the ground."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ncap.policies.brainstem import Brainstem
from ncap.view.controls import Controls
from ncap.view.paths import Paths

Array = NDArray[np.float64]


class Driving:
    """The brainstem of one robot, from the start of an episode on."""

    def __init__(self, position: Array, quaternion: Array) -> None:
        """The robot stands at a position (3,), m, and in an orientation (4,)."""
        self._brainstem = Brainstem()
        self.spoken = 0.0
        """The command that the brainstem gave last, in [0, 1]."""
        self.paths = Paths(position, quaternion)
        self.begin_anew(position, quaternion)

    def begin_anew(self, position: Array, quaternion: Array) -> None:
        """Forget what was said and felt: the robot begins where it stands."""
        self._will = self._brainstem.start(1)
        self.paths.wish_anew(position, quaternion)

    def say(self, wish: Controls, motion: tuple[Array, Array], dt: float) -> Mapping[str, Array] | None:
        """What the brainstem says in this step to a robot that is driven; None: its command.

        motion: the measured forward speed, m/s, and yaw rate, rad/s, (1,) each.
        """
        if not wish.driven:
            return None
        wanted = np.array([wish.speed]), np.array([wish.yaw_rate])
        self._will, said = self._brainstem.step(self._will, wanted, motion, dt)
        self.spoken = float(said["c"][0])
        return said

    def step(self, position: Array, dt: float) -> None:
        """A control step of dt s leads the robot to a position (3,), m."""
        self.paths.step(position, float(self._will.speed[0]), float(self._will.yaw_rate[0]), dt)
