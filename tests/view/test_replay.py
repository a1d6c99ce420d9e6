import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from ncap.circuits.animal import animal, cut
from ncap.circuits.circuit import Circuit
from ncap.circuits.tables import save_circuit
from ncap.errors import UserError
from ncap.files import write_tensors
from ncap.recording import Recording, record
from ncap.sim.a1 import A1
from ncap.sim.robot import describe_robot, find_robot
from ncap.sim.terrain import Bumpy
from ncap.tasks import TASKS, build, find_task, with_robot
from ncap.trained import load
from ncap.view.replay import body_poses, circuit_of, gaits_over_time, model_of, signals_of, world_of, write_replay

SHORT = replace(TASKS["flat-walk"], episode_seconds=0.6)


@pytest.fixture(scope="module")
def recording():
    return record("untrained", "flat-walk", 2)


def content(path) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[1])


def test_the_page_holds_the_motion_that_was_recorded(recording, tmp_path):
    write_replay(recording, tmp_path / "new" / "walk.html")
    data = content(tmp_path / "new" / "walk.html")
    poses = np.frombuffer(base64.b64decode(data["poses"]), "<f4").reshape(data["steps"], data["bodies"], 7)
    np.testing.assert_allclose(poses[:, data["trunk"], :3], recording.position, atol=1e-5)
    force = np.frombuffer(base64.b64decode(data["force"]), "<f4").reshape(-1, 4)
    np.testing.assert_allclose(force, recording.foot_force, rtol=1e-6)
    signals = np.frombuffer(base64.b64decode(data["signals"]), np.uint8).reshape(data["steps"], -1) / 255
    np.testing.assert_allclose(signals[:, :36], recording.neurons, atol=0.5 / 255 + 1e-9)
    assert tuple(data["names"][:36]) == recording.neuron_names
    calf = data["names"].index("calf.HL")  # lit by the absolute activity of its motor neuron, which sets the joint
    np.testing.assert_allclose(signals[:, calf], np.abs(recording.action[:, 2, 2]), atol=0.5 / 255 + 1e-9)


def test_inputs_light_up_as_they_were_and_survive_a_file(recording, tmp_path):
    recording.save(tmp_path / "walk.safetensors")
    for kept in (recording, Recording.load(tmp_path / "walk.safetensors")):
        names, signals = signals_of(kept)
        shown = dict(zip(names, signals.T, strict=True))
        assert (shown["freq.L"] == find_task("flat-walk").command).all()  # what an untrained circuit is told
        np.testing.assert_allclose(np.abs(shown["calf.HL"]), np.abs(kept.action[:, 2, 2]))
        for name in ("afferent_flexor.FL", "afferent_extensor.HR", "roll.FL", "pitch rate.HR", "fast_flexor.FR"):
            assert np.ptp(shown[name]) > 0.01, name
    driven = record("ncap-drive", replace(TASKS["flat-drive"], episode_seconds=9.0), 1)
    names, signals = signals_of(driven)
    assert signals[:, names.index("turn.L")].max() > 0.1  # a wish to turn left, or what keeps the heading
    assert set(names) <= {*driven.neuron_names, *driven.signal_names}  # nothing of the drawing stays dark for ever


def test_the_page_asks_nobody_for_anything(recording, tmp_path):
    write_replay(recording, tmp_path / "walk.html")
    page = (tmp_path / "walk.html").read_text("utf-8")
    assert "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\"' )]*", page)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(?:src|href)=", page)
    assert "@" not in re.sub(r"@media|id=\"data\">.*?</script>", "", page, flags=re.DOTALL)  # no mark was left


def test_feet_are_where_kinematics_puts_them(recording):
    # standing pose of the A1: hip to foot 0.2 cos(0.4) + 0.2 cos(0.8) below the fore hips, by hand
    world = build(find_task("flat-walk"))
    still = record("zero", "flat-walk")
    poses = body_poses(still, world.model)[-1]
    bodies = [world.model.body(f"FL_{part}").id for part in ("thigh", "foot")]
    drop = poses[bodies[0], 2] - poses[bodies[1], 2]
    assert drop == pytest.approx(0.2 * np.cos(0.4) + 0.2 * np.cos(0.8), abs=0.02)


def test_a_saved_recording_gives_the_same_page_as_the_policy(recording, tmp_path):
    recording.save(tmp_path / "walk.safetensors")
    loaded = Recording.load(tmp_path / "walk.safetensors")
    write_replay(recording, tmp_path / "a.html")
    write_replay(loaded, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_title_cannot_break_out_of_the_page(tmp_path):
    hostile = record("zero", "bumpy-walk", title="</title><script>alert(1)</script>")
    write_replay(hostile, tmp_path / "walk.html")
    assert "<script>alert" not in (tmp_path / "walk.html").read_text("utf-8")
    assert circuit_of(hostile) is None


def test_the_gait_band_covers_the_episode_and_names_the_gait_of_footfalls():
    # a made-up trot: diagonal feet together, 2 Hz, half the time on the ground
    recording = record("zero", "flat-walk")
    phase = (np.arange(len(recording.position)) * recording.control_dt * 2.0) % 1.0
    left = (phase < 0.55) * 50.0
    right = ((phase + 0.5) % 1.0 < 0.55) * 50.0
    labels = gaits_over_time(replace(recording, foot_force=np.stack((left, right, right, left), axis=1)))
    assert {label for _, label, _ in labels} == {"trot"}
    assert labels[0][0] == 0.0
    assert labels[-1][2] == pytest.approx(2.0, abs=0.05)


@pytest.fixture
def giant(tmp_path):
    """A data sheet of an A1 with a larger trunk and a green shell, beside its model."""
    text = A1.model.read_text("utf-8")
    for old, new in (("0.125 0.04 0.057", "0.2 0.1 0.08"), ("0.93 0.94 0.95 1", "0 1 0 1")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "giant.xml").write_text(text, "utf-8")
    sheet = describe_robot(A1) | {"name": "giant", "model": "giant.xml", "model_xml": ""}
    (tmp_path / "giant.json").write_text(json.dumps(sheet))
    return str(tmp_path / "giant.json")


def test_an_own_robot_is_drawn_as_that_robot(giant, tmp_path):
    record("zero", with_robot(SHORT, find_robot(giant))).save(tmp_path / "walk.safetensors")
    (tmp_path / "giant.xml").unlink()  # the recording alone is enough
    read = Recording.load(tmp_path / "walk.safetensors")
    assert world_of(read).robot.name == "giant"
    assert model_of(read).geom("trunk_box").size.tolist() == [0.2, 0.1, 0.08]
    write_replay(read, tmp_path / "walk.html")
    assert [0.0, 1.0, 0.0] in [mesh["colour"] for mesh in content(tmp_path / "walk.html")["robot"]]
    write_replay(record("zero", SHORT), tmp_path / "a1.html")
    assert [0.0, 1.0, 0.0] not in [mesh["colour"] for mesh in content(tmp_path / "a1.html")["robot"]]


def test_the_ground_drawn_is_the_ground_recorded(tmp_path):
    bumps = replace(SHORT, terrain=Bumpy(bumpiness=0.9, height=0.08))  # unlike those of the task's own name
    record("zero", bumps, seed=4).save(tmp_path / "walk.safetensors")
    model = model_of(Recording.load(tmp_path / "walk.safetensors"))
    heights = model.hfield_data.reshape(bumps.terrain.grid.rows, -1) * model.hfield_size[0, 2]
    np.testing.assert_allclose(heights, bumps.terrain.heights(4), atol=1e-6)


def test_an_edited_circuit_is_drawn_as_it_was_played(tmp_path):
    spec = cut(animal(), ["V3", "flexor.FL"])
    save_circuit(spec, tmp_path / "mine.json")
    kept = record(load("untrained").with_circuit(str(tmp_path / "mine.json")), SHORT)
    kept.save(tmp_path / "walk.safetensors")
    read = Recording.load(tmp_path / "walk.safetensors")
    assert circuit_of(read) == spec
    names, signals = signals_of(read)
    assert "flexor.FL" not in names
    assert not any(name.startswith("cross_V3") for name in names)
    np.testing.assert_array_equal(
        signals[:, names.index("flexor.FR")], kept.neurons[:, kept.neuron_names.index("flexor.FR")]
    )
    write_replay(read, tmp_path / "walk.html")
    assert "cross_V3f" not in (tmp_path / "walk.html").read_text("utf-8")


def test_a_recording_of_the_first_version_is_an_a1_on_its_tasks_ground_with_the_default_circuit(recording, tmp_path):
    names = ("position", "quaternion", "joint_position", "foot_force", "velocity", "action", "neurons")
    about = {"title": "old", "task": "bumpy-walk", "seed": 5, "control_dt": 0.03}
    about["neuron_names"] = list(Circuit(animal()).neurons)
    tensors = {name: getattr(recording, name)[:20] for name in names}
    write_tensors(tmp_path / "old.safetensors", tensors, {"recording": about})
    old = Recording.load(tmp_path / "old.safetensors")
    assert world_of(old).robot is A1
    assert world_of(old).terrain == TASKS["bumpy-walk"].terrain
    assert circuit_of(old) == animal()
    write_replay(old, tmp_path / "old.html")
    assert content(tmp_path / "old.html")["target"] == 0.5


def test_what_cannot_be_replayed_is_named(recording, tmp_path):
    short = {name: getattr(recording, name)[:1] for name in ("position", "neurons")}
    with pytest.raises(UserError, match="1 steps, too few"):
        write_replay(replace(recording, **short), tmp_path / "walk.html")
    (tmp_path / "walk.bin").write_bytes(b"walk")
    with pytest.raises(UserError, match=r"walk\.bin"):
        Recording.load(tmp_path / "walk.bin")
