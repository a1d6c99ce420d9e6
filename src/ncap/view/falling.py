"""What the robot of the live page does from a fall until it walks again."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.righting import GettingUp

Array = NDArray[np.float64]

FALL_PAUSE: Final = 1.5
"""Time between a fall and the next start, or the first move of a robot that gets up, s."""


class Falling:
    """One robot: it stands, or it lies for a while and then gets up, if it is to."""

    def __init__(self, standing: Array, limits: tuple[Array, Array]) -> None:
        """standing: (leg, 3) the pose to get up to, rad. limits: lowest and highest position of every joint, rad."""
        self._standing, self._limits = standing, limits
        self.stand()

    def stand(self) -> None:
        """Forget the last fall: the robot is on its feet."""
        self._lies_for: float | None = None
        self._way_up: GettingUp | None = None

    @property
    def fallen(self) -> bool:
        """Whether it has fallen and does not yet walk again."""
        return self._lies_for is not None

    @property
    def getting_up(self) -> bool:
        """Whether it is on its way up."""
        return self._way_up is not None

    @property
    def stands_again(self) -> bool:
        """Whether it got up."""
        return self._way_up is not None and self._way_up.state == "done"

    def feel(self, fallen: bool, dt: float) -> bool:
        """A control step of dt s ends; returns whether the robot fell in it."""
        new = fallen and self._lies_for is None
        if new:
            self._lies_for = 0.0
        if self._lies_for is not None:
            self._lies_for += dt
        return new

    def targets(self, up: Array, joints: Array, dt: float) -> Array:
        """Joint targets (leg, 3) of a fallen robot: where its joints are for FALL_PAUSE, then those of the way up.

        up: (3,) the vertical in the trunk's frame. joints: (leg, 3) measured joint positions, rad.
        """
        here: Array = np.clip(joints, *self._limits)
        if self._lies_for is not None and self._lies_for < FALL_PAUSE:
            return here
        if self._way_up is None:
            self._way_up = GettingUp(here, self._standing)
        return self._way_up.step(up, here, dt)

    def for_good(self, *, gets_up: bool) -> bool:
        """Whether it will not get up, as it is to do or not."""
        if gets_up:
            return self._way_up is not None and self._way_up.state == "given up"
        return (self._lies_for or 0.0) > FALL_PAUSE
