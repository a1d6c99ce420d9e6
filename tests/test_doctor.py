"""What `ncap doctor` and every table say arrives as it was written."""

import pytest

from ncap import cli
from ncap.cli.terminal import print_table


def test_the_advice_for_a_missing_extra_can_be_copied(capsys, monkeypatch):
    monkeypatch.setattr("ncap.doctor._can_render", lambda back_end: True)
    monkeypatch.setattr("ncap.doctor._version", lambda package: None)  # nothing is installed
    monkeypatch.setenv("COLUMNS", "80")
    cli.main(["doctor"])
    out = capsys.readouterr().out
    for extra in ("cluster", "rl", "video", "view"):
        assert f"pip install 'ncap[{extra}]'" in out


@pytest.mark.parametrize("text", ["runs/[1]", "[bold]x[/bold]", "[/]", "[link=http://x]y", ":smile:", "a\\[b]"])
def test_brackets_and_colons_in_names_are_shown_as_they_are(capsys, text):
    print_table(("what", text), [(text, "1")])
    assert capsys.readouterr().out.count(text) == 2
