"""The pages in a real browser. One live page serves all tests here, in order, and one tab stays open throughout."""

import io
import socket
import time
import urllib.parse

import numpy as np
import pytest

from ncap.circuits.animal import animal
from ncap.doctor import _can_render
from ncap.recording import record
from ncap.view.diagram import signal_names
from ncap.view.replay import write_replay

pytestmark = pytest.mark.slow

PATIENCE = 120_000
"""ms. Software rendering on a busy machine is slow, and a gait takes seconds to be seen."""


def pixels(tab, selector: str) -> np.ndarray:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    return np.asarray(image.open(io.BytesIO(tab.page.locator(selector).first.screenshot())).convert("L"), float)


def moved_around_the_middle(before: np.ndarray, after: np.ndarray) -> float:
    """Share of pixels that changed, in the middle third of the picture, where the robot is."""
    height, width = before.shape
    middle = slice(height // 3, 2 * height // 3), slice(width // 3, 2 * width // 3)
    return float((np.abs(before[middle] - after[middle]) > 12).mean())


@pytest.fixture(scope="module")
def live(open_tab, address):
    tab = open_tab(address)
    tab.page.wait_for_selector("#gait", timeout=PATIENCE)
    tab.page.wait_for_selector(".wiring circle", timeout=PATIENCE)
    return tab


def test_a_first_visitor_is_shown_around_and_a_second_one_no_more(live, open_tab, address):
    assert live.page.title() == "ncap"
    assert "circle" in urllib.parse.unquote(live.page.locator("link[rel=icon]").get_attribute("href"))
    wait_for_text(live, ".tour", "A spinal circuit moves this robot")
    live.page.get_by_role("button", name="Next", exact=True).click()
    wait_for_text(live, ".tour", "Keys I and K")
    live.page.get_by_role("button", name="Skip the tour").click()
    live.page.wait_for_selector(".tour", timeout=PATIENCE, state="detached")
    other = open_tab(address, 390, 844)  # a phone
    other.page.wait_for_selector("#gait", timeout=PATIENCE)
    assert other.page.locator(".tour").count() == 0
    apart = """() => {
        const [numbers, robot] = ['#gait', 'canvas[data-engine]'].map(
            (name) => document.querySelector(name)?.getBoundingClientRect());
        return numbers && robot && robot.height > 200 && robot.bottom <= numbers.top;
    }"""
    wait_for(other, apart)  # nothing lies over the robot
    assert other.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert other.complaints == []
    other.page.close()


def wait_for(tab, script: str, argument: object = None) -> None:
    """Ask until a function of JavaScript is true. Playwright's own waiting is an eval, which our pages forbid."""
    begin = time.monotonic()
    while not tab.page.evaluate(script, argument):
        assert time.monotonic() - begin < PATIENCE / 1000, f"never true: {script} of {argument}"
        tab.page.wait_for_timeout(50)


def wait_for_text(tab, selector: str, word: str) -> None:
    script = "([selector, word]) => document.querySelector(selector)?.textContent.includes(word)"
    wait_for(tab, script, [selector, word])


def wait_until_it_moves(tab, selector: str) -> None:
    begin, before = time.monotonic(), pixels(tab, selector)
    while moved_around_the_middle(before, pixels(tab, selector)) <= 0.01:
        assert time.monotonic() - begin < PATIENCE / 1000, "nothing moves"


def drag_command(tab, share: float) -> None:
    """Drag the first slider that is not disabled, the brainstem command, to a share of its length.

    Once more where the page moved under the mouse, or the slider was released before it had followed.
    """
    handle = tab.page.get_by_role("slider").first
    track = handle.locator("xpath=ancestor::*[contains(@class,'Slider-trackContainer')]").first
    begin = time.monotonic()
    while abs(float(handle.get_attribute("aria-valuenow")) - share) > 0.05:
        assert time.monotonic() - begin < PATIENCE / 1000, (
            f"the slider stays at {handle.get_attribute('aria-valuenow')}"
        )
        at, box = handle.bounding_box(), track.bounding_box()
        tab.page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
        tab.page.mouse.down()
        for part in (0.3, 0.7, 1.0):
            now = at["x"] + part * (box["x"] + share * box["width"] - at["x"])
            tab.page.mouse.move(now, box["y"] + box["height"] / 2)
        tab.page.wait_for_timeout(200)
        tab.page.mouse.up()


def light_of(tab, neuron: str, circuit: str = "default") -> float:
    number = signal_names(animal(circuit)).index(neuron)
    script = f"getComputedStyle(document.querySelector('.wiring')).getPropertyValue('--s{number}')"
    return float(tab.page.evaluate(script) or 0)


def wait_for_light(tab, neuron: str, level: float, circuit: str = "default") -> None:
    """A neuron is dark between its bursts."""
    begin = time.monotonic()
    while light_of(tab, neuron, circuit) < level:
        assert time.monotonic() - begin < PATIENCE / 1000, f"{neuron} was never active"
        tab.page.wait_for_timeout(50)


def test_a_replay_opens_from_disk_and_plays_by_itself(open_tab, tmp_path):
    path = tmp_path / "walk.html"
    write_replay(record("untrained", "flat-walk"), path)
    tab = open_tab(path.as_uri(), 1000, 700)
    wait_for(tab, "() => parseFloat(document.querySelector('#clock').textContent) > 0.3")
    wait_until_it_moves(tab, "#scene")
    wait_for_light(tab, "extensor.FL", 0.1)
    wait_for_light(tab, "calf.HR", 0.1)
    box = tab.page.locator("#lines canvas").bounding_box()
    tab.page.mouse.click(box["x"] + 34 + 0.5 * (box["width"] - 42), box["y"] + 100)
    wait_for_text(tab, "#clock", "7.4")  # the middle of 14.97 s, and it stays there
    still = pixels(tab, "#scene")
    tab.page.wait_for_timeout(300)
    assert moved_around_the_middle(still, pixels(tab, "#scene")) == 0.0
    assert tab.complaints == []
    assert tab.outside("file://") == []
    tab.page.close()


def test_the_page_loads_without_complaint_or_outside_request_and_the_robot_moves(live, address):
    wait_until_it_moves(live, "canvas")
    assert live.complaints == []
    assert live.outside(address) == []


def test_only_this_machine_is_let_in(address):
    port = urllib.parse.urlsplit(address).port
    with socket.socket() as other:  # 127.0.0.2 is this machine too, but another address than the page listens on
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", port)) != 0


def test_dragging_the_command_changes_the_gait(live):
    live.page.get_by_role("checkbox").first.uncheck(force=True)  # no feedback: the rhythm is the circuit's alone
    drag_command(live, 0.2)
    wait_for_text(live, "#circuit-gait", "walk")
    drag_command(live, 0.55)
    wait_for_text(live, "#circuit-gait", "trot")
    drag_command(live, 0.98)
    live.page.get_by_role("button", name="reset").first.click()  # out of a trot it may go on trotting: both are stable
    wait_for_text(live, "#circuit-gait", "bound")
    live.page.get_by_role("checkbox").first.check(force=True)
    assert live.complaints == []


def test_a_knock_out_silences_its_neurons(live):
    drag_command(live, 0.5)
    wait_for_light(live, "diag_V0v.FL", 0.05)
    live.page.get_by_label("Knock out").first.click()
    live.page.get_by_role("option", name="V0v", exact=True).first.click()
    live.page.wait_for_selector(".wiring .dead", timeout=PATIENCE, state="attached")
    live.page.wait_for_timeout(300)
    seen = [light_of(live, "diag_V0v.FL") for _ in range(4) if not live.page.wait_for_timeout(60)]
    assert max(seen) == 0.0
    live.page.get_by_label("Knock out").first.click()
    live.page.get_by_role("option", name="nothing", exact=True).first.click()
    live.page.wait_for_selector(".wiring .dead", timeout=PATIENCE, state="detached")
    assert live.complaints == []


def dead_parts(tab) -> set[str]:
    return set(tab.page.evaluate("[...document.querySelectorAll('.wiring .dead')].map((part) => part.dataset.cut)"))


def test_a_click_on_a_neuron_or_a_synapse_silences_it_and_hovering_says_what_it_is(live):
    live.page.locator('[data-cut="diag_V0v.FL"] .rim').click()
    live.page.wait_for_selector(".wiring .dead", timeout=PATIENCE, state="attached")
    rows = {"flexor>diag_V0v same", "sync>diag_V0v same", "diag_V0v>flexor diag-down"}
    assert dead_parts(live) == {"diag_V0v.FL"} | rows
    # a wire is clicked near its beginning, where no neuron lies above it
    line = live.page.locator('[data-cut="cross_V3f>flexor cross"] .hit').first
    middle = line.evaluate("""(path) => {
        const at = path.getPointAtLength(path.getTotalLength() / 5).matrixTransform(path.getScreenCTM());
        return [at.x, at.y];
    }""")
    live.page.mouse.click(*middle)
    live.page.wait_for_selector('.wiring .dead[data-cut="cross_V3f>flexor cross"]', timeout=PATIENCE, state="attached")
    assert live.page.locator('.wiring .dead[data-cut="cross_V3f>flexor cross"]').count() == 4
    live.page.locator('[data-cut="diag_V0v.FL"] .rim').click()
    live.page.wait_for_selector('.wiring .dead[data-cut="diag_V0v.FL"]', timeout=PATIENCE, state="detached")
    assert dead_parts(live) == {"cross_V3f>flexor cross"}
    live.page.locator(".silenced").get_by_text("heal all").click()
    live.page.wait_for_selector(".wiring .dead", timeout=PATIENCE, state="detached")
    title = live.page.locator('[data-cut="cross_V0d.FL"] title').text_content()
    assert title == "cross_V0d.FL: neuron of type basic\ninhibitory\nleft-right alternation at low speed"
    assert not live.page.get_by_label("clicked").first.is_visible()
    assert live.complaints == []


def tile(tab, name: str) -> float:
    """The number of an instrument."""
    script = """(name) => [...document.querySelectorAll('div')].find(
        (one) => one.children.length == 0 && one.textContent == name).nextElementSibling.firstChild.textContent"""
    return float(tab.page.evaluate(script, name))


def wait_for_tile(tab, name: str, low: float, high: float) -> None:
    begin = time.monotonic()
    while not low <= tile(tab, name) <= high:
        assert time.monotonic() - begin < PATIENCE / 1000, f"{name} stays at {tile(tab, name)}"
        tab.page.wait_for_timeout(100)


def choose(tab, menu: str, name: str) -> None:
    tab.page.get_by_label(menu, exact=True).first.click()
    tab.page.get_by_role("option", name=name, exact=True).first.click()


def test_keys_drive_the_robot_and_all_tabs_agree(live, open_tab, address):
    choose(live, "Policy", "ncap-drive")
    live.page.locator(".wiring [data-cut='chx10.FL']").wait_for(timeout=PATIENCE)
    live.page.locator("canvas[data-engine]").click(force=True)  # what is typed into a menu is not for the robot
    wait_for_text(live, "body", "of 0.30 m/s")
    for wanted in ("0.40", "0.50"):
        live.page.keyboard.press("i")
        wait_for_text(live, "body", f"of {wanted} m/s")
    wait_for_tile(live, "speed", 0.35, 0.65)
    for wanted in ("0.10", "0.20", "0.30", "0.40"):
        live.page.keyboard.press("j")
        wait_for_text(live, "body", f"of +{wanted} rad/s")
    wait_for_tile(live, "turning", 0.15, 0.8)
    other = open_tab(address)
    wait_for_text(other, "body", "of +0.40 rad/s")
    other.page.locator("canvas[data-engine]").click(force=True)
    other.page.keyboard.press("Space")
    wait_for_text(live, "#gait", "no steps")
    wait_for_text(live, "body", "of 0.00 m/s")
    assert live.complaints == other.complaints == []
    other.page.close()


def test_a_course_is_driven_by_keys_and_kept_as_a_replay(live, open_tab, tmp_path):
    live.page.get_by_role("button", name="Start the course").click()
    wait_for_text(live, "#course", "gate 1 of 12")
    live.page.locator("canvas[data-engine]").click(force=True)
    for _ in range(3):
        live.page.keyboard.press("i")
    wait_for_text(live, "#course", "gate 2 of 12")  # straight ahead through the first
    points = int(live.page.locator("#course b").text_content())
    assert 50 <= points <= 100
    with live.page.expect_download(timeout=PATIENCE) as download:
        live.page.get_by_role("button", name="Save the last 20 s").click()
    assert download.value.suggested_filename == "ncap-drive.html"
    download.value.save_as(tmp_path / "walk.html")
    kept = open_tab((tmp_path / "walk.html").as_uri(), 1000, 700)
    wait_for_text(kept, "h1", "ncap-drive on flat-walk, live")
    wait_for_light(kept, "freq.L", 0.1, "drive")
    assert live.complaints == kept.complaints == []
    kept.page.close()


def test_a_video_of_what_happened_is_drawn_in_the_background_and_downloaded(live, tmp_path):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")
    if not any(_can_render(name) for name in ("egl", "osmesa")):
        pytest.skip("neither EGL nor OSMesa is here to draw with")
    for name in ("reset", "step", "step"):  # a video of a few frames
        live.page.get_by_role("button", name=name, exact=True).click()
    with live.page.expect_download(timeout=PATIENCE) as download:
        live.page.get_by_role("button", name="Video of the last 20 s").click()
        wait_for_text(live, "body", "while the robot goes on")
    assert download.value.suggested_filename.endswith(".mp4")
    download.value.save_as(tmp_path / "walk.mp4")
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "walk.mp4"))
    assert frames >= 2
    assert seconds == pytest.approx(0.03 * frames, abs=0.05)
    live.page.get_by_role("button", name="play / pause").click()
    assert live.complaints == []


def test_another_task_and_robot_are_another_world_for_the_same_policy(live):
    choose(live, "Policy", "untrained")
    live.page.locator(".wiring [data-cut='chx10.FL']").wait_for(timeout=PATIENCE, state="detached")
    choose(live, "Task", "flat-run")
    wait_for_text(live, "body", "of 1.00 m/s")
    choose(live, "Robot", "go2")
    robot = "[...document.querySelectorAll('input')].find((one) => ['a1', 'go2'].includes(one.value)).value"
    wait_for(live, f"() => {robot} == 'go2'")
    choose(live, "Task", "flat-walk")
    wait_for_text(live, "body", "of 0.50 m/s")
    wait_for(live, f"() => {robot} == 'a1'")
    assert live.complaints == []


def test_the_name_of_a_run_is_text_in_the_menu_and_in_a_complaint(live, hostile_run):
    choose(live, "Policy", f"runs/{hostile_run}")
    wait_for_text(live, "body", f"runs/{hostile_run}/best.safetensors is not a complete safetensors file")
    assert live.page.locator("img[src=x]").count() == 0
    assert live.complaints == []
    live.page.wait_for_selector(".wiring circle", timeout=PATIENCE)  # the page has gone back to the policy it had


def test_a_hard_push_throws_the_robot_and_it_gets_up_again(live):
    falls = "(document.body.textContent.match(/(\\d+) falls?/) || [0, 0])[1]"
    before = int(live.page.evaluate(falls))
    strength = live.page.get_by_role("slider").nth(2)
    strength.focus()
    strength.press("End")
    live.page.get_by_role("button", name="left", exact=True).click()
    wait_for(live, f"() => Number({falls}) > {before}")
    wait_for(live, "() => !document.querySelector('#gait').textContent.includes('fallen')")
    assert live.complaints == []
