"""Policies in files: safetensors with a description and a checksum inside. Reading one never runs code from it."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from ncap.errors import UserError
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

Array = NDArray[np.float64]
Policy = NCAPPolicy | MLPPolicy

KINDS: Final[dict[str, type[NCAPPolicy] | type[MLPPolicy]]] = {"ncap": NCAPPolicy, "mlp": MLPPolicy}
MAX_BYTES: Final = 64 * 2**20
"""No file of ours comes near this; a larger one is refused before it is read."""


def describe(policy: Policy) -> dict[str, Any]:
    """The policy as JSON data, without weights."""
    kind = next(name for name, cls in KINDS.items() if isinstance(policy, cls))
    return {"kind": kind} | asdict(policy)


def from_description(data: dict[str, Any]) -> Policy:
    """The inverse of `describe`."""
    data = dict(data)
    kind = data.pop("kind", None)
    if kind not in KINDS:
        raise UserError(f"unknown kind of policy {kind!r}; valid: {', '.join(KINDS)}")
    known = {field.name for field in fields(KINDS[kind])}
    if unknown := data.keys() - known:
        raise UserError(f"a policy of kind {kind!r} has no setting {', '.join(sorted(unknown))}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    build: Any = KINDS[kind]
    policy: Policy = build(**values)
    return policy


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], description: dict[str, Any]) -> None:
    """Write arrays and a description so that the file is complete or not there at all."""
    text = json.dumps(description, sort_keys=True)
    metadata = {"ncap": text, "checksum": _checksum(tensors, text)}
    data = safetensors.numpy.save({name: np.asarray(t, order="C") for name, t in tensors.items()}, metadata)
    write_whole(path, data)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file's content at once: a reader, or a crash, sees the old or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror}; what was there before is unchanged") from None


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """(arrays, description) of a file that `write_tensors` wrote. Anything else is refused with the reason."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UserError(f"{path} has {size / 2**20:.0f} MB, more than any file of ours: not read")
        with safetensors.safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a file") from None
    except (OSError, safetensors.SafetensorError, ValueError) as error:
        raise UserError(f"{path} is not a complete safetensors file ({error})") from None
    if "ncap" not in metadata:
        raise UserError(f"{path} is a safetensors file, but not one of ncap's")
    if metadata.get("checksum") != _checksum(tensors, metadata["ncap"]):
        raise UserError(f"{path} was altered or damaged: its checksum does not fit its content")
    return tensors, json.loads(metadata["ncap"])


def save_policy(path: Path, policy: Policy, theta: Array, about: dict[str, Any]) -> None:
    """Write a policy with its weights (D,), and what else is known about it."""
    write_tensors(path, {"theta": theta}, {"policy": describe(policy), "about": about})


def load_policy(path: Path) -> tuple[Policy, Array, dict[str, Any]]:
    """(policy, weights (D,), about) from a policy file."""
    tensors, description = read_tensors(path)
    if "policy" not in description or "theta" not in tensors:
        raise UserError(f"{path} holds no policy")
    try:
        policy, theta = from_description(description["policy"]), tensors["theta"]
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if theta.shape != (policy.space.size,):
        raise UserError(f"{path}: {policy.space.size} weights are needed, but the file has shape {theta.shape}")
    if not np.isfinite(theta).all():
        raise UserError(f"{path}: some weights are not finite")
    return policy, theta.astype(np.float64), description["about"]


def shipped_policies() -> dict[str, Path]:
    """Trained policies that come with the package, by name."""
    folder = Path(__file__).with_name("shipped")
    return {path.stem: path for path in sorted(folder.glob("*.safetensors"))}


def find_policy(name: str, *others: str) -> tuple[Policy, Array, dict[str, Any]]:
    """(policy, weights (D,), about) of a shipped policy, a run directory (its best policy) or a policy file.

    others: valid names that the caller has dealt with, for the message if there is no such policy.
    """
    shipped = shipped_policies()
    path = shipped.get(name, Path(name))
    if not path.exists():
        raise UserError(f"unknown policy {name!r}; valid: {', '.join((*others, *shipped))}, a run, a file")
    return load_policy(path / "best.safetensors" if path.is_dir() else path)


def _checksum(tensors: Mapping[str, NDArray[Any]], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()
