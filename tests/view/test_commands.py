import sys

import pytest

from ncap import cli


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
        (["replay", "cat"], "'cat'", "ncap-flat-walk"),
        (["replay", "zero", "--task", "moon-walk"], "'moon-walk'", "flat-walk"),
        (["replay", "zero", "--out", "/dev/null/walk.html"], "/dev/null", "cannot"),
        (["video"], "policy", "--compare A B"),
        (["video", "zero", "--compare", "zero", "random"], "policy", "--compare A B"),
        (["video", "zero", "--out", "walk.gif"], "'walk.gif'", ".mp4"),
    ],
)
def test_a_mistake_is_one_line_that_names_it_and_what_is_valid(capsys, arguments, wrong, right):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert wrong in err
    assert right in err


@pytest.mark.parametrize(
    ("command", "package", "extra"), [("watch", "viser", "view"), ("video", "imageio_ffmpeg", "video")]
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(capsys, monkeypatch, command, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = run(capsys, command, "zero")
    assert code == 2
    assert f"pip install 'ncap[{extra}]'" in err
