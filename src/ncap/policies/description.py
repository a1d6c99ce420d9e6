"""Policies as JSON data, without weights: what policy files and run directories hold of them."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from ncap.circuits.animal import animal
from ncap.circuits.tables import circuit_from, describe_circuit
from ncap.errors import UserError, unknown_name
from ncap.policies.controller import RandomPolicy, ZeroPolicy
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

AnyPolicy = NCAPPolicy | MLPPolicy | ZeroPolicy | RandomPolicy

KINDS: Final[dict[str, Callable[..., AnyPolicy]]] = {
    "ncap": NCAPPolicy,
    "mlp": MLPPolicy,
    "zero": ZeroPolicy,
    "random": RandomPolicy,
}


def describe(policy: AnyPolicy) -> dict[str, Any]:
    """The policy as JSON data."""
    kind = next(name for name, made in KINDS.items() if type(policy) is made)
    data = {field.name: getattr(policy, field.name) for field in fields(policy)}
    if isinstance(policy, NCAPPolicy):
        data["circuit"] = describe_circuit(policy.circuit)
    return {"kind": kind} | data


def policy_from(data: object) -> AnyPolicy:
    """The inverse of `describe`. Descriptions of the first version, with a preset for a table, are converted."""
    if not isinstance(data, dict):
        raise UserError(f"a policy's description is a table of settings, not {type(data).__name__}")
    values = dict(data)
    kind = values.pop("kind", None)
    if kind not in KINDS:
        raise unknown_name("kind of policy", str(kind), KINDS)
    if kind == "ncap" and "preset" in values:
        values["circuit"] = animal(values.pop("preset"))
    elif kind == "ncap" and "circuit" in values:
        values["circuit"] = circuit_from(values["circuit"])
    make: Any = KINDS[kind]
    known = {field.name for field in fields(make)}
    if unknown := values.keys() - known:
        raise UserError(f"a policy of kind {kind!r} has no setting {', '.join(sorted(unknown))}")
    built: AnyPolicy = make(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})
    return built
