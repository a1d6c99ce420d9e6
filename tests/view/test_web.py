import re
import subprocess
import time
from html import escape
from types import SimpleNamespace

import numpy as np
import pytest

from ncap.doctor import _can_render
from ncap.tasks import find_task
from ncap.view.beside import beside
from ncap.view.session import Session

pytest.importorskip("viser", reason="the extra `view` is not installed")

from ncap.view.web import Page, choices


@pytest.fixture
def page():
    session = Session(find_task("flat-walk"), "untrained", ghost="zero")
    page = Page(session, choices("untrained", "zero"), host="127.0.0.1", port=8790, plain=True)
    yield page
    page.close()


def test_nobody_is_simulated_while_nobody_watches(page):
    page.run(0.3)
    assert page.session.time == 0.0


@pytest.mark.slow
def test_real_time_with_a_ghost_costs_less_than_a_core(page, monkeypatch):
    monkeypatch.setattr(page._server, "get_clients", lambda: {0: None})
    page.run(1.0)
    begin, start = time.process_time(), page.session.time
    page.run(3.0)
    played = page.session.time - start
    assert played <= 3.1  # real time is not exceeded either
    assert (time.process_time() - begin) / played < 0.8


def test_slow_motion_and_pause_hold_the_clock(page, monkeypatch):
    monkeypatch.setattr(page._server, "get_clients", lambda: {0: None})
    page.session.change(pace=0.1)
    page.run(1.0)
    assert 0.0 < page.session.time <= 0.13
    page.session.change(paused=True)
    before = page.session.time
    page.run(0.3)
    assert page.session.time == before


def test_shipped_and_built_in_policies_are_offered_once_and_runs_are_found(tmp_path, monkeypatch):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "best.safetensors").touch()
    monkeypatch.chdir(tmp_path)
    offered = choices("untrained", None)
    assert offered[0] == "untrained"
    assert {"ncap-flat-walk", "zero", "random", "runs/mine"} < set(offered)
    assert len(set(offered)) == len(offered)


def test_wishes_are_obeyed_and_bad_ones_refused_without_harm(page):
    page._panel._wish(policy="zero")
    page.run(0.05)
    assert page.session.brain.name == "zero"
    assert "has no circuit" in page._wiring.content
    assert page._panel._handles["command"].disabled
    page._panel._wish(policy="cat")
    page.run(0.05)
    assert page.session.brain.name == "zero"
    assert page._panel._handles["policy"].value == "zero"
    page._panel._wish(policy="untrained", without=("V0v", "V3"), command=0.4)
    page.run(0.05)
    assert page.session.brain.command == 0.4
    # V0v is two neurons of the fore legs, V3 two populations of four and one of two
    dead = re.findall(r'class="dead" data-cut="([^"> ]*)"', page._wiring.content)
    assert len([name for name in dead if "." in name]) == 2 + 4 + 4 + 2
    assert not page._panel._handles["command"].disabled


def test_what_follows_a_fall_is_a_choice_that_is_shown_as_it_is(page):
    menu = page._panel._handles["after_fall"]
    assert (menu.value, tuple(menu.options)) == ("get up", ("get up", "start anew"))
    page._panel._wish(after_fall="start anew")
    page.run(0.05)
    assert page.session.controls.after_fall == "start anew"
    page._panel._wish(after_fall="cry", pace=1.0)
    page.run(0.05)
    assert page.session.controls.after_fall == menu.value == "start anew"
    page._panel._wish(after_fall="get up", pace=1.0)
    page.run(0.05)
    assert page.session.controls.after_fall == menu.value == "get up"


def run_until(page, true) -> None:
    """Let the page run, which takes longer on a busy machine."""
    begin = time.monotonic()
    while not true():
        page.run(0.3)
        assert time.monotonic() - begin < 60


def test_another_task_is_shown_in_all_menus_and_sliders(page):
    handles = page._panel._handles
    page._panel._wish(task="bumpy-run")
    page.run(0.05)
    assert (handles["task"].value, handles["robot"].value, handles["bumpiness"].value) == ("bumpy-run", "a1", 0.5)
    page._panel._wish(robot="go2")
    page.run(0.05)
    assert page.session.arena.world.robot.name == "go2"
    page._panel._wish(friction=0.4, kp=30.0)
    page.run(0.05)
    page._panel.order("world", "restore")
    page.run(0.05)
    assert (handles["friction"].value, page.session.controls.friction) == (1.0, 1.0)
    page._panel._wish(task="flat-walk")
    page.run(0.05)
    assert (handles["task"].value, handles["robot"].value) == ("flat-walk", "a1")


def test_a_course_is_started_by_its_button_and_drawn_until_a_reset(page):
    page._panel.order("course", "start")
    page.run(0.05)
    assert page.session.course is None  # of a policy that cannot be driven
    page._panel._wish(task="flat-drive", policy="ncap-drive")
    page._panel.order("course", "start")
    page._panel.order("time", "step")
    run_until(page, lambda: "gate 1 of 12" in page._numbers.content)
    assert page._drawing._gates is not None
    assert page.session.controls.camera == "behind the robot"
    page._panel.order("time", "reset")
    run_until(page, lambda: page._drawing._gates is None)


def test_a_tour_is_offered_once_and_comes_back_when_asked_for(page):
    assert not page._tour.open
    page._panel.order("tour", "begin")
    page.run(0.05)
    for _ in range(3):
        assert page._tour.open
        page._panel.order("tour", "next")
        page.run(0.05)
    page._panel.order("tour", "next")  # behind the last step
    page.run(0.05)
    assert not page._tour.open


def test_the_ghost_walks_in_its_lane_and_is_held_in_view_with_the_truth_in_words():
    robot, east = np.array([1.0, 2.0, 0.3]), np.array([1.0, 0.0])
    near = beside(robot, east, np.array([1.5, 2.0, 0.3]), lane=0.9)
    assert (near.held, near.said) == (False, "0.5 m ahead")
    np.testing.assert_allclose(near.shift, [0.0, 0.9, 0.0])
    far = beside(robot, east, np.array([-8.0, 2.0, 0.3]), lane=0.0)
    assert (far.held, far.said) == (True, "9.0 m behind")
    np.testing.assert_allclose(far.shift, [8.0, 0.0, 0.0])  # drawn 1 m behind
    north = beside(robot, np.array([0.0, 1.0]), np.array([3.0, 2.0, 0.3]), lane=0.9)
    assert north.said == "2.0 m to the right"
    assert beside(robot, east, robot, lane=0.9).said == "abreast"


class Visitor:
    """A tab that keeps what the page tells it and sends it."""

    def __init__(self) -> None:
        self.notices, self.files = [], {}

    def add_notification(self, title, body, **about):
        self.notices.append(
            SimpleNamespace(title=title, body=body, **{"color": None, "auto_close_seconds": None} | about)
        )
        return self.notices[-1]

    def send_file_download(self, name, content, save_immediately):
        self.files[name] = content


@pytest.fixture
def visitor(page, monkeypatch):
    """Somebody who watches, with half a second of walking behind the robot."""
    visitor = Visitor()
    monkeypatch.setattr(page._server, "get_clients", lambda: {7: visitor})
    monkeypatch.setattr(page._drawing, "move", lambda: None)
    page.session.change(paused=True)
    for _ in range(17):
        page.session.step()
    return visitor


@pytest.mark.slow
def test_a_video_is_drawn_while_the_robot_walks_on(page, visitor, tmp_path):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")
    if not any(_can_render(name) for name in ("egl", "osmesa")):
        pytest.skip("neither EGL nor OSMesa is here to draw with")
    page._panel.order("video", 7)
    page.run(0.05)
    (notice,) = visitor.notices
    assert notice.loading
    page.session.change(paused=False)
    begin = page.session.time
    page._panel.order("video", 7)
    page.run(0.3)
    assert "one at a time" in visitor.notices[1].body
    assert page.session.time > begin
    assert visitor.files == {}
    run_until(page, lambda: not notice.loading)
    assert notice.body == "untrained.mp4 is in your downloads."
    (tmp_path / "untrained.mp4").write_bytes(visitor.files["untrained.mp4"])
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "untrained.mp4"))
    assert (count, seconds) == (17, pytest.approx(17 * 0.03, abs=0.03))  # what had happened when it was asked for


def test_a_video_without_its_extra_is_refused_with_the_line_that_installs_it(page, visitor, monkeypatch):
    monkeypatch.setattr("ncap.view.filming.find_spec", lambda name: None)
    page._panel.order("video", 7)
    page.run(0.05)
    (notice,) = visitor.notices
    assert (notice.title, notice.color) == ("Not possible", "red")
    assert notice.body.startswith("a video needs the extra video: ")
    assert "pip install" in notice.body


@pytest.mark.parametrize(
    ("program", "said"),
    [("import sys; sys.exit('no back end')", "the video failed: no back end"), ("pass", "its process was ended")],
)
def test_a_video_that_fails_says_why_and_leaves_nothing_behind(page, visitor, monkeypatch, tmp_path, program, said):
    pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words, **rest: popen([words[0], "-c", program], **rest))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    page._panel.order("video", 7)
    page.run(0.05)
    run_until(page, lambda: not visitor.notices[0].loading)
    assert visitor.notices[0].title == "No video"
    assert said in visitor.notices[0].body
    assert list(tmp_path.iterdir()) == []


def test_a_video_is_drawn_by_our_modules_not_by_those_of_the_current_folder(page, visitor, monkeypatch, tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")
    (tmp_path / "random.py").write_text("raise SystemExit('somebody else')")
    monkeypatch.chdir(tmp_path)
    popen, program = subprocess.Popen, "import random; raise SystemExit(random.__name__ + ' as usual')"
    monkeypatch.setattr(
        subprocess, "Popen", lambda words, **rest: popen([*words[: words.index("-m")], "-c", program], **rest)
    )
    page._panel.order("video", 7)
    page.run(0.05)
    run_until(page, lambda: not visitor.notices[0].loading)
    assert visitor.notices[0].body == "the video failed: random as usual"


def test_a_video_for_a_visitor_who_left_is_given_up(page, visitor, monkeypatch, tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")
    popen, begun = subprocess.Popen, []

    def sleeper(words, **rest):
        begun.append(popen([words[0], "-c", "import time; time.sleep(600)"], **rest))
        return begun[0]

    monkeypatch.setattr(subprocess, "Popen", sleeper)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    page._panel.order("video", 7)
    page.run(0.05)
    monkeypatch.setattr(page._server, "get_clients", dict)
    run_until(page, lambda: begun[0].returncode is not None)
    assert list(tmp_path.iterdir()) == []


class Visit:
    """The event of a widget that somebody touched."""

    client = object()


def test_clicks_menu_and_check_box_add_up_and_are_shown_everywhere(page):
    panel = page._panel
    panel.clicked(Visit, "cross_V0d.FL@1700000000000")
    panel.clicked(Visit, "cross_V0d>flexor cross@1700000000001")
    panel._knock_out(Visit, "V0v")
    panel._connect(Visit, False)
    page.run(0.05)
    everything = ("cross_V0d.FL", "cross_V0d>flexor cross", "V0v", "afferents")
    assert page.session.controls.without == everything
    assert panel._pathway.value == "V0v"
    assert panel._feedback.value is False
    assert re.findall(r'data-cut="([^"]*)"', panel._silenced.content) == [*map(escape, everything), "nothing"]
    panel.clicked(Visit, "V0v@1700000000002")
    panel._connect(Visit, True)
    page.run(0.05)
    assert page.session.controls.without == everything[:2]
    assert panel._pathway.value == "nothing"
    assert panel._feedback.value is True
    panel.clicked(Visit, "nothing@1700000000003")
    page.run(0.05)
    assert page.session.controls.without == ()
    assert panel._silenced.content == ""
    assert 'class="dead"' not in page._wiring.content


def test_a_click_that_our_own_page_sends_back_to_a_tab_is_not_another_click(page):
    class Echo:
        client = None

    page._panel.clicked(Echo, "cross_V0d.FL@1700000000000")
    page.run(0.05)
    assert page.session.controls.without == ()


def test_new_bumps_wait_until_the_slider_rests_and_then_are_drawn(page):
    ground = page._drawing.ground
    page._panel._wish(bumpiness=0.5)
    page.run(0.1)
    assert page.session.controls.bumpiness == 0.0
    page.run(0.5)
    assert page.session.controls.bumpiness == 0.5
    assert page._drawing.ground is not ground
    page._panel.order("push", ("left", 5.0))
    page._panel.order("time", "step")
    page.run(0.05)
    assert page.session.controls.paused
    assert page.session.time == pytest.approx(0.03)
