"""The wave that runs along a swimmer: how fast it is, how long, and how strong."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Undulation:
    """Numbers of the component of a swimmer's bends that moves most, at its frequency."""

    frequency_hz: float
    amplitude_deg: float
    """Largest bend of a joint, mean over the joints, degrees."""
    wavelength: float | None
    """Length of a wave over that of the straight body; positive where waves run to the tail, as they must to swim
    forward. None where the joints bend together."""


STILL: Final = 1.0
"""Amplitude below which there is no undulation, degrees."""


def measure_undulation(bend: Array, control_dt: float) -> Undulation | None:
    """The undulation of bends (T, joint) in rad; None of a body that keeps still."""
    steps, joints = bend.shape
    window = np.hanning(steps)[:, None]
    spectrum = np.fft.rfft((bend - bend.mean(axis=0)) * window, axis=0)
    power = (np.abs(spectrum) ** 2).sum(axis=1)
    peak = int(np.argmax(power[1:])) + 1
    at_peak = spectrum[peak]
    low, top, high = np.log(power[peak - 1 : peak + 2] + 1e-300) if peak + 1 < len(power) else np.zeros(3)
    beside = 0.5 * (low - high) / (low - 2 * top + high) if top > max(low, high) else 0.0  # top of a parabola
    amplitude = float(np.rad2deg(2 * np.abs(at_peak).mean() / window.sum()))
    if amplitude < STILL:
        return None
    # the phase by which a joint follows the one before it, a joint counting as much as it moves
    lag = -np.angle((at_peak[1:] * np.conj(at_peak[:-1])).sum())
    return Undulation(
        frequency_hz=float((peak + beside) / (steps * control_dt)),
        amplitude_deg=amplitude,
        wavelength=None if abs(lag) < 1e-3 else float(2 * np.pi / lag / (joints + 1)),
    )


def summarise_undulations(found: list[Undulation]) -> Undulation:
    """Means over episodes; the wavelength that of the mean lag over those that have one."""
    waves = [1 / one.wavelength for one in found if one.wavelength is not None]
    return Undulation(
        frequency_hz=float(np.mean([one.frequency_hz for one in found])),
        amplitude_deg=float(np.mean([one.amplitude_deg for one in found])),
        wavelength=float(1 / np.mean(waves)) if waves and abs(np.mean(waves)) > 1e-6 else None,
    )
