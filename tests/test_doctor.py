"""What `ncap doctor` and every table say arrives as it was written."""

import sys
import tomllib
from pathlib import Path

import pytest

from ncap import cli, extras
from ncap.cli.terminal import print_table

ROOT = Path(__file__).parents[1]


def doctor(capsys, monkeypatch) -> str:
    monkeypatch.setattr("ncap.doctor._can_render", lambda back_end: True)
    monkeypatch.setattr("ncap.doctor._version", lambda package: None)  # nothing is installed
    monkeypatch.setenv("COLUMNS", "80")
    cli.main(["doctor"])
    return capsys.readouterr().out


def test_the_advice_in_a_clone_installs_the_clone_with_the_extra_and_can_be_copied(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv" / "bin" / "python"))
    out = doctor(capsys, monkeypatch).splitlines()
    for extra in ("cluster", "rl", "video", "view"):
        assert f"extra {extra}: .venv/bin/python -m pip install -e '.[{extra}]'" in out


def test_the_advice_elsewhere_names_the_packages_and_not_an_index_in_which_there_is_no_ncap(capsys, monkeypatch):
    monkeypatch.setattr(extras, "_clone", lambda: None)
    monkeypatch.setattr(sys, "executable", "/a b/python")
    out = doctor(capsys, monkeypatch)
    assert "extra video: '/a b/python' -m pip install 'imageio-ffmpeg>=0.6' 'pillow>=11'" in out
    assert "ncap[" not in out


def test_requirements_are_sorted_by_their_extras():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert {extras.package_of(line) for line in extras.requirements()} == {
        extras.package_of(line) for line in project["dependencies"]
    }
    for extra in ("cluster", "rl", "video", "view"):
        written = project["optional-dependencies"][extra]
        assert [extras.package_of(line) for line in extras.requirements(extra)] == [
            extras.package_of(line) for line in written
        ]
    assert extras.package_of("mkdocstrings[python]>=1.0") == "mkdocstrings"


@pytest.mark.parametrize("text", ["runs/[1]", "[bold]x[/bold]", "[/]", "[link=http://x]y", ":smile:", "a\\[b]"])
def test_brackets_and_colons_in_names_are_shown_as_they_are(capsys, text):
    print_table(("what", text), [(text, "1")])
    assert capsys.readouterr().out.count(text) == 2
