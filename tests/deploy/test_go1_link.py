"""The link to a Go1, with a stand-in of Unitree's module, as unitree-legged-sdk 3.8.20231105 has it."""

import io
import sys
import textwrap
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from ncap.deploy import guard as guards
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.go1_link import MODULE, Go1Address, Go1Link, find_go1_address
from ncap.deploy.guard import watch
from ncap.deploy.loop import Deployment
from ncap.deploy.messages import LOW_STATE, POSITION_STOP, Command, encode_command
from ncap.deploy.phases import Schedule
from ncap.deploy.session import fly, open_link
from ncap.deploy.twin import Twin
from ncap.errors import UserError
from ncap.sim.go import GO1
from ncap.trained import load

UNITREE = [1, 0, 3, 2]
"""Unitree's leg of each of ours: FR, FL, RR, RL."""


class LowCmd:
    def __init__(self):
        self.motorCmd = [SimpleNamespace(mode=0, q=0.0, dq=0.0, tau=0.0, Kp=0.0, Kd=0.0) for _ in range(20)]


class LowState:
    """Zeros, as before the first datagram."""

    def __init__(self):
        self.tick, self.footForce, self.wirelessRemote = 0, [0] * 4, [0] * 40
        self.imu = SimpleNamespace(quaternion=[0.0] * 4, gyroscope=[0.0] * 3, accelerometer=[0.0] * 3)
        self.motorState = [SimpleNamespace(q=0.0, dq=0.0, tauEst=0.0, temperature=0) for _ in range(20)]


class FakeUDP:
    """Answers only who has spoken to it. States are given to GetRecv by `fill`, one for every datagram that is read."""

    def __init__(self, level, local, host, port):
        self.opened, self.sent, self.waiting, self.sending = (level, local, host, port), [], 0, 614

    def InitCmdData(self, command):
        for motor in command.motorCmd:
            motor.mode, motor.q, motor.dq = 10, POSITION_STOP, 16_000.0

    def SetSend(self, command):
        self.command = [SimpleNamespace(**vars(motor)) for motor in command.motorCmd]
        return 0

    def Send(self):
        self.sent.append(self.command)
        return self.sending

    def Recv(self):
        self.waiting -= 1
        return 820 if self.waiting >= 0 else -1

    def GetRecv(self, state):
        self.fill(state)

    def fill(self, state):
        pass


def install(monkeypatch, udp=FakeUDP):
    module = ModuleType(MODULE)
    module.UDP, module.LowCmd, module.LowState = udp, LowCmd, LowState
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setitem(sys.modules, MODULE.partition(".")[0], ModuleType(MODULE.partition(".")[0]))


@pytest.fixture
def link(monkeypatch):
    install(monkeypatch)
    link = Go1Link("go1://")
    yield link
    link.close()


def test_it_speaks_to_unitrees_low_level_address(link):
    assert link._udp.opened == (0xFF, 8080, "192.168.123.10", 8007)
    assert find_go1_address("go1://192.168.12.1:9000?local=8090") == Go1Address("192.168.12.1", 9000, 8090)


@pytest.mark.parametrize(
    "url", ["go1://robot", "go1://1.2.3", "go1://1.2.3.400", "go1://1.2.3.4:0", "go1://?local=70000"]
)
def test_other_addresses_are_refused_by_a_sentence(url):
    with pytest.raises(UserError, match=r"go1://|four numbers|a port is"):
        find_go1_address(url)


def test_without_the_module_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, MODULE, None)
    with pytest.raises(UserError, match="needs the extra go1: "):
        open_link("go1://", 0, GO1)


def test_states_come_in_our_order_and_a_tick_that_stays_is_no_new_state(link):
    link.wait_until(link.now())
    assert link.newest() is None  # the zeros from before the first datagram are no state

    def fill(state):
        state.tick, state.imu.quaternion, state.footForce = 7, [1.0, 0.0, 0.0, 0.0], [1, 2, 3, 4]
        state.wirelessRemote[2] = 5
        for i, motor in enumerate(state.motorState):
            motor.q, motor.tauEst, motor.temperature = float(i), -2.0 * i, 30 + i

    link._udp.fill, link._udp.waiting = fill, 3
    link.wait_until(link.now())
    assert link._udp.waiting < 0  # everything that waited was read: nothing queues
    first = link.newest()
    assert first.state.joint_position.tolist() == [[3, 4, 5], [0, 1, 2], [9, 10, 11], [6, 7, 8]]
    assert first.state.torque[0].tolist() == [6, 8, 10]
    assert first.state.temperature[1].tolist() == [30, 31, 32]
    assert first.state.foot_force.tolist() == [2, 1, 4, 3]
    assert (len(first.remote), first.remote[2]) == (40, 5)
    link.wait_until(link.now())
    assert link.newest() is first


def test_commands_go_to_twelve_motors_in_unitrees_order(link):
    link.send(Command(np.arange(12.0).reshape(4, 3), np.full((4, 3), 50.0), np.full((4, 3), 4.0)))
    motors = link._udp.sent[-1]
    assert [motor.q for motor in motors[:12]] == [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
    assert {(motor.mode, motor.Kp, motor.Kd, motor.dq, motor.tau) for motor in motors[:12]} == {(10, 50, 4, 0, 0)}
    assert {(motor.q, motor.Kp, motor.Kd) for motor in motors[12:]} == {(POSITION_STOP, 0, 0)}
    link._udp.sending = -1
    with pytest.raises(OSError, match="nothing can be sent"):
        link.send(Command(*np.zeros((3, 4, 3))))


def test_only_a_link_that_may_makes_the_motors_limp_and_only_until_the_first_command(link):
    link.wait_until(link.now())
    assert link._udp.sent == []
    asking = Go1Link("go1://", limp=True)
    asking.wait_until(asking.now())
    (limp,) = asking._udp.sent
    assert {(motor.q, motor.Kp, motor.Kd, motor.tau) for motor in limp} == {(POSITION_STOP, 0, 0, 0)}
    asking.send(Command(*np.zeros((3, 4, 3))))
    asking.wait_until(asking.now())
    assert len(asking._udp.sent) == 2


def test_limp_is_refused_on_other_links():
    with pytest.raises(UserError, match="go1:// links only"):
        fly(load("zero"), FlightPlan(link="twin", limp=True), report=print)


@pytest.mark.parametrize(("link", "body"), [("go1://", "go1"), ("dds://lo", "go2")])
@pytest.mark.parametrize("policy", ["untrained", "ncap-flat-walk"])
def test_a_link_of_another_robot_wants_it_said_whose_data_sheet_is_meant(policy, link, body):
    with pytest.raises(UserError, match=f"the data sheet of a1, but {link} is a {body}'s link: say --robot {body}"):
        fly(load(policy), FlightPlan(link=link), report=print)


def test_a_go1_can_be_flown_through_the_module(monkeypatch):
    """A twin of a Go1 behind the stand-in, which is silent until it is spoken to, in the twin's time."""
    twin = Twin(robot=GO1)

    class TwinUDP(FakeUDP):
        spoken = False

        def Send(self):
            self.spoken = True
            position, kp, kd = (
                np.array([getattr(motor, name) for motor in self.command[:12]]).reshape(4, 3)[UNITREE]
                for name in ("q", "Kp", "Kd")
            )
            twin.send(encode_command(Command(position, kp, kd)))
            return 614

        def fill(self, state):
            for data in twin.advance(twin.time + 0.002):
                if not self.spoken:
                    continue
                raw = np.frombuffer(data, LOW_STATE)[0]
                state.tick, state.footForce = int(raw["tick"]), raw["footForce"].tolist()
                for name in ("quaternion", "gyroscope", "accelerometer"):
                    setattr(state.imu, name, raw["imu"][name].tolist())
                for motor, values in zip(state.motorState, raw["motorState"], strict=True):
                    for name in ("q", "dq", "tauEst", "temperature"):
                        setattr(motor, name, values[name].item())

    install(monkeypatch, TwinUDP)
    monkeypatch.setattr(time, "monotonic", lambda: twin.time)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    schedule = Schedule(calibration=0.2, low=0.5, stand=0.5, hold=0.1, policy=0.3, halt=0.2, sit=0.5, damping=0.2)
    with pytest.raises(UserError, match="no state came"):
        Deployment(Go1Link("go1://"), load("zero"), robot=GO1, schedule=schedule).run()
    outcome = Deployment(Go1Link("go1://", limp=True), load("zero"), armed=True, robot=GO1, schedule=schedule).run()
    assert outcome.fault is None
    assert twin.malformed == 0
    assert twin.damped_at is not None


def test_the_guard_opens_its_socket_only_when_the_commander_is_dead_and_then_damps(monkeypatch, capsys):
    opened = []

    class OneSocket(FakeUDP):
        def __init__(self, *address):
            super().__init__(*address)
            opened.append(self)

    class Parent(io.BytesIO):
        def read(self):
            assert not opened  # two sockets cannot have one port
            return super().read()

    install(monkeypatch, OneSocket)
    monkeypatch.setattr(guards, "SECONDS", 0.05)
    assert not watch("go1://", Parent(b""))
    assert not opened
    assert watch("go1://", Parent(b"engaged\n"))
    (udp,) = opened
    assert len(udp.sent) > 5
    assert all(motor.Kp == 0 and motor.Kd == 5 for motors in udp.sent for motor in motors[:12])


def test_a_guard_process_finds_the_module(monkeypatch, tmp_path):
    package = tmp_path / MODULE.partition(".")[0]
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "robot_interface.py").write_text(textwrap.dedent("class UDP: ..."))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    with guards.Guard("go1://") as guard:
        assert guard.alive
        guard.release()
