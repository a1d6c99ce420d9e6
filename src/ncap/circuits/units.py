"""The two neuron models of the paper (appendix "Architecture Units"), batched over individuals.

Both are integrated with backward Euler. Times are in seconds, activities in [0, 1].
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ncap.errors import UserError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class BasicUnit:
    """A leaky neuron that is active in proportion to its input above zero."""

    voltage_time: float = 0.030
    """T_v: the voltage covers 98 % of a step of its input in this time."""

    def __post_init__(self) -> None:
        _require_positive(self, "voltage_time")


@dataclass(frozen=True, kw_only=True)
class OscillatorUnit:
    """A neuron that bursts by itself: a relaxation oscillator with a two-valued voltage and an adaptation variable."""

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

    def thresholds(self, drive: float) -> tuple[float, float]:
        """(a_active, a_quiet): the adaptation at which an active unit stops and a quiet one starts, at drive 0 or 1.

        Derived by the paper from the wish that the phases last T_active and T_quiet, each scaled by its K at drive 1.
        """
        active = 4 * self.active_time / self.adaptation_time * (self.active_scale if drive else 1.0)
        quiet = 4 * self.quiet_time / self.adaptation_time * (self.quiet_scale if drive else 1.0)
        stop = -np.expm1(quiet) / -np.expm1(active + quiet)
        return float(stop), float(stop * np.exp(active))


class BasicGroup:
    """Basic units of a circuit, side by side; step() advances (P, n) of them."""

    def __init__(self, units: list[BasicUnit], dt: float) -> None:
        self.rate = 4 * dt / np.array([unit.voltage_time for unit in units])
        self.divisor = 1.0 + self.rate

    def step(self, voltage: Array, drive: Array) -> tuple[Array, Array]:
        """(voltage, output) after dt; drive (P, n) is bias plus synaptic input."""
        voltage = (voltage + self.rate * _clip(drive, -1.0)) / self.divisor
        return voltage, np.maximum(voltage, 0.0)  # never above 1, because the drive is not


class OscillatorGroup:
    """Oscillator units of a circuit, side by side; step() advances (P, n) of them."""

    def __init__(self, units: list[OscillatorUnit], dt: float) -> None:
        self.rate = 4 * dt / np.array([unit.adaptation_time for unit in units])
        self.divisor = 1.0 + self.rate
        at_rest = np.array([unit.thresholds(0.0) for unit in units]).reshape(-1, 2)
        at_full = np.array([unit.thresholds(1.0) for unit in units]).reshape(-1, 2)
        self.stop, self.start = at_rest.T
        self._base, self._slope = at_rest.T.copy(), (at_full - at_rest).T.copy()  # (2, n): where bursts stop and start
        # a drive clipped at 1 cannot exceed a tonic drive of 1 or more; its lower clip never matters
        self.tonic_drive = np.array(
            [np.inf if unit.clip_drive and unit.tonic_drive >= 1.0 else unit.tonic_drive for unit in units]
        )
        self._can_be_tonic = bool(np.isfinite(self.tonic_drive).any())

    def step(self, adaptation: Array, active: Mask, drive: Array) -> tuple[Array, Mask, Array]:
        """(adaptation, active, output) after dt; drive (P, n) is bias plus synaptic input."""
        adaptation = (adaptation + self.rate * ~active) / self.divisor
        thresholds = self._base + _clip(drive, 0.0)[:, None] * self._slope  # (P, 2, n)
        stay = adaptation > thresholds[:, 0]
        if self._can_be_tonic:
            stay |= drive > self.tonic_drive
        begin = (adaptation >= thresholds[:, 1]) & (drive >= 0.0)
        active = np.where(active, stay, begin)
        return adaptation, active, active * (0.5 + 0.5 * adaptation)


def _clip(values: Array, low: float) -> Array:
    """Values limited to [low, 1]; np.clip would cost more than all the rest on small arrays."""
    return np.minimum(np.maximum(values, low), 1.0)


def _require_positive(unit: BasicUnit | OscillatorUnit, *fields: str) -> None:
    for field in fields:
        value = getattr(unit, field)
        if not (np.isfinite(value) and value > 0):
            raise UserError(f"{type(unit).__name__}: {field} must be a positive number, not {value}")
