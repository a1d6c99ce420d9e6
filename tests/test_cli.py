import json
import shutil
from dataclasses import replace

import pytest

import ncap
from ncap import cli
from ncap.circuits.animal import animal
from ncap.circuits.tables import load_circuit, save_circuit
from ncap.cli.terminal import numbers_in, print_table
from ncap.errors import UserError
from ncap.policies.ncap import NCAPPolicy
from ncap.sim.a1 import A1
from ncap.sim.robot import describe_robot
from ncap.tasks import TASKS
from ncap.trained import load, untrained


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
        (["rhythm", "--circuit", "mouse"], "'mouse'", "default, drive, paper, released"),
        (["rhythm", "--without", "V7"], "'V7'", "V0, V0d, V0v, V3"),
        (["rhythm", "--states", "0", "--commands", "0"], "0", "at least one initial state"),
        (["rhythm", "--commands", "0", "--states", "1", "--out", "gaits.doc"], "'gaits.doc'", "png"),
        (["circuit", "--without", "brain"], "'brain'", "homolateral"),
        (["circuit", "--out", "circuit"], "'circuit'", "svg"),
        (["circuit", "--save", "circuit.txt"], "'circuit.txt'", ".json"),
        (["rhythm", "--circuit", "none.json"], "none.json", "does not exist"),
        (["evaluate", "zero", "--seed", "-1", "--episodes", "1"], "-1", "from 0 on"),
        (["evaluate", "zero", "--threads", "0"], "0", "at least one thread"),
        (["evaluate", "zero", "--threads", "-3"], "-3", "at least one thread"),
        (["evaluate", "zero", "--episodes", "0"], "0", "at least one episode"),
        (["evaluate", "zero", "--robot", "spot"], "'spot'", "a1, a1-turning, go1, go1-turning, go2, go2-turning"),
        (["bench", "--robot", "spot"], "'spot'", "go1"),
        (["reproduce", "bodies", "--robot", "spot"], "'spot'", "go2"),
        (["reproduce", "driving", "--robot", "go2"], "driving is about the A1", "performance, footfalls"),
        (["evaluate", "zero", "--task", "fly"], "'fly'", "flat-walk"),
        (["evaluate", "zero", "--task", "none.py"], "'none.py'", "no such file"),
        (["evaluate", "zero", "--contact", "soft"], "'soft'", "elliptic"),
        (["evaluate", "untrained", "--without", "V7"], "'V7'", "homolateral"),
        (["evaluate", "untrained", "--command", "1.5"], "1.5", "[0, 1]"),
        (["evaluate", "mlp-flat-run", "--without", "V0v"], "mlp-flat-run", "no circuit"),
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
    _, out, _ = run(capsys, "circuit", "--circuit", "released")
    rows = [line.split() for line in out.splitlines()]
    assert ["cross_V0d", "flexor", "cross", "-1.5000"] in rows
    assert ["diag_V3a", "basic", "-0.4000", "HL", "HR"] in rows
    assert ["foot+", "afferent_flexor", "same", "-1.0000", "per", "girdle"] in rows
    spec = animal("released")
    sources = {row.source for row in spec.synapses}
    synapses = [
        line for line in out.splitlines() if line[:18].strip() in sources and line[38:48].strip() in spec.plan.routes
    ]
    assert len(synapses) == 40 + 28 + 4  # of the afferents, the rhythm generator and the motor neurons


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("-0.00", "0.00"), ("-0", "0"), ("-0.0 m/s", "0.0 m/s"), ("-0%", "0%"), ("-0.00 … -0.01", "0.00 … -0.01"),
        ("[-0.000, 0.1]", "[0.000, 0.1]"), ("-0.001", "-0.001"), ("-0.50", "-0.50"), ("1e-0", "1e-0"), ("x-0", "x-0"),
        ("[red]no colour[/red] :smile:", "[red]no colour[/red] :smile:"),
    ],
)  # fmt: skip
def test_tables_show_plain_text_and_no_minus_zero(capsys, cell, shown):
    print_table(("what",), [(cell,)])
    assert capsys.readouterr().out.splitlines()[-2].strip() == shown


def test_a_range_of_numbers_has_both_ends_and_a_limit():
    assert numbers_in(["0:1:0.25", "0.5,2"]) == [0.0, 0.25, 0.5, 0.75, 1.0, 2.0]
    assert numbers_in(["1:0:-0.5"]) == [1.0, 0.5, 0.0]
    assert len(numbers_in(["0:0.9999:1e-4"])) == 10_000
    for words in (["0:1:1e-4"], ["0:0.5:1e-4", "0.5:1:1e-4"], ["0:1:1e-300"]):
        with pytest.raises(UserError, match="up to 10,000 numbers are possible, not"):
            numbers_in(words)


def test_doctor_names_the_package_to_install_for_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr("ncap.doctor._can_render", lambda back_end: back_end != "osmesa")
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert "libosmesa6" in out
    assert "libegl1" not in out


def test_the_version_is_printed_and_nothing_else(capsys):
    assert run(capsys, "--version") == (0, f"ncap {ncap.__version__}\n", "")


def test_a_table_is_saved_edited_and_measured(capsys, tmp_path):
    path = tmp_path / "mine.json"
    code, out, _ = run(capsys, "circuit", "--without", "V3", "--save", str(path))
    assert (code, out) == (0, f"table: {path}\n")
    assert load_circuit(path) == animal().without(["cross_V3f", "cross_V3e", "diag_V3a"])
    arguments = ("rhythm", "--json", "--commands", "0.5", "--states", "2")
    assert run(capsys, *arguments, "--circuit", str(path))[1] == run(capsys, *arguments, "--without", "V3")[1]


@pytest.fixture
def short(monkeypatch):
    """Episodes of 1.5 s."""
    for name, task in TASKS.items():
        monkeypatch.setitem(TASKS, name, replace(task, episode_seconds=1.5))


def evaluated(capsys, *arguments):
    code, out, err = run(capsys, "evaluate", *arguments, "--episodes", "2", "--json")
    assert code == 0, err
    return json.loads(out)


def test_evaluates_json_has_the_interval_of_the_table(capsys, short):
    found = evaluated(capsys, "random")
    low, high = found["return_interval"]
    # the bootstrap of two episodes draws (a, a), (a, b) or (b, b), so 95 % of its means reach from a to b
    assert [low, high] == sorted(found["returns"])
    table = run(capsys, "evaluate", "random", "--episodes", "2")[1]
    assert f"{found['return_mean']:.3f} [{low:.3f}, {high:.3f}], 95 % interval" in table


def test_gains_can_be_other_ones(capsys, short):
    usual, same, stiff = (evaluated(capsys, "untrained", *words) for words in ((), ("--kp", "1"), ("--kp", "2")))
    assert usual["returns"] == same["returns"] != stiff["returns"]


def test_an_untrained_circuit_is_measured_on_a_task_of_any_name(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "flat-trot", None)  # so that it is taken away again
    monkeypatch.delitem(TASKS, "flat-trot")
    (tmp_path / "mine.py").write_text("""
from dataclasses import replace
import ncap

ncap.TASKS["flat-trot"] = replace(ncap.TASKS["flat-walk"], name="flat-trot", command=0.5, episode_seconds=0.6)
""")
    found = evaluated(capsys, "untrained", "--task", str(tmp_path / "mine.py"))
    assert found["task"] == "flat-trot"
    assert found["returns"] == load("untrained").with_command(0.5).evaluate(TASKS["flat-trot"], range(2)).returns


def test_a_policy_is_measured_on_its_own_task_and_with_the_circuit_that_is_asked_for(capsys, short, tmp_path):
    found = evaluated(capsys, "ncap-bumpy-walk")
    assert found["task"] == "bumpy-walk"
    trained, seeds = load("ncap-bumpy-walk"), range(2)
    assert found["returns"] == trained.evaluate(seeds=seeds).returns
    save_circuit(animal("released"), tmp_path / "mine.json")
    other = evaluated(
        capsys, "ncap-bumpy-walk", "--circuit", str(tmp_path / "mine.json"), "--without", "V0v", "--command", "0.6",
        "--task", "flat-walk",
    )  # fmt: skip
    expected = trained.with_circuit("released").without(["V0v"]).with_command(0.6).evaluate("flat-walk", seeds)
    assert other["returns"] == expected.returns
    assert other["returns"] != found["returns"]


def test_a_robot_of_ones_own_is_a_data_sheet_beside_its_model(capsys, short, tmp_path):
    same = describe_robot(A1) | {"name": "mine", "model": "body.xml", "model_xml": ""}
    shutil.copy(A1.model, tmp_path / "body.xml")
    (tmp_path / "mine.json").write_text(json.dumps(same))
    (tmp_path / "weak.json").write_text(json.dumps(same | {"name": "weak", "kp": 0.1, "kd": 0.1}))
    usual = evaluated(capsys, "ncap-flat-walk")
    assert evaluated(capsys, "ncap-flat-walk", "--robot", str(tmp_path / "mine.json"))["returns"] == usual["returns"]
    # without strength in its joints it sinks to the ground
    assert evaluated(capsys, "ncap-flat-walk", "--robot", str(tmp_path / "weak.json"))["falls"] == 2
    (tmp_path / "mine.json").write_text(json.dumps(same | {"kp": "strong"}))
    code, _, err = run(capsys, "evaluate", "zero", "--robot", str(tmp_path / "mine.json"))
    assert code == 2
    assert "mine.json: kp is 'strong': a number is needed" in err


def test_a_task_of_ones_own_is_a_file_that_registers_it(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "lying", None)  # so that it is taken away again
    monkeypatch.delitem(TASKS, "lying")
    (tmp_path / "mine.py").write_text("""
from dataclasses import replace
import numpy as np
import ncap

still = ncap.RewardTerm("still", lambda now, goal, task: np.full(len(now.velocity), 0.25))
ncap.TASKS["lying"] = replace(ncap.TASKS["flat-walk"], name="lying", rewards=(still,), episode_seconds=0.6)
""")
    found = evaluated(capsys, "zero", "--task", str(tmp_path / "mine.py"))
    assert found["task"] == "lying"
    assert found["returns"] == pytest.approx([0.25, 0.25])


def test_a_policy_that_acts_in_another_step_than_the_task_is_refused(capsys, tmp_path):
    untrained(NCAPPolicy(control_dt=0.015)).save(tmp_path / "quick.safetensors")
    code, _, err = run(capsys, "evaluate", str(tmp_path / "quick.safetensors"))
    assert code == 2
    assert "acts every 0.015 s, but flat-walk every 0.03 s" in err


def test_a_run_is_not_begun_twice_in_one_folder(capsys, short, tmp_path):
    arguments = ("train", "flat-walk", "--epochs", "1", "--population", "4", "--episodes", "1", "--out", str(tmp_path))
    assert run(capsys, *arguments)[0] == 0
    before = (tmp_path / "best.safetensors").read_bytes()
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "holds a run already: go on with it by --resume, or choose another --out" in err
    assert run(capsys, "train", "--resume", str(tmp_path))[0] == 0
    assert (tmp_path / "best.safetensors").read_bytes() == before
    code, _, err = run(capsys, "train", "--resume", str(tmp_path), "--seed", "3")
    assert (code, err) == (2, "ncap: error: a resumed run keeps its own seed: leave out 3\n")
    code, _, err = run(capsys, "train", "--resume", str(tmp_path), "--out", str(tmp_path / "other"))
    assert (code, err) == (2, "ncap: error: a resumed run stays in its folder: leave out --out\n")


def test_a_cluster_where_nobody_answers_leaves_no_folder(capsys, tmp_path):
    folder = tmp_path / "run"
    code, _, err = run(capsys, "train", "flat-walk", "--out", str(folder), "--cluster", "127.0.0.1:1")
    assert code == 2
    assert err == "ncap: error: no Ray cluster at '127.0.0.1:1': Connection refused\n"
    assert not folder.exists()
