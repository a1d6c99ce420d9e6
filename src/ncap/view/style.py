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
#: Legs FL, FR, HL, HR: fore legs cold, hind legs warm.
LEG_COLOURS: Final = ("#5ab0ff", "#8fe0ff", "#ff8a5c", "#ffc857")
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
"""N that are drawn in full colour."""


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of #rrggbb."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue
