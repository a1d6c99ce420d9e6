"""Videos of what happened on the live page, made in a process of their own, so that the page goes on meanwhile.

The page saves a recording, and `python -m ncap.view.filming RECORDING VIDEO` draws it: neither its computing nor a back
end of graphics that fails holds up the robot that others look at.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ncap.errors import UserError
from ncap.extras import missing_extra
from ncap.recording import Recording

NICE: Final = 10
"""How far the process stands back behind others, the page's above all."""
ALONE: Final = ("-P",)
"""Options of Python: its modules are not looked for in the current folder, where a random.py may lie."""
NEEDED: Final = ("PIL", "imageio_ffmpeg")
"""Modules that the extra video brings."""
CLOSE_AFTER: Final = 6.0
"""Time for which the last notice stays, s."""
LONGEST_REASON: Final = 300
"""Characters that are shown of what the process says when it fails."""


class Filming:
    """A video of a recording in the making. Close it when done with it."""

    def __init__(self, recording: Recording) -> None:
        if not all(find_spec(name) for name in NEEDED):
            raise missing_extra("a video", "video")
        self._frames = len(recording.position)
        self._folder = TemporaryDirectory(prefix="ncap-")
        folder = Path(self._folder.name)
        self._video, self._told, self._said = (folder / name for name in ("live.mp4", "frames", "errors"))
        words = (sys.executable, *ALONE, "-m", "ncap.view.filming", str(folder / "live.safetensors"), str(self._video))
        try:
            recording.save(folder / "live.safetensors")
            with self._told.open("wb") as told, self._said.open("wb") as said:
                self._process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=told,
                    stderr=said,
                    start_new_session=True,  # Ctrl-C is for the page, which ends this
                )
        except BaseException:
            self._folder.cleanup()
            raise

    @property
    def share(self) -> float:
        """Part of the frames that are drawn, in [0, 1]."""
        return min(1.0, self._told.stat().st_size / self._frames)  # a byte is a frame

    @property
    def ended(self) -> bool:
        """Whether the process is done, well or not."""
        return self._process.poll() is not None

    def result(self) -> bytes:
        """The video (MP4) of a process that has ended, or a UserError with what it said."""
        if self._process.returncode == 0 and self._video.is_file():
            return self._video.read_bytes()
        lines = self._said.read_text("utf-8", "replace").strip().splitlines()
        raise UserError(f"the video failed: {lines[-1] if lines else 'its process was ended'}"[:LONGEST_REASON])

    def close(self) -> None:
        """End the process, whatever it does, and remove what it wrote."""
        with suppress(OSError):
            self._process.kill()
        self._process.wait()
        self._folder.cleanup()


class Films:
    """The video that a visitor of the page has asked for: one at a time, with a notice of how far it is."""

    def __init__(self) -> None:
        self._filming: Filming | None = None
        self._client: Any = None
        self._notice: Any = None
        self._name = ""

    def begin(self, recording: Recording, client: Any, name: str) -> None:
        """Begin a video for a visitor, who gets it under this name; refused while another one is made."""
        if self._filming is not None:
            raise UserError("a video is being made, one at a time: ask again when it is done")
        self._filming, self._client, self._name = Filming(recording), client, name
        seconds = len(recording.position) * recording.control_dt
        self._notice = client.add_notification(
            f"Video of {seconds:.0f} s", "It is drawn while the robot goes on.", loading=True, with_close_button=False
        )

    def look(self, present: Sequence[Any]) -> None:
        """Tell the visitor how far the video is, and hand it over when it is done. A visitor who left gets none."""
        filming, notice = self._filming, self._notice
        if filming is None:
            return
        if not any(client is self._client for client in present):
            self.close()
        elif not filming.ended:
            _set(notice, body=f"{filming.share:.0%} is drawn, while the robot goes on.")
        else:
            try:
                content = filming.result()
                self._client.send_file_download(self._name, content, save_immediately=True)
                _set(notice, title="Video", body=f"{self._name} is in your downloads.", color="green")
            except UserError as error:
                _set(notice, title="No video", body=str(error), color="red")
            _set(notice, loading=False, with_close_button=True, auto_close_seconds=CLOSE_AFTER)
            self.close()

    def close(self) -> None:
        """Give up the video that is being made."""
        if self._filming is not None:
            self._filming.close()
        self._filming = self._client = self._notice = None


def _set(notice: Any, **values: Any) -> None:
    """Change what a notice says, if it changes: every assignment is a message."""
    for name, value in values.items():
        if getattr(notice, name) != value:
            setattr(notice, name, value)


def main(words: Sequence[str]) -> None:
    """Draw the recording in one file as a video in another, and print a byte for every frame."""
    from ncap.view.video import write_video

    with suppress(OSError):
        os.nice(NICE)
    source, target = map(Path, words)

    def tell() -> None:
        sys.stdout.write(".")
        sys.stdout.flush()

    try:
        write_video([Recording.load(source)], target, drawn=tell)
    except UserError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main(sys.argv[1:])
