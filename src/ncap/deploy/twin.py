"""The twin: a robot simulated by MuJoCo behind the robot's messages, with a domain gap and with faults on request.

Its time is simulated and moves only by `advance`, so that tests and experiments need not wait; `ncap.deploy.serving`
ties that time to the clock and the messages to a network. Commands and states pass through the gap's network inside
the twin.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.deploy import gap as gaps
from ncap.deploy.flight_plan import check_seed
from ncap.deploy.gap import Channel, Gap
from ncap.deploy.messages import (
    TABLE,
    WIRE,
    Command,
    MalformedMessage,
    State,
    Wire,
    damping_command,
)
from ncap.deploy.remote import Remote, encode_remote
from ncap.errors import UserError, unknown_name
from ncap.plan import LEGS
from ncap.sim.a1 import A1
from ncap.sim.robot import LegTriple, Robot
from ncap.sim.terrain import Flat, Terrain
from ncap.sim.world import Variation, World

Array = NDArray[np.float64]

RATE: Final = 1000
"""Physics steps a second; the robot's clock counts them."""
STATE_EVERY: Final = 2
"""Physics steps between two states: 500 a second."""
COMMAND_TIMEOUT: Final = 0.022
"""Time without a command after which the motors brake by themselves, as the SDK's server does, s."""
LARGEST_KP: Final = 500.0
"""Largest stiffness that the motors take, N m / rad: an assumption, since the A1's own limit is not published."""
LARGEST_KD: Final = 20.0
"""Largest damping that the motors take, N m s / rad: an assumption, too."""
FIRST_TICK: Final = 123_456
"""What the robot's clock shows at first."""
LYING: Final = ((0.0, 1.2, -2.65),) * len(LEGS)
"""(leg, 3) the folded pose from which the robot settles on its belly or back, rad."""
ON_SIDE: Final = ((0.0, 2.0, -1.5),) * len(LEGS)
"""(leg, 3) the pose in which it lies on a side, rad: with folded legs it would slowly roll onto them."""
ROLLED: Final = {"belly": (0.0, LYING), "back": (180.0, LYING), "left": (-90.0, ON_SIDE), "right": (90.0, ON_SIDE)}
"""(roll in degrees, pose) of a robot that lies on this part."""
DROP: Final = 0.25
"""Height of the trunk from which it falls onto another part than its belly, m."""
SETTLE_SECONDS: Final = 2.5
"""Time that it is given to settle, s."""

FAULTS: Final = {
    "silence": "no more states are sent",
    "frozen-tick": "states keep coming, but their clock stands still",
    "jumping-tick": "the robot's clock jumps ahead by half a second",
    "restart": "the robot's clock begins anew",
    "nan": "a joint's position is not a number",
    "short": "datagrams are cut short",
    "corrupt": "a bit of every datagram is wrong",
    "hot": "a motor reports 65 °C",
    "overspeed": "a joint reports 40 rad/s",
    "overtorque": "a motor reports 60 N m",
    "tilt": "the robot is turned over by 60°",
    "deaf": "commands no longer arrive",
}
"""What can go wrong, by name."""
_BROKEN: Final = {"nan": np.nan, "overspeed": 40.0, "overtorque": 60.0, "hot": 65.0}


class Truth(NamedTuple):
    """The simulated state of a twin, which sensors only approximate."""

    position: Array
    """(3,) of the trunk, m."""
    up: Array
    """(3,) the vertical in the trunk's frame."""
    joint_position: Array
    """(leg, 3) in rad."""
    joint_velocity: Array
    """(leg, 3) in rad/s."""
    torque: Array
    """(leg, 3) that the motors give, N m."""
    trunk_touches: bool
    """Whether the trunk touches the ground."""


class Twin:
    """A simulated robot that lies on the ground and follows commands."""

    def __init__(
        self,
        gap: Gap | None = None,
        *,
        seed: int = 0,
        robot: Robot = A1,
        terrain: Terrain | None = None,
        faults: Sequence[tuple[float, str]] = (),
        remote: Sequence[tuple[float, Remote | None]] = (),
        lying: str = "belly",
        wire: Wire = WIRE,
    ) -> None:
        """Put a robot on its belly, back, left or right; faults are (time in s, name) of what will go wrong.

        remote: (time in s, what its remote says from then on, None: nothing); before the first it is silent.
        One that does not lie on its belly touches ground and itself with all its parts (contact preset released).
        wire: the kind of its messages, by default an A1's.
        """
        check_seed(seed)
        if lying not in ROLLED:
            raise unknown_name("part to lie on", lying, ROLLED)
        self.gap, self.wire = gap or Gap(), wire
        self.world = World(robot, terrain or Flat(), contact="default" if lying == "belly" else "released")
        self._feet_feel = robot.foot_sensors is not False
        self._model = self.world.variant(
            Variation(friction=self.gap.friction, trunk_mass_scale=self.gap.mass, terrain_seed=seed)
        )
        self._model.actuator_forcerange *= self.gap.strength
        self._data = mujoco.MjData(self._model)
        self._random = seeding.generator(seed, "twin noise")
        constant = seeding.generator(seed, "twin bias").normal(size=(2, *TABLE)) * self.gap.bias
        self._position_bias, self._torque_bias = constant[0] * gaps.POSITION_BIAS, constant[1] * gaps.TORQUE_BIAS
        self._to_robot = Channel(self.gap, seeding.generator(seed, "twin commands"))
        self._from_robot = Channel(self.gap, seeding.generator(seed, "twin states"))
        self.steps = 0
        """Physics steps so far."""
        self.malformed = 0
        """Malformed commands that were dropped."""
        self.noise = 0
        """Datagrams on its network that were no messages."""
        self.refused = 0
        """Commands that were dropped because a position or a gain in them is not finite."""
        self.limited = 0
        """Commands that were followed with other gains than they asked for: in [0, LARGEST_KP] and [0, LARGEST_KD]."""
        self.command = damping_command()
        """The command that the motors follow."""
        self.damped_at: float | None = 0.0
        """Time at which the motors began to brake, s; None while they follow positions."""
        self._heard_at = -np.inf
        self.heard = 0
        """Commands that were understood."""
        self._faults: dict[str, float] = {}
        self._coming = sorted(check_fault_at(moment, name) for moment, name in faults)
        self._frozen_tick = 0
        self._remote, self._remotes = encode_remote(None), sorted(remote, key=_moment)
        self._lie_down(*ROLLED[lying])

    @property
    def time(self) -> float:
        """The robot's time, s."""
        return self.steps / RATE

    def inject(self, fault: str) -> None:
        """Let a fault begin now."""
        self._frozen_tick = self._tick()
        self._faults[check_fault(fault)] = self.time
        if fault == "tilt":
            turned = np.array([np.cos(np.deg2rad(30)), np.sin(np.deg2rad(30)), 0.0, 0.0])
            self._data.qpos[2] += 0.15
            mujoco.mju_mulQuat(self._data.qpos[3:7], self._data.qpos[3:7].copy(), turned)

    def send(self, data: bytes) -> None:
        """Put a command datagram into the network."""
        self._to_robot.send(data, self.time)

    def advance(self, until: float) -> list[bytes]:
        """Simulate until a moment in s. Returns the state datagrams that came out of the network on the way."""
        arrived: list[bytes] = []
        while self.steps < round(until * RATE):
            while self._coming and self._coming[0][0] <= self.time:
                self.inject(self._coming.pop(0)[1])
            while self._remotes and self._remotes[0][0] <= self.time:
                self._remote = encode_remote(self._remotes.pop(0)[1])
            self._listen()
            mujoco.mj_step(self._model, self._data)
            self.steps += 1
            if self.steps % STATE_EVERY == 0 and "silence" not in self._faults:
                self._from_robot.send(self._datagram(), self.time)
            arrived += self._from_robot.due(self.time)
        return arrived

    def truth(self) -> Truth:
        """The simulated state now."""
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, self._data.qpos[3:7])
        return Truth(
            position=self._data.qpos[0:3].copy(),
            up=rotation[6:9],
            joint_position=self._data.qpos[self.world.position_columns].reshape(TABLE),
            joint_velocity=self._data.qvel[self.world.velocity_columns].reshape(TABLE),
            torque=self._data.actuator_force.reshape(TABLE).copy(),
            trunk_touches=bool(self._data.sensordata[len(LEGS)] > 0),
        )

    def _lie_down(self, roll_deg: float, pose: LegTriple) -> None:
        model, data = self._model, self._data
        data.qpos[:], _ = self.world.standing(model, np.array(pose) - self.world.robot.mid)
        if roll_deg:
            half = np.deg2rad(roll_deg) / 2
            data.qpos[2:7] = DROP, np.cos(half), np.sin(half), 0.0, 0.0
        self._obey(damping_command())
        mujoco.mj_step(model, data, nstep=round(SETTLE_SECONDS * RATE))
        data.qvel[:], data.time = 0.0, 0.0

    def _listen(self) -> None:
        for datagram in self._to_robot.due(self.time):
            if "deaf" in self._faults:
                continue
            try:
                command = self.wire.decode_command(datagram)
            except MalformedMessage:
                self.malformed += 1
                continue
            if not np.isfinite(command).all():
                self.refused += 1
                continue
            kp, kd = np.clip(command.kp, 0.0, LARGEST_KP), np.clip(command.kd, 0.0, LARGEST_KD)
            self.limited += not (np.array_equal(kp, command.kp) and np.array_equal(kd, command.kd))
            self._obey(Command(command.position, kp, kd))
            self._heard_at = self.time
            self.heard += 1
        if self.time - self._heard_at > COMMAND_TIMEOUT and not self.command.is_damping:
            self._obey(damping_command())

    def _obey(self, command: Command) -> None:
        """Give the motors new targets and gains; MuJoCo then evaluates the PD law at every physics step."""
        factor = self.gap.gains * self.gap.strength
        self._model.actuator_gainprm[:, 0] = factor * command.kp.ravel()
        self._model.actuator_biasprm[:, 1] = -factor * command.kp.ravel()
        self._model.actuator_biasprm[:, 2] = -factor * command.kd.ravel()
        self._data.ctrl[:] = np.where(command.kp > 0, command.position, 0.0).ravel()
        if not command.is_damping:
            self.damped_at = None
        elif self.damped_at is None:
            self.damped_at = self.time
        self.command = command

    def _tick(self) -> int:
        if "frozen-tick" in self._faults:
            return self._frozen_tick
        if "restart" in self._faults:
            return round(RATE * (self.time - self._faults["restart"]))
        return FIRST_TICK + self.steps + (RATE // 2 if "jumping-tick" in self._faults else 0)

    def _datagram(self) -> bytes:
        """The measurements of now with their errors, as a message that may be damaged."""
        data, faults = self._data, self._faults
        kinds = (4, *TABLE)  # noise of positions, velocities, torques and forces
        noise = self.gap.noise * self._random.normal(size=kinds) if self.gap.noise else np.zeros(kinds)
        position = data.qpos[self.world.position_columns].reshape(TABLE)
        velocity = data.qvel[self.world.velocity_columns].reshape(TABLE) + gaps.VELOCITY_NOISE * noise[1]
        torque = data.actuator_force.reshape(TABLE) + gaps.TORQUE_NOISE * noise[2] + self._torque_bias
        position = position + gaps.POSITION_NOISE * noise[0] + self._position_bias
        temperature = np.full(TABLE, 30.0)
        foot_force = data.sensordata[: len(LEGS)] + gaps.FORCE_NOISE * noise[3, :, 0] + self.gap.foot_force_offset
        if not self._feet_feel:
            foot_force = np.zeros(len(LEGS))
        tables = {"nan": position, "overspeed": velocity, "overtorque": torque, "hot": temperature}
        for fault in tables.keys() & faults.keys():
            tables[fault][-1, -1] = _BROKEN[fault]
        encoded = self.wire.encode_state(
            State(
                tick=self._tick(),
                quaternion=data.qpos[3:7],
                angular_velocity=data.qvel[3:6],
                acceleration=9.81 * self.truth().up,  # as at rest
                joint_position=position,
                joint_velocity=velocity,
                torque=torque,
                temperature=temperature,
                foot_force=foot_force,
            ),
            self._remote,
        )
        if "short" in faults:
            return encoded[:-100]
        if "corrupt" in faults:
            return encoded[:200] + bytes([encoded[200] ^ 1]) + encoded[201:]
        return encoded


def _moment(said: tuple[float, Remote | None]) -> float:
    """The time in s of what a remote says, if it can come at that time."""
    if not 0 <= said[0] < np.inf:
        raise UserError(f"a remote says something at a time of 0 s or later, not at {said[0]:g} s")
    return said[0]


def check_fault(name: str) -> str:
    """The name, if it is in FAULTS; otherwise a UserError."""
    if name not in FAULTS:
        raise unknown_name("fault", name, FAULTS)
    return name


def check_fault_at(moment: float, name: str) -> tuple[float, str]:
    """(moment, name) of a fault, if there is such a fault and it can come at that time in s."""
    if not 0 <= moment < np.inf:
        raise UserError(f"fault {check_fault(name)} comes at a time of 0 s or later, not at {moment:g} s")
    return moment, check_fault(name)
