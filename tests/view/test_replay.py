import base64
import json
import re

import numpy as np
import pytest

from ncap.errors import UserError
from ncap.experiments.evaluation import find_controller
from ncap.recording import record
from ncap.tasks import build, find_task
from ncap.view.replay import body_poses, circuit_of, find_recording, gaits_over_time, write_replay


@pytest.fixture(scope="module")
def recording():
    return find_recording("untrained", "flat-walk", 2)


def content(path) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[1])


def test_the_page_holds_the_motion_that_was_recorded(recording, tmp_path):
    write_replay(recording, tmp_path / "new" / "walk.html")
    data = content(tmp_path / "new" / "walk.html")
    poses = np.frombuffer(base64.b64decode(data["poses"]), "<f4").reshape(data["steps"], data["bodies"], 7)
    np.testing.assert_allclose(poses[:, data["trunk"], :3], recording.position, atol=1e-5)
    force = np.frombuffer(base64.b64decode(data["force"]), "<f4").reshape(-1, 4)
    np.testing.assert_allclose(force, recording.foot_force, rtol=1e-6)
    neurons = np.frombuffer(base64.b64decode(data["neurons"]), np.uint8).reshape(-1, 28) / 255
    np.testing.assert_allclose(neurons, recording.neurons, atol=0.5 / 255 + 1e-9)


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
    still = record(find_task("flat-walk"), find_controller("zero", "flat-walk", 1)[0], 0, "standing")
    poses = body_poses(still, world.model)[-1]
    bodies = [world.model.body(f"FL_{part}").id for part in ("thigh", "foot")]
    drop = poses[bodies[0], 2] - poses[bodies[1], 2]
    assert drop == pytest.approx(0.2 * np.cos(0.4) + 0.2 * np.cos(0.8), abs=0.02)


def test_a_saved_recording_gives_the_same_page_as_the_policy(recording, tmp_path):
    recording.save(tmp_path / "walk.safetensors")
    loaded = find_recording(str(tmp_path / "walk.safetensors"), "bumpy-run", 99)
    write_replay(recording, tmp_path / "a.html")
    write_replay(loaded, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_title_cannot_break_out_of_the_page(tmp_path):
    task = find_task("bumpy-walk")
    hostile = record(task, find_controller("zero", task.name, 1)[0], 0, "</title><script>alert(1)</script>")
    write_replay(hostile, tmp_path / "walk.html")
    assert "<script>alert" not in (tmp_path / "walk.html").read_text("utf-8")
    assert circuit_of(hostile) is None


def test_the_gait_band_covers_the_episode_and_names_the_gait_of_footfalls():
    # a made-up trot: diagonal feet together, 2 Hz, half the time on the ground
    recording = find_recording("zero", "flat-walk", 0)
    phase = (np.arange(len(recording.position)) * recording.control_dt * 2.0) % 1.0
    left = (phase < 0.55) * 50.0
    right = ((phase + 0.5) % 1.0 < 0.55) * 50.0
    object.__setattr__(recording, "foot_force", np.stack((left, right, right, left), axis=1))
    labels = gaits_over_time(recording)
    assert {label for _, label, _ in labels} == {"trot"}
    assert labels[0][0] == 0.0
    assert labels[-1][2] == pytest.approx(2.0, abs=0.05)


def test_what_cannot_be_replayed_is_named(tmp_path):
    with pytest.raises(UserError, match="unknown policy 'cat'"):
        find_recording("cat", "flat-walk", 0)
    (tmp_path / "walk.bin").write_bytes(b"walk")
    with pytest.raises(UserError, match=r"walk\.bin"):
        find_recording(str(tmp_path / "walk.bin"), "flat-walk", 0)
