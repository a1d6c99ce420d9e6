"""A robot on a terrain, compiled for MuJoCo, and its variants for single episodes (friction, mass, gains, bumps)."""

import copy
import math
from dataclasses import dataclass
from typing import Final, Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError, unknown_name
from ncap.sim.body import Body
from ncap.sim.terrain import Terrain, Water

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

GROUND: Final = "ground"
BANKS: Final = ("left bank", "right bank", "far bank", "near bank")
"""Level ground around the bumps: nobody falls off the world."""
BANK: Final = 50.0
"""Width of that ground, m."""
BANK_DEPTH: Final = 0.1
"""How far ground reaches below its surface, m."""
TOUCH_RADIUS: Final = 0.04
"""Radius of the touch sites, m. Twice the foot's: one as small as the foot misses part of the force on bumps."""
CLEARANCE: Final = 0.002
"""Distance between the lowest foot and the ground when a robot is put down, m."""
SETTLE_SECONDS: Final = 0.5
"""Time that a robot on a height field is given to come to rest, s."""


@dataclass(frozen=True, kw_only=True)
class Contact:
    """How contacts are computed. Presets in CONTACTS."""

    cone: Literal["pyramidal", "elliptic"]
    noslip_iterations: int
    foot_dimensions: Literal[3, 6]
    """3: sliding friction only; 6: also torsional and rolling."""
    every_geom: bool
    """Whether all geoms touch the ground and each other, or only those that matter touch the ground."""


CONTACTS: Final = {
    "default": Contact(cone="pyramidal", noslip_iterations=0, foot_dimensions=3, every_geom=False),
    "elliptic": Contact(cone="elliptic", noslip_iterations=0, foot_dimensions=6, every_geom=True),
    "released": Contact(cone="elliptic", noslip_iterations=5, foot_dimensions=6, every_geom=True),
}


@dataclass(frozen=True, kw_only=True)
class Physics:
    """How time is cut into steps. Presets in PHYSICS."""

    longest_step: float
    """s. A control step is cut into as few equal steps as this allows."""
    integrator: Literal["euler", "implicitfast"]
    """implicitfast damps joints more than the paper's Euler: returns differ, and runs on bumps fall."""

    def step(self, control_dt: float) -> float:
        """The physics step within a control step, s."""
        return control_dt / math.ceil(control_dt / self.longest_step - 1e-9)


PHYSICS: Final = {
    "paper": Physics(longest_step=0.001, integrator="euler"),
    "fast": Physics(longest_step=0.0025, integrator="euler"),
    "suite": Physics(longest_step=0.002, integrator="euler"),
}
"""The paper's, in which everything is reported, one to train in, and that of the Control Suite's swimmer;
docs/design/reference-notes.md compares the first two."""


@dataclass(frozen=True, kw_only=True)
class Variation:
    """What may differ from one simulation to the next without compiling anew."""

    friction: float = 1.0
    """Sliding friction between feet and ground."""
    trunk_mass_scale: float = 1.0
    """Factor on the trunk's mass and inertia."""
    kp: float | None = None
    """PD gains; None: the robot's."""
    kd: float | None = None
    motor_strength: float = 1.0
    """Factor on the largest torques."""
    terrain_seed: int = 0


class World:
    """A compiled robot and terrain. Never changed: `variant` gives a model of its own to every episode."""

    def __init__(
        self,
        robot: Body,
        terrain: Terrain,
        *,
        contact: str = "default",
        physics: str = "paper",
        control_dt: float = 0.030,
    ) -> None:
        """Compile with presets of contacts and physics, for control steps of this length, s."""
        if contact not in CONTACTS:
            raise unknown_name("contact preset", contact, CONTACTS)
        if physics not in PHYSICS:
            raise unknown_name("physics preset", physics, PHYSICS)
        self.robot, self.terrain = robot, terrain
        self.model = _compile(robot, terrain, CONTACTS[contact], PHYSICS[physics], control_dt)
        joints = [self.model.joint(name) for names in robot.joints for name in names]
        self.position_columns: Indices = np.array([int(joint.qposadr[0]) for joint in joints])
        self.velocity_columns: Indices = np.array([int(joint.dofadr[0]) for joint in joints])
        limits = [joint.range if self.model.jnt_limited[joint.id] else (-np.inf, np.inf) for joint in joints]
        self.joint_limits: tuple[Array, Array] = tuple(np.array(limits).T.reshape(2, *robot.mid.shape))
        """Lowest and highest joint positions that the model allows, (leg, 3) each, rad."""
        self.trunk_id = self.model.body(robot.trunk).id
        self.foot_geoms: Indices = np.array([self.model.geom(name).id for name in robot.feet], np.int64)
        names = (GROUND,) if terrain.grid is None else (GROUND, *BANKS)
        self.ground_ids: Indices = np.array([self.model.geom(name).id for name in names])
        self.total_mass = float(self.model.body_mass.sum())

    def mass(self, variation: Variation) -> float:
        """The robot's mass, kg."""
        trunk = float(self.model.body_mass[self.trunk_id])
        return self.total_mass + (variation.trunk_mass_scale - 1.0) * trunk

    def variant(self, variation: Variation) -> mujoco.MjModel:
        """A model that differs as asked. The foot's and the ground's friction are both set, so the larger one is it."""
        model = copy.copy(self.model)
        model.geom_friction[[*self.ground_ids, *self.foot_geoms], 0] = variation.friction
        gains = self.robot.gains(variation.kp, variation.kd)
        model.actuator_gainprm[:, 0] = gains.gain
        model.actuator_biasprm[:, 1], model.actuator_biasprm[:, 2] = -gains.stiffness, -gains.damping
        model.actuator_forcerange *= variation.motor_strength
        if variation.trunk_mass_scale != 1.0:
            model.body_mass[self.trunk_id] *= variation.trunk_mass_scale
            model.body_inertia[self.trunk_id] *= variation.trunk_mass_scale
            mujoco.mj_setConst(model, mujoco.MjData(model))
        if self.terrain.grid is not None:
            model.hfield_data[:] = (self.terrain.heights(variation.terrain_seed) / self.terrain.grid.top).ravel()
        return model

    def standing(self, model: mujoco.MjModel, offsets: Array, heading: float = 0.0) -> tuple[Array, Array]:
        """(qpos, qvel) at rest in the first pose plus joint offsets (site, joint), the lowest foot just above ground.

        On bumps the robot is then left to settle for half a second and stopped, so that every foot stands somewhere. A
        body without feet stays at the height that its model gives it. heading: to the left of x, rad.
        """
        data = mujoco.MjData(model)
        data.qpos[self.position_columns] = (self.robot.mid + offsets).ravel()
        if heading:
            data.qpos[3:7] = math.cos(heading / 2), 0.0, 0.0, math.sin(heading / 2)
        if not len(self.foot_geoms):
            return data.qpos.copy(), data.qvel.copy()
        mujoco.mj_kinematics(model, data)
        feet = data.geom_xpos[self.foot_geoms]
        radius = model.geom_size[self.foot_geoms, 0]
        ground = [self._highest_near(model, x, y, r) for (x, y, _), r in zip(feet, radius, strict=True)]
        data.qpos[2] += CLEARANCE - (feet[:, 2] - radius - ground).min()
        if self.terrain.grid is not None:
            data.ctrl[:] = self.robot.at_rest(self.robot.mid).ravel()
            mujoco.mj_step(model, data, nstep=round(SETTLE_SECONDS / model.opt.timestep))
            data.qvel[:] = 0.0
        return data.qpos.copy(), data.qvel.copy()

    def sinking(self, model: mujoco.MjModel, positions: Array) -> tuple[list[float], float]:
        """(of every foot that touches the ground, of the deepest other part) the depth in states (T, nq), m."""
        data = mujoco.MjData(model)
        feet, rest = [], 0.0
        for qpos in positions:
            data.qpos[:] = qpos
            mujoco.mj_fwdPosition(model, data)
            for contact in data.contact:
                if set(contact.geom.tolist()) & set(self.foot_geoms.tolist()):
                    feet.append(max(0.0, -float(contact.dist)))
                else:
                    rest = max(rest, -float(contact.dist))
        return feet, rest

    def _highest_near(self, model: mujoco.MjModel, x: float, y: float, radius: float) -> float:
        """The highest ground within a foot's radius, m."""
        grid = self.terrain.grid
        if grid is None:
            return 0.0
        heights = model.hfield_data.reshape(grid.rows, grid.columns)

        def cells(place: float, start: float) -> slice:
            return slice(
                int((place - radius - start) / grid.cell), int(np.ceil((place + radius - start) / grid.cell)) + 1
            )

        return float(heights[cells(y, -grid.aside), cells(x, -grid.behind)].max()) * grid.top


def _compile(robot: Body, terrain: Terrain, contact: Contact, physics: Physics, control_dt: float) -> mujoco.MjModel:
    try:
        if robot.model_xml:
            spec = mujoco.MjSpec.from_string(robot.model_xml)
        else:
            spec = mujoco.MjSpec.from_file(str(robot.model))
    except (ValueError, FileNotFoundError) as error:
        raise UserError(f"robot {robot.name}: cannot read {robot.model}: {error}") from None
    spec.option.timestep = physics.step(control_dt)
    spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{physics.integrator.upper()}")
    spec.option.cone = getattr(mujoco.mjtCone, f"mjCONE_{contact.cone.upper()}")
    spec.option.noslip_iterations = contact.noslip_iterations
    _check_names(spec, robot)
    _add_scenery(spec)
    _add_ground(spec, terrain)
    if isinstance(terrain, Water):
        spec.option.density, spec.option.gravity = terrain.density, [0.0, 0.0, 0.0]
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    _set_contacts(spec, robot, contact)
    _add_motors(spec, robot)
    _add_foot_sensors(spec, robot)
    return spec.compile()


def _check_names(spec: mujoco.MjSpec, robot: Body) -> None:
    for kind, wanted, there in (
        ("joint", [name for leg in robot.joints for name in leg], spec.joints),
        ("geom", [*robot.feet, *robot.ground_geoms], spec.geoms),
        ("body", [robot.trunk], spec.bodies),
    ):
        names = [element.name for element in there if element.name]
        for name in wanted:
            if name not in names:
                raise UserError(f"robot {robot.name}: {unknown_name(kind, name, names)}")


def _add_scenery(spec: mujoco.MjSpec) -> None:
    """Add sky, light and a chequered ground, which only people look at."""
    builtin, kind = mujoco.mjtBuiltin, mujoco.mjtTexture
    spec.add_texture(
        name="sky", type=kind.mjTEXTURE_SKYBOX, builtin=builtin.mjBUILTIN_GRADIENT,
        rgb1=[0.93, 0.96, 1.0], rgb2=[0.55, 0.68, 0.82], width=128, height=128,
    )  # fmt: skip
    spec.add_texture(
        name="tiles", type=kind.mjTEXTURE_2D, builtin=builtin.mjBUILTIN_CHECKER,
        rgb1=[0.78, 0.80, 0.82], rgb2=[0.70, 0.73, 0.76], width=256, height=256,
    )  # fmt: skip
    tiles = spec.add_material(name="tiles", texrepeat=[1, 1], texuniform=True, specular=0.1, shininess=0.1)
    tiles.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "tiles"
    spec.worldbody.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, dir=[0.2, 0.3, -1], diffuse=[0.5, 0.5, 0.5], castshadow=False
    )
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = [0.35] * 3, [0.5] * 3


def _add_ground(spec: mujoco.MjSpec, terrain: Terrain) -> None:
    look = {"material": "tiles", "friction": [1.0, 0.005, 0.0001]}
    grid = terrain.grid
    if grid is None:
        spec.worldbody.add_geom(name=GROUND, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], **look)
        return
    middle, along, aside = (grid.ahead - grid.behind) / 2, (grid.ahead + grid.behind) / 2, grid.aside
    size = [along, aside, grid.top, BANK_DEPTH]
    points = np.zeros(grid.rows * grid.columns)
    spec.add_hfield(name=GROUND, nrow=grid.rows, ncol=grid.columns, size=size, userdata=points)
    spec.worldbody.add_geom(
        name=GROUND, type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=GROUND, pos=[middle, 0, 0], **look
    )
    half, thick = BANK / 2, BANK_DEPTH / 2
    level = grid.level - thick
    banks = (
        ([middle, aside + half, level], [along, half, thick]),
        ([middle, -aside - half, level], [along, half, thick]),
        ([grid.ahead + half, 0, level], [half, aside + BANK, thick]),
        ([-grid.behind - half, 0, level], [half, aside + BANK, thick]),
    )
    for name, (place, size) in zip(BANKS, banks, strict=True):
        spec.worldbody.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_BOX, pos=place, size=size, **look)


def _set_contacts(spec: mujoco.MjSpec, robot: Body, contact: Contact) -> None:
    touching = {*robot.feet, *robot.ground_geoms} if robot.ground_geoms else None
    for geom in spec.geoms:
        if geom.name in robot.feet:
            geom.condim = contact.foot_dimensions
        if contact.every_geom:
            continue
        if geom.name in (GROUND, *BANKS):
            geom.contype = 0
        else:
            geom.conaffinity = 0  # the robot offers its geoms to the ground, but not to itself
            if touching is not None and geom.name not in touching:
                geom.contype = 0


def _add_motors(spec: mujoco.MjSpec, robot: Body) -> None:
    """Motors as affine actuators, in the order of sites, with limited torques; see ncap.sim.body.Gains."""
    gains = robot.gains(None, None)
    names = [name for leg in robot.joints for name in leg]
    for name, limit in zip(names, robot.torque_limits.ravel(), strict=True):
        motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0] = gains.gain
        motor.biasprm[1], motor.biasprm[2] = -gains.stiffness, -gains.damping
        motor.forcelimited, motor.forcerange = True, [-limit, limit]


def _add_foot_sensors(spec: mujoco.MjSpec, robot: Body) -> None:
    for name in robot.feet:
        foot = spec.geom(name)
        site = f"{name}_touch"
        foot.parent.add_site(name=site, pos=foot.pos, size=[TOUCH_RADIUS, 0, 0], group=5)
        spec.add_sensor(name=site, type=mujoco.mjtSensor.mjSENS_TOUCH, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)
    trunk = spec.add_sensor(
        name="trunk_touch",
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        objname=robot.trunk,
        reftype=mujoco.mjtObj.mjOBJ_BODY,
        refname="world",
    )
    trunk.intprm[0] = 1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND)
    trunk.intprm[1], trunk.intprm[2] = 0, 1
