"""Neuron types, batched over individuals: the two of the paper's appendix "Architecture Units", three without memory.

A unit is a frozen dataclass of numbers. Its `group` makes a whole array of such units steppable: a group has `start`,
which gives the units' state, and `step`, which moves them by the circuit's step. A state is a tuple of arrays with the
individuals along the first axis, so that everybody can be picked, stacked and stored without knowing the type. A new
type is one class like these, put into UNITS. Times are in seconds; basic units and oscillators use backward Euler.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
LONGEST_PHASES: Final = 100
"""Phases of an oscillator over its adaptation time: beyond, its thresholds cannot be told apart."""
UnitState = tuple[NDArray[Any], ...]
"""What units of a group remember, (P, units) each."""


class Group(Protocol):
    """Units of one type, side by side."""

    def start(self, individuals: int, rng: np.random.Generator | None) -> UnitState:
        """The state at the start: a random one, or that at rest without a generator."""
        ...

    def step(self, state: UnitState, drive: Array) -> tuple[UnitState, Array]:
        """(state, output) after dt; drive (P, units) is bias plus synaptic input. What is passed in is not changed."""
        ...


class Unit(Protocol):
    """What every neuron type offers."""

    instantaneous: ClassVar[bool]
    """Whether it has no memory: then it responds within the control step, and to its input of the same moment."""

    @classmethod
    def group(cls, units: Sequence[Self], dt: float) -> Group:
        """These units as an array that steps by dt."""
        ...


@dataclass(frozen=True, kw_only=True)
class BasicUnit:
    """A leaky neuron that is active in proportion to its input above zero."""

    instantaneous: ClassVar[bool] = False
    voltage_time: float = 0.030
    """T_v: the voltage covers 98 % of a step of its input in this time."""

    def __post_init__(self) -> None:
        _require_positive(self, "voltage_time")

    @classmethod
    def group(cls, units: "Sequence[BasicUnit]", dt: float) -> "BasicGroup":
        """These units as an array that steps by dt."""
        return BasicGroup(units, dt)


@dataclass(frozen=True, kw_only=True)
class OscillatorUnit:
    """A neuron that bursts by itself: a relaxation oscillator with a two-valued voltage and an adaptation variable."""

    instantaneous: ClassVar[bool] = False
    adaptation_time: float = 1.4
    """T_a: time in which adaptation covers 98 % of its way to 0 (active) or 1 (quiet)."""
    active_time: float = 0.2
    """T_active: length of the active phase without input."""
    quiet_time: float = 1.2
    """T_quiet: length of the quiet phase without input."""
    active_scale: float = 0.5
    """K_active: factor on the active phase at full input."""
    quiet_scale: float = 0.05
    """K_quiet: factor on the quiet phase at full input."""
    tonic_drive: float = 0.9
    """V_tonic: above this drive an active unit stays active."""
    clip_drive: bool = True
    """Whether the drive is clipped to [-1, 1], as in the paper. The released code does not."""

    def __post_init__(self) -> None:
        _require_positive(self, "adaptation_time", "active_time", "quiet_time", "active_scale", "quiet_scale")
        scale = max(1.0, self.active_scale, self.quiet_scale)
        if (self.active_time + self.quiet_time) * scale > LONGEST_PHASES * self.adaptation_time:
            raise UserError(
                f"OscillatorUnit: its phases may last up to {LONGEST_PHASES} times its adaptation_time, "
                f"not {self.active_time} and {self.quiet_time} s, scaled by up to {scale}"
            )

    @classmethod
    def group(cls, units: "Sequence[OscillatorUnit]", dt: float) -> "OscillatorGroup":
        """These units as an array that steps by dt."""
        return OscillatorGroup(units, dt)

    def thresholds(self, drive: float) -> tuple[float, float]:
        """(a_active, a_quiet): the adaptation at which an active unit stops and a quiet one starts, at drive 0 or 1.

        Derived by the paper from the wish that the phases last T_active and T_quiet, each scaled by its K at drive 1.
        """
        active = 4 * self.active_time / self.adaptation_time * (self.active_scale if drive else 1.0)
        quiet = 4 * self.quiet_time / self.adaptation_time * (self.quiet_scale if drive else 1.0)
        stop = -np.expm1(quiet) / -np.expm1(active + quiet)
        return float(stop), float(stop * np.exp(active))


@dataclass(frozen=True, kw_only=True)
class SumUnit:
    """The sum of its inputs, of either sign: what the afferents of a limb add up to."""

    instantaneous: ClassVar[bool] = True
    limit: float | None = None
    """Bound b that the sum x approaches but never passes, as b tanh(x / b); None: there is none."""

    def __post_init__(self) -> None:
        if self.limit is not None:
            _require_positive(self, "limit")

    @classmethod
    def group(cls, units: "Sequence[SumUnit]", dt: float) -> "SumGroup":
        """These units as an array."""
        return SumGroup(units)


@dataclass(frozen=True, kw_only=True)
class RectifierUnit:
    """The part of its summed input above 0, up to 1: with a bias of -1, a gate that two inputs open together."""

    instantaneous: ClassVar[bool] = True

    @classmethod
    def group(cls, units: "Sequence[RectifierUnit]", dt: float) -> "RectifierGroup":
        """These units as an array."""
        return RectifierGroup()


@dataclass(frozen=True, kw_only=True)
class TanhUnit:
    """The hyperbolic tangent of its summed input, in [-1, 1]: a motor neuron that sets a joint's target."""

    instantaneous: ClassVar[bool] = True

    @classmethod
    def group(cls, units: "Sequence[TanhUnit]", dt: float) -> "TanhGroup":
        """These units as an array."""
        return TanhGroup()


class _Tiled:
    """Rows of constants, repeated for every individual: NumPy is twice as quick where shapes agree."""

    def __init__(self, **rows: Array) -> None:
        self.rows = rows
        self._tiled: tuple[int, tuple[Array, ...]] = (-1, ())

    def for_individuals(self, individuals: int) -> tuple[Array, ...]:
        """(…, P, n) each, in the order in which they were given. They must not be changed."""
        found, tiled = self._tiled
        if found != individuals:
            tiled = tuple(np.tile(row, (individuals, 1)) for row in self.rows.values())
            self._tiled = individuals, tiled
        return tiled


class BasicGroup:
    """Basic units of a circuit, side by side. State: (voltage (P, n) in [-1, 1],)."""

    def __init__(self, units: Sequence[BasicUnit], dt: float) -> None:
        self.rate = 4 * dt / np.array([unit.voltage_time for unit in units])
        ones = np.ones(len(units))
        self._constants = _Tiled(rate=self.rate, divisor=1.0 + self.rate, low=-ones, zero=0.0 * ones, one=ones)

    def start(self, individuals: int, rng: np.random.Generator | None) -> UnitState:
        """Voltage 0."""
        return (np.zeros((individuals, len(self.rate))),)

    def step(self, state: UnitState, drive: Array) -> tuple[UnitState, Array]:
        """((voltage,), output) after dt; drive (P, n) is bias plus synaptic input."""
        rate, divisor, low, zero, one = self._constants.for_individuals(len(drive))
        voltage: Array = np.maximum(drive, low)
        np.minimum(voltage, one, out=voltage)
        voltage *= rate
        voltage += state[0]
        voltage /= divisor
        return (voltage,), np.maximum(voltage, zero)  # never above 1, because the drive is not


class OscillatorGroup:
    """Oscillator units of a circuit, side by side. State: (adaptation (P, n) in [0, 1], active (P, n))."""

    def __init__(self, units: Sequence[OscillatorUnit], dt: float) -> None:
        self.rate = 4 * dt / np.array([unit.adaptation_time for unit in units])
        at_rest = np.array([unit.thresholds(0.0) for unit in units]).reshape(-1, 2)
        at_full = np.array([unit.thresholds(1.0) for unit in units]).reshape(-1, 2)
        self.base, self.slope = at_rest.T.copy(), (at_full - at_rest).T.copy()  # (2, n): where bursts stop and start
        # a drive clipped at 1 cannot exceed a tonic drive of 1 or more; its lower clip never matters
        self.tonic_drive = np.array(
            [np.inf if unit.clip_drive and unit.tonic_drive >= 1.0 else unit.tonic_drive for unit in units]
        )
        self._can_be_tonic = bool(np.isfinite(self.tonic_drive).any())
        ones = np.ones(len(units))
        self._constants = _Tiled(rate=self.rate, divisor=1.0 + self.rate, zero=0.0 * ones, half=0.5 * ones, one=ones)
        self._thresholds = _Tiled(base=self.base[:, None], slope=self.slope[:, None])

    def start(self, individuals: int, rng: np.random.Generator | None) -> UnitState:
        """Quiet, with adaptation uniform between the two resting thresholds; at rest, just gone quiet."""
        stop, start = self.base
        shape = (individuals, len(stop))
        adaptation = np.broadcast_to(stop, shape).copy() if rng is None else rng.uniform(stop, start, shape)
        return adaptation, np.zeros(shape, bool)

    def step(self, state: UnitState, drive: Array) -> tuple[UnitState, Array]:
        """((adaptation, active), output) after dt; drive (P, n) is bias plus synaptic input."""
        before, active = state
        rate, divisor, zero, half, one = self._constants.for_individuals(len(drive))
        base, slope = self._thresholds.for_individuals(len(drive))
        adaptation: Array = rate.copy()
        np.copyto(adaptation, zero, where=active)
        adaptation += before
        adaptation /= divisor
        excited: Array = np.maximum(drive, zero)
        np.minimum(excited, one, out=excited)
        thresholds: Array = excited * slope
        thresholds += base
        stop, start = thresholds
        stay: Mask = adaptation > stop
        if self._can_be_tonic:
            stay |= drive > self.tonic_drive
        begin: Mask = adaptation >= start
        begin &= drive >= zero
        np.copyto(begin, stay, where=active)
        output: Array = adaptation * half
        output += half
        np.copyto(output, zero, where=~begin)
        return (adaptation, begin), output


class SumGroup:
    """Sums, side by side. No state."""

    def __init__(self, units: Sequence[SumUnit]) -> None:
        limits = np.array([np.inf if unit.limit is None else unit.limit for unit in units])
        self.bounded = np.isfinite(limits)
        self.limit = np.where(self.bounded, limits, 1.0)

    def start(self, individuals: int, rng: np.random.Generator | None) -> UnitState:
        """Nothing is remembered."""
        return ()

    def step(self, state: UnitState, drive: Array) -> tuple[UnitState, Array]:
        """((), the drive (…, n) within its limits)."""
        if not self.bounded.any():
            return (), drive
        limited: Array = self.limit * np.tanh(drive / self.limit)
        return (), limited if self.bounded.all() else np.where(self.bounded, limited, drive)


class RectifierGroup:
    """Rectifiers, side by side. No state."""

    def start(self, individuals: int, rng: np.random.Generator | None) -> UnitState:
        """Nothing is remembered."""
        return ()

    def step(self, state: UnitState, drive: Array) -> tuple[UnitState, Array]:
        """((), the drive within [0, 1])."""
        return (), _clip(drive, _ZERO)


class TanhGroup:
    """Hyperbolic tangents, side by side. No state."""

    def start(self, individuals: int, rng: np.random.Generator | None) -> UnitState:
        """Nothing is remembered."""
        return ()

    def step(self, state: UnitState, drive: Array) -> tuple[UnitState, Array]:
        """((), tanh of the drive)."""
        return (), np.tanh(drive)


UNITS: Final[dict[str, type[Any]]] = {
    "basic": BasicUnit,
    "oscillator": OscillatorUnit,
    "rectifier": RectifierUnit,
    "sum": SumUnit,
    "tanh": TanhUnit,
}
"""Neuron types by the names that circuit files use."""


def unit_name(unit: Unit) -> str:
    """The name of a unit's type in circuit files; an error for a type that UNITS does not have."""
    for name, kind in UNITS.items():
        if type(unit) is kind:
            return name
    raise UserError(f"neuron type {type(unit).__name__} is not in ncap.circuits.units.UNITS: put it there by a name")


_ZERO, _ONE = np.array([[[0.0]], [[1.0]]])
"""Arrays: on small ones, NumPy takes as long to convert a number as to compute."""


def _clip(values: Array, low: Array) -> Array:
    """Values limited to [low, 1], a new array; np.clip would cost more than all the rest on small arrays."""
    limited: Array = np.maximum(values, low)
    np.minimum(limited, _ONE, out=limited)
    return limited


def _require_positive(unit: BasicUnit | OscillatorUnit | SumUnit, *fields: str) -> None:
    for field in fields:
        value = getattr(unit, field)
        if not (np.isfinite(value) and value > 0):
            raise UserError(f"{type(unit).__name__}: {field} must be a positive number, not {value}")
