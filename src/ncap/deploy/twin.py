"""The twin: a MuJoCo A1 that speaks the robot's messages, differs from the trained one as asked, and can go wrong.

It lives in its own time, which only `advance` moves, so that tests and experiments need not wait; `serve` ties that
time to the clock and the messages to LCM. Commands and states pass through the gap's network inside the twin.
"""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.deploy import gap as gaps
from ncap.deploy.gap import Channel, Gap
from ncap.deploy.link import LcmEnd
from ncap.deploy.messages import (
    COMMAND_CHANNEL,
    STATE_CHANNEL,
    Command,
    MalformedMessage,
    State,
    damping_command,
    decode_command,
    encode_state,
)
from ncap.errors import unknown_name
from ncap.sim.a1 import A1
from ncap.sim.terrain import Flat, Terrain
from ncap.sim.world import Variation, World

Array = NDArray[np.float64]

STATE_EVERY: Final = 2
"""Physics steps between two states: 500 a second."""
COMMAND_TIMEOUT: Final = 0.022
"""s without a command after which the motors brake by themselves, as the SDK's server does."""
FIRST_TICK: Final = 123_456
LYING: Final = ((0.0, 1.2, -2.65),) * 4
"""rad. How the robot is folded before it settles on its belly."""

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
_BROKEN: Final = {"nan": np.nan, "overspeed": 40.0, "overtorque": 60.0, "hot": 65.0}


class Truth(NamedTuple):
    """What only a simulated robot can tell."""

    position: Array
    """(3,) of the trunk, m."""
    up: Array
    """(3,) the vertical in the trunk's frame."""
    joint_position: Array
    joint_velocity: Array
    torque: Array
    trunk_touches: bool


class Twin:
    """A robot that lies on its belly and waits for commands."""

    def __init__(
        self,
        gap: Gap | None = None,
        *,
        seed: int = 0,
        terrain: Terrain | None = None,
        faults: Sequence[tuple[float, str]] = (),
    ) -> None:
        """Make a robot; faults are (time in s, name) of what will go wrong."""
        self.gap = gap or Gap()
        self.world = World(A1, terrain or Flat())
        self._model = self.world.variant(
            Variation(friction=self.gap.friction, trunk_mass_scale=self.gap.mass, terrain_seed=seed)
        )
        self._model.actuator_forcerange *= self.gap.strength
        self._data = mujoco.MjData(self._model)
        self._random = seeding.generator(seed, "twin noise")
        constant = seeding.generator(seed, "twin bias").normal(size=(2, 4, 3)) * self.gap.bias
        self._position_bias, self._torque_bias = constant[0] * gaps.POSITION_BIAS, constant[1] * gaps.TORQUE_BIAS
        self._to_robot = Channel(self.gap, seeding.generator(seed, "twin commands"))
        self._from_robot = Channel(self.gap, seeding.generator(seed, "twin states"))
        self.steps = 0
        self.malformed = 0
        """Datagrams that were dropped."""
        self.command = damping_command()
        """The command that the motors follow."""
        self.damped_at: float | None = 0.0
        """When the motors began to brake; None while they follow positions."""
        self._heard_at = -np.inf
        self.heard = 0
        """Commands that were understood."""
        self._faults: dict[str, float] = {}
        self._coming = sorted((moment, check_fault(name)) for moment, name in faults)
        self._frozen_tick = 0
        self._lie_down()

    @property
    def time(self) -> float:
        """The robot's time, s."""
        return self.steps / 1000

    def inject(self, fault: str) -> None:
        """Let something go wrong from now on."""
        self._frozen_tick = self._tick()
        self._faults[check_fault(fault)] = self.time
        if fault == "tilt":
            turned = np.array([np.cos(np.deg2rad(30)), np.sin(np.deg2rad(30)), 0.0, 0.0])
            self._data.qpos[2] += 0.15
            mujoco.mju_mulQuat(self._data.qpos[3:7], self._data.qpos[3:7].copy(), turned)

    def send(self, data: bytes) -> None:
        """A command datagram enters the network."""
        self._to_robot.send(data, self.time)

    def advance(self, until: float) -> list[bytes]:
        """Move to a moment. Returns the state datagrams that came out of the network on the way."""
        arrived: list[bytes] = []
        while self.steps < round(until * 1000):
            while self._coming and self._coming[0][0] <= self.time:
                self.inject(self._coming.pop(0)[1])
            self._listen()
            mujoco.mj_step(self._model, self._data)
            self.steps += 1
            if self.steps % STATE_EVERY == 0 and "silence" not in self._faults:
                self._from_robot.send(self._datagram(), self.time)
            arrived += self._from_robot.due(self.time)
        return arrived

    def truth(self) -> Truth:
        """What really is."""
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, self._data.qpos[3:7])
        return Truth(
            position=self._data.qpos[0:3].copy(),
            up=rotation[6:9],
            joint_position=self._data.qpos[self.world.position_columns].reshape(4, 3),
            joint_velocity=self._data.qvel[self.world.velocity_columns].reshape(4, 3),
            torque=self._data.actuator_force.reshape(4, 3).copy(),
            trunk_touches=bool(self._data.sensordata[4] > 0),
        )

    def _lie_down(self) -> None:
        model, data = self._model, self._data
        data.qpos[:], _ = self.world.standing(model, np.array(LYING) - A1.mid)
        self._obey(damping_command())
        mujoco.mj_step(model, data, nstep=2500)
        data.qvel[:], data.time = 0.0, 0.0

    def _listen(self) -> None:
        for datagram in self._to_robot.due(self.time):
            if "deaf" in self._faults:
                continue
            try:
                self._obey(decode_command(datagram))
                self._heard_at = self.time
                self.heard += 1
            except MalformedMessage:
                self.malformed += 1
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
            return round(1000 * (self.time - self._faults["restart"]))
        return FIRST_TICK + self.steps + (500 if "jumping-tick" in self._faults else 0)

    def _datagram(self) -> bytes:
        """What the sensors say now, with their errors, as a message that may be damaged."""
        data, size, faults = self._data, (4, 3), self._faults
        noise = self.gap.noise * self._random.normal(size=(4, 4, 3)) if self.gap.noise else np.zeros((4, 4, 3))
        position = data.qpos[self.world.position_columns].reshape(size)
        velocity = data.qvel[self.world.velocity_columns].reshape(size) + gaps.VELOCITY_NOISE * noise[1]
        torque = data.actuator_force.reshape(size) + gaps.TORQUE_NOISE * noise[2] + self._torque_bias
        position = position + gaps.POSITION_NOISE * noise[0] + self._position_bias
        temperature = np.full(size, 30.0)
        tables = {"nan": position, "overspeed": velocity, "overtorque": torque, "hot": temperature}
        for fault in tables.keys() & faults.keys():
            tables[fault][3, 2] = _BROKEN[fault]
        encoded = encode_state(
            State(
                tick=self._tick(),
                quaternion=data.qpos[3:7],
                angular_velocity=data.qvel[3:6],
                acceleration=9.81 * self.truth().up,  # as at rest
                joint_position=position,
                joint_velocity=velocity,
                torque=torque,
                temperature=temperature,
                foot_force=data.sensordata[0:4] + gaps.FORCE_NOISE * noise[3, :, 0] + self.gap.foot_force_offset,
            )
        )
        if "short" in faults:
            return encoded[:-100]
        if "corrupt" in faults:
            return encoded[:200] + bytes([encoded[200] ^ 1]) + encoded[201:]
        return encoded


def check_fault(name: str) -> str:
    """The name, if it is a fault's."""
    if name not in FAULTS:
        raise unknown_name("fault", name, FAULTS)
    return name


def serve(twin: Twin, url: str, seconds: float | None = None) -> None:
    """Be a robot on an LCM network in real time, for ever or for some seconds."""
    with LcmEnd(url, COMMAND_CHANNEL, twin.send) as end:
        started = time.monotonic()
        while seconds is None or twin.time < seconds:
            end.wait_until(started + twin.time + 0.002)
            behind = time.monotonic() - started
            if behind - twin.time > 0.25:  # the machine slept: let the robot's time slip rather than catch up
                started += behind - twin.time - 0.002
            for datagram in twin.advance(time.monotonic() - started):
                end.publish(STATE_CHANNEL, datagram)
