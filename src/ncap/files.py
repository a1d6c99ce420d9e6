"""Files that are complete or not there at all, and decoders that trust nothing in them.

We write JSON, and safetensors with a JSON description and a checksum inside. Reading a file never runs code from it,
opens regular files only, and checks sizes before anything is allocated. What is wrong is said in one sentence with the
file, the field, its value, and what is allowed.
"""

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from ncap.errors import UserError, unknown_name

Array = NDArray[np.float64]
T = TypeVar("T")

MAX_BYTES: Final = 64 * 2**20
"""No file of ours comes near this; a larger one is refused before it is read."""
MAX_HEADER: Final = 8 * 2**20
"""Largest description inside a file of ours, bytes."""
DTYPES: Final = ("F64", "F32", "I64", "I32", "U8", "BOOL")
"""Kinds of numbers that our files hold, by their safetensors names."""
LONGEST_SHOWN: Final = 60
"""Characters of a wrong value that an error message shows."""


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file's content at once: a reader, or a crash, sees the old or the new, never a part."""
    if not path.name:  # "." and "/"
        raise UserError(f"{path} is a folder, not the name of a file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):  # a name that is too long cannot be removed either
            temporary.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror}; what was there before is unchanged") from None


def remove_leftovers(folder: Path) -> None:
    """Remove what writes that were killed have left in a folder that nobody else writes in."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Give a damaged file another name, so that its place is free and nothing is lost. Returns the new name."""
    new = next(other for n in range(1, 10_000) if not (other := path.with_name(f"{path.name}.damaged-{n}")).exists())
    path.rename(new)
    return new


def check_regular(path: Path) -> int:
    """Size of a regular file, bytes; anything else, or a file that is too large, is refused by a sentence."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{str(path)[:LONGEST_SHOWN]} cannot be read ({_reason(error)})") from None
    if stat.S_ISDIR(found.st_mode):
        raise UserError(f"{path} is a folder, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{path} is not a regular file")
    if found.st_size > MAX_BYTES:
        raise UserError(f"{path} has {found.st_size / 2**20:.0f} MB, more than any file of ours: not read")
    return found.st_size


def read_text(path: Path) -> str:
    """The text of a file."""
    check_regular(path)
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({_reason(error)})") from None


def read_json(path: Path) -> Any:
    """The JSON in a file."""
    return parse_json(read_text(path), str(path))


def parse_json(text: str, what: str) -> Any:
    """The value of a JSON text; `what` names it in an error."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{what} is not JSON ({_reason(error)})") from None


def decode(kind: type[T], data: object, what: str, given: Mapping[str, Any] | None = None) -> T:
    """A dataclass from JSON data, every field of the type that the class declares, numbers finite.

    what: names the data in an error. given: fields that the caller has decoded, which are taken as they are.
    """
    if not isinstance(data, dict):
        raise UserError(f"{what} is {shown(data)}, not a table with names and values")
    columns = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    for name in data:
        if name not in columns:
            raise UserError(f"{what}: {unknown_name('entry', str(name)[:LONGEST_SHOWN], columns)}")
    values = dict(given or {})
    for name, column in columns.items():
        if name in values:
            continue
        if name in data:
            values[name] = decode_value(hints[name], data[name], f"{what}: {name}")
        elif column.default is MISSING and column.default_factory is MISSING:
            raise UserError(f"{what}: {name} is missing")
    try:
        return kind(**values)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None


def decode_value(hint: Any, value: object, what: str) -> Any:
    """A value of a type, from JSON data; numbers are finite."""
    if get_origin(hint) is Literal and value not in get_args(hint):
        raise UserError(f"{what} is {shown(value)}; valid: {', '.join(map(str, get_args(hint)))}")
    try:
        found = msgspec.convert(value, hint)
        finite = _finite(found)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UserError(f"{what} is {shown(value)}: {_in_plain_words(_reason(error))}") from None
    if not finite:
        raise UserError(f"{what} is {shown(value)}, which is not finite")
    return found


_WORDS: Final = {
    "float": "a number", "int": "a whole number", "str": "a text", "bool": "true or false", "array": "a list",
    "object": "a table", "null": "nothing",
}  # fmt: skip


def _in_plain_words(complaint: str) -> str:
    """What msgspec says, "Expected `int | null`, got `str` - at `$[0]`", as "a whole number or nothing is needed"."""
    match = re.match(r"Expected `([^`]+)`( of length [^,]+)?", complaint)
    if match is None:
        return complaint.replace("`", "")
    kinds = " or ".join(_WORDS.get(kind.strip(), kind.strip()) for kind in match[1].split("|"))
    return f"{kinds}{match[2] or ''} is needed"


def shown(value: object) -> str:
    """A value as an error message shows it: shortened."""
    text = repr(value) if not isinstance(value, dict | list) else f"a {'table' if isinstance(value, dict) else 'list'}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def _finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, tuple | list):
        return all(_finite(part) for part in value)
    return not isinstance(value, dict) or all(_finite(part) for part in value.values())


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return getattr(error, "strerror", None) or str(error)


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], description: dict[str, Any]) -> None:
    """Write arrays and a description so that the file is complete or not there at all."""
    text = json.dumps(description, sort_keys=True)
    metadata = {"ncap": text, "checksum": _checksum(tensors, text)}
    data = safetensors.numpy.save({name: np.asarray(t, order="C") for name, t in tensors.items()}, metadata)
    write_whole(path, data)


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """(arrays, description) of a file that `write_tensors` wrote. Anything else is refused with the reason."""
    size = check_regular(path)
    incomplete = f"{path} is not a complete safetensors file"
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(MAX_HEADER, size - 8):
                raise UserError(f"{incomplete} (its header is cut short or too long)")
            header = parse_json(file.read(length).decode("utf-8", "replace"), f"{path}: its header")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({_reason(error)})") from None
    _check_header(header, path, incomplete)
    try:
        with safetensors.safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, safetensors.SafetensorError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{incomplete} ({_reason(error)})") from None
    if "ncap" not in metadata:
        raise UserError(f"{path} is a safetensors file, but not one of ncap's")
    if metadata.get("checksum") != _checksum(tensors, metadata["ncap"]):
        raise UserError(f"{path} was altered or damaged: its checksum does not fit its content")
    description = parse_json(metadata["ncap"], f"{path}: its description")
    if not isinstance(description, dict):
        raise UserError(f"{path}: its description is {shown(description)}, not a table with names and values")
    return tensors, description


def _check_header(header: object, path: Path, incomplete: str) -> None:
    """Refuse kinds of numbers that NumPy does not have, and shapes that do not fit the file, before it is read."""
    if not isinstance(header, dict):
        raise UserError(f"{incomplete} (its header is no table)")
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        kind = entry.get("dtype") if isinstance(entry, dict) else None
        if kind not in DTYPES:
            raise UserError(
                f"{path}: array {shown(name)} has numbers of kind {shown(kind)}; valid: {', '.join(DTYPES)}"
            )


def _checksum(tensors: Mapping[str, NDArray[Any]], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()
