"""A whole flight on a twin in its own time: phases, cadence, dry run, stops, and what happens when things go wrong."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from ncap.deploy.contract import check_contract, checksum
from ncap.deploy.flight import FlightRecorder, facts_about, read_log
from ncap.deploy.gap import Gap
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import LOW, Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.safety import Limits
from ncap.deploy.signals import stopped_by_signals
from ncap.deploy.twin import Twin
from ncap.errors import UserError
from ncap.policies.controller import ZeroController, ZeroPolicy
from ncap.sim.a1 import A1
from ncap.sim.robot import describe_robot
from ncap.trained import find_policy, load, untrained

SHORT = Schedule(calibration=0.3, low=0.6, stand=0.8, hold=0.2, policy=0.9, halt=0.3, sit=0.6, damping=0.3)
POLICY_AT = 2.2
"""s after the start at which the policy surely drives."""


class LoggedLink(TwinLink):
    """Keeps every command with its time, and can call something at a moment."""

    def __init__(self, twin: Twin):
        super().__init__(twin)
        self.log, self.calls = [], []

    def wait_until(self, moment: float) -> None:
        super().wait_until(moment)
        while self.calls and self.now() >= self.calls[0][0]:
            self.calls.pop(0)[1]()

    def send(self, command) -> None:
        self.log.append((self.now(), command))
        super().send(command)


class Probe(ZeroController):
    """Holds a pose, and keeps when it was asked and what it saw."""

    def __init__(self, twin: Twin, misbehave=None, pose=0.0):
        super().__init__(A1.mid.shape)
        self.twin, self.misbehave, self.pose = twin, misbehave or (lambda: None), pose
        self.seen, self.spins = [], []

    def act(self, state, observation, command=None):
        self.seen.append((self.twin.time, observation[0], self.twin.truth()))
        self.spins.append(self.twin._data.qvel[3:6].copy())
        if len(self.seen) == 12:
            self.misbehave()
        return None, super().act(state, observation, command)[1] + self.pose


def flight(policy="zero", gap=None, **settings):
    link = LoggedLink(Twin(gap))
    return link, Deployment(link, load(policy), **{"armed": True, "schedule": SHORT} | settings)


def test_a_flight_goes_through_all_phases_and_ends_on_the_belly_in_damping():
    link, deployment = flight("untrained", schedule=replace(SHORT, policy=1.5, damping=0.6))
    outcome = deployment.run()
    names = [name for name, _ in outcome.phases]
    assert names == ["contract", "calibration", "low", "stand", "hold", "policy", "halt", "sit", "damping"]
    assert outcome.fault is None
    assert link.log[-1][1].is_damping
    assert link.twin.damped_at is not None
    assert link.twin.truth().up[2] > 0.99
    assert link.twin.truth().position[2] < 0.1
    assert link.twin.truth().position[0] > 0.1  # the untrained circuit walks


def test_the_first_command_holds_the_measured_pose_and_no_command_ever_jumps():
    link, deployment = flight("untrained")
    lying = link.twin.truth().joint_position
    deployment.run()
    moving = [(at, command) for at, command in link.log if not command.is_damping]
    np.testing.assert_allclose(moving[0][1].position, lying, atol=1e-2)
    times, positions = np.array([at for at, _ in moving]), np.array([command.position for _, command in moving])
    rising = times < 1.85
    speed = np.abs(np.diff(positions[rising], axis=0)).max() / 0.002
    # a smooth ramp's fastest moment is 1.5 times its mean: the calf goes from -2.5 to -1.2 in 0.8 s
    assert speed == pytest.approx(1.5 * 1.3 / 0.8, rel=0.1)
    np.testing.assert_allclose(np.diff(times), 0.002, atol=1e-9)


def test_the_policy_acts_every_30_ms_on_what_the_robot_measures():
    link, deployment = flight()
    probe = Probe(link.twin)
    deployment.controller = probe
    deployment.run()
    times = np.array([at for at, _, _ in probe.seen[1:]])  # the first is the contract's
    np.testing.assert_allclose(np.diff(times), 0.030, atol=1e-9)
    assert len(times) == 30
    _, observation, truth = probe.seen[-1]
    offset = truth.joint_position - A1.mid
    position = np.where(offset < 0, offset / (A1.mid - A1.low), offset / (A1.high - A1.mid))
    np.testing.assert_allclose(observation[:, 0:3], position, atol=1e-5)
    np.testing.assert_allclose(
        observation[:, 3:6], (truth.torque - deployment.calibration.torque_zero) / 33.5, atol=1e-5
    )
    np.testing.assert_allclose(observation[:, 6:9], truth.joint_velocity / 15.0, atol=1e-5)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_policy_is_told_the_posture_that_the_inertial_sensor_measures(side):
    # calves of FL, FR, HL, HR: for 1 the left side and the hind girdle are lifted, for -1 the others
    pose = side * np.array([[0, 0, 0], [0, 0, -0.3], [0, 0, 0.3], [0, 0, 0]])
    link, deployment = flight()
    deployment.controller = probe = Probe(link.twin, pose=pose)
    deployment.run()
    right, front = np.array([-1, 1, -1, 1]), np.array([1, 1, -1, -1])
    seen = np.array([observation[:, 10:] for _, observation, _ in probe.seen[1:]])  # the first is the contract's
    ups, spins = np.array([truth.up for _, _, truth in probe.seen[1:]]), np.array(probe.spins[1:])
    np.testing.assert_allclose(seen[..., 0], np.outer(np.arctan2(ups[:, 1], ups[:, 2]) / 0.5, right), atol=1e-5)
    np.testing.assert_allclose(seen[..., 1], np.outer(spins[:, 0] / 2.0, right), atol=1e-5)
    np.testing.assert_allclose(seen[..., 2], np.outer(np.arctan2(-ups[:, 0], ups[:, 2]) / 0.5, front), atol=1e-5)
    np.testing.assert_allclose(seen[..., 3], np.outer(spins[:, 1] / 2.0, front), atol=1e-5)
    assert side * seen[-1, 1, 0] > 0.05  # the right side is low
    assert side * seen[-1, 0, 2] > 0.05  # and the front
    assert np.abs(seen[..., [1, 3]]).max() > 0.05  # and it took some turning


def test_a_policy_flies_with_the_data_sheet_of_the_robot_that_it_was_trained_for(tmp_path):
    sheet = tmp_path / "soft.json"
    soft = describe_robot(A1) | {
        "name": "soft",
        "model": str(A1.model),
        "kp": 40.0,
        "position_mid": [[0, 0.5, -1.2]] * 4,
    }
    sheet.write_text(json.dumps(soft))
    link = LoggedLink(Twin())
    policy = replace(load("zero"), about={"robot": str(sheet)})
    Deployment(link, policy, armed=True, schedule=SHORT).run()
    _, standing = next((at, command) for at, command in link.log if at > POLICY_AT)
    np.testing.assert_allclose(standing.kp, 40.0)
    np.testing.assert_allclose(standing.position, [[0, 0.5, -1.2]] * 4, atol=1e-9)
    with pytest.raises(UserError, match=r"unknown robot 'horse'; valid: a1"):
        Deployment(link, replace(load("zero"), about={"robot": "horse"}))


def test_a_tared_foot_force_offset_does_not_change_what_the_policy_feels():
    feet = []
    for offset in (0.0, 37.0):
        link, deployment = flight(gap=Gap(foot_force_offset=offset))
        probe = Probe(link.twin)
        deployment.controller = probe
        deployment.run()
        feet.append(probe.seen[-1][1][:, 9])
    np.testing.assert_allclose(feet[0], feet[1], atol=1e-9)
    assert feet[0].max() < 1.0  # and it is not simply saturated


def test_a_dry_run_does_everything_but_send():
    lines: list[str] = []
    link, deployment = flight("untrained", armed=False, report=lines.append)
    outcome = deployment.run()
    assert link.log == []
    assert (link.twin.heard, outcome.sent) == (0, 0)
    assert link.twin.truth().trunk_touches
    assert [name for name, _ in outcome.phases][-4:] == ["policy", "halt", "sit", "damping"]
    assert any("would send: thigh" in line for line in lines)
    calves = np.round(link.twin.truth().joint_position[:, 2], 2).tolist()  # as it lies, whatever would be sent
    assert any(f"calf {calves} rad; feet" in line for line in lines if "measured: hip" in line)


def test_one_stop_sits_down_and_a_second_damps_at_once():
    link, deployment = flight()
    link.calls = [(POLICY_AT, deployment.stop)]
    outcome = deployment.run()
    assert [name for name, _ in outcome.phases][-3:] == ["halt", "sit", "damping"]
    assert outcome.stopped == "stopped by the operator"

    link, deployment = flight()
    link.calls = [(POLICY_AT, deployment.stop), (POLICY_AT + 0.2, deployment.stop)]
    deployment.run()
    assert 0 <= link.twin.damped_at - (POLICY_AT + 0.2) <= 0.005


@pytest.mark.parametrize("phase_at", [0.35, 1.2, 1.8, POLICY_AT, 2.95, 3.4])
def test_two_stops_damp_within_a_few_ticks_in_every_phase(phase_at):
    link, deployment = flight()
    link.calls = [(phase_at, deployment.stop), (phase_at, deployment.stop)]
    deployment.run()
    assert 0 <= link.twin.damped_at - phase_at <= 0.005
    assert link.log[-1][1].is_damping


@pytest.mark.parametrize("error", [RuntimeError("a bug"), KeyboardInterrupt(), MemoryError(), SystemExit(3)])
def test_any_exception_damps_the_robot_and_is_passed_on(error):
    link, deployment = flight()

    def misbehave():
        raise error

    probe = Probe(link.twin, misbehave)
    deployment.controller = probe
    with pytest.raises(type(error)):
        deployment.run()
    assert 0 <= link.twin.damped_at - probe.seen[-1][0] <= 0.005
    assert sum(command.is_damping for _, command in link.log) >= 100  # for a while, not once


def test_a_link_that_fails_in_between_still_carries_damping():
    link, deployment = flight()
    good, count = link.send, [0]

    def send(command):
        count[0] += 1
        if 900 < count[0] < 960:
            raise OSError("network is down")
        good(command)

    link.send = send
    with pytest.raises(OSError, match="network is down"):
        deployment.run()
    assert link.log[-1][1].is_damping
    assert link.twin.command.is_damping


def test_a_terminal_that_is_gone_does_not_keep_the_robot_from_being_damped():
    def shout(line):
        raise BrokenPipeError

    link, deployment = flight(report=shout)
    outcome = deployment.run()
    assert [name for name, _ in outcome.phases][-1] == "damping"
    assert link.log[-1][1].is_damping


def test_damping_is_sent_before_anything_else_can_fail():
    class Shouting(Exception):
        pass

    def shout(line):
        if "damping" in line:
            raise Shouting

    link, deployment = flight(report=shout)
    with pytest.raises(Shouting):
        deployment.run()
    assert link.log[-1][1].is_damping


def test_a_killed_parent_damps_the_robot(monkeypatch):
    link, deployment = flight()
    link.calls = [(POLICY_AT, lambda: monkeypatch.setattr(os, "getppid", lambda: 1))]
    outcome = deployment.run()
    assert outcome.stopped == "its parent process died"
    assert 0 <= link.twin.damped_at - POLICY_AT <= 0.005


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_the_flight_instead_of_the_process(number):
    link, deployment = flight()
    link.calls = [(POLICY_AT + 0.1 * i, lambda: os.kill(os.getpid(), number)) for i in (0, 1)]
    before = signal.getsignal(number)
    with stopped_by_signals(deployment):
        deployment.run()
    assert 0 <= link.twin.damped_at - (POLICY_AT + 0.1) <= 0.005
    assert signal.getsignal(number) == before


def test_a_policy_that_answers_nan_is_damped():
    link, deployment = flight()

    class Broken(Probe):
        def act(self, state, observation, command=None):
            state, action = super().act(state, observation, command)
            return state, action * (np.nan if len(self.seen) > 20 else 1.0)

    probe = Broken(link.twin)
    deployment.controller = probe
    outcome = deployment.run()
    assert outcome.fault.kind == "target is not a number"
    assert 0 <= link.twin.damped_at - probe.seen[-1][0] <= 0.005


def test_the_contract_refuses_what_does_not_fit():
    policy, limits = load("untrained"), Limits()
    controller = policy.controller(1)
    assert checksum(policy) in check_contract(policy, controller, A1, limits)["policy"]
    with pytest.raises(UserError, match="joints are not in the order"):
        check_contract(policy, controller, replace(A1, joints=A1.joints[::-1]), limits)
    with pytest.raises(UserError, match="beyond the joint limits"):
        check_contract(policy, controller, replace(A1, position_max=((0.15, 1.2, -0.5),) * 4), limits)
    with pytest.raises(UserError, match="does not answer with 12 numbers"):
        check_contract(policy, Shouting(A1.mid.shape), A1, limits)
    with pytest.raises(UserError, match="'random' acts at random"):
        check_contract(load("random"), controller, A1, limits)


class Shouting(ZeroController):
    def act(self, state, observation, command=None):
        return state, np.full((1, 4, 3), 7.0)


@pytest.mark.parametrize(("made_for", "said"), [(0.06, "0.06"), (0.015, "0.015")])
def test_a_policy_of_another_control_step_is_refused_before_anything_is_sent(made_for, said):
    link = LoggedLink(Twin())
    deployment = Deployment(link, untrained(ZeroPolicy(control_dt=made_for)), armed=True, schedule=SHORT)
    with pytest.raises(UserError, match=rf"acts every {said} s, but the loop every 0.03 s"):
        deployment.run()
    assert link.log == []


def test_the_checksum_is_of_the_description_and_the_weights():
    policy = load("paper-flat-walk")
    others = (
        replace(policy, theta=policy.theta + 1e-9),
        policy.with_command(0.06),
        policy.without(["V0v"]),
        load("untrained"),
        load("zero"),
    )
    assert len({checksum(policy), *map(checksum, others)}) == 1 + len(others)
    assert checksum(replace(policy, name="another name")) == checksum(load("paper-flat-walk"))


class Listening:
    """Another controller, which keeps every observation, command and action."""

    def __init__(self, controller):
        self.controller, self.heard = controller, []
        self.reset, self.signals = controller.reset, controller.signals

    def act(self, state, observation, command=None):
        state, action = self.controller.act(state, observation, command)
        self.heard.append((observation, command, action))
        return state, action


@pytest.mark.parametrize("words", [{"without": ["V0v"]}, {"command": 0.4}, {"without": ["afferents"], "command": 0.2}])
def test_a_changed_policy_flies_as_the_changed_policy_and_not_as_the_intact_one(words):
    link = LoggedLink(Twin())
    deployment = Deployment(link, find_policy("ncap-flat-walk", **words), armed=True, schedule=SHORT, seed=3)
    deployment.controller = Listening(deployment.controller)
    deployment.run()
    flown = deployment.controller.heard[1:]  # the first is the contract's
    assert len(flown) == 30

    def replayed(policy):
        controller = policy.controller(1)
        memory, actions = controller.reset([3]), []
        for observation, _, _ in flown:
            memory, action = controller.act(memory, observation)
            actions.append(action)
        return np.array(actions)

    intact = load("ncap-flat-walk")
    changed = intact if "command" not in words else intact.with_command(words["command"])
    actions = np.array([action for _, _, action in flown])
    np.testing.assert_array_equal(actions, replayed(changed.without(words.get("without", ()))))
    assert np.abs(actions - replayed(intact)).max() > 0.01


def test_a_command_of_a_flight_is_handed_to_the_controller_at_every_step():
    # the same numbers whether the command is the policy's own or the flight's, because the circuit hears it either way
    flights = []
    for policy, command in ((load("untrained"), {"c": 0.4}), (load("untrained").with_command(0.4), None)):
        deployment = Deployment(LoggedLink(Twin()), policy, armed=True, schedule=SHORT, command=command)
        deployment.controller = Listening(deployment.controller)
        deployment.run()
        assert all(heard == command for _, heard, _ in deployment.controller.heard[1:])
        flights.append([action for _, _, action in deployment.controller.heard[1:]])
    np.testing.assert_array_equal(*flights)


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("silence", "no state came from the robot on twin within 2 s"),
        ("short", "no state came.*; 1000 datagrams were malformed"),
        ("frozen-tick", "the robot sends 0 states a second"),
        ("nan", "check its offset"),
    ],
)
def test_a_robot_that_cannot_be_understood_is_never_commanded(fault, complaint):
    link, deployment = flight()
    link.twin.inject(fault)
    with pytest.raises(UserError, match=complaint):
        deployment.run()
    assert link.log == []


def test_a_robot_that_is_being_carried_is_not_calibrated():
    link, deployment = flight()
    link.twin.inject("overspeed")
    with pytest.raises(UserError, match="the robot is moving"):
        deployment.run()


def test_a_robot_that_somebody_else_drives_is_left_alone():
    link, deployment = flight()
    link.rivals = 3
    with pytest.raises(UserError, match="somebody else commands the robot on twin: 3 commands"):
        deployment.run()
    assert link.log == []  # not even damping: the other one's robot would fall
    assert deployment.outcome.sent == 0


def test_a_second_commander_that_appears_in_flight_is_a_fault():
    link, deployment = flight()
    link.calls = [(POLICY_AT, lambda: setattr(link, "rivals", 1))]
    outcome = deployment.run()
    assert outcome.fault.kind == "rival"
    assert 0 <= link.twin.damped_at - POLICY_AT <= 0.005
    assert all(command.is_damping for at, command in link.log if at > POLICY_AT + 0.002)
    assert [name for name, _ in outcome.phases][-2:] == ["policy", "damping"]


class FakeGuard:
    """Keeps what it was told and when, and can die."""

    def __init__(self, link):
        self.link, self.told, self.alive = link, [], True

    def engage(self):
        self.told.append(("engage", self.link.now(), len(self.link.log)))

    def release(self):
        self.told.append(("release", self.link.now(), len(self.link.log)))


def guarded_flight(**settings):
    link = LoggedLink(Twin())
    guard = FakeGuard(link)
    return link, guard, Deployment(link, load("zero"), armed=True, schedule=SHORT, guard=guard, **settings)


def test_the_guard_is_told_before_the_first_command_and_after_the_last_damping_one():
    link, guard, deployment = guarded_flight()
    outcome = deployment.run()
    (engaged, _, before), (released, at, after) = guard.told
    assert (engaged, released) == ("engage", "release")
    assert (before, after) == (0, len(link.log))
    assert at - outcome.phases[-1][1] >= SHORT.damping - 1e-9
    assert outcome.stopped == ""


def test_a_guard_is_not_told_anything_by_a_flight_that_never_commanded():
    link, guard, deployment = guarded_flight()
    link.rivals = 1
    with pytest.raises(UserError):
        deployment.run()
    assert guard.told == []


@pytest.mark.parametrize(("dies_at", "phase"), [(0.5, "low"), (1.2, "stand"), (POLICY_AT, "policy")])
def test_a_guard_that_dies_in_flight_sits_the_robot_down(dies_at, phase):
    link, guard, deployment = guarded_flight()
    link.calls = [(dies_at, lambda: setattr(guard, "alive", False))]
    outcome = deployment.run()
    assert outcome.stopped == "its guard process died"
    names = [name for name, _ in outcome.phases]
    assert names[names.index(phase) + 1 :] == (["halt"] if phase == "policy" else []) + ["sit", "damping"]
    assert outcome.fault is None
    assert link.twin.truth().up[2] > 0.99


class FullDisk:
    """A log that takes some rows and then fails as a full disk does."""

    def __init__(self, rows, file):
        self.left, self.file, self.tried = rows, file, 0

    def write(self, data):
        self.tried += 1
        if self.tried > self.left:
            raise OSError(28, "No space left on device")
        return self.file.write(data)

    def close(self):
        self.file.close()


@pytest.mark.parametrize("armed", [True, False])
def test_a_disk_that_fills_up_in_flight_stops_the_recorder_and_nothing_else(tmp_path, armed):
    link, lines = LoggedLink(Twin()), []
    policy = load("zero")
    with FlightRecorder(tmp_path / "flight", facts_about(policy, A1, link="twin", armed=armed, seed=0)) as recorder:
        recorder._log = FullDisk(500, recorder._log)
        deployment = Deployment(
            link, policy, armed=armed, schedule=SHORT, recorder=recorder, report=lines.append
        )  # fmt: skip
        outcome = deployment.run()
    assert [name for name, _ in outcome.phases][-3:] == ["halt", "sit", "damping"]
    assert link.now() - outcome.phases[-1][1] >= SHORT.damping - 1e-9  # in the robot's time
    if armed:
        damped = [at for at, command in link.log if command.is_damping]
        assert damped[-1] - damped[0] == pytest.approx(SHORT.damping, abs=0.005)
    assert "log.rows: No space left on device" in outcome.unrecorded
    assert sum("NOT RECORDED" in line for line in lines) == 1
    assert recorder._log.tried == 501  # a torn row would shift all others
    assert len(read_log(tmp_path / "flight")[1]) == 500


def test_damping_lasts_its_time_over_a_link_that_takes_nothing_any_more(monkeypatch):
    link, deployment = flight()

    def refuse(*_):
        raise OSError("network is down")

    link.calls = [(POLICY_AT, lambda: setattr(link, "send", refuse))]
    with pytest.raises(OSError, match="network is down"):
        deployment.run()
    assert link.now() - deployment.outcome.phases[-1][1] >= SHORT.damping - 1e-9


def test_low_is_between_lying_and_standing_and_inside_the_limits():
    limits = Limits()
    assert (np.array(limits.position_low) < LOW).all()
    assert (np.array(limits.position_high) > LOW).all()
