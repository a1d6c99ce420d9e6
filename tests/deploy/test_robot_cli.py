"""The commands deploy, twin and flight."""

import pytest

from ncap import cli


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = 0
    try:
        cli.main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "wrong", "right"),
    [
        (["deploy", "horse", "--link", "twin"], "'horse'", "ncap-flat-walk"),
        (["deploy", "zero", "--link", "udp"], "'udp'", "lcm://"),
        (["deploy", "zero", "--link", "sdk"], "robot_interface", "unitree_legged_sdk"),
        (["deploy", "zero", "--link", "twin", "--seconds", "0"], "0", "more than 0 s"),
        (["twin", "--loss", "1.5"], "1.5", "[0, 1]"),
        (["twin", "--fault", "fire@3"], "'fire'", "silence"),
        (["twin", "--fault", "silence"], "'silence'", "silence@12"),
        (["twin", "--link", "sdk"], "'sdk'", "lcm://"),
        (["flight", "nowhere"], "nowhere", "no flight"),
    ],
)
def test_a_mistake_is_one_line_that_names_it_and_what_is_valid(capsys, tmp_path, monkeypatch, arguments, wrong, right):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert wrong in err
    assert right in err


def test_a_dry_run_says_so_and_leaves_a_recording(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "deploy", "zero", "--link", "twin", "--seconds", "0.1", "--out", "flight")
    assert code == 0
    assert out.startswith("dry run: nothing is sent")
    assert "\n0 commands sent, 0 malformed states dropped; flight: flight\n" in out
    assert (tmp_path / "flight" / "recording.safetensors").exists()
    assert run(capsys, "flight", "flight")[0] == 0


def test_a_fault_ends_with_code_1_and_must_be_rearmed(capsys, tmp_path, monkeypatch):
    import tempfile

    from ncap.deploy import session
    from ncap.deploy.link import TwinLink
    from ncap.deploy.twin import Twin

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(session, "open_link", lambda *_: TwinLink(Twin(faults=[(1.0, "hot")])))
    arguments = ("deploy", "zero", "--link", "twin", "--arm", "--seconds", "0.1", "--out")
    code, out, err = run(capsys, *arguments, "one")
    assert code == 1
    assert out.startswith("ARMED")
    assert "damped by a fault, temperature: a motor has 65 °C" in err
    code, _, err = run(capsys, *arguments, "two")
    assert code == 2
    assert "temperature: a motor has 65 °C" in err
    assert "--rearm" in err
    assert run(capsys, *arguments, "three", "--rearm")[0] == 1
