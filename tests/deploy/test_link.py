"""Links other than the twin: the SDK's module by a stand-in of the same interface, and LCM for real."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ncap.deploy.link import LcmLink, SdkLink, lcm_url
from ncap.deploy.lock import CommanderLock
from ncap.deploy.loop import Deployment, Schedule
from ncap.deploy.messages import Command, command_for_sdk, decode_command, encode_state
from ncap.deploy.twin import Twin
from ncap.errors import UserError
from ncap.sim.a1 import A1
from ncap.trained import load


def url_of(port: int) -> str:
    return f"udpm://239.255.76.67:{port}?ttl=0"


needs_lcm = pytest.mark.usefixtures("lcm_network")


class FakeRobotInterface:
    """As the pybind module: the last state on request, with LowState's fields and Unitree's order; 60 floats in."""

    def __init__(self):
        self.sent = []
        self.tick = 5
        motor = SimpleNamespace(q=0.0, dq=0.0, ddq=0.0, tauEst=0.0, temperature=31)
        self.motors = [SimpleNamespace(**vars(motor)) for _ in range(20)]
        for i, one in enumerate(self.motors):
            one.q, one.dq, one.tauEst = float(i), 0.1 * i, -2.0 * i

    def receive_observation(self):
        imu = SimpleNamespace(quaternion=[1.0, 0, 0, 0], gyroscope=[0.1, 0.2, 0.3], accelerometer=[0, 0, 9.8])
        return SimpleNamespace(imu=imu, motorState=self.motors, footForce=[1, 2, 3, 4], tick=self.tick)

    def send_command(self, numbers):
        assert len(numbers) == 60
        self.sent.append(np.array(numbers))


@pytest.fixture
def sdk(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_interface", SimpleNamespace(RobotInterface=FakeRobotInterface))
    link = SdkLink()
    yield link
    link.close()


def test_the_sdk_link_brings_states_in_our_order_and_a_tick_that_stays_is_no_new_state(sdk):
    sdk.wait_until(sdk.now())
    first = sdk.newest()
    assert first.state.joint_position.tolist() == [[3, 4, 5], [0, 1, 2], [9, 10, 11], [6, 7, 8]]
    assert first.state.torque[0].tolist() == [6, 8, 10]
    assert first.state.foot_force.tolist() == [2, 1, 4, 3]
    sdk.wait_until(sdk.now() + 0.01)
    assert sdk.newest() is first
    sdk._robot.tick = 7
    sdk.wait_until(sdk.now())
    assert sdk.newest().state.tick == 7


def test_the_sdk_link_sends_60_floats(sdk):
    command = Command(np.arange(12.0).reshape(4, 3), np.full((4, 3), 60.0), np.full((4, 3), 10.0))
    sdk.send(command)
    np.testing.assert_array_equal(sdk._robot.sent[0], command_for_sdk(command))


def test_the_sdk_link_can_carry_a_whole_flight(monkeypatch):
    """A twin behind the stand-in, in the twin's time."""
    twin = Twin()

    class TwinInterface(FakeRobotInterface):
        def receive_observation(self):
            from ncap.deploy.messages import LOW_STATE

            for data in twin.advance(twin.time + 0.002):
                self.raw = np.frombuffer(data, LOW_STATE)[0]
            raw = self.raw
            names = ("q", "dq", "tauEst", "temperature")
            motors = [SimpleNamespace(**{name: float(motor[name]) for name in names}) for motor in raw["motorState"]]
            imu = SimpleNamespace(**{n: raw["imu"][n] for n in ("quaternion", "gyroscope", "accelerometer")})
            return SimpleNamespace(imu=imu, motorState=motors, footForce=raw["footForce"], tick=raw["tick"])

        def send_command(self, numbers):
            from ncap.deploy.messages import encode_command

            table = np.array(numbers, np.float64).reshape(4, 3, 5)[[1, 0, 3, 2]]
            twin.send(encode_command(Command(table[..., 0], table[..., 1], table[..., 3])))

    monkeypatch.setitem(sys.modules, "robot_interface", SimpleNamespace(RobotInterface=TwinInterface))
    monkeypatch.setattr(time, "monotonic", lambda: twin.time)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    schedule = Schedule(calibration=0.2, low=0.5, stand=0.5, hold=0.1, policy=0.3, halt=0.2, sit=0.5, damping=0.2)
    outcome = Deployment(SdkLink(), load("zero"), armed=True, schedule=schedule).run()
    assert outcome.fault is None
    assert twin.malformed == 0
    assert twin.command.is_damping


def test_missing_modules_are_a_plain_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_interface", None)
    with pytest.raises(UserError, match="robot_interface is not installed"):
        SdkLink()
    monkeypatch.setitem(sys.modules, "lcm", None)
    with pytest.raises(UserError, match=r"pip install 'ncap\[robot\]'"):
        LcmLink()


def test_addresses_stay_on_this_host_unless_asked():
    assert lcm_url("lcm://") == "udpm://239.255.76.67:7667?ttl=0"
    assert lcm_url("lcm://239.255.76.68:7700?ttl=1") == "udpm://239.255.76.68:7700?ttl=1"
    for wrong in ("udp://x", "lcm:/", "robot", "lcm://a:b"):
        with pytest.raises(UserError, match=r"unknown link .*; valid: lcm://"):
            lcm_url(wrong)


def test_a_second_commander_is_refused_and_a_fault_stays_until_a_person_rearms(tmp_path):
    with CommanderLock("udpm://x", rearm=False, folder=tmp_path) as first:
        with pytest.raises(UserError, match="another process commands the robot"):
            CommanderLock("udpm://x", rearm=True, folder=tmp_path)
        CommanderLock("udpm://y", rearm=False, folder=tmp_path).__exit__()  # another robot
        first.latch("tilt: roll or pitch is 50°")
    with pytest.raises(UserError, match=r"ended with a fault \(tilt: roll or pitch is 50°\).*--rearm"):
        CommanderLock("udpm://x", rearm=False, folder=tmp_path)
    CommanderLock("udpm://x", rearm=True, folder=tmp_path).__exit__()
    CommanderLock("udpm://x", rearm=False, folder=tmp_path).__exit__()


@needs_lcm
def test_malformed_datagrams_and_rivals_on_lcm_are_counted(a_state):
    import lcm

    link, other = LcmLink(url_of(7798)), lcm.LCM(url_of(7798))
    other.publish("LCM_Low_State", b"short")
    other.publish("LCM_Low_State", bytes(891))
    other.publish("LCM_Low_State", encode_state(a_state(tick=77)))
    other.publish("LCM_Low_Cmd", b"somebody else")
    link.wait_until(link.now() + 0.2)
    assert (link.malformed, link.rivals) == (2, 1)
    assert link.newest().state.tick == 77
    link.send(Command(A1.mid, A1.mid, A1.mid))
    link.wait_until(link.now() + 0.1)
    assert link.rivals == 1  # our own commands are not
    link.close()


@pytest.fixture
def other_twin():
    """A twin in another process; gives its port, and after `finish` what it said."""
    port = 7700 + os.getpid() % 90
    program = "import sys; from ncap.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "twin", "--link", f"lcm://239.255.76.67:{port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    process.stdout.readline()
    yield port
    process.kill()
    process.communicate()


DEPLOY = """
import json, sys
from pathlib import Path
from ncap.deploy import calibration, loop, session
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.safety import Limits
from ncap.trained import find_policy
# a test machine is busy: a stall of its scheduler is not what is tested here
busy = Limits(state_age=2.0, deadline=2.0, longest_gap=2.0, tick_jump=2.0)
calibration.SLOWEST = 5.0
original = loop.Deployment.__init__
loop.Deployment.__init__ = lambda self, *a, **k: original(self, *a, **k | {"limits": busy})
schedule = loop.Schedule(
    calibration=1.0, low=0.6, stand=0.8, hold=0.2, policy=float(sys.argv[3]), halt=0.3, sit=0.5, damping=0.3
)
plan = FlightPlan(link=sys.argv[1], arm=True, rearm=True, out=Path(sys.argv[2]))
outcome, folder = session.fly(find_policy("untrained", without=["V0v"], command=0.1), plan,
    report=lambda line: print(line, flush=True), schedule=schedule)
print(json.dumps({"fault": outcome.fault and outcome.fault.kind, "sent": outcome.sent, "stopped": outcome.stopped,
    "heavy": [name for name in ("mujoco", "scipy", "matplotlib") if name in sys.modules]}))
"""


def start_deploy(port, folder, seconds):
    link = f"lcm://239.255.76.67:{port}"
    return subprocess.Popen(
        [sys.executable, "-c", DEPLOY, link, str(folder), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Ear:
    """Hears commands on a port."""

    def __init__(self, port):
        import lcm

        self.lcm, self.commands = lcm.LCM(url_of(port)), []
        heard = self.lcm.subscribe("LCM_Low_Cmd", lambda _, data: self.commands.append(decode_command(data)))
        heard.set_queue_capacity(10_000)

    def listen(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.lcm.handle_timeout(20)


@needs_lcm
@pytest.mark.real
@pytest.mark.slow
def test_a_flight_over_real_multicast_between_two_processes_without_the_simulator(other_twin, tmp_path):
    ear = Ear(other_twin)
    process = start_deploy(other_twin, tmp_path / "flight", 0.6)
    while process.poll() is None:
        ear.listen(0.2)
    out = process.communicate()[0].splitlines()
    assert process.returncode == 0, out
    result = json.loads(out[-1])
    assert result["fault"] is None
    assert result["heavy"] == []  # NumPy only
    assert result["sent"] > 200
    assert [line for line in out if line.startswith("phase")][-1] == "phase damping"
    ear.listen(0.2)
    assert ear.commands[-1].is_damping
    assert not ear.commands[0].is_damping
    assert (tmp_path / "flight" / "recording.safetensors").exists()


@needs_lcm
@pytest.mark.real
@pytest.mark.slow
def test_a_commander_that_is_killed_is_followed_by_damping(other_twin, tmp_path):
    ear = Ear(other_twin)
    process = start_deploy(other_twin, tmp_path / "flight", 60)
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("phase stand"):
            break
    assert said[-1].startswith("phase stand"), said
    ear.listen(0.3)
    assert not ear.commands[-1].is_damping
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ear.commands.clear()
    ear.listen(1.5)
    assert ear.commands[-1].is_damping
    assert sum(command.is_damping for command in ear.commands) > 50
