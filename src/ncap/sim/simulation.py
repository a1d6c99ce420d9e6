"""Many robots stepped together, and what is measured of them at the end of a control step.

Shapes: P individuals; joint signals are (P, site, joint), SI units. Individuals may have different models:
see `World.variant`.
"""

import copy
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

import mujoco
import mujoco.batch
import numpy as np
from numpy.typing import NDArray

from ncap.rotations import rotation_of
from ncap.sim.world import World

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

_NO_SENSORS: Final = int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
_LOG: Final = logging.getLogger("ncap.mujoco")
_told: set[str] = set()
"""Kinds of MuJoCo's warnings that were logged."""


def report_warning(text: str) -> None:
    """Log a warning of MuJoCo, once for each kind: who diverged is in the results, and thousands of lines help nobody.

    MuJoCo calls it from any thread. Without it, MuJoCo would write MUJOCO_LOG.TXT into the working directory.
    """
    kind = text.partition(" at ")[0]
    if kind not in _told:
        _told.add(kind)
        _LOG.warning("MuJoCo: %s Further warnings of this kind are not shown.", text)


if mujoco.get_mju_user_warning() is None:  # a program that has its own keeps it
    mujoco.set_mju_user_warning(report_warning)


class Measurements(NamedTuple):
    """What is known of all individuals at the end of a control step. Copies: nothing here changes later."""

    joint_position: Array
    joint_velocity: Array
    torque: Array
    """Applied by the motors in the last physics step."""
    foot_force: Array
    """(P, foot) normal force, N."""
    trunk_touches: Mask
    """(P,) whether the trunk touches the ground."""
    position: Array
    """(P, 3) of the trunk in the world, m."""
    quaternion: Array
    """(P, 4) w x y z of the trunk."""
    velocity: Array
    """(P, 3) of the trunk in its own frame, m/s."""
    angular_velocity: Array
    """(P, 3) of the trunk in its own frame, rad/s."""
    up: Array
    """(P, 3) the vertical in the trunk's frame: (0, 0, 1) when level, whatever the heading."""


class Simulation:
    """P robots on a thread pool. Results depend neither on the threads nor on the other individuals."""

    def __init__(self, world: World, individuals: int, *, control_dt: float, threads: int) -> None:
        self.world, self.individuals = world, individuals
        self.substeps = round(control_dt / world.model.opt.timestep)
        self._models = [world.model] * individuals
        self._batch = mujoco.batch.Batch(world.model, individuals, threads)
        bind = self._batch.bind
        self._qpos, self._qvel, self._ctrl = bind("qpos"), bind("qvel"), bind("ctrl")
        self._sensors, self._force = bind("sensordata"), bind("actuator_force")

    def place(self, ids: Indices, models: Sequence[mujoco.MjModel], qpos: Array, qvel: Array) -> None:
        """Put individuals, each on its model, into states (n, nq) and (n, nv), and compute what sensors say there."""
        self.exchange(ids, models)
        self._show_sensors(True)
        self._batch.reset(ids, stage=mujoco.mjtStage.mjSTAGE_NONE)
        self._qpos[ids], self._qvel[ids] = qpos, qvel
        self._ctrl[ids] = self.world.robot.at_rest(qpos[:, self.world.position_columns])
        self._batch.forward(ids)

    def exchange(self, ids: Indices, models: Sequence[mujoco.MjModel]) -> None:
        """Give individuals other models, of the same robot, and leave their states as they are."""
        for i, model in zip(ids, models, strict=True):
            self._models[i] = model
        self._batch.set_models(self._models)
        self._distinct = list({id(model): model for model in self._models}.values())

    def push(self, ids: Indices, velocity: Array) -> None:
        """Add a velocity (3,) in the world, m/s, to the whole of these robots, as a blow would."""
        self._qvel[ids, 0:3] += velocity

    def _show_sensors(self, shown: bool) -> None:
        for model in self._distinct:
            flags = int(model.opt.disableflags)
            model.opt.disableflags = flags & ~_NO_SENSORS if shown else flags | _NO_SENSORS

    def step(self, alive: Indices, targets: Array) -> Indices:
        """Move the individuals `alive` by one control step with controls (P, site, joint), of legs their joint targets.

        Returns those whose simulation failed or warned; they must not be stepped again. Sensors are computed in the
        last physics step only.
        """
        self._ctrl[:] = targets.reshape(self.individuals, -1)
        warnings = self._batch.warning[:, :, 1].sum(axis=1)
        failed: set[int] = set()
        ids = None if len(alive) == self.individuals else alive  # everybody needs no check
        for steps, shown in ((self.substeps - 1, False), (1, True)):
            self._show_sensors(shown)
            try:
                self._batch.step(ids, nstep=steps)
            except mujoco.batch.SimulationError as error:
                failed.update(int(i) for i in error.ids)
        failed.update(np.flatnonzero(self._batch.warning[:, :, 1].sum(axis=1) > warnings).tolist())
        if not np.isfinite(self._qpos).all():
            failed.update(alive[~np.isfinite(self._qpos[alive]).all(axis=1)].tolist())
        return np.array(sorted(failed), dtype=np.int64)

    def state(self, individual: int) -> Array:
        """Generalised position (nq,), a copy."""
        position: Array = self._qpos[individual].copy()
        return position

    def model(self, individual: int) -> mujoco.MjModel:
        """A copy of the individual's model."""
        return copy.copy(self._models[individual])

    def measure(self) -> Measurements:
        """Measure all individuals as they are now."""
        world, feet = self.world, len(self.world.foot_geoms)
        shape = (self.individuals, *world.robot.mid.shape)
        rotation = rotation_of(self._qpos[:, 3:7])
        return Measurements(
            joint_position=self._qpos[:, world.position_columns].reshape(shape),
            joint_velocity=self._qvel[:, world.velocity_columns].reshape(shape),
            torque=self._force.reshape(shape).copy(),
            foot_force=self._sensors[:, :feet].copy(),
            trunk_touches=self._sensors[:, feet] > 0,
            position=self._qpos[:, 0:3].copy(),
            quaternion=self._qpos[:, 3:7].copy(),
            velocity=np.einsum("pij,pi->pj", rotation, self._qvel[:, 0:3]),
            angular_velocity=self._qvel[:, 3:6].copy(),
            up=rotation[:, 2],
        )
