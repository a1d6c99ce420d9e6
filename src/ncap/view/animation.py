"""Pictures as one file that plays by itself in a README or on a page: WebP or GIF, smaller and slower than a video."""

import io
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ncap.errors import UserError
from ncap.files import write_whole

Frame = NDArray[np.uint8]

SMALLER: Final = 2
"""Factor by which pictures are reduced."""
EVERY: Final = 2
"""Of so many pictures one is shown."""
LONGEST: Final = 1000
"""Most pictures that are shown, which take 0.7 GB: a minute."""
_QUALITY: Final = {"quality": 50, "method": 4}
"""Of WebP."""
COLOURS: Final = 96
"""Of a GIF."""


def write_animation(pictures: Iterable[Frame], path: Path, dt: float, drawn: Callable[[], None]) -> None:
    """Write pictures (height, width, 3), one every dt s, as .webp or .gif. `drawn` is called after every picture."""
    shown = list(islice(_reduced(pictures, drawn), LONGEST + 1))
    if len(shown) > LONGEST:
        raise UserError(
            f"an animation has up to {LONGEST} pictures, {LONGEST * EVERY * dt:g} s: say --seconds, or .mp4"
        )
    kind = path.suffix[1:]
    if kind == "gif":
        shown = _with_one_palette(shown)
    file = io.BytesIO()
    options = _QUALITY if kind == "webp" else {"optimize": False}
    first, rest = shown[0], shown[1:]
    first.save(file, kind, save_all=True, append_images=rest, duration=round(1000 * EVERY * dt), loop=0, **options)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    write_whole(path, file.getvalue())


def _reduced(pictures: Iterable[Frame], drawn: Callable[[], None]) -> Iterator[Image.Image]:
    for number, picture in enumerate(pictures):
        if number % EVERY == 0:
            yield Image.fromarray(picture).reduce(SMALLER)
        drawn()


def _with_one_palette(shown: list[Image.Image]) -> list[Image.Image]:
    """The pictures in the colours of one of them, so that what does not move stays the same from one to the next."""
    palette = shown[len(shown) // 2].quantize(COLOURS, dither=Image.Dither.NONE)
    return [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in shown]
