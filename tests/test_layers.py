"""The layers of the design: an import may only go down, and bodies and brains never import each other."""

import ast
from pathlib import Path

import pytest

import ncap

SOURCE = Path(ncap.__file__).parent
ROOMS = {
    "errors": 0, "events": 1, "legs": 1, "params": 1, "seeding": 1,
    "circuits": 2, "policies": 2, "sim": 2, "tasks": 2, "rewards": 2,
    "rollout": 3,
    "runs": 4, "recording": 4, "learn": 4, "analysis": 4,
    "doctor": 5, "terminal": 5, "experiments": 5, "view": 5, "deploy": 5, "cli": 6, "__main__": 7,
}  # fmt: skip
BODIES, BRAINS = {"sim", "tasks", "rewards"}, {"circuits", "policies"}
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_modules(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            own = {f"ncap.{alias.name}" for alias in node.names if not alias.name.startswith("__")}
            modules |= own if node.module == "ncap" else {node.module}
    return modules


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_only_go_down(path):
    here = room_of(path)
    for module in imported_modules(path):
        if not module.startswith("ncap."):
            continue
        there = module.split(".")[1]
        if there == here:
            continue
        assert ROOMS[there] <= ROOMS[here], f"{here} may not import {module}"
        assert not (here in BODIES and there in BRAINS), f"a body imports a brain: {module}"
        assert not (here in BRAINS and there in BODIES), f"a brain imports a body: {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_lower_right_rooms_know_mujoco(path):
    if any(module.split(".")[0] == "mujoco" for module in imported_modules(path)):
        assert room_of(path) in {"sim", "rollout", "view", "deploy"}


def test_the_check_itself_sees_an_upward_import(tmp_path):
    wrong = tmp_path / "legs.py"
    wrong.write_text("from ncap import rollout\nimport ncap.cli\n")
    assert imported_modules(wrong) == {"ncap.rollout", "ncap.cli"}
