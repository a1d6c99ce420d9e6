"""The examples do what they say, with short settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ncap.circuits.tables import load_circuit

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(folder: Path, name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_circuit_of_eight_neurons_trots_from_any_start(tmp_path):
    for seed in range(3):
        out = run(tmp_path, "own_circuit.py", "--seed", str(seed), "--episodes", "1")
        assert "gait: trot" in out
        assert "untrained, 12 weights" in out  # 2 x (4 weights and 2 biases) of the motor neurons
    assert (tmp_path / "own_circuit" / "footfalls.png").read_bytes().startswith(b"\x89PNG")
    assert len(load_circuit(tmp_path / "own_circuit" / "circuit.json").neurons) == 4


@pytest.mark.slow
def test_training_on_ice_ends_goes_on_and_is_compared(tmp_path):
    short = ("--epochs", "1", "--population", "4", "--episodes", "1")
    out = run(tmp_path, "own_task.py", *short)
    assert out.count("on ice") == 3
    trained = (tmp_path / "runs" / "ice-walk" / "best.safetensors").stat().st_mtime_ns
    assert run(tmp_path, "own_task.py", *short) == out
    assert (tmp_path / "runs" / "ice-walk" / "best.safetensors").stat().st_mtime_ns == trained  # nothing was left to do


def test_the_intact_circuit_has_its_gaits_and_the_knocked_out_one_is_shown_beside(tmp_path):
    out = run(tmp_path, "knock_out.py", "--commands", "0.2", "0.55", "0.95", "--episodes", "1")
    rows = out.splitlines()[2:5]
    assert [row.split()[1] for row in rows] == ["walk", "trot", "bound"]
    assert rows[1].split()[2] != "trot"  # V0v is what makes it
    assert "intact         walk in 100%" in out


def test_two_policies_are_compared_and_kept(tmp_path):
    out = run(tmp_path, "compare_policies.py", "zero", "untrained", "--episodes", "1")
    assert "zero: 0 weights, return 0.5" in out
    assert "untrained: 112 weights" in out
    assert sorted(page.name for page in (tmp_path / "compared").iterdir()) == ["untrained.html", "zero.html"]


def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    notebook = json.loads((EXAMPLES / "circuit_tour.ipynb").read_text("utf-8"))
    assert notebook["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = json.dumps([cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"])
    assert "image/png" in shown
    assert "112 trained weights" in shown
    (tmp_path / "cells.py").write_text(
        "\n".join(cells) + "\nassert list(labels.values()) == ['walk', 'trot', 'bound']\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "cells.py"],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "intact: trot   without V0v:" in done.stdout
    assert (tmp_path / "walk.html").exists()
