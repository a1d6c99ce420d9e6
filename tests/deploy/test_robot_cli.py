"""The commands deploy, twin and flight."""

import subprocess
import sys
from pathlib import Path

import pytest

from ncap import cli
from ncap.deploy.flight import read_log
from ncap.deploy.flight_plan import FlightPlan
from ncap.errors import UserError


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
        (["deploy", "zero", "--link", "twin", "--robot", "spot"], "'spot'", "a1, a1-turning, go1"),
        (["twin", "--robot", "spot"], "'spot'", "go2"),
        (["deploy", "zero", "--link", "sdk"], "robot_interface", "unitree_legged_sdk"),
        (["deploy", "random", "--link", "twin"], "'random'", "zero"),
        *(
            (["deploy", "zero", "--link", "twin", "--seconds", t], t, "more than 0 s")
            for t in ("0", "nan", "inf", "-1")
        ),
        (["deploy", "zero", "--link", "twin", "--seconds", "1e9"], "1e+09", "at most 86400 s"),
        (["deploy", "zero", "--link", "twin", "--out", "a\0b"], "'a\\x00b'", ""),
        (["deploy", "zero", "--link", "twin", "--out", "."], ".", "never overwritten"),
        (["deploy", "zero", "--link", "twin", "--out", ""], "", ""),
        (["deploy", "zero", "--link", "twin", "--out", "n" * 300], "nnn", "File name too long"),
        (["deploy", "zero", "--link", "twin", "--out", "/proc/flight"], "/proc/flight", "cannot write a flight into"),
        (["deploy", "zero", "--link", "lcm://239.255.76.67:0"], "port 0", "1 to 65535"),
        (["deploy", "zero", "--link", "lcm://röbot:1"], "'röbot'", "224.0.0.0"),
        (["deploy", "zero", "--link", "twin\0"], "'twin\\x00'", ""),
        (["deploy", "zero", "--link", ""], "", ""),
        (["deploy", "zero", "--link", "twin", "--seed", "-1"], "-1", "0, 1, 2"),
        (["deploy", "untrained", "--link", "twin", "--without", "V9"], "'V9'", "V0v"),
        (["deploy", "untrained", "--link", "twin", "--command", "1.5"], "1.5", "[0, 1]"),
        (["deploy", "mlp-flat-walk", "--link", "twin", "--without", "V0v"], "mlp-flat-walk", "no circuit"),
        (["deploy", "ncap-drive", "--link", "twin", "--drive", "horse"], "'horse'", "none, keyboard, remote"),
        (["deploy", "ncap-drive", "--link", "twin", "--drive", "keyboard"], "standard input", "terminal"),
        (["deploy", "ncap-drive", "--link", "twin", "--drive", "remote"], "no remote", "switch it on"),
        (["deploy", "ncap-drive", "--link", "twin", "--drive", "remote", "--speed", "0.3"], "sticks", "--speed"),
        (["deploy", "ncap-drive", "--link", "twin", "--yaw", "0.1", "--command", "0.3"], "--command", "--yaw"),
        *((["deploy", "ncap-drive", "--link", "twin", "--speed", v], v, "[0, 1] m/s") for v in ("nan", "1.1", "-1")),
        *((["deploy", "ncap-drive", "--link", "twin", "--yaw", w], w, "[-0.6, 0.6]") for w in ("inf", "0.7", "-2")),
        (["deploy", "ncap-flat-walk", "--link", "twin", "--speed", "0.3"], "ncap-flat-walk", "ncap-drive"),
        (["deploy", "mlp-flat-walk", "--link", "twin", "--drive", "remote"], "mlp-flat-walk", "ncap-drive"),
        (["twin", "--remote", "jump@3"], "'jump'", "centre, forward, left, right, stop, silent"),
        (["twin", "--remote", "stop"], "'stop'", "forward@12"),
        (["twin", "--remote", "stop@-1"], "-1", "0 s or later"),
        (["twin", "--seed", "-3"], "-3", "0, 1, 2"),
        (["twin", "--mass", "-1"], "-1", "mass is a number in [0.01, 100]"),
        *((["twin", "--mass", mass], mass, "mass is a number in [0.01, 100]") for mass in ("0", "nan", "inf")),
        (["twin", "--latency", "1e300"], "1e+300", "[0, 10]"),
        (["twin", "--strength", "0"], "0", "[0.01, 100]"),
        *((["twin", "--seconds", t], t, "more than 0 s") for t in ("nan", "inf", "-1", "0")),
        *((["twin", "--fault", f"silence@{t}"], t, "0 s or later") for t in ("nan", "inf", "-1")),
        (["twin", "--fault", "silence@"], "'silence@'", "silence@12"),
        (["twin", "--fault", "@3"], "''", "silence"),
        (["twin", "--link", "lcm://127.0.0.1:7667"], "'127.0.0.1'", "239.255.255.255"),
        (["twin", "--link", "lcm://:99999"], "port 99999", "1 to 65535"),
        (["twin", "--loss", "1.5"], "1.5", "[0, 1]"),
        (["twin", "--fault", "fire@3"], "'fire'", "silence"),
        (["twin", "--fault", "silence"], "'silence'", "silence@12"),
        (["twin", "--link", "sdk"], "'sdk'", "lcm://"),
        (["flight", "nowhere"], "nowhere", "no flight"),
        (["flight", "a\0b"], "a", ""),
    ],
)
def test_a_mistake_is_one_line_that_names_it_and_what_is_valid(capsys, tmp_path, monkeypatch, arguments, wrong, right):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert wrong in err
    assert right in err


def test_a_plan_refuses_what_the_command_line_may_let_through():
    with pytest.raises(UserError, match=r"a folder cannot have the name 'a\\x00b'"):
        FlightPlan(link="twin", out=Path("a\0b"))
    with pytest.raises(UserError, match="holds no flight"):
        read_log(Path("a\0b"))


def test_a_dry_run_says_so_and_leaves_a_recording(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "deploy", "zero", "--link", "twin", "--seconds", "0.1", "--out", "flight")
    assert code == 0
    assert out.startswith("dry run: nothing is sent")
    assert "\n0 commands sent, 0 malformed datagrams dropped; flight: flight\n" in out
    assert (
        "\nthe policy drove for 0.1 s: 0.00 m of way at 0.00 m/s, 0.00 m from where it began; largest tilt 0°\n" in out
    )
    assert out.endswith("\nlook at it: ncap replay flight --out flight.html\n")
    assert (tmp_path / "flight" / "recording.safetensors").exists()
    assert run(capsys, "flight", "flight")[0] == 0
    cli.main(["replay", "flight", "--out", "flight.html"])
    assert "zero on twin, dry run" in (tmp_path / "flight.html").read_text("utf-8")


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

    from ncap.deploy import serving, twin
    from ncap.deploy.gap import Gap

    served = []
    monkeypatch.setattr(twin, "Twin", lambda gap, **_: served.append(gap))
    monkeypatch.setattr(serving, "serve", lambda *_, **__: (_ for _ in ()).throw(SystemExit(0)))
    for field in fields(Gap):
        with pytest.raises(SystemExit):
            cli.main(["twin", f"--{field.name.replace('_', '-')}", "0.25"])
        assert served[-1] == replace(Gap(), **{field.name: 0.25})


def test_a_fault_ends_with_code_1_and_must_be_rearmed(capsys, tmp_path, monkeypatch):
    from ncap.deploy import session
    from ncap.deploy.link import TwinLink
    from ncap.deploy.twin import Twin

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "open_link", lambda *_, **__: TwinLink(Twin(faults=[(1.0, "hot")])))
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


LIMITED = """
import resource, sys
from ncap.cli import main
from ncap.deploy import loop
loop.Schedule.__init__.__kwdefaults__.update(calibration=0.2, low=0.6, stand=0.8, hold=0.1, halt=0.3, damping=0.3)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)  # writing beyond fails, as on a full disk
main(sys.argv[2:])
"""


@pytest.mark.parametrize("arm", [(), ("--arm",)])
@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        (100, 2, "cannot write a flight into flight"),  # not even about.json
        (200_000, 1, "the flight's record is not complete: cannot write flight/log.rows: No space left on device"),
    ],
)
def test_a_full_disk_is_a_sentence_after_a_flight_that_ended_well(tmp_path, limit, code, said, arm):
    words = ("deploy", "zero", "--link", "twin", "--seconds", "0.3", "--out", "flight", *arm)
    process = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert process.returncode == code, process.stderr
    assert said in process.stderr
    assert "Traceback" not in process.stderr
    assert len(process.stderr.strip().splitlines()) == 1
    if code == 1:
        phases = [line for line in process.stdout.splitlines() if line.startswith("phase")]
        assert phases[-3:] == ["phase halt", "phase sit", "phase damping"]
    else:
        assert not (tmp_path / "flight").exists()


def test_an_output_that_takes_nothing_does_not_end_a_flight(tmp_path):
    words = ("deploy", "zero", "--link", "twin", "--seconds", "0.3", "--out", "flight", "--arm")
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-c", LIMITED, str(2**30), *words], stdout=full, stderr=subprocess.PIPE, text=True,
            cwd=tmp_path,
        )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")
    assert (tmp_path / "flight" / "recording.safetensors").exists()
