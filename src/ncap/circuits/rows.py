"""The rows of a circuit table: neurons, synapses and inputs, and the numbers that they stand for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from ncap.circuits.units import Unit
from ncap.params import Number
from ncap.plan import BODY, SITE

SAME: Final = "same"
"""The route that stays at its site."""


@dataclass(frozen=True, kw_only=True)
class Neuron:
    """A population with one neuron at each of its sites."""

    name: str
    unit: Unit
    bias: float = 0.0
    sites: tuple[str, ...] | None = None
    """Where it occurs; None: everywhere."""
    trainable: bool = False
    """Whether its bias is trained."""
    tied_by: str = BODY
    """Which part of the body shares one bias: all of it ("body"), each "girdle", each "side", or each "site" alone."""
    role: str = ""
    """What it promotes, for people."""

    def __str__(self) -> str:
        return f"neuron {self.name}"


@dataclass(frozen=True, kw_only=True)
class Input:
    """An external signal: one for each site, one for each part of a division of the body, or one for the body."""

    name: str
    per: str = SITE
    kind: Literal["sense", "command"] = "sense"
    """A sense comes from the body, a command from the brainstem."""
    rest: float | None = None
    """Value of a command that nobody names; None: it follows the brainstem command c."""

    def __str__(self) -> str:
        return f"input {self.name}"


@dataclass(frozen=True, kw_only=True)
class Synapse:
    """A projection from a population or an input to a population, along a route between sites."""

    source: str
    target: str
    route: str = SAME
    weight: float
    sign: Literal[1, -1, 0]
    """+1 excitatory, -1 inhibitory, 0 free to become either."""
    trainable: bool = False
    tied_by: str = BODY
    """Which part of the body, of the targets, shares one weight; see Neuron."""
    shared: str = ""
    """Name of the weight, if other rows have the same one, as those of the two sides of a worm; empty: its own."""

    def __str__(self) -> str:
        return f"synapse {self.key}"

    @property
    def key(self) -> str:
        """What identifies the row: "source>target route"."""
        return f"{self.source}>{self.target} {self.route}"


class Entry(NamedTuple):
    """One number of the table: the weight of a synapse row, or the bias of a neuron row, in one part of the body."""

    row: Neuron | Synapse
    """The row that has it, or the first of those that share it."""
    part: str
    """Part of the body in which it holds."""
    number: Number
    others: tuple[Synapse, ...] = ()
    """The other rows that share it."""


def merged(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries with one for each weight that rows share, in the place of the first."""
    found: dict[tuple[object, str], Entry] = {}
    for entry in entries:
        row = entry.row
        if not (isinstance(row, Synapse) and row.shared):
            found[row, entry.part] = entry
        elif (first := found.get((row.shared, entry.part))) is None:
            found[row.shared, entry.part] = entry
        else:
            found[row.shared, entry.part] = first._replace(others=(*first.others, row))
    return tuple(found.values())


def number_of(row: Neuron | Synapse, block: str) -> Number:
    """The number of a row, in a block of the parameter space."""
    if isinstance(row, Neuron):
        return Number(block=f"{block}.bias", label=(row.name,), initial=row.bias, spread=False)
    source = row.source if row.route == SAME else f"{row.source} {row.route}"
    return Number(
        block=block,
        label=(row.shared,) if row.shared else (row.target, source),
        initial=row.weight,
        low=0.0 if row.sign > 0 else -np.inf,
        high=0.0 if row.sign < 0 else np.inf,
    )
