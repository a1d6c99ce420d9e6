import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@pytest.fixture(scope="module")
def browser():
    """Chromium with software WebGL, which keeps a core busy: closed as soon as the module is done."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: on Debian, apt install chromium")
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """A page, and what it complained of or asked others for."""

    def __init__(self, browser, width: int, height: int) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": height})
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def outside(self, *own: str) -> list[str]:
        """Requests to anybody else."""
        return [url for url in self.requests if not url.startswith((*own, "blob:", "data:"))]


@pytest.fixture(scope="module")
def open_tab(browser) -> Callable[..., Tab]:
    def opened(url: str, width: int = 1030, height: int = 580) -> Tab:
        tab = Tab(browser, width, height)
        tab.page.set_default_timeout(120_000)  # a busy machine
        tab.page.goto(url)
        return tab

    return opened


@pytest.fixture(scope="module")
def hostile_run() -> str:
    """Name of a run that wants to be more than text."""
    return "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def address(tmp_path_factory, hostile_run) -> Iterator[str]:
    """A live page, served by the command itself in a process of its own, beside a run that is none."""
    pytest.importorskip("viser", reason="the extra `view` is not installed")
    folder = tmp_path_factory.mktemp("watch")
    (folder / "runs" / hostile_run).mkdir(parents=True)
    (folder / "runs" / hostile_run / "best.safetensors").touch()
    program = "from ncap.cli import main; main(['watch', 'untrained', '--port', '8765', '--plain'])"
    server = subprocess.Popen(
        [sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = server.stdout.readline()
        assert line.startswith("watch: http://127.0.0.1:"), line
        threading.Thread(target=server.stdout.read, daemon=True).start()
        yield line.split()[1]
        server.send_signal(signal.SIGINT)  # Ctrl-C
        _, complaints = server.communicate(timeout=60)
        assert server.returncode == 130
        assert complaints == ""  # neither a traceback nor a word that a tab said and that was refused
    finally:
        server.kill()
        server.wait(10)
