"""Pictures of a robot in its world, without a display."""

import warnings
from contextlib import suppress
from importlib import import_module

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError

Array = NDArray[np.float64]
COLLISION_GROUP = 3
SEEN = (0.02, 100.0)
"""Nearest and farthest distance from the camera that is drawn, m."""


class Camera:
    """Follows the trunk. One per model; close it when done."""

    def __init__(
        self, model: mujoco.MjModel, trunk_id: int, width: int = 640, height: int = 480, distance: float = 1.4
    ) -> None:
        self.model, self.trunk_id = model, trunk_id
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        model.vis.map.znear, model.vis.map.zfar = (metres / model.stat.extent for metres in SEEN)
        _load_before_drawing()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # GLFW warns of what the error below says better
                self._renderer = mujoco.Renderer(model, height, width)
        except Exception as error:  # every back end fails in its own way
            raise UserError(
                "no back end to draw with: install libegl1 libgl1-mesa-dri libopengl0, or libosmesa6, "
                f"and see `ncap doctor` ({type(error).__name__}: {error})"
            ) from None
        self._data = mujoco.MjData(model)
        self._view = mujoco.MjvCamera()
        self._view.distance, self._view.azimuth, self._view.elevation = distance, 130.0, -15.0
        self._options = mujoco.MjvOption()
        self._options.geomgroup[COLLISION_GROUP] = 0

    def picture(self, qpos: Array) -> NDArray[np.uint8]:
        """The robot in state qpos (nq,), as (height, width, 3)."""
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self._data)
        self._view.lookat[:] = self._data.xpos[self.trunk_id]
        self._renderer.update_scene(self._data, self._view, self._options)
        picture: NDArray[np.uint8] = self._renderer.render()
        return picture

    def close(self) -> None:
        """Give the drawing context back."""
        self._renderer.close()


def _load_before_drawing() -> None:
    """Load Triton, where it is installed, before Mesa's drivers.

    PyTorch's builds for NVIDIA cards bring it, and load it when an optimiser is made. Both contain LLVM: the process
    ends with a segmentation fault if Triton comes second (3.7.1, Mesa's software renderer).
    """
    with suppress(Exception):  # without it, or with a broken one, nothing is lost
        import_module("triton")
