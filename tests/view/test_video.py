import os
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest

from ncap.doctor import _can_render
from ncap.errors import UserError
from ncap.recording import record
from ncap.view.video import HEIGHT, WIDTH, frames, write_video

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


def test_a_wrong_name_is_refused_before_anything_is_drawn(walk, tmp_path):
    with pytest.raises(UserError, match=r"\.mp4"):
        write_video([walk], tmp_path / "walk.avi")
    with pytest.raises(UserError, match="less than one step"):
        write_video([walk], tmp_path / "walk.mp4", seconds=0.0)


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
