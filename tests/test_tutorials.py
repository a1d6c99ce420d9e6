"""The tutorials do what they say, with short settings: their programs, and commands that end by themselves."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import ncap
from ncap import cli

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: Options in place of the page's, or beside them, by command.
SHORT = {
    "evaluate": "--episodes 1",
    "lesion": "--episodes 1 --commands 0.1 --without V0v --json",
    "rhythm": "--states 1 --commands 0.1 --json",
    "deploy": "--seconds 0.2",
    "train --resume": "--epochs 2",
    "train": "--epochs 1 --population 4 --episodes 1 --training-seconds 0.3 --episode-seconds 0.6",
    "train --algorithm": "--epochs 1 --environments 2 --episode-seconds 0.6",
}
#: What runs until somebody ends it, needs a network, or has tests of its own; their words are checked in test_docs.py.
LEFT_OUT = ("ncap watch", "ncap twin", "--link lcm", "--link dds", "ncap deploy ncap-", "ncap report")


def shortened(line: str) -> list[str]:
    """The words of a command after ncap, with short settings."""
    words = shlex.split(line)[1:]
    rule = f"{words[0]} {words[1] if words[1:2] == ['--resume'] else '--algorithm'}"
    rule = rule if rule.split()[1] in words else words[0]
    for option, *values in (part.split() for part in re.findall(r"--\S+(?: [^-]\S*)*", SHORT.get(rule, ""))):
        if option in words:
            start = words.index(option)
            end = next((i for i in range(start + 1, len(words)) if words[i].startswith("--")), len(words))
            del words[start:end]
        words += [option, *values]
    return words


def steps(page: Path) -> list[tuple[str, str]]:
    """(kind, text) of what a page tells to do, in its order: commands and blocks of Python."""
    found = []
    for kind, text in BLOCK.findall(page.read_text("utf-8")):
        if kind == "python":
            found.append(("python", text))
        elif not kind:
            lines = [line for line in text.splitlines() if line.startswith("ncap ")]
            found += [("ncap", line) for line in lines if not any(name in line for name in LEFT_OUT)]
    return found


@pytest.fixture
def play(tmp_path, monkeypatch, capsys):
    """Do the steps of a page one after the other in an empty folder, and return what each of them printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def steps_of(page: str, episode_seconds: float = 5.0) -> dict[str, str]:
        for name in ("flat-walk", "flat-drive", "flat-speeds"):
            monkeypatch.setitem(ncap.TASKS, name, replace(ncap.TASKS[name], episode_seconds=episode_seconds))
        return printed_by(page, capsys)

    return steps_of


def printed_by(page: str, capsys) -> dict[str, str]:
    printed = {}
    for kind, text in steps(DOCS / page):
        if kind == "python":
            exec(compile(text.replace("range(5000, 5003)", "range(5000, 5001)"), page, "exec"), {})
        else:
            cli.main(shortened(text))
        printed[text] = capsys.readouterr().out
    return printed


def test_options_are_replaced_and_added():
    assert shortened("ncap train flat-walk --epochs 10 --out runs/a")[:4] == ["train", "flat-walk", "--out", "runs/a"]
    assert shortened("ncap train --resume runs/a --epochs 12") == ["train", "--resume", "runs/a", "--epochs", "2"]
    assert shortened("ncap lesion x --without V0v V3 --commands 0.1 0.5")[2:] == shlex.split(SHORT["lesion"])


def test_one_halved_synapse_makes_a_trot_of_the_walk(play, tmp_path):
    outputs = play("tutorials/edit-a-circuit.md", 8.0)
    (program,) = (text for text in outputs if "save_circuit" in text)
    assert outputs[program] == "trot\n"
    intact, edited = (out for line, out in outputs.items() if line.startswith("ncap evaluate"))
    assert "walk in 100%" in intact
    assert "trot in 100%" in edited
    assert (tmp_path / "trot.html").is_file()
    assert (tmp_path / "runs" / "mine" / "best.safetensors").is_file()


def test_a_policy_is_trained_compared_and_flown(play, tmp_path):
    pytest.importorskip("stable_baselines3", reason="needs the extra rl")
    outputs = play("tutorials/train-and-deploy.md")
    (compared,) = (out for text, out in outputs.items() if text.startswith("import ncap"))
    assert [line.split(":")[0] for line in compared.splitlines()] == [
        "untrained",
        "runs/walk",
        "runs/ppo",
        "mlp-flat-walk",
    ]
    assert len(list(tmp_path.glob("flights/*/recording.safetensors"))) == 1


def test_the_robot_turns_as_the_program_wants(play, tmp_path):
    outputs = play("tutorials/drive.md")
    (turned,) = (out for text, out in outputs.items() if text.startswith("import ncap"))
    rates = [float(rate) for rate in re.findall(r": ([+-][\d.]+) rad/s", turned)]
    assert [round(abs(rate) / 0.4) * (1 if rate > 0 else -1) for rate in rates] == [1, -1, 1]
    assert turned.count("in a trot") == 3
    assert (tmp_path / "drive.html").is_file()


@pytest.mark.parametrize("page", ["how-to/own-circuit.md", "how-to/own-task.md", "reference/api.md"])
def test_programs_of_other_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ncap.TASKS, "flat-walk", replace(ncap.TASKS["flat-walk"], episode_seconds=4.0))
    before = set(ncap.TASKS)
    programs = [text for kind, text in BLOCK.findall((DOCS / page).read_text("utf-8")) if kind == "python"]
    assert programs
    try:
        for text in programs:
            exec(compile(text.replace("range(3)", "range(1)"), page, "exec"), {"__name__": "page"})
    finally:
        for name in set(ncap.TASKS) - before:
            del ncap.TASKS[name]
