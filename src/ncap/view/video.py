"""Recorded episodes as a video: robot, footfalls and circuit side by side. The same recordings give the same frames."""

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.extras import missing_extra
from ncap.recording import Recording
from ncap.sim.camera import Camera
from ncap.view.replay import SPEED_WINDOW, diagram_of, gaits_over_time, model_of, signals_of, states, world_of
from ncap.view.style import BACKGROUND, GAIT_COLOURS, MUTED, SKY, TEXT, spoken_gait

Frame = NDArray[np.uint8]

WIDTH, HEIGHT = 1280, 720
"""Size of a picture, pixels."""
ENDINGS: Final = (".mp4", ".webp", ".gif")
"""Of files: a video, and animations."""
HEADER: Final = 48
"""Height of the line with the title, pixels."""
LONGEST_TITLE: Final = 120
"""Characters of a title that are written."""
_ENCODING: Final = (
    "-an", "-vcodec", "libx264", "-pix_fmt", "yuv420p", "-v", "error",
    "-crf", "20", "-preset", "medium", "-threads", "1", "-movflags", "+faststart",
    "-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1",
)  # fmt: skip


class Scene:
    """One recording in a column of the picture."""

    def __init__(self, recording: Recording, left: int, width: int) -> None:
        from ncap.view.paint import StripPainter, WiringPainter

        self.recording, self.left, self.width = recording, left, width
        self.steps = len(recording.position)
        self._states, self._gaits = states(recording), gaits_over_time(recording)
        self._signals = signals_of(recording)[1]
        diagram = diagram_of(recording)
        alone = width == WIDTH
        below = HEIGHT - HEADER - (420 if alone else 330)
        robot_size = ((800 if diagram else WIDTH) if alone else width, HEIGHT - HEADER - below)
        wiring_width = (WIDTH - 800 - 12 if alone else 300) if diagram else 0
        if diagram:  # a long chain is drawn narrower, so that its tail is seen
            _, _, across, down = diagram.window
            room = HEIGHT - HEADER - (12 if alone else robot_size[1] + 42)
            wiring_width = min(wiring_width, int(room * across / down))
        self._wiring = WiringPainter(diagram, wiring_width) if diagram else None
        self._wiring_at = (800 + 6, HEADER) if alone else (left + 6, HEADER + robot_size[1] + 30)
        beside = 0 if alone or not diagram else wiring_width + 12
        self._strip = StripPainter(recording, width - 24 - beside, below - 28)
        self._strip_at = (left + 12 + beside, HEADER + robot_size[1] + 18)
        self._camera = _camera(recording, robot_size)

    def paint(self, picture: Any, pen: Any, step: int) -> None:
        """Paint the state after a step into the picture; after the end of the recording, its last state."""
        from PIL import Image

        from ncap.view.paint import font

        recording, step = self.recording, min(step, self.steps - 1)
        picture.paste(Image.fromarray(self._camera.picture(self._states[step])), (self.left, HEADER))
        picture.paste(self._strip.picture(step), self._strip_at)
        if self._wiring:
            picture.paste(self._wiring.picture(self._signals[step]), self._wiring_at)
        time = step * recording.control_dt
        _, label, hertz = next(row for row in reversed(self._gaits) if row[0] <= time + 1e-9)
        words = spoken_gait(label, hertz) if recording.foot_force.shape[1] else "undulates" if hertz else "still"
        window = round(SPEED_WINDOW / recording.control_dt)
        speed = float(recording.velocity[max(0, step - window) : step + 1, 0].mean())
        title = " ".join(recording.title.split())[:LONGEST_TITLE]
        pen.text((self.left + 14, HEADER / 2), title, fill=TEXT, font=font(16, bold=True), anchor="lm")
        right = self.left + self.width - 14
        pen.text((right, HEADER / 2), words, fill=GAIT_COLOURS[label], font=font(24, bold=True), anchor="rm")
        pen.text((right - 158, HEADER / 2), f"{hertz:.1f} Hz   {speed:.2f} m/s", fill=MUTED, font=font(14), anchor="rm")

    def close(self) -> None:
        """Release the drawing context."""
        self._camera.close()


def _camera(recording: Recording, size: tuple[int, int]) -> Camera:
    """A camera for the recorded robot and ground, in the colours of the page."""
    model = model_of(recording)
    model.mat_rgba[model.material("tiles").id, :3] = (0.52, 0.62, 0.76)
    sky = model.texture("sky")
    pixels = int(sky.width[0]) * int(sky.height[0])
    start = int(sky.adr[0])
    model.tex_data[start : start + 3 * pixels] = np.tile(np.array(SKY, np.uint8), pixels)
    model.vis.rgba.haze = (*(channel / 255 for channel in SKY), 1.0)
    model.vis.headlight.diffuse, model.vis.headlight.ambient = (0.55,) * 3, (0.4,) * 3
    model.vis.quality.offsamples = 4
    return Camera(model, world_of(recording).trunk_id, *size, distance=1.25)


def length(recordings: Sequence[Recording], seconds: float | None = None) -> int:
    """Number of frames of a video of these recordings."""
    longest = max(len(recording.position) for recording in recordings)
    if longest < 1:
        raise UserError(f"{recordings[0].title}: the recording has no step to show")
    if seconds is None:
        return longest
    if not seconds >= recordings[0].control_dt / 2:
        raise UserError(f"{seconds:g} s are less than one step of the robot")
    return max(1, round(min(seconds / recordings[0].control_dt, longest)))


def frames(recordings: Sequence[Recording], seconds: float | None = None) -> Iterator[Frame]:
    """Pictures (HEIGHT, WIDTH, 3), one per control step, until the longest recording ends."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise missing_extra("a video", "video") from None
    width = WIDTH // len(recordings)
    scenes = [Scene(recording, i * width, width) for i, recording in enumerate(recordings)]
    try:
        for step in range(length(recordings, seconds)):
            picture = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
            pen = ImageDraw.Draw(picture)
            for scene in scenes:
                scene.paint(picture, pen, step)
            if len(scenes) > 1:
                pen.line((width, 0, width, HEIGHT), fill="#2d3a4c", width=2)
            yield np.asarray(picture)
    finally:
        for scene in scenes:
            scene.close()


def check_name(path: Path) -> None:
    """Refuse a file name that is not that of a video or an animation."""
    if path.suffix not in ENDINGS:
        raise UserError(f"a video's name ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, unlike {path.name!r}")


def write_video(
    recordings: Sequence[Recording],
    path: Path,
    seconds: float | None = None,
    drawn: Callable[[], None] = lambda: None,
) -> None:
    """Write the video; it is complete or not there at all. `drawn` is called after every frame."""
    check_name(path)
    if len({recording.control_dt for recording in recordings}) > 1:
        raise UserError("recordings with different control steps cannot be shown side by side")
    if path.suffix != ".mp4":
        length(recordings, seconds)  # refuses what has no picture
        pictures = frames(recordings, seconds)
        first = next(pictures)  # says what is missing
        from ncap.view.animation import write_animation

        write_animation(chain((first,), pictures), path, recordings[0].control_dt, drawn)
        return
    try:
        import imageio_ffmpeg

        program = imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        raise missing_extra("a video", "video") from None
    length(recordings, seconds)  # refuses what has no picture
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.mp4")
    pictures = frames(recordings, seconds)
    first = next(pictures)  # before anything is written: drawing may be impossible here
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()  # a folder that cannot be written to has its own words, better than ffmpeg's
        encoder = Encoder(program, temporary, recordings[0].control_dt)
        try:
            for frame in chain((first,), pictures):
                encoder.write(frame)
                drawn()
            encoder.finish()
        finally:
            encoder.close()
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


class Encoder:
    """ffmpeg, which writes pictures into a file. Its failures are OSErrors with what it says."""

    def __init__(self, program: str, path: Path, frame_dt: float) -> None:
        self._path = path
        rate = str(Fraction(1.0 / frame_dt).limit_denominator())
        pictures = ("-f", "rawvideo", "-vcodec", "rawvideo", "-s", f"{WIDTH}x{HEIGHT}", "-pix_fmt", "rgb24", "-r", rate)
        self._process = subprocess.Popen(
            [program, "-y", *pictures, "-i", "-", *_ENCODING, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us
        )
        self._said: list[bytes] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)  # or it would wait for us to read
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self._said = self._process.stderr.readlines()

    def write(self, frame: Frame) -> None:
        """Append a picture (HEIGHT, WIDTH, 3)."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(np.ascontiguousarray(frame).data)
        except BrokenPipeError:
            self.finish()  # raises what ffmpeg says, unless it ended well, which it should not have
            raise OSError("ffmpeg ended too early") from None

    def finish(self) -> None:
        """Complete the file; it is on the disk afterwards."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # its exit code says more
            self._process.stdin.close()
        code = self._process.wait()
        self._listener.join()
        if code != 0 or not self._path.stat().st_size:
            lines = [line.decode("utf-8", "replace").strip() for line in self._said]
            words = re.sub(r"\[[^]]*\] *", "", next((line for line in lines if line), f"it ended with code {code}"))
            raise OSError(f"ffmpeg failed: {words}")
        with self._path.open("rb") as file:
            os.fsync(file.fileno())

    def close(self) -> None:
        """End ffmpeg, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
