"""Circuit tables as files: JSON with one row per line, to be read and edited by people. Anything wrong is named."""

import json
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, Final

from ncap.circuits.spec import CircuitSpec, Input, Neuron, Synapse
from ncap.circuits.units import UNITS, unit_name
from ncap.errors import UserError, unknown_name
from ncap.files import LONGEST_SHOWN, decode, decode_value, read_json, shown, write_whole
from ncap.plan import find_plan

FORMAT: Final = 1
"""Version of the file's form."""
LONGEST_TEXT: Final = 200
"""Characters of a name or a role."""
MOST_ROWS: Final = 10_000
"""Rows of one kind in a table; more are refused before anything is allocated."""
_KINDS: Final[dict[str, type[Any]]] = {"neurons": Neuron, "synapses": Synapse, "inputs": Input}


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
        raise UserError(f"ncap_circuit is {shown(data['ncap_circuit'])}, but this version reads {FORMAT}")
    known = {"ncap_circuit", "plan", "dt", *_KINDS}
    for name in data.keys() - known:
        raise unknown_name("entry of a circuit table", str(name), sorted(known))
    for name in sorted(known - data.keys()):
        raise UserError(f"the table has no entry {name!r}")
    rows = {}
    for group, kind in _KINDS.items():
        if not isinstance(data[group], list):
            raise UserError(f"{group} is a list of rows, not {type(data[group]).__name__}")
        if len(data[group]) > MOST_ROWS:
            raise UserError(f"{group} has {len(data[group]):,} rows; up to {MOST_ROWS:,} are read")
        rows[group] = tuple(_row(kind, group, i, row) for i, row in enumerate(data[group]))
    plan, dt = decode_value(str, data["plan"], "plan"), decode_value(float, data["dt"], "dt")
    return CircuitSpec(rows["neurons"], rows["synapses"], rows["inputs"], plan=find_plan(plan), dt=dt)


def save_circuit(spec: CircuitSpec, path: str | Path) -> None:
    """Write the table so that it is complete or not there at all."""
    path = Path(path)
    data = describe_circuit(spec)
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in data.items() if name not in _KINDS]
    for group in _KINDS:
        rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in data[group])
        lines.append(f" {json.dumps(group)}: [\n{rows}\n ]")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def load_circuit(path: str | Path) -> CircuitSpec:
    """Read the table of a file."""
    data = read_json(Path(path))
    try:
        return circuit_from(data)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _row(kind: type[Any], group: str, position: int, data: object) -> Any:
    where = f"row {position + 1} of {group}"
    if not isinstance(data, dict):
        raise UserError(f"{where} is {shown(data)}, not a row")
    named = data.get("name") or f"{data.get('source')}>{data.get('target')}"
    where = f"{where} ({str(named)[:LONGEST_SHOWN]})"
    for column, value in data.items():
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise UserError(f"{where}: {shown(column)} has {len(value):,} characters; up to {LONGEST_TEXT} are read")
    given = {"unit": _unit(data["unit"], where)} if kind is Neuron and "unit" in data else {}
    return decode(kind, data, where, given)


def _unit(data: object, where: str) -> Any:
    if not isinstance(data, dict):
        raise UserError(f"{where}: unit is {shown(data)}, not a table with a type")
    name = data.get("type")
    if not isinstance(name, str) or name not in UNITS:
        raise UserError(f"{where}: {unknown_name('neuron type', str(name)[:LONGEST_SHOWN], UNITS)}")
    return decode(UNITS[name], {key: value for key, value in data.items() if key != "type"}, f"{where}: unit")


def _default(kind: type[Any], name: str) -> object:
    return next(field.default for field in fields(kind) if field.name == name)
