import json

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
        (["rhythm", "--commands", "1.2"], "1.2", "[0, 1]"),
        (["rhythm", "--commands", "nan"], "nan", "[0, 1]"),
        (["rhythm", "--commands", "fast"], "'fast'", "FROM:TO:STEP"),
        (["rhythm", "--commands", "0:1:0"], "'0:1:0'", "FROM:TO:STEP"),
        (["rhythm", "--preset", "mouse"], "'mouse'", "default, released"),
        (["rhythm", "--without", "V7"], "'V7'", "V0, V0d, V0v, V3"),
        (["rhythm", "--states", "0", "--commands", "0"], "0", "at least one initial state"),
        (["rhythm", "--commands", "0", "--states", "1", "--out", "gaits.doc"], "'gaits.doc'", "png"),
        (["circuit", "--without", "brain"], "'brain'", "homolateral"),
        (["circuit", "--out", "circuit"], "'circuit'", "svg"),
    ],
)
def test_a_mistake_is_one_line_that_names_it_and_what_is_valid(capsys, arguments, wrong, right):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert wrong in err
    assert right in err


def test_rhythm_prints_one_json_row_per_command_and_nothing_else(capsys):
    code, out, _ = run(capsys, "rhythm", "--json", "--commands", "0:1:0.5", "--states", "4")
    rows = json.loads(out)
    assert code == 0
    assert [row["command"] for row in rows] == [0.0, 0.5, 1.0]
    assert [row["gait"] for row in rows] == ["walk", "trot", "bound"]
    assert list(rows[0]) == [
        "command", "gait", "share", "frequency_hz", "left_right_phase", "fore_hind_phase", "diagonal_phase", "duty",
        "concentration",
    ]  # fmt: skip
    assert len(rows[0]["left_right_phase"]) == len(rows[0]["fore_hind_phase"]) == 2


def test_rhythm_accepts_knock_outs_joined_by_commas_or_spaces(capsys):
    arguments = ("rhythm", "--json", "--commands", "0.5", "--states", "3", "--without")
    assert run(capsys, *arguments, "V0v,V3")[1] == run(capsys, *arguments, "V0v", "V3")[1]


def test_figures_are_written_where_asked(capsys, tmp_path):
    gaits, wiring, units = tmp_path / "new" / "gaits.png", tmp_path / "wiring.svg", tmp_path / "units.pdf"
    assert run(capsys, "rhythm", "--commands", "0.2", "0.9", "--states", "2", "--ramp", "--out", str(gaits))[0] == 0
    assert run(capsys, "circuit", "--out", str(wiring))[0] == 0
    assert run(capsys, "units", "--out", str(units))[0] == 0
    assert gaits.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in wiring.read_text()
    assert units.read_bytes().startswith(b"%PDF")


def test_a_folder_that_cannot_be_written_is_a_plain_error(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run(capsys, "units", "--out", str(tmp_path / "file" / "units.png"))
    assert code == 2
    assert len(err.strip().splitlines()) == 1


def test_circuit_prints_every_row(capsys):
    _, out, _ = run(capsys, "circuit", "--preset", "released")
    assert "cross_V0d          flexor       cross       -1.5000" in out
    assert "diag_V3a     basic" in out


def test_doctor_names_the_package_to_install_for_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr("ncap.doctor._can_render", lambda back_end: back_end != "osmesa")
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert "libosmesa6" in out
    assert "libegl1" not in out
