import os
import subprocess
import sys
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from ncap.doctor import _can_render
from ncap.errors import UserError
from ncap.recording import record
from ncap.tasks import TASKS
from ncap.trained import load
from ncap.view import video
from ncap.view.scripted import scripted
from ncap.view.video import HEIGHT, WIDTH, frames, write_video

Image = pytest.importorskip("PIL.Image", reason="the extra `video` is not installed")
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")


@pytest.fixture(scope="module")
def walk():
    return record("untrained", "flat-walk")


@pytest.fixture(scope="module")
def drawing():
    if not any(_can_render(name) for name in ("egl", "osmesa")):
        pytest.skip("neither EGL nor OSMesa is here to draw with")


@pytest.mark.slow
@pytest.mark.usefixtures("drawing")
def test_the_same_recording_gives_the_same_frames_in_which_something_moves(walk):
    first, second = ([*islice(frames([walk]), 0, 12, 11)] for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert a.shape == (HEIGHT, WIDTH, 3)
        assert (a == b).all()
    changed = np.argwhere((first[0] != first[1]).any(axis=-1))
    for top, bottom, left, right in ((48, 468, 0, 800), (48, 468, 806, WIDTH), (480, HEIGHT, 0, WIDTH)):
        inside = (changed >= (top, left)).all(axis=1) & (changed < (bottom, right)).all(axis=1)
        assert inside.any(), "robot, circuit and strip all move"


@pytest.mark.slow
@pytest.mark.usefixtures("drawing")
def test_two_policies_stand_side_by_side_and_the_file_has_every_frame(walk, tmp_path):
    standing = record("zero", "flat-walk")
    path = tmp_path / "new" / "both.mp4"
    write_video([walk, standing], path, seconds=0.3)
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert count == 10
    assert seconds == pytest.approx(0.3, abs=0.02)
    assert [other.name for other in path.parent.iterdir()] == ["both.mp4"]


@pytest.mark.slow
@pytest.mark.usefixtures("drawing")
def test_a_process_that_has_drawn_can_still_load_triton():
    if find_spec("triton") is None:
        pytest.skip("Triton, which PyTorch's builds for NVIDIA cards bring, is not installed")
    program = (
        "from ncap.recording import record; from ncap.view.video import frames;"
        "next(frames([record('zero', 'flat-walk')])); import triton; print('alive')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_a_wrong_name_is_refused_before_anything_is_drawn(walk, tmp_path):
    with pytest.raises(UserError, match=r"\.mp4"):
        write_video([walk], tmp_path / "walk.avi")
    with pytest.raises(UserError, match="less than one step"):
        write_video([walk], tmp_path / "walk.mp4", seconds=0.0)


@pytest.fixture
def short(walk, monkeypatch):
    """A walk whose pictures are noise, which needs no back end to draw and cannot be compressed."""
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    monkeypatch.setattr(video, "frames", lambda *_: iter([noise] * 10))
    return walk


def refused(recording, path) -> str:
    """What is said when a video cannot be written, after which there is no new file."""
    with pytest.raises(UserError) as error:
        write_video([recording], path)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("kind", ["webp", "gif"])
def test_an_animation_has_half_the_size_and_half_the_pictures_and_goes_on_for_ever(walk, tmp_path, monkeypatch, kind):
    pictures = [np.zeros((HEIGHT, WIDTH, 3), np.uint8) for _ in range(10)]
    for i, picture in enumerate(pictures):
        picture[:, 100 * i : 100 * i + 100] = 255  # a white bar that moves
    monkeypatch.setattr(video, "frames", lambda *_: iter(pictures))
    drawn = []
    write_video([walk], tmp_path / f"walk.{kind}", drawn=lambda: drawn.append(1))
    assert len(drawn) == 10
    with Image.open(tmp_path / f"walk.{kind}") as found:
        assert (found.n_frames, found.size, found.info["loop"]) == (5, (WIDTH // 2, HEIGHT // 2), 0)
        for number in range(5):
            found.seek(number)
            bright = np.flatnonzero(np.asarray(found.convert("L")).mean(axis=0) > 128)
            assert (bright[0], bright[-1]) == pytest.approx((100 * number, 100 * number + 49), abs=1)
            assert found.info["duration"] == 60  # two control steps, ms
    assert [path.name for path in tmp_path.iterdir()] == [f"walk.{kind}"]


def test_an_animation_of_an_hour_is_refused(walk, tmp_path, monkeypatch):
    tiny = np.zeros((2, 2, 3), np.uint8)
    monkeypatch.setattr(video, "frames", lambda *_: iter([tiny] * 3000))
    with pytest.raises(UserError, match="up to 1000 pictures, 60 s"):
        write_video([walk], tmp_path / "walk.webp")
    assert list(tmp_path.iterdir()) == []


def test_speeds_are_driven_one_after_the_other():
    driven = scripted(load("ncap-drive"), TASKS["flat-drive"], (0.0, 0.6), 6.0, 0)
    assert driven.title == "ncap-drive, driven at 0, then 0.6 m/s"
    steps = len(driven.position)
    assert steps == 200
    assert np.abs(driven.velocity[20 : steps // 2, 0]).mean() < 0.05
    assert driven.velocity[-30:, 0].mean() == pytest.approx(0.6, abs=0.15)
    with pytest.raises(UserError, match="untrained cannot be driven"):
        scripted(load("untrained"), TASKS["flat-walk"], (0.3,), 1.0, 0)
    with pytest.raises(UserError, match="at most 20 s, not 21"):
        scripted(load("ncap-drive"), TASKS["flat-drive"], (0.3,), 21.0, 0)


def test_a_full_disk_is_an_error_and_leaves_what_was_there(short, tmp_path, monkeypatch, capfd):
    (tmp_path / "walk.mp4").write_bytes(b"old")
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    popen = subprocess.Popen

    def with_little_space(*arguments, **options):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # ten pictures of noise have megabytes
        try:
            return popen(*arguments, **options, restore_signals=False)  # Python ignores the signal, as does a disk
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    monkeypatch.setattr(subprocess, "Popen", with_little_space)
    said = refused(short, tmp_path / "walk.mp4")
    assert said.startswith(f"cannot write {tmp_path / 'walk.mp4'}: ffmpeg failed: ")
    assert "File too large" in said
    assert capfd.readouterr() == ("", "")  # ffmpeg's own words are in ours
    assert [path.name for path in tmp_path.iterdir()] == ["walk.mp4"]
    assert (tmp_path / "walk.mp4").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("exit 3", "it ended with code 3"),
        ("echo '[mp4 @ 0x5] No space left on device' >&2; exit 1", "ffmpeg failed: No space left on device"),
        ("cat > /dev/null; for i in $(seq 20000); do echo trouble; done >&2; exit 1", "ffmpeg failed: trouble"),
        ("cat > /dev/null", "it ended with code 0"),  # but the file is empty
        ("kill -9 $$", "it ended with code -9"),
    ],
)
def test_an_encoder_that_fails_is_an_error(short, tmp_path, monkeypatch, program, said):
    fake = tmp_path / "ffmpeg"
    fake.write_text(f"#!/bin/sh\n{program}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", lambda: str(fake))
    (tmp_path / "out").mkdir()
    assert said in refused(short, tmp_path / "out" / "walk.mp4")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(short, tmp_path, capfd):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "walk.mp4", tmp_path / f"{'x' * 300}.mp4", Path("/proc/walk.mp4")):
        assert refused(short, path).startswith(f"cannot write {path}: ")
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_leaves_nothing_behind(short, tmp_path):
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_video([short], tmp_path / "walk.mp4", drawn=interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a display is always there")
def test_without_a_back_end_one_line_says_what_to_install(tmp_path):
    environment = {name: value for name, value in os.environ.items() if "DISPLAY" not in name} | {"MUJOCO_GL": "glfw"}
    program = "from ncap.cli import main; main(['video', 'zero', '--out', 'walk.mp4'])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("ncap: error:")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "libegl1" in done.stderr
    assert "libosmesa6" in done.stderr
    assert not list(tmp_path.iterdir())
