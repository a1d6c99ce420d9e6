"""Make the pictures of the pages anew: `make pictures`, or `python docs/pictures.py watch.png …` for some of them.

Screenshots are taken in Chromium, the others are drawn by ncap's own commands.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
NCAP = (sys.executable, "-m", "ncap")
FLAGS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
PATIENCE = 300.0
"""Time after which a page that does not show what it should is given up, s."""
DRAWN = {
    "walk.webp": ("video", "ncap-drive", "--speeds", "0.3", "0.65", "--seconds", "8.5"),
    "circuit.png": ("circuit",),
    "units.png": ("units",),
    "gaits.png": ("rhythm", "--states", "40"),
}
"""Pictures that a command draws with --out."""


def wait_for(page: Any, script: str) -> None:
    """Wait until a function of JavaScript is true."""
    begin = time.monotonic()
    while not page.evaluate(script):
        if time.monotonic() - begin > PATIENCE:
            raise TimeoutError(f"never true: {script}")
        page.wait_for_timeout(50)


@contextmanager
def live_page(browser: Any, width: int, height: int, *words: str) -> Iterator[Any]:
    """A tab with the live page of a policy, in which it has walked for some seconds."""
    server = subprocess.Popen(
        [*NCAP, "watch", *words, "--no-tour", "--plain", "--port", "8870"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(server.stdout.readline().split()[1])
        page.wait_for_selector("#gait")
        page.add_style_tag(content=".mantine-Notifications-root{display:none}")  # a browser without graphics card
        wait_for(page, "() => /(\\d+)\\.\\d s since/.exec(document.body.textContent)?.[1] >= 9")
        yield page
        page.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


def watch(browser: Any, path: Path) -> None:
    """The whole live page, with a ghost."""
    with live_page(browser, 1600, 1000, "ncap-drive", "--ghost", "untrained") as page:
        page.screenshot(path=path)


def course(browser: Any, path: Path) -> None:
    """A drive along the course, driven by keys."""
    with live_page(browser, 1280, 800, "ncap-drive") as page:
        page.get_by_role("button", name="Start the course").click()
        page.locator("canvas[data-engine]").click(force=True)
        for _ in range(3):
            page.keyboard.press("i")
        gate = "() => document.querySelector('#course')?.textContent.includes('gate %d of 12')"
        wait_for(page, gate % 3)
        for _ in range(5):
            page.keyboard.press("j")
        wait_for(page, gate % 4)
        page.screenshot(path=path)


def phone(browser: Any, path: Path) -> None:
    """The live page on a phone."""
    with live_page(browser, 390, 844, "ncap-drive") as page:
        page.screenshot(path=path)


def replay(browser: Any, path: Path) -> None:
    """A replay, held in the middle of the episode."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "walk.html"
        subprocess.run([*NCAP, "replay", "ncap-drive", "--out", file], check=True)
        page = browser.new_page(viewport={"width": 1440, "height": 860})
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(file.as_uri())
        wait_for(page, "() => parseFloat(document.querySelector('#clock').textContent) > 5")
        page.keyboard.press("Space")
        page.wait_for_timeout(500)
        page.screenshot(path=path)
        page.close()


SHOT: dict[str, Callable[[Any, Path], None]] = {
    "watch.png": watch,
    "course.png": course,
    "phone.png": phone,
    "replay.png": replay,
}
"""Pictures that are screenshots."""


def main(names: list[str]) -> None:
    """Make the pictures of these names, by default all."""
    for name in names:
        if name not in DRAWN and name not in SHOT:
            sys.exit(f"unknown picture {name!r}; valid: {', '.join((*DRAWN, *SHOT))}")
    wanted = names or [*DRAWN, *SHOT]
    for name in wanted:
        if name in DRAWN:
            subprocess.run([*NCAP, *DRAWN[name], "--out", DOCS / name], check=True, stdout=subprocess.DEVNULL)
            print(name, flush=True)
    if set(wanted) & set(SHOT):
        from playwright.sync_api import sync_playwright

        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        with sync_playwright() as tool:
            browser = tool.chromium.launch(executable_path=chromium, args=list(FLAGS))
            for name in (name for name in wanted if name in SHOT):
                SHOT[name](browser, DOCS / name)
                print(name, flush=True)
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
