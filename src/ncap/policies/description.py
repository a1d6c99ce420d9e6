"""Policies as JSON data, without weights: what policy files and run directories hold of them."""

from dataclasses import fields
from typing import Any, Final

from ncap.circuits.animal import animal
from ncap.circuits.tables import circuit_from, describe_circuit
from ncap.errors import UserError, unknown_name
from ncap.files import LONGEST_SHOWN, decode, decode_value, shown
from ncap.policies.controller import RandomPolicy, ZeroPolicy
from ncap.policies.mlp import MLPPolicy
from ncap.policies.ncap import NCAPPolicy

AnyPolicy = NCAPPolicy | MLPPolicy | ZeroPolicy | RandomPolicy

KINDS: Final[dict[str, type[Any]]] = {
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


def policy_from(data: object, what: str = "the policy") -> AnyPolicy:
    """The inverse of `describe`. Descriptions of the first version, with a preset for a table, are converted.

    Those that name paces, commands with a set of weights each, are refused. what: names the description in an error.
    """
    if not isinstance(data, dict):
        raise UserError(f"{what} is {shown(data)}, not a table with names and values")
    values = dict(data)
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise UserError(f"{what}: {unknown_name('kind of policy', str(kind)[:LONGEST_SHOWN], KINDS)}")
    if kind == "ncap" and (paces := values.pop("paces", [])) != []:
        raise UserError(
            f"{what}: paces are {shown(str(paces))[1:-1]}, but a circuit has one set of weights for all commands"
        )
    given = {}
    if kind == "ncap" and "preset" in values:
        preset = decode_value(str, values.pop("preset"), f"{what}: preset")
        given["circuit"] = animal("paper" if preset == "default" else preset)  # the default of the first version
    elif kind == "ncap" and "circuit" in values:
        given["circuit"] = circuit_from(values["circuit"])
    built: AnyPolicy = decode(KINDS[kind], values, what, given)
    return built
