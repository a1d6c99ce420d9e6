"""How the live page looks: its colours, its stage, its title and icon, and what fits on a phone."""

import gzip
import re
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

import numpy as np

from ncap.view.style import BACKGROUND, EXTENSOR, FLEXOR, INHIBITORY, PANEL, SKY, ZENITH

TITLE: Final = "ncap"
ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    f'<rect width="32" height="32" rx="7" fill="{BACKGROUND}"/>'
    f'<path d="M12 9Q21 11 22 18M20 23Q11 21 10 14" fill="none" stroke="{INHIBITORY}" stroke-width="2.4"/>'
    f'<circle cx="9" cy="9" r="5.5" fill="{FLEXOR}"/><circle cx="23" cy="23" r="5.5" fill="{EXTENSOR}"/></svg>'
)
"""Two half-centres that inhibit each other."""
CAMERA: Final = (0.72, -1.12, 0.5)
"""Where a tab looks from at first, seen from the point under the robot, m."""
AHEAD: Final = (1.05, -1.65, 1.0)
"""The same for one who drives along a course, and must see what comes."""
PHONE: Final = "max-width:36em"
"""Width up to which viser shows all controls in a sheet at the bottom."""
STYLE: Final = (
    '<style>:root[data-mantine-color-scheme="dark"]{'
    f"--mantine-color-body:{BACKGROUND};--mantine-color-dark-7:{BACKGROUND};--mantine-color-dark-6:{PANEL};"
    "--mantine-color-dark-5:#1f2a38;--mantine-color-dark-4:#2d3a4c}"
    ".wiring{max-height:calc(100vh - 425px)}"
    f"@media({PHONE})" + "{"
    'div[style*="position: fixed"][style*="width: 20em"]{width:100%!important;height:54%}'
    'div[style*="position: fixed"][style*="width: 20em"] div[style*="width: 20em"]{width:100%!important}'
    "div:has(>div>canvas[data-engine]){height:46%!important}"
    ".wiring{max-height:none}}</style>"
)
"""Style sheet: viser's greys in our colours, a wiring diagram that leaves room for what is below it, and on a phone a
robot above the controls, not behind them."""


@lru_cache(maxsize=4)
def titled(page: bytes, packed: bool) -> bytes:
    """Viser's page, packed by gzip or not, under our title and icon."""
    text = (gzip.decompress(page) if packed else page).decode()
    icon = f'<link rel="icon" href="data:image/svg+xml,{quote(ICON)}" />'
    text = re.sub(r'<link\s+rel="icon"[^>]*>', lambda _: icon, text, count=1)
    text = re.sub(r"<title>[^<]*</title>", f"<title>{TITLE}</title>", text, count=1)
    return gzip.compress(text.encode()) if packed else text.encode()


def set_stage(server: Any, *, plain: bool) -> None:
    """Sky, haze, light and camera of a viser server's scene. plain: without shadows."""
    scene, camera = server.scene, server.initial_camera
    low, high = (np.array(colour, float) for colour in (SKY, ZENITH))
    share = np.clip(1.0 - np.linspace(0.0, 2.8, 256), 0.0, 1.0)[:, None, None]
    scene.set_background_image(np.broadcast_to(low + (high - low) * share, (256, 4, 3)).astype(np.uint8), "png")
    linear = tuple(round(255 * (channel / 255) ** 2.2) for channel in SKY)
    scene.configure_fog(2.5, 7.0, color=linear)
    scene.configure_environment_map(None)
    scene.configure_default_lights(cast_shadow=not plain)
    scene.add_light_hemisphere("/light", sky_color=(214, 228, 255), ground_color=(92, 100, 116), intensity=1.7)
    camera.position, camera.look_at, camera.up = CAMERA, (0.0, 0.0, 0.19), (0.0, 0.0, 1.0)


def look_over(client: Any) -> None:
    """Put the camera of a tab where the next gates of a course are in view. Its visitor can turn it as before."""
    with client.atomic():
        client.camera.position, client.camera.look_at = AHEAD, (0.0, 0.0, 0.19)
