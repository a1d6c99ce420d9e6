"""Circuit tables as files: JSON with one row per line, to be read and edited by people. Anything wrong is named."""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, Final

from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import UNITS, unit_name
from ncap.errors import UserError, unknown_name
from ncap.files import read_text, write_whole
from ncap.plan import find_plan

FORMAT: Final = 1
"""Version of the file's form."""
_KINDS: Final = {"neurons": Neuron, "synapses": Synapse, "inputs": Input}
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "name": (str,), "source": (str,), "target": (str,), "route": (str,), "role": (str,), "tied_by": (str,),
    "per": (str,), "kind": (str,), "bias": (int, float), "weight": (int, float), "trainable": (bool,),
    "rest": (int, float, type(None)), "sign": (int,), "sites": (list, type(None)), "unit": (dict,),
}  # fmt: skip
_WORDS: Final[Mapping[str, tuple[object, ...]]] = {"sign": (1, -1, 0), "kind": ("sense", "command")}


def describe_circuit(spec: CircuitSpec) -> dict[str, Any]:
    """The table as JSON data."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for group, kind in _KINDS.items():
        rows[group] = []
        for row in getattr(spec, group):
            values = {field.name: getattr(row, field.name) for field in fields(kind)}
            if kind is Neuron:
                values["unit"] = {"type": unit_name(row.unit)} | asdict(row.unit)
            needed = {field.name for field in fields(kind) if field.default is MISSING}
            rows[group].append(
                {name: value for name, value in values.items() if name in needed or value != _default(kind, name)}
            )
    return {"ncap_circuit": FORMAT, "plan": spec.plan.name, "dt": spec.dt} | rows


def circuit_from(data: object) -> CircuitSpec:
    """The inverse of `describe_circuit`. Anything that is not such a table is refused by a sentence that names it."""
    if not isinstance(data, dict) or "ncap_circuit" not in data:
        raise UserError("this is no circuit table: it has no entry ncap_circuit")
    if data["ncap_circuit"] != FORMAT:
        raise UserError(f"ncap_circuit is {data['ncap_circuit']!r}, but this version reads {FORMAT}")
    known = {"ncap_circuit", "plan", "dt", *_KINDS}
    for name in data.keys() - known:
        raise unknown_name("entry of a circuit table", str(name), sorted(known))
    for name in sorted(known - data.keys()):
        raise UserError(f"the table has no entry {name!r}")
    if not isinstance(data["plan"], str) or not _is_number(data["dt"]):
        raise UserError(f"plan is a name and dt a number of seconds, not {data['plan']!r} and {data['dt']!r}")
    rows = {}
    for group, kind in _KINDS.items():
        if not isinstance(data[group], list):
            raise UserError(f"{group} is a list of rows, not {type(data[group]).__name__}")
        rows[group] = tuple(_row(kind, group, i, row) for i, row in enumerate(data[group]))
    return CircuitSpec(
        rows["neurons"], rows["synapses"], rows["inputs"], plan=find_plan(data["plan"]), dt=float(data["dt"])
    )


def save_circuit(spec: CircuitSpec, path: Path) -> None:
    """Write the table so that it is complete or not there at all."""
    data = describe_circuit(spec)
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in data.items() if name not in _KINDS]
    for group in _KINDS:
        rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in data[group])
        lines.append(f" {json.dumps(group)}: [\n{rows}\n ]")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def load_circuit(path: Path) -> CircuitSpec:
    """Read the table of a file."""
    try:
        return circuit_from(json.loads(read_text(path)))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _row(kind: type[Any], group: str, position: int, data: object) -> Any:
    where = f"row {position + 1} of {group}"
    if not isinstance(data, dict):
        raise UserError(f"{where} is {data!r}, not a row")
    named = data.get("name") or f"{data.get('source')}>{data.get('target')}"
    where = f"{where} ({named})"
    columns = {field.name: field for field in fields(kind)}
    for name in data.keys() - columns.keys():
        raise UserError(f"{where}: {unknown_name('column', str(name), columns)}")
    for name, column in columns.items():
        if name not in data and column.default is MISSING:
            raise UserError(f"{where}: the column {name!r} is missing")
    values = {name: _value(where, name, value) for name, value in data.items()}
    if "unit" in values:
        values["unit"] = _unit(where, values["unit"])
    return kind(**values)


def _value(where: str, name: str, value: object) -> Any:
    allowed = _TYPES[name]
    wrong = not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)
    if wrong or (isinstance(value, float) and not math.isfinite(value)):
        raise UserError(f"{where}: {name} is {value!r}, which is no {' or '.join(_SPOKEN[kind] for kind in allowed)}")
    if name in _WORDS and value not in _WORDS[name]:
        raise UserError(f"{where}: {name} is {value!r}; valid: {', '.join(map(str, _WORDS[name]))}")
    if isinstance(value, list):
        if not all(isinstance(part, str) for part in value):
            raise UserError(f"{where}: {name} is {value!r}, which is no list of names")
        return tuple(value)
    return float(value) if float in allowed and value is not None else value  # type: ignore[arg-type]


_SPOKEN: Final = {
    str: "word", int: "number", float: "finite number", bool: "true or false", list: "list", dict: "unit",
    type(None): "null",
}  # fmt: skip


def _unit(where: str, data: dict[str, Any]) -> Any:
    name = data.get("type")
    if name not in UNITS:
        raise UserError(f"{where}: {unknown_name('neuron type', str(name), UNITS)}")
    kind = UNITS[name]
    columns = {field.name: field for field in fields(kind)}
    values = {key: value for key, value in data.items() if key != "type"}
    for key, value in values.items():
        if key not in columns:
            raise UserError(f"{where}: {unknown_name(f'number of a neuron of type {name}', key, columns)}")
        wanted_bool = columns[key].type in (bool, "bool")
        if isinstance(value, bool) != wanted_bool or not (wanted_bool or _is_number(value)):
            raise UserError(f"{where}: {key} is {value!r}, which is no {'true or false' if wanted_bool else 'number'}")
    try:
        return kind(**values)
    except (UserError, TypeError) as error:
        raise UserError(f"{where}: {error}") from None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _default(kind: type[Any], name: str) -> object:
    return next(field.default for field in fields(kind) if field.name == name)
