"""Links other than the twin: the SDK's module by a stand-in of the same interface, and LCM for real."""

import json
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from ncap.deploy.lcm_udp import LcmEnd
from ncap.deploy.link import LcmLink, SdkLink, lcm_url
from ncap.deploy.lock import CommanderLock
from ncap.deploy.loop import Deployment
from ncap.deploy.messages import Command, command_for_sdk, decode_command, encode_command, encode_state
from ncap.deploy.phases import Schedule
from ncap.deploy.serving import serve
from ncap.deploy.twin import Twin
from ncap.errors import UserError
from ncap.sim.a1 import A1
from ncap.trained import load


def url_of(port: int) -> str:
    return f"udpm://239.255.76.67:{port}?ttl=0"


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


def test_a_missing_module_is_a_plain_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_interface", None)
    with pytest.raises(UserError, match="robot_interface is not installed"):
        SdkLink()


def test_addresses_stay_on_this_host_unless_asked():
    assert lcm_url("lcm://") == "udpm://239.255.76.67:7667?ttl=0"
    assert lcm_url("lcm://239.255.76.68:7700?ttl=1") == "udpm://239.255.76.68:7700?ttl=1"
    for wrong in ("udp://x", "lcm:/", "robot", "lcm://a:b"):
        with pytest.raises(UserError, match=r"unknown link .*; valid: lcm://"):
            lcm_url(wrong)


@pytest.mark.usefixtures("lcm_network")
def test_malformed_datagrams_and_commands_of_others_are_counted(a_state, lcm_port):
    import lcm

    link, other = LcmLink(url_of(lcm_port)), lcm.LCM(url_of(lcm_port))
    other.publish("LCM_Low_State", b"short")
    other.publish("LCM_Low_State", bytes(891))
    other.publish("LCM_Low_State", encode_state(a_state(tick=77)))
    other.publish("LCM_Low_Cmd", b"somebody else")
    link.wait_until(link.now() + 0.2)
    assert (link.malformed, link.rivals) == (2, 1)
    assert link.newest().state.tick == 77
    command = Command(A1.mid, A1.mid, A1.mid)
    for _ in range(20):
        link.send(command)
    link.wait_until(link.now() + 0.1)
    assert link.rivals == 1  # our own commands are not
    other.publish("LCM_Low_Cmd", encode_command(command))  # the same one, from somebody else
    link.wait_until(link.now() + 0.1)
    assert link.rivals == 2
    link.close()


@contextmanager
def in_background(work):
    """Call something again and again in a thread until the context ends."""
    done = threading.Event()

    def repeat():
        while not done.is_set():
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def served_twin(multicast, lcm_port):
    """A twin that is served in real time by a thread of this process."""
    twin = Twin()
    seconds = [0.2]

    def on():
        serve(twin, url_of(lcm_port), seconds[0])
        seconds[0] += 0.2

    with in_background(on):
        yield twin


@pytest.fixture
def commands(multicast, lcm_port):
    """All commands on the network, each with its time of arrival, as they come."""
    heard: list[tuple[float, Command]] = []

    def hear(data):
        heard.append((time.monotonic(), decode_command(data)))

    ear = LcmEnd(url_of(lcm_port), "LCM_Low_Cmd", hear)
    with ear, in_background(lambda: ear.wait_until(time.monotonic() + 0.05)):
        yield heard


DEPLOY = """
import json, sys
from pathlib import Path
from ncap.deploy import calibration, loop, session
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.safety import Limits
from ncap.trained import find_policy
# a test machine is busy: a stall of its scheduler is not what is tested here
busy = Limits(state_age=2.0, deadline=2.0, longest_gap=2.0, tick_jump=2.0, following=-1.0)
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
    "malformed": outcome.malformed, "heavy": sorted({"mujoco", "scipy", "matplotlib", "lcm"} & set(sys.modules))}))
"""


def start_deploy(port, folder, seconds):
    link = f"lcm://239.255.76.67:{port}"
    return subprocess.Popen(
        [sys.executable, "-c", DEPLOY, link, str(folder), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def standing_deploy(port, folder, seconds):
    """A flight in another process that stands on its feet, begun again where a busy machine spoilt the calibration."""
    for attempt in range(5):
        process = start_deploy(port, folder / str(attempt), seconds)
        try:
            read_until(process, "phase stand")
            return process, folder / str(attempt)
        except AssertionError as ended:
            process.communicate()  # waits for its end, and closes what it wrote into
            if "ticks a second" not in str(ended):
                raise
    raise AssertionError("the machine is too busy for a calibration")


def read_until(process, beginning):
    """The lines that a process says, up to one that begins so."""
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith(beginning):
            return said
    raise AssertionError(said)


@contextmanager
def noise(port):
    """Random datagrams, and one that ends programs with LCM's library, about 1000 a second."""
    draw = random.Random(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)

        def make():
            sender.sendto(draw.randbytes(draw.randrange(1500)), ("239.255.76.67", port))
            sender.sendto(struct.pack(">II", 0x4C433032, 1), ("239.255.76.67", port))
            time.sleep(0.002)

        with in_background(make):
            yield


@pytest.mark.real
@pytest.mark.slow
def test_a_flight_over_real_multicast_through_noise_beside_a_commander_that_is_refused(
    served_twin, commands, lcm_port, tmp_path
):
    with noise(lcm_port):
        process, folder = standing_deploy(lcm_port, tmp_path, 0.6)
        second = LcmLink(url_of(lcm_port))  # as from another machine, where no lock keeps it away
        rival = Deployment(second, load("zero"), armed=True, schedule=Schedule(calibration=0.2))
        with pytest.raises(UserError, match="somebody else commands the robot"):
            rival.run()
        second.close()
        said = process.communicate()[0].splitlines()
    assert process.returncode == 0, said
    result = json.loads(said[-1])
    assert result["fault"] is None
    assert result["heavy"] == []  # NumPy only
    assert result["sent"] > 200
    assert result["malformed"] > 100
    assert [line for line in said if line.startswith("phase")][-1] == "phase damping"
    # the refused one sent nothing: there is no damping before the last phase
    damping = [command.is_damping for _, command in commands]
    assert not damping[0]
    assert all(damping[damping.index(True) :])
    assert (folder / "recording.safetensors").exists()
    assert served_twin.command.is_damping


@pytest.mark.real
@pytest.mark.slow
def test_a_commander_that_is_killed_leaves_a_robot_that_is_damped_within_60_ms(
    served_twin, commands, lcm_port, tmp_path
):
    process, _ = standing_deploy(lcm_port, tmp_path, 60)
    time.sleep(0.3)
    assert not commands[-1][1].is_damping
    killed, killed_at = served_twin.time, time.monotonic()
    process.send_signal(signal.SIGKILL)
    process.communicate()  # until the guard has ended, too
    # by the robot's own clock, which is what its motors go by; the twin brakes by itself after 22 ms without a command
    assert served_twin.damped_at - killed <= 0.060
    guarded = [at - killed_at for at, command in commands if at > killed_at and command.is_damping]
    assert len(guarded) > 50  # and the guard repeats it for a second
    print(f"damped after {1e3 * (served_twin.damped_at - killed):.0f} ms, by the guard {1e3 * guarded[0]:.0f} ms")


@pytest.mark.real
@pytest.mark.slow
def test_a_second_commander_that_appears_in_flight_damps_the_robot_and_is_latched(served_twin, lcm_port, tmp_path):
    process, _ = standing_deploy(lcm_port, tmp_path, 60)
    with LcmEnd(url_of(lcm_port), "X", print) as rival:
        rival.publish("LCM_Low_Cmd", encode_command(Command(A1.mid, A1.mid * 0 + 60.0, A1.mid * 0 + 10.0)))
    said = process.communicate()[0].splitlines()
    assert json.loads(said[-1])["fault"] == "rival", said
    assert served_twin.command.is_damping
    with pytest.raises(UserError, match=r"ended with a fault \(rival: somebody else sends commands, too"):
        CommanderLock(url_of(lcm_port), rearm=False)
