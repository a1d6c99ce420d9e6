"""The flight recorder keeps every tick, in constant memory, and its recording is what the robot did."""

import gc
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncap.circuits.tables import describe_circuit
from ncap.deploy.contract import checksum
from ncap.deploy.flight import PHASES, FlightRecorder, facts_about, read_log, row_layout, write_recording
from ncap.deploy.link import TwinLink
from ncap.deploy.loop import Deployment
from ncap.deploy.phases import Schedule
from ncap.deploy.twin import Twin
from ncap.errors import UserError
from ncap.recording import Recording
from ncap.sim.a1 import A1
from ncap.sim.legs import feet
from ncap.sim.terrain import Flat
from ncap.trained import find_policy, load

SHORT = Schedule(calibration=0.2, low=0.6, stand=0.8, hold=0.2, policy=4.0, halt=0.5, sit=0.6, damping=0.2)


def fly(folder, schedule=SHORT):
    policy, link = load("untrained"), TwinLink(Twin())
    facts = facts_about(policy, A1, link="twin", armed=True, seed=0)
    path = []
    with FlightRecorder(folder, facts) as recorder:
        deployment = Deployment(link, policy, armed=True, schedule=schedule, recorder=recorder)
        wait = link.wait_until

        def watched(moment):
            wait(moment)
            path.append((link.now(), link.twin.truth().position))

        link.wait_until = watched
        outcome = deployment.run()
    return outcome, path


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flights") / "one"
    return folder, *fly(folder)


def test_the_log_has_every_tick_with_its_command(flown):
    folder, outcome, _ = flown
    facts, log = read_log(folder)
    started, ended = outcome.phases[2][1], outcome.phases[-1][1] + SHORT.damping
    assert len(log) == pytest.approx((ended - started) / 0.002, abs=3)
    np.testing.assert_allclose(np.diff(log["time"]), 0.002, atol=0.0021)
    assert facts.policy_checksum == checksum(load("untrained"))
    assert log["acted"].sum() == round(4.0 / 0.030 + 0.5)
    damped = log["phase"] == PHASES.index("damping")
    assert (log["command_kp"][~damped] > 0).all()
    assert (log["command_kp"][damped] == 0).all()
    assert damped.sum() == round(SHORT.damping / 0.002)


def test_the_recording_is_the_walk_that_the_twin_made(flown):
    folder, _, path = flown
    recording = Recording.load(folder / "recording.safetensors")
    assert recording.control_dt == 0.030
    assert recording.neurons.shape == (len(recording.position), 28 + 8)  # and the late ones of four legs
    assert recording.neurons.max() > 0.5
    assert np.abs(recording.action).max() <= 1.0
    # dead reckoning on the robot's own sensors, blind to slipping feet: within a third of the distance, and 3 cm up
    times, places = np.array([at for at, _ in path]), np.array([place for _, place in path])
    _, log = read_log(folder)
    chosen = np.searchsorted(times, log["time"][0] + 0.030 * np.arange(len(recording.position)))
    truth = places[np.minimum(chosen, len(places) - 1)]
    walked = truth[-1, 0] - truth[0, 0]
    assert walked > 0.4
    assert recording.position[-1, 0] - recording.position[0, 0] == pytest.approx(walked, rel=0.33)
    np.testing.assert_allclose(recording.position[:, 2], truth[:, 2], atol=0.03)


def test_the_recording_carries_the_circuit_that_flew_the_robot_and_a_plane(flown, tmp_path):
    recording = Recording.load(flown[0] / "recording.safetensors")
    assert recording.circuit == load("untrained").policy.circuit
    untrained = load("untrained")
    np.testing.assert_array_equal(recording.numbers, untrained.policy.numbers(untrained.theta[None])[0])
    assert (recording.robot.name, recording.robot.position_mid) == ("a1", A1.position_mid)
    assert recording.robot.model_xml == A1.model.read_text("utf-8")
    assert recording.terrain == Flat()

    cut = find_policy("ncap-flat-walk", without=["V0v"], command=0.3)
    facts = facts_about(cut, A1, link="twin", armed=False, seed=5)
    assert (
        facts.circuit == describe_circuit(cut.policy.circuit) != describe_circuit(load("ncap-flat-walk").policy.circuit)
    )
    assert (facts.command, facts.seed, facts.task) == (0.3, 5, "flat-walk")
    assert facts.title == "ncap-flat-walk without V0v on twin, dry run"
    assert not any(name.startswith("cross_V0v") for name in facts.neuron_names)
    assert facts_about(load("zero"), A1, link="twin", armed=True, seed=0).circuit is None


def test_a_flight_of_the_first_version_still_gives_a_recording(flown, tmp_path):
    about = json.loads((flown[0] / "about.json").read_text())
    for new in ("command", "circuit", "numbers", "robot"):
        del about[new]
    (tmp_path / "about.json").write_text(json.dumps(about))
    (tmp_path / "log.rows").write_bytes((flown[0] / "log.rows").read_bytes())
    recording = Recording.load(write_recording(tmp_path))
    assert (recording.circuit, recording.robot) == (None, None)


def test_a_log_that_was_cut_short_still_gives_a_recording(flown, tmp_path):
    folder, _, _ = flown
    for name in ("about.json", "log.rows"):
        data = (folder / name).read_bytes()
        (tmp_path / name).write_bytes(data if name == "about.json" else data[: len(data) // 2 - 7])
    whole, part = (Recording.load(write_recording(path)) for path in (folder, tmp_path))
    assert len(part.position) == pytest.approx(len(whole.position) / 2, abs=2)
    np.testing.assert_array_equal(part.joint_position[:-1], whole.joint_position[: len(part.position) - 1])


def test_flights_are_never_overwritten_and_other_folders_are_refused(flown, tmp_path):
    folder, _, _ = flown
    with pytest.raises(UserError, match="flights are never overwritten"):
        fly(folder)
    with pytest.raises(UserError, match="holds no flight"):
        read_log(tmp_path)


def test_a_recording_that_cannot_be_written_is_said_and_leaves_the_log(flown, tmp_path):
    facts = read_log(flown[0])[0]
    with FlightRecorder(tmp_path / "flight", facts) as recorder:
        recorder._log.write((flown[0] / "log.rows").read_bytes())
        (tmp_path / "flight" / "recording.safetensors").mkdir()
    assert "cannot write" in recorder.failure
    assert "recording.safetensors" in recorder.failure
    assert len(read_log(tmp_path / "flight")[1]) == len(read_log(flown[0])[1])


def test_a_flight_that_was_refused_leaves_nothing_behind(flown, tmp_path):
    with FlightRecorder(tmp_path / "flight", read_log(flown[0])[0]):
        pass
    assert list(tmp_path.iterdir()) == []


class Small:
    """A flight's folder, its facts and its log as bytes; with a short repr."""

    def __init__(self, *parts):
        self.parts = parts


@pytest.fixture(scope="module")
def small(flown, tmp_path_factory):
    """A flight of 300 rows, in the middle of which the policy begins."""
    folder = tmp_path_factory.mktemp("small")
    about, (_, log) = json.loads((flown[0] / "about.json").read_text()), read_log(flown[0])
    begin = int(np.argmax(log["phase"] == PHASES.index("policy")))
    return Small(folder, about, log[begin - 150 : begin + 150].tobytes())


def put(folder, about, rows):
    (folder / "about.json").write_bytes(about if isinstance(about, bytes) else json.dumps(about).encode())
    (folder / "log.rows").write_bytes(rows)


WRONG = [None, True, -1, 1.5, float("nan"), float("inf"), 10**400, "text", "x" * 100_000, [], [None], {}, {"a": [1]}]
FIELDS = (
    "title", "task", "policy_checksum", "link", "armed", "seed", "neuron_names", "command", "circuit", "numbers",
    "robot",
)  # fmt: skip


def outcome_of(folder):
    """What becomes of a damaged flight: a recording that can be opened, or a sentence that names the folder."""
    try:
        path = write_recording(folder)
        recording, said = Recording.load(path), ""
    except UserError as error:
        said = str(error)
    if said:
        assert str(folder) in said
        assert len(said) < 1000
        return said
    for name in ("position", "quaternion", "joint_position", "foot_force", "velocity", "action", "neurons"):
        assert np.isfinite(getattr(recording, name)).all()
    assert len(recording.position) <= 20_001
    path.unlink()
    return None


@pytest.mark.parametrize("field", FIELDS)
def test_any_value_in_any_field_of_a_flights_facts_is_a_recording_or_a_sentence(small, field):
    folder, about, rows = small.parts
    refused = 0
    for value in WRONG:
        put(folder, about | {field: value}, rows)
        refused += outcome_of(folder) is not None
    missing = {name: value for name, value in about.items() if name != field}
    put(folder, missing, rows)
    outcome_of(folder)
    assert refused >= 6


DAMAGE = st.tuples(
    st.booleans(),  # which file
    st.integers(0, 2**20),  # where
    st.sampled_from([1, 8, 900, 40_000]),  # how much
    st.booleans(),  # whether it is put in, or overwrites
    st.binary(max_size=64),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(DAMAGE, min_size=1, max_size=4))
def test_damaged_logs_are_a_recording_or_a_sentence(small, damages):
    """Bytes of either file are overwritten, cut out or put in at random places."""
    folder, about, rows = small.parts
    files = [json.dumps(about).encode(), rows]
    for which, at, size, put_in, what in damages:
        whole = bytearray(files[which])
        at %= len(whole) + 1
        whole[at : at if put_in else at + size] = what * (size // 16)
        files[which] = bytes(whole)
    put(folder, *files)
    outcome_of(folder)


@pytest.mark.parametrize("column", ["time", "phase", "tick", "quaternion", "joint_position", "foot_force", "neurons"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, 255, 0])
def test_any_number_in_any_column_of_a_log_is_a_recording_or_a_sentence(small, column, value):
    folder, about, rows = small.parts
    for where in (slice(None), slice(100, 120), slice(0, 1), slice(-1, None)):
        log = np.frombuffer(rows, row_layout(len(about["neuron_names"]))).copy()
        with np.errstate(all="ignore"):
            log[column][where] = np.array(value).astype(log[column].dtype)
        put(folder, about, log.tobytes())
        said = outcome_of(folder)
        assert said is None or where == slice(None)  # a few bad rows cost a few rows


@pytest.mark.parametrize("name", ["about.json", "log.rows"])
@pytest.mark.parametrize("kind", ["missing", "empty", "folder", "fifo", "device", "loop", "deep", "binary"])
def test_files_that_are_no_files_are_a_sentence_at_once(small, tmp_path, name, kind):
    put(tmp_path, *small.parts[1:])
    path = tmp_path / name
    path.unlink()
    make = {
        "missing": lambda: None,
        "empty": path.touch,
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "loop": lambda: path.symlink_to(path),
        "deep": lambda: path.write_text("[" * 100_000),
        "binary": lambda: path.write_bytes(b"\xff" * 2560),
    }
    make[kind]()
    with pytest.raises(UserError, match="holds no flight"):
        write_recording(tmp_path)


def test_feet_are_where_the_simulator_has_them_and_move_as_their_positions_change():
    import mujoco

    from ncap.sim.terrain import Flat
    from ncap.sim.world import World

    world = World(A1, Flat())
    data = mujoco.MjData(world.model)
    joints = np.random.default_rng(0).uniform((-0.5, -0.5, -2.5), (0.5, 1.5, -1.0), (4, 3))
    data.qpos[world.position_columns], data.qpos[0:3] = joints.ravel(), 0.0
    mujoco.mj_kinematics(world.model, data)
    place, _ = feet(joints[None], np.zeros((1, 4, 3)))
    np.testing.assert_allclose(place[0], data.geom_xpos[world.foot_geoms], atol=1e-9)
    velocity = np.random.default_rng(1).normal(size=(4, 3))
    later, _ = feet((joints + 1e-6 * velocity)[None], np.zeros((1, 4, 3)))
    _, speed = feet(joints[None], velocity[None])
    np.testing.assert_allclose((later - place)[0] / 1e-6, speed[0], atol=1e-4)


def test_memory_does_not_grow_with_the_length_of_a_flight(tmp_path):
    # the interpreter's own count of live blocks, once a second; caches and the heap of messages under way may breathe
    counts: list[int] = []
    policy, link = load("untrained"), TwinLink(Twin())
    facts = facts_about(policy, A1, link="twin", armed=True, seed=0)
    with FlightRecorder(tmp_path / "flight", facts) as recorder:
        deployment = Deployment(link, policy, armed=True, schedule=replace(SHORT, policy=7.0), recorder=recorder)
        wait = link.wait_until

        def watched(moment):
            wait(moment)
            if deployment.outcome.phases[-1][0] == "policy" and round(1000 * link.now()) % 1000 == 0:
                gc.collect()
                counts.append(sys.getallocatedblocks())

        link.wait_until = watched
        deployment.run()
    assert len(counts) >= 6
    assert counts[-1] - counts[2] < 100, counts


BESIDE_THE_ROBOT = """
import sys
for name in ("mujoco", "scipy", "matplotlib", "lcm"):
    sys.modules[name] = None  # importing it fails
from pathlib import Path
from ncap.deploy import calibration, contract, flight, guard, lcm_udp, link, lock, loop, safety, session
from ncap.files import read_tensors
from ncap.trained import find_policy
policy = find_policy("ncap-bumpy-walk", without=["V0v"], command=0.1)
contract.check_contract(policy, policy.controller(1), contract.robot_of(policy), safety.Limits())
about = read_tensors(flight.write_recording(Path(sys.argv[1])))[1]["recording"]
print(len(about["circuit"]["neurons"]), about["robot"]["name"])
"""


def test_the_machine_beside_the_robot_needs_no_simulator(flown):
    run = subprocess.run([sys.executable, "-c", BESIDE_THE_ROBOT, str(flown[0])], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(len(load("untrained").policy.circuit.neurons)), "a1"]
