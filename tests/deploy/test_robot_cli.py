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
        (["deploy", "random", "--link", "twin"], "'random'", "zero"),
        (["deploy", "zero", "--link", "twin", "--seconds", "0"], "0", "more than 0 s"),
        (["deploy", "zero", "--link", "twin", "--seed", "-1"], "-1", "0, 1, 2"),
        (["deploy", "untrained", "--link", "twin", "--without", "V9"], "'V9'", "V0v"),
        (["deploy", "untrained", "--link", "twin", "--command", "1.5"], "1.5", "[0, 1]"),
        (["deploy", "mlp-flat-walk", "--link", "twin", "--without", "V0v"], "mlp-flat-walk", "no circuit"),
        (["twin", "--seed", "-3"], "-3", "0, 1, 2"),
        (["twin", "--mass", "-1"], "-1", "mass must not be negative"),
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


def test_a_flight_keeps_the_circuit_that_the_command_line_asked_for(capsys, tmp_path, monkeypatch):
    from ncap.recording import Recording
    from ncap.trained import find_policy

    monkeypatch.chdir(tmp_path)
    words = ("--without", "V0v,V3", "--command", "0.2", "--seconds", "0.1", "--out", "flight")
    code, out, _ = run(capsys, "deploy", "ncap-flat-walk", "--link", "twin", *words)
    assert code == 0
    flown = find_policy("ncap-flat-walk", without=["V0v", "V3"], command=0.2)
    assert "policy: ncap-flat-walk without V0v, V3, checksum" in out
    recording = Recording.load(tmp_path / "flight" / "recording.safetensors")
    assert recording.circuit == flown.policy.circuit
    assert recording.title == "ncap-flat-walk without V0v, V3 on twin, dry run"


def test_every_field_of_the_gap_is_an_option_of_the_twin(monkeypatch):
    from dataclasses import fields, replace

    from ncap.deploy import twin
    from ncap.deploy.gap import Gap

    served = []
    monkeypatch.setattr(twin, "Twin", lambda gap, **_: served.append(gap))
    monkeypatch.setattr(twin, "serve", lambda *_: (_ for _ in ()).throw(SystemExit(0)))
    for field in fields(Gap):
        with pytest.raises(SystemExit):
            cli.main(["twin", f"--{field.name.replace('_', '-')}", "0.25"])
        assert served[-1] == replace(Gap(), **{field.name: 0.25})


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
