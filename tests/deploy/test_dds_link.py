"""A Go2 over DDS: types as the robot describes them, addresses, and flights between processes on the loopback."""

import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from ncap.deploy import dds_messages, motion_service, session
from ncap.deploy.dds_end import DdsAddress, DdsEnd, find_dds_address
from ncap.deploy.dds_link import DdsLink
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.limits import limits_of
from ncap.deploy.lock import CommanderLock
from ncap.deploy.loop import Deployment
from ncap.deploy.messages import Command, damping_command
from ncap.deploy.motion_service import MotionService, TwinMotionService, check_legs_folded
from ncap.deploy.phases import Schedule
from ncap.deploy.safety import Received, Safety
from ncap.deploy.serving import serve
from ncap.deploy.twin import Twin
from ncap.errors import UserError
from ncap.sim.go import GO2
from ncap.trained import load

COMMAND = Command(GO2.mid, np.full((4, 3), 50.0), np.full((4, 3), 4.0))


@pytest.fixture(scope="session")
def dds():
    """A DDS network of this process alone on the loopback: tests run side by side, and everybody hears a domain."""
    pytest.importorskip("cyclonedds", reason="needs the extra go2")
    return f"dds://lo?domain={1 + os.getpid() % 100}"  # ports of higher domains are those of any other program


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


def wait_for(end, true, seconds=10.0):
    """Receive until something is true, but not for ever."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        end.wait_until(time.monotonic() + 0.01)
    assert true()


def test_types_are_described_as_by_unitrees_own_library():
    # SHA-1 of the descriptions in the headers of unitree_sdk2, which are those of Cyclone DDS 0.10.2: with uint8 in
    # place of byte they differ, and a peer of that version crashes
    pytest.importorskip("cyclonedds", reason="needs the extra go2")
    from ncap.deploy.dds_types import TYPES

    found = {}
    for topic in ("rt/lowcmd", "rt/lowstate"):
        described = TYPES[topic].__idl__
        described.fill_type_data()
        found[topic] = [hashlib.sha1(part).hexdigest()[:12] for part in described._xt_bytedata]
    assert found == {
        "rt/lowcmd": ["cb91ef19c21e", "e2f3a477962c"],
        "rt/lowstate": ["8020b80e890f", "bb33328b15fd"],
    }


def test_no_type_has_a_uint8():
    pytest.importorskip("cyclonedds", reason="needs the extra go2")
    from cyclonedds.idl.types import uint8

    from ncap.deploy.dds_types import TYPES

    def leaves(kind):
        inner = getattr(kind, "subtype", None)
        if inner is not None:
            return leaves(inner)
        if hasattr(kind, "__idl__"):
            return {leaf for field in kind.__annotations__.values() for leaf in leaves(field)}
        return {repr(kind)}

    found = set().union(*(leaves(kind) for kind in TYPES.values()))
    assert "byte" in str(found)
    assert repr(uint8) not in found


def test_bytes_of_a_message_are_those_of_cyclones_own_encoder(a_state):
    """The independent source: dataclasses with the same fields, taken apart and put together by Cyclone DDS."""
    pytest.importorskip("cyclonedds", reason="needs the extra go2")
    from cyclonedds.idl import make_idl_struct

    from ncap.deploy.dds_types import TYPES

    for topic, data in (
        ("rt/lowcmd", dds_messages.encode_command(COMMAND)),
        ("rt/lowstate", dds_messages.encode_state(a_state(torque=np.arange(12.0).reshape(4, 3)), bytes(range(40)))),
    ):
        raw = TYPES[topic]
        plain = make_idl_struct(raw.__name__, raw.__idl_typename__, dict(raw.__annotations__))
        read = plain.deserialize(data)
        assert tuple(read.head) == (0xFE, 0xEF)
        assert read.serialize() == data


def test_addresses_name_an_interface_of_this_computer_and_a_domain():
    assert find_dds_address("dds://lo") == DdsAddress("lo", 0)
    assert find_dds_address("dds://lo?domain=7").url == "dds://lo?domain=7"


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("dds://", "unknown link 'dds://'; valid: dds://INTERFACE, dds://INTERFACE?domain=N"),
        ("dds://lo?domain=x", "unknown link"),
        ("dds://lo?domain=231", "a DDS domain is 0 to 230, not 231"),
        ("dds://nowhere0", "unknown network interface 'nowhere0'; valid: "),
        ('dds://lo"/><x', "unknown link"),
        ("dds://l\0", "unknown network interface"),
    ],
)
def test_other_addresses_are_refused_by_a_sentence(link, complaint):
    with pytest.raises(UserError) as refused:
        find_dds_address(link)
    assert complaint in str(refused.value)


def test_without_cyclone_dds_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cyclonedds", None)
    with pytest.raises(UserError, match="a dds:// link needs the extra go2: "):
        DdsLink("dds://lo")


def test_states_come_rivals_are_counted_and_own_commands_are_not(dds, a_state):
    link = DdsLink(dds)
    with DdsEnd(dds) as other:
        other.announce("rt/lowstate")
        other.announce("rt/lowcmd")
        good = dds_messages.encode_state(a_state(tick=77))
        with in_background(lambda: (other.publish("rt/lowstate", good), time.sleep(0.01))):
            wait_for(link, lambda: link.newest() is not None)
        assert link.newest().state.tick == 77
        for _ in range(20):
            link.send(COMMAND)
        link.wait_until(link.now() + 0.1)
        assert (link.rivals, link.malformed) == (0, 0)
        other.publish("rt/lowstate", good[:-1] + bytes([good[-1] ^ 1]))
        wait_for(link, lambda: link.malformed == 1)
        other.publish("rt/lowcmd", dds_messages.encode_command(COMMAND))
        wait_for(link, lambda: link.rivals == 1)
    link.close()


def test_noise_on_the_network_does_not_disturb_what_is_heard(dds, a_state):
    """Cyclone DDS, a library in C, reads all datagrams before we do: random ones, and some that begin like its own."""
    draw, link, state = random.Random(3), DdsLink(dds), dds_messages.encode_state(a_state(tick=5))
    domain = find_dds_address(dds).domain
    ports = [
        7400 + 250 * domain + 10 + 2 * index + kind for index in range(3) for kind in (0, 1)
    ]  # of RTPS, by unicast
    with DdsEnd(dds) as robot, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as noise:
        robot.announce("rt/lowstate")

        def disturb():
            for port in ports:
                body = draw.randbytes(draw.randrange(1400))
                head = draw.choice([b"", b"RTPS", b"RTPS\2\1\1\x10" + draw.randbytes(12) + b"\x15\5"])
                noise.sendto(head + body, ("127.0.0.1", port))
            robot.publish("rt/lowstate", state)
            link.wait_until(link.now() + 0.001)

        wait_for(link.end, lambda: robot.met(["rt/lowstate"]))
        for _ in range(300):
            disturb()
        link.wait_until(link.now() + 0.05)
    assert link.newest().state.tick == 5
    assert link.heard > 200
    assert (link.malformed, link.rivals) == (0, 0)
    link.close()


def test_ends_with_a_name_of_their_own_hear_every_sample_in_order_and_nobody_else(dds, a_state):
    with DdsEnd(dds, "ours") as robot, DdsEnd(dds) as stranger:
        link, ticks = DdsLink(dds, private="ours"), []
        link.end.hear("rt/lowstate", lambda sample: ticks.append(dds_messages.decode_state(sample.data).tick))
        robot.hear("rt/lowcmd", print)
        for end in (robot, stranger):
            end.announce("rt/lowstate")
        topics = ["rt/lowstate", "rt/lowcmd"]
        wait_for(link.end, lambda: robot.met(topics) and link.end.met(topics))
        assert not stranger.met(["rt/lowstate"])
        for tick in range(1, 2001):  # far more than any queue of the usual readers, while nobody reads
            robot.publish("rt/lowstate", dds_messages.encode_state(a_state(tick=tick)))
        wait_for(link.end, lambda: len(ticks) >= 2000)
        assert ticks == list(range(1, 2001))
        assert link.heard == 2000
        link.close()


def test_a_simulators_clock_is_the_time_at_which_its_states_were_written(dds, a_state):
    link = DdsLink(dds, simulator=True)
    with DdsEnd(dds) as other:
        other.announce("rt/lowstate")
        blank = dds_messages.encode_state(a_state(tick=0))[:-4] + bytes(4)  # neither tick nor checksum
        with in_background(lambda: (other.publish("rt/lowstate", blank), time.sleep(0.01))):
            wait_for(link, lambda: link.newest() is not None)
            first, at = link.newest().state.tick, time.monotonic()
            link.wait_until(at + 0.3)
    assert link.newest().state.tick - first == pytest.approx(300, abs=150)  # ms
    link.close()


@contextmanager
def switcher(dds, mode, *, releases=True):
    """A robot's motion service that answers, and a commander's side of it."""
    with DdsEnd(dds) as robot, DdsEnd(dds) as commander:
        service = TwinMotionService(robot, mode, releases=releases)
        with in_background(lambda: robot.wait_until(time.monotonic() + 0.02)):
            yield service, MotionService(commander)


def test_an_active_controller_is_seen_released_and_given_back(dds):
    with switcher(dds, "normal") as (service, asked):
        assert asked.mode() == "normal"
        asked.release()
        assert (asked.mode(), service.mode) == ("", "")
        assert not asked.select("no such mode")
        assert asked.select("ai")
        assert asked.mode() == service.mode == "ai"


def test_a_controller_that_stays_active_is_refused(dds, monkeypatch):
    monkeypatch.setattr(motion_service, "RELEASE", 0.5)
    stays = pytest.raises(UserError, match="own controller 'mcf' stays active: switch it off in Unitree's app")
    with switcher(dds, "mcf", releases=False) as (_, asked), stays:
        asked.release()


def test_a_service_that_does_not_answer_is_no_mode(dds, monkeypatch):
    monkeypatch.setattr(motion_service, "ANSWER", 0.2)
    with DdsEnd(dds) as end:
        assert MotionService(end).mode() is None


@pytest.mark.parametrize("data", [b"", b"\0\1\0\0", bytes(40), b"\0\1\0\0" + bytes(40), b"\0\1\0\0" + b"\xff" * 60])
def test_other_bytes_are_no_question_and_no_answer(data):
    for decode in (motion_service.decode_question, motion_service.decode_answer):
        with pytest.raises(motion_service.MalformedMessage):
            decode(data)


@pytest.mark.parametrize("text", ["", "normal", "[]", "{}", '{"name": 1}', "[" * 3000])
def test_other_texts_have_no_name_of_a_mode(text):
    with pytest.raises(motion_service.MalformedMessage):
        motion_service.mode_in(text)


def test_questions_and_answers_are_cdr_by_hand():
    # i64 id, i64 api id, i64 lease, i32 priority, bool, 3 bytes up to the next four; u32 length with the zero byte,
    # text, up to four; u32 length of no bytes
    asked = motion_service.encode_question(motion_service.Question(7, 1001, "abc"))
    numbers = b"".join(value.to_bytes(8, "little") for value in (7, 1001, 0))
    assert asked == b"\0\1\0\0" + numbers + bytes(8) + b"\4\0\0\0abc\0" + bytes(4)
    assert motion_service.decode_question(asked) == (7, 1001, "abc")
    answer = motion_service.Answer(7, 1001, -3, '{"name": "ä"}')
    assert motion_service.decode_answer(motion_service.encode_answer(answer)) == answer


class FakeService:
    """Says a mode, and keeps whether it was released."""

    def __init__(self, mode):
        self.name, self.released = mode, False

    def mode(self):
        return self.name

    def release(self):
        self.released = True


class StillLink:
    name = "still"

    def __init__(self, received):
        self.received = received

    def now(self):
        return time.monotonic()

    def newest(self):
        return self.received


def test_a_robot_on_its_feet_is_not_released(a_state):
    folded = np.tile([0.0, 1.2, -2.65], (4, 1))
    check_legs_folded(StillLink(Received(a_state(joint_position=folded), 0.0)))
    with pytest.raises(UserError, match="the robot stands: let it lie down first"):
        check_legs_folded(StillLink(Received(a_state(joint_position=GO2.mid), 0.0)))


def take_over(mode, link, **plan):
    """(whether the mode was released, lines for the operator) at the beginning of a flight."""
    service, said = FakeService(mode), []
    name = session._take_over(service, link, FlightPlan(link="dds://lo", **plan), said.append)
    assert name == (mode if service.released else "")
    return service.released, said


def test_only_an_armed_flight_releases_and_a_service_without_an_answer_is_for_simulators_alone(a_state):
    lying = StillLink(Received(a_state(joint_position=np.tile([0.0, 1.2, -2.65], (4, 1))), 0.0))
    assert take_over("normal", lying) == (False, ["motion service: the own controller 'normal' is active"])
    assert take_over("normal", lying, arm=True)[0]
    assert take_over("", lying, arm=True) == (False, ["motion service: no own controller is active"])
    assert take_over(None, lying) == (False, ["motion service: no answer"])
    with pytest.raises(UserError, match=r"motion service does not answer on still: .* Nothing was sent"):
        take_over(None, lying, arm=True)
    released, said = take_over(None, lying, arm=True, simulator=True)
    assert not released
    assert said[0].startswith("simulator: states need neither tick nor checksum; their clock is the time at which")


def test_flags_of_dds_are_refused_on_other_links():
    for flag in ("simulator", "give_back"):
        with pytest.raises(UserError, match="--simulator and --give-back are for dds:// links only"):
            session.fly(load("zero"), FlightPlan(link="twin", **{flag: True}), report=print)


@pytest.fixture
def served_twin(dds, request):
    """A Go2 that is served in real time by a thread of this process; its own controller is active at first."""
    twin = Twin(robot=GO2, wire=dds_messages.WIRE, faults=getattr(request, "param", ()))
    done = threading.Event()
    twin_time = twin.advance

    def advance(until):
        if done.is_set():
            raise InterruptedError
        return twin_time(until)

    def on():
        try:
            serve(twin, dds, mode="normal")
        except InterruptedError:
            return

    twin.advance = advance
    thread = threading.Thread(target=on)
    thread.start()
    yield twin
    done.set()
    thread.join()


@pytest.fixture
def commands(dds):
    """All commands on the network, each with its time of arrival, as they come."""
    heard: list[tuple[float, Command]] = []
    with DdsEnd(dds) as ear:
        ear.hear("rt/lowcmd", lambda sample: heard.append((time.monotonic(), dds_messages.decode_command(sample.data))))
        with in_background(lambda: ear.wait_until(time.monotonic() + 0.05)):
            yield heard


DEPLOY = """
import json, sys
from pathlib import Path
from ncap.deploy import calibration, loop, session
from ncap.deploy.flight_plan import FlightPlan
from ncap.deploy.safety import Limits
from ncap.trained import load
from dataclasses import replace
# a test machine is busy: a stall of its scheduler is not what is tested here
busy = dict(state_age=float(sys.argv[4]), deadline=2.0, longest_gap=2.0, tick_jump=2.0, following=-1.0)
calibration.SLOWEST = 5.0
limits = loop.limits_of
loop.limits_of = lambda robot: replace(limits(robot), **busy)
schedule = loop.Schedule(
    calibration=0.7, low=0.5, stand=0.6, hold=0.2, policy=float(sys.argv[3]), halt=0.3, sit=0.5, damping=0.3
)
plan = FlightPlan(link=sys.argv[1], robot="go2", arm=True, rearm=True, out=Path(sys.argv[2]))
outcome, folder = session.fly(load("untrained"), plan,
    report=lambda line: print(line, flush=True), schedule=schedule)
print(json.dumps({"fault": outcome.fault and outcome.fault.kind, "sent": outcome.sent, "stopped": outcome.stopped,
    "heavy": sorted({"mujoco", "scipy", "matplotlib", "lcm"} & set(sys.modules))}))
"""


def standing_deploy(dds, folder, seconds, state_age=2.0):
    """A flight in another process that stands on its feet, begun again where a busy machine spoilt the calibration."""
    for attempt in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", DEPLOY, dds, str(folder / str(attempt)), str(seconds), str(state_age)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("phase stand"):
                return process, said
        process.wait()
        assert "ticks a second" in "".join(said), said
    raise AssertionError("the machine is too busy for a calibration")


@pytest.mark.real
@pytest.mark.slow
def test_a_go2_is_released_stands_walks_sits_and_is_damped_beside_a_commander_that_is_refused(
    served_twin, commands, dds, tmp_path
):
    process, said = standing_deploy(dds, tmp_path, 1.5)
    second = DdsLink(dds)  # as from another machine, where no lock keeps it away
    rival = Deployment(second, load("zero"), armed=True, robot=GO2, schedule=Schedule(calibration=0.3))
    with pytest.raises(UserError, match="somebody else commands the robot"):
        rival.run()
    second.close()
    said += process.communicate()[0].splitlines()
    assert process.returncode == 0, said
    result = json.loads(said[-1])
    assert result["fault"] is None
    assert result["heavy"] == []  # neither the simulator nor LCM's library
    assert result["sent"] > 200
    assert said[:2] == [
        "motion service: the own controller 'normal' is active\n",
        "motion service: 'normal' is released\n",
    ]
    phases = [line.split()[1] for line in said if line.startswith("phase")]
    assert phases == ["contract", "calibration", "low", "stand", "hold", "policy", "halt", "sit", "damping"]
    # the refused one sent nothing: there is no damping before the last phase
    damping = [command.is_damping for _, command in commands]
    assert not damping[0]
    assert all(damping[damping.index(True) :])
    assert served_twin.command.is_damping
    assert served_twin.truth().up[2] > 0.9
    print(f"walked {served_twin.truth().position[0]:.2f} m")
    assert served_twin.truth().position[0] > 0.1


@pytest.mark.real
@pytest.mark.slow
def test_a_commander_that_is_killed_leaves_a_robot_that_the_guard_damps(served_twin, commands, dds, tmp_path):
    process, _ = standing_deploy(dds, tmp_path, 60)
    time.sleep(0.3)
    assert not commands[-1][1].is_damping
    killed, killed_at = served_twin.time, time.monotonic()
    process.send_signal(signal.SIGKILL)
    process.communicate()  # until the guard has ended, too
    assert served_twin.damped_at - killed <= 0.060  # the twin brakes by itself after 22 ms without a command
    guarded = [at - killed_at for at, command in commands if at > killed_at and command.is_damping]
    assert len(guarded) > 20  # and the guard repeats it for a second
    print(f"damped after {1e3 * (served_twin.damped_at - killed):.0f} ms, by the guard {1e3 * guarded[0]:.0f} ms")
    with pytest.raises(UserError, match="its program ended in flight"):
        CommanderLock(dds, rearm=False)


@pytest.mark.real
@pytest.mark.slow
def test_a_rival_in_flight_damps_the_robot_and_is_latched(served_twin, dds, tmp_path):
    process, _ = standing_deploy(dds, tmp_path, 60)
    with DdsEnd(dds) as rival:
        rival.announce("rt/lowcmd")
        while process.poll() is None:  # until both have found each other
            rival.publish("rt/lowcmd", dds_messages.encode_command(COMMAND))
            time.sleep(0.02)
    said = process.communicate()[0].splitlines()
    assert json.loads(said[-1])["fault"] == "rival", said
    with pytest.raises(UserError, match=r"ended with a fault \(rival: somebody else sends commands, too"):
        CommanderLock(dds, rearm=False)


@pytest.mark.real
@pytest.mark.slow
def test_a_robot_that_falls_silent_in_flight_is_damped(served_twin, commands, dds, tmp_path):
    process, _ = standing_deploy(dds, tmp_path, 60, state_age=0.5)
    served_twin.inject("silence")
    silent = served_twin.time
    said = process.communicate()[0].splitlines()
    assert json.loads(said[-1])["fault"] == "old state", said
    # half a second is allowed to this commander, since the machine may be busy; then its damping must arrive soon
    assert 0 < served_twin.damped_at - silent < 1.0
    assert commands[-1][1].is_damping


@pytest.mark.real
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("silence", "old state"),
        ("short", "old state"),
        ("corrupt", "old state"),
        ("frozen-tick", "frozen tick"),
        ("jumping-tick", "jumping tick"),
        ("restart", "jumping tick"),
        ("nan", "state is not a number"),
        ("hot", "temperature"),
        ("overspeed", "velocity"),
        ("overtorque", "torque"),
        ("tilt", "tilt"),
    ],
)
def test_every_fault_in_a_state_is_noticed_over_dds(served_twin, dds, fault, kind):
    limits = replace(limits_of(GO2), state_age=0.5, tick_jump=0.4)  # a test machine is busy
    safety, link = Safety(GO2, limits, tick_seconds=1e-3), DdsLink(dds)

    def watch(seconds):
        until = link.now() + seconds
        while safety.fault is None and link.now() < until:
            link.wait_until(link.now() + 0.002)
            safety.watch(link.newest(), link.now())

    wait_for(link.end, lambda: link.newest() is not None)
    watch(0.1)
    assert safety.fault is None
    served_twin.inject(fault)
    watch(5.0)
    assert safety.fault is not None
    assert safety.fault.kind == kind
    assert link.malformed == 0 or fault == "corrupt"
    link.close()


def test_the_twins_states_pass_and_damping_is_understood(dds):
    twin = Twin(robot=GO2, wire=dds_messages.WIRE)
    for data in twin.advance(0.02):
        state = dds_messages.decode_state(data)
    assert state.tick == 123_456 + 20
    twin.send(dds_messages.encode_command(COMMAND))
    twin.advance(0.03)
    assert not twin.command.is_damping
    twin.send(dds_messages.encode_command(damping_command()))
    twin.advance(0.04)
    assert (twin.heard, twin.command.is_damping) == (2, True)
