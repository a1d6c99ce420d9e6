"""Gaits from footfalls: phases between legs with circular statistics, duty factor, frequency, and the gait's name.

Works on arrays only: stance may come from foot contacts or from the rhythm generator's extensors. Phases are in [0, 1),
legs in the order FL, FR, HL, HR.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Pairs (reference leg, other leg): the phase is that of the other leg's footfall in the reference leg's stride.
LEFT_RIGHT: Final = ((0, 1), (2, 3))  # fore, hind
FORE_HIND: Final = ((2, 0), (3, 1))  # left, right: fore after hind
DIAGONAL: Final = ((2, 1), (3, 0))  # fore after the hind leg of the other side

MIN_CONCENTRATION: Final = 0.8
"""Below this the legs keep no phase, and the gait is "none"."""


@dataclass(frozen=True, kw_only=True)
class Gait:
    """What was measured of one individual."""

    label: str
    frequency_hz: float
    left_right_phase: tuple[float, float]
    """Fore pair, hind pair."""
    fore_hind_phase: tuple[float, float]
    """Left pair, right pair."""
    diagonal_phase: tuple[float, float]
    duty: float
    """Mean share of a stride that a foot is on the ground."""
    concentration: float
    """R of the least regular pair: 1 when its phase is the same in every stride."""


def stance_onsets(stance: Array, dt: float, threshold: float = 0.5) -> Array:
    """Times (s) at which a signal (T,) rises through the threshold, interpolated between samples."""
    above = stance > threshold
    before = np.flatnonzero(~above[:-1] & above[1:])
    low, high = stance[before], stance[before + 1]
    return (before + (threshold - low) / (high - low)) * dt


def debounced(contact: NDArray[np.bool_], shortest: int) -> NDArray[np.bool_]:
    """Contacts (T,) of a foot that bounces: gaps and then contacts of at most `shortest` samples are ignored.

    Stretches at either end are left as they are, because they may be longer than what was recorded.
    """
    cleaned = contact.copy()
    for value in (False, True):
        edges = np.flatnonzero(np.diff(cleaned)) + 1
        for first, end in pairwise(edges):
            if cleaned[first] == value and end - first <= shortest:
                cleaned[first:end] = not value
    return cleaned


def stride_samples(contact: NDArray[np.bool_]) -> int:
    """Samples in a stride of contacts (T, leg): the lag at which all feet repeat themselves best; 0 if none does."""
    longest = len(contact) // 3
    if longest < 4:
        return 0
    feet = contact - contact.mean(axis=0)
    repeats = np.array([(feet[: len(feet) - lag] * feet[lag:]).sum() for lag in range(longest)])
    peaks = [lag for lag in range(2, longest - 1) if repeats[lag - 1] < repeats[lag] >= repeats[lag + 1]]
    return max(peaks, key=lambda lag: repeats[lag], default=0)


def circular_mean(phases: Array) -> tuple[float, float]:
    """(mean phase in [0, 1), concentration R in [0, 1]) of phases (n,); without any, R is 0."""
    if not len(phases):
        return 0.0, 0.0
    vector = np.exp(2j * np.pi * phases).mean()
    mean = float(np.angle(vector) / (2 * np.pi)) % 1.0
    return (0.0 if mean == 1.0 else mean), float(abs(vector))  # a tiny negative angle rounds to 1.0, which is 0


def circular_distance(phase: Array | float, other: Array | float) -> Array:
    """Distance around the circle in [0, 0.5]."""
    return np.abs((np.asarray(phase) - other + 0.5) % 1.0 - 0.5)


def stride_phases(reference: Array, onsets: Array) -> Array:
    """Phases of the onsets (s) that fall into strides of the reference leg, each in its own stride."""
    stride = np.searchsorted(reference, onsets, side="right") - 1
    inside = (stride >= 0) & (stride < len(reference) - 1)
    stride, onsets = stride[inside], onsets[inside]
    return (onsets - reference[stride]) / (reference[stride + 1] - reference[stride])


def measure_gait(stance: Array, dt: float, threshold: float = 0.5, bound_tolerance: float = 0.05) -> Gait:
    """Measure one individual's gait from stance (T, leg), sampled every dt seconds, grounded above the threshold."""
    onsets = [stance_onsets(stance[:, leg], dt, threshold) for leg in range(4)]
    if min(len(times) for times in onsets) < 3:
        return _no_gait(float((stance > threshold).mean()) if len(stance) else 0.0)
    rates = np.array([(len(times) - 1) / (times[-1] - times[0]) for times in onsets])
    pairs = [circular_mean(stride_phases(onsets[i], onsets[j])) for i, j in (*LEFT_RIGHT, *FORE_HIND, *DIAGONAL)]
    phases = np.array([phase for phase, _ in pairs])
    concentration = min(r for _, r in pairs)
    if rates.max() > 1.25 * rates.min():  # a leg that steps twice for another's once keeps a perfect, meaningless phase
        concentration = 0.0
    duty = np.mean([_duty(stance[:, leg], onsets[leg], dt, threshold) for leg in range(4)])
    label = "none"
    if concentration >= MIN_CONCENTRATION:
        label = classify(phases[0:2], phases[2:4], phases[4:6], float(duty), bound_tolerance)
    return Gait(
        label=label,
        frequency_hz=float(rates.mean()),
        left_right_phase=(float(phases[0]), float(phases[1])),
        fore_hind_phase=(float(phases[2]), float(phases[3])),
        diagonal_phase=(float(phases[4]), float(phases[5])),
        duty=float(duty),
        concentration=concentration,
    )


def classify(left_right: Array, fore_hind: Array, diagonal: Array, duty: float, bound_tolerance: float = 0.05) -> str:
    """The gait's name, from phases (2,) each, by the rules used with Danner's model (Lemieux et al. 2016)."""
    left_right, fore_hind, diagonal = (circular_distance(p, 0.0) for p in (left_right, fore_hind, diagonal))

    def alternating(distance: Array) -> bool:
        return bool((distance >= 0.25).all())

    if alternating(left_right):
        if alternating(fore_hind) and (diagonal <= 0.1).all():
            return "trot"
        if (fore_hind <= 0.1).all():
            return "pace"
        if duty > 0.5 and ((diagonal > 0.1) & (diagonal <= 0.4)).all():
            return "walk"
    elif alternating(fore_hind):
        if (left_right <= bound_tolerance).all():
            return "bound"
        if (left_right <= 0.25).all():
            return "gallop"
    return "none"


def _duty(stance: Array, onsets: Array, dt: float, threshold: float) -> float:
    """Share of samples in stance, over whole strides."""
    first, last = (int(np.ceil(time / dt)) for time in (onsets[0], onsets[-1]))
    return float((stance[first:last] > threshold).mean())


def _no_gait(duty: float) -> Gait:
    nan = (float("nan"), float("nan"))
    return Gait(
        label="none",
        frequency_hz=0.0,
        left_right_phase=nan,
        fore_hind_phase=nan,
        diagonal_phase=nan,
        duty=duty,
        concentration=0.0,
    )
