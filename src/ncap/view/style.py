"""Colours of the live page, the replay and the video: dark, so that what is active shines."""

from typing import Final

BACKGROUND: Final = "#0f151e"
PANEL: Final = "#151d28"
TEXT: Final = "#eef3fa"
MUTED: Final = "#9fb0c6"
LIT: Final = "#ffd166"
EXCITATORY: Final = "#ff6b5e"
INHIBITORY: Final = "#5aa7ff"
FLEXOR: Final = "#ff9d5c"
EXTENSOR: Final = "#4fd1c5"
LEG_COLOURS: Final = ("#5ab0ff", "#8fe0ff", "#ff8a5c", "#ffc857")
"""Colours of FL, FR, HL, HR: fore legs cold, hind legs warm."""
GAIT_COLOURS: Final = {
    "walk": "#5ab0ff",
    "trot": "#3ddc97",
    "bound": "#ff7a5c",
    "gallop": "#ffc857",
    "pace": "#e58fd0",
    "pronk": "#b79bff",
    "none": "#8090a6",
}
FULL_FORCE: Final = 80.0
"""Foot force that is drawn in full colour, N."""
SKY: Final = (44, 60, 82)
"""Colour of the haze in which the ground ends."""
ZENITH: Final = (13, 18, 26)
"""Colour of the sky above."""


def spoken_gait(label: str, frequency_hz: float) -> str:
    """A gait in words: its name, or what can be said of legs without one."""
    if label != "none":
        return label
    return "irregular" if frequency_hz > 0 else "no steps"


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of #rrggbb."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue
