import re
import sys
from dataclasses import replace

import pytest

from ncap import cli
from ncap.recording import record
from ncap.tasks import TASKS


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "wrong", "right"),
    [
        (["watch", "cat"], "'cat'", "untrained"),
        (["watch", "--task", "moon-walk"], "'moon-walk'", "bumpy-run"),
        (["watch", "--ghost", "cat"], "'cat'", "untrained"),
        (["watch", "--host", "203.0.113.1"], "203.0.113.1", "cannot listen"),  # an address that is never ours
        (["watch", "--port", "99999"], "99999", "65535"),
        (["watch", "--port", "0"], "0", "65535"),
        (["watch", "--host", ""], "host", "empty"),
        (["watch", "--host", "0"], "'0'", "0.0.0.0"),
        (["watch", "x" * 300], "xxx", "untrained"),
        (["watch", "--ghost", "x" * 300], "xxx", "untrained"),
        (["replay", "x" * 300], "xxx", "ncap-flat-walk"),
        (["replay", "zero", "--out", "."], ".", "is a folder"),
        (["replay", "zero", "--out", "x" * 300], "xxx", "cannot write"),
        (["video", "zero", "--seconds", "nan"], "nan", "a number of seconds above 0"),
        (["video", "zero", "--seconds", "-1"], "-1", "a number of seconds above 0"),
        (["watch", "--without", "V7"], "'V7'", "homolateral"),
        (["watch", "zero", "--without", "V0v"], "zero", "has no circuit"),
        (["watch", "--circuit", "lobster"], "'lobster'", "released"),
        (["watch", "--robot", "spot"], "'spot'", "a1"),
        (["watch", "--command", "1.5"], "1.5", "[0, 1]"),
        (["watch", "--seed", "-1"], "-1", "a seed is a number from 0 on"),
        (["replay", "cat"], "'cat'", "ncap-flat-walk"),
        (["replay", "zero", "--seed", "-2"], "-2", "a seed is a number from 0 on"),
        (["replay", "untrained", "--without", "V7"], "'V7'", "homolateral"),
        (["replay", "zero", "--task", "moon-walk"], "'moon-walk'", "flat-walk"),
        (["replay", "zero", "--out", "/dev/null/walk.html"], "/dev/null", "cannot"),
        (["video"], "policy", "--compare A B"),
        (["video", "zero", "--compare", "zero", "random"], "policy", "--compare A B"),
        (["video", "zero", "--out", "walk.avi"], "'walk.avi'", ".mp4, .webp or .gif"),
    ],
)
def test_a_mistake_is_one_line_that_names_it_and_what_is_valid(capsys, arguments, wrong, right):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert wrong in err
    assert right in err


def test_a_recording_has_its_own_circuit_task_and_robot(capsys, tmp_path):
    path = tmp_path / "walk.safetensors"
    record("zero", replace(TASKS["flat-walk"], episode_seconds=0.3)).save(path)
    for word, value in (("--task", "flat-run"), ("--without", "V0v"), ("--robot", "a1")):
        code, _, err = run(capsys, "replay", str(path), word, value, "--out", str(tmp_path / "no.html"))
        assert code == 2
        assert "is a recording, which has its own circuit, task and robot" in err


def test_the_words_reach_the_replay(tmp_path):
    page = tmp_path / "walk.html"
    words = ["untrained", "--task", "bumpy-walk", "--without", "V3", "cross_V0d.FL", "--command", "0.2", "--seed", "3"]
    cli.main(["replay", *words, "--out", str(page)])
    text = page.read_text("utf-8")
    assert "untrained without V3, cross_V0d.FL on bumpy-walk" in text
    assert "cross_V0d.FR" in text
    assert not any(name in text for name in ("cross_V3f", "cross_V0d.FL:"))


@pytest.mark.parametrize(
    ("command", "package", "extra"), [("watch", "viser", "view"), ("video", "imageio_ffmpeg", "video")]
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(capsys, monkeypatch, command, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = run(capsys, command, "zero")
    assert code == 2
    assert re.search(rf" -m pip install -e '.*\[{extra}\]'", err)


@pytest.mark.parametrize(("display", "opened"), [(":0", ["http://here"]), ("", [])])
def test_the_page_is_opened_only_where_a_browser_has_a_window(monkeypatch, display, opened):
    class Page:
        address = "http://here"

        def __init__(self, *_, **__):
            pass

        def run(self):
            pass

        close = stop = run

    found = []
    monkeypatch.setattr("ncap.view.web.Page", Page)
    monkeypatch.setattr("webbrowser.open", found.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(SystemExit):
        cli.main(["watch", "untrained", "--open"])
    assert found == opened
