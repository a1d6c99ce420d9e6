"""Writes a policy as ONNX beside its contract, after both were compared with our own inference."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncap import seeding
from ncap.errors import UserError
from ncap.export.contract import contract
from ncap.export.graph import Graph
from ncap.export.steps import circuit_step, mlp_step
from ncap.extras import missing_extra
from ncap.files import read_json, write_whole
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy
from ncap.tasks import Task
from ncap.trained import TrainedPolicy

Array = NDArray[np.float64]

CHECKED: Final = 200
"""Control steps in which the exported policy is compared with ours."""
TOLERANCE: Final = 1e-6
"""Largest difference of an action, or of a state, that is let through."""
CONTRACT_HAS: Final = {"format", "inputs", "action", "sha256"}
"""Entries by which a contract is known."""


def export_onnx(trained: TrainedPolicy, task: Task, path: Path) -> dict[str, Any]:
    """Write the policy to `path` (.onnx), and its contract beside it (.json), which is returned.

    Both are compared with our own inference first: over CHECKED steps of random observations and commands, in which
    each goes on from its own state. If they differ by more than TOLERANCE, nothing is written.
    """
    if path.suffix != ".onnx":
        raise UserError(f"an ONNX file's name ends in .onnx, unlike {path.name!r}")
    beside = path.with_suffix(".json")
    _check_free(beside)
    agreed = contract(trained, task)
    graph = Graph()
    if isinstance(trained.policy, NCAPPolicy):
        circuit_step(graph, trained.policy, trained.theta)
    elif isinstance(trained.policy, MLPPolicy):
        mlp_step(graph, trained.policy, trained.theta)
    content = graph.file(path.stem, f"{trained.name}, one control step of {trained.policy.control_dt:g} s")
    difference = difference_from_ours(content, trained)
    if not difference <= TOLERANCE:
        raise UserError(f"{trained.name}: the export differs by {difference:.2g} from our own inference: not written")
    checked = {"steps": CHECKED, "largest_difference": difference, "tolerance": TOLERANCE}
    agreed |= {"model": path.name, "sha256": hashlib.sha256(content).hexdigest(), "checked": checked}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    write_whole(path, content)
    write_whole(beside, f"{_text(agreed)}\n".encode())
    return agreed


def _check_free(path: Path) -> None:
    """Refuse to replace a file that is no contract, such as a circuit's table: nobody has named it as ours."""
    try:
        if not path.exists():
            return
    except OSError:
        return  # a name that no file can have, as writing says
    try:
        found = read_json(path)
    except UserError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= CONTRACT_HAS:
        raise UserError(f"{path} would become the contract, but is another file: choose another name by --out")


def _text(value: Any, indent: str = "") -> str:
    """JSON to be read by people, too: a row of a list, or a list of numbers, stands in one line."""
    inside = indent + " "
    if isinstance(value, dict) and any(isinstance(entry, dict | list) for entry in value.values()):
        rows = [f"{json.dumps(name)}: {_text(entry, inside)}" for name, entry in value.items()]
        return f"{{\n{inside}" + f",\n{inside}".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        return f"[\n{inside}" + f",\n{inside}".join(map(json.dumps, value)) + f"\n{indent}]"
    return json.dumps(value)


def difference_from_ours(content: bytes, trained: TrainedPolicy) -> float:
    """The largest difference of actions and states between an ONNX file's content and our own inference."""
    try:
        import onnxruntime
    except ImportError:
        raise missing_extra("an export to ONNX", "onnx") from None
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    sizes = {given.name: given.shape[1] for given in session.get_inputs()}
    draws = seeding.generator(0, "export")
    ours = trained.controller(1)
    memory = ours.reset([0])
    state = None if memory is None else memory.flat()
    differences: list[float] = []
    for _ in range(CHECKED):
        given = {name: draws.uniform(-1, 1, (1, size)) for name, size in sizes.items()}
        said: Any = None
        if state is not None:
            given["state"] = state
            if "command" in given:
                said = given["command"] = np.abs(given["command"])
        elif "wish" in given:
            said = {"wish": given["wish"]}
        memory, action = ours.act(memory, given["observation"], said)
        theirs = session.run(None, given)
        differences.append(np.abs(theirs[0] - action.reshape(1, -1)).max())
        if state is not None:
            state = theirs[1]
            differences.append(np.abs(state - memory.flat()).max())
    return float(np.max(differences))  # NaN if any is
