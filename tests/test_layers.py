"""The layers of the design: an import may only go down, in a strict order; bodies and brains meet in one room."""

import ast
from pathlib import Path

import pytest

import ncap

SOURCE = Path(ncap.__file__).parent
#: Rooms from the bottom up. A room may import those on lines below its own, never one on its own line.
ORDER = """\
errors
plan seeding rotations registry files threads events extras
params
circuits sim
policies rewards righting
tasks
rollouts
analysis
evaluation
stable_baselines
trained
recording_file
recording runs
learn
bench lesions envs
report view deploy export
experiments
front doctor
cli
__main__""".splitlines()
ROOMS = {room: level for level, rooms in enumerate(ORDER) for room in rooms.split()}
BODIES, BRAINS = {"sim", "tasks", "rewards"}, {"circuits", "policies"}
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_modules(path: Path) -> set[str]:
    """Modules that a file imports, also within functions, but not those for type checkers only."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    modules = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names if not alias.name.startswith("__")}
            inside = {part for part in parts if _is_module(part)} if node.module.startswith("ncap") else set()
            modules |= inside or ({node.module} - {"ncap"})
    return modules


def _is_module(name: str) -> bool:
    place = SOURCE.joinpath(*name.split(".")[1:])
    return place.is_dir() or place.with_suffix(".py").exists()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_only_go_down(path):
    here = room_of(path)
    for module in imported_modules(path):
        if not module.startswith("ncap."):
            continue
        there = module.split(".")[1]
        if there == here:
            continue
        assert ROOMS[there] < ROOMS[here], f"{here} may not import {module}"
        assert not (here in BODIES and there in BRAINS), f"a body imports a brain: {module}"
        assert not (here in BRAINS and there in BODIES), f"a brain imports a body: {module}"


def test_no_file_imports_itself_in_a_circle():
    names = {path: "ncap." + ".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in FILES}
    known = {name.removesuffix(".__init__"): imported_modules(path) for path, name in names.items()}

    def reaches(start: str) -> set[str]:
        found: set[str] = set()
        left = [start]
        while left:
            for module in known.get(left.pop(), ()):
                if module in known and module not in found:
                    found.add(module)
                    left.append(module)
        return found

    assert [name for name in known if name in reaches(name)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_lower_right_rooms_know_mujoco(path):
    if any(module.split(".")[0] == "mujoco" for module in imported_modules(path)):
        assert room_of(path) in {"sim", "view", "deploy"}


def test_the_check_itself_sees_an_upward_import(tmp_path):
    wrong = tmp_path / "plan.py"
    wrong.write_text("from ncap import rollouts\ndef f():\n    import ncap.cli\n")
    assert imported_modules(wrong) == {"ncap.rollouts", "ncap.cli"}
