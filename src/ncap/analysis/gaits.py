"""Gaits from footfalls: phases between legs with circular statistics, duty factor, frequency, and the gait's name.

Works on arrays only. Neurons switch cleanly, so `measure_gait` takes the times at which they do. Feet bounce, slip and
touch for a single sample in a run, so `measure_footfalls` takes the rhythm of their contacts. Phases are in [0, 1),
legs in the order FL, FR, HL, HR.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ncap.plan import LEGS

Array = NDArray[np.float64]

#: Pairs (reference leg, other leg): the phase is that of the other leg's footfall in the reference leg's stride.
LEFT_RIGHT: Final = (("FL", "FR"), ("HL", "HR"))  # fore, hind
FORE_HIND: Final = (("HL", "FL"), ("HR", "FR"))  # left, right: fore after hind
DIAGONAL: Final = (("HL", "FR"), ("HR", "FL"))  # fore after the hind leg of the other side
PAIRS: Final = tuple((LEGS.index(a), LEGS.index(b)) for a, b in (*LEFT_RIGHT, *FORE_HIND, *DIAGONAL))
"""The pairs by the indices of their legs."""

MIN_CONCENTRATION: Final = 0.8
"""Below this the legs keep no phase, and the gait is "none"."""
STRIDE_HZ: Final = (0.6, 8.0)
"""Lowest and highest frequency of a stride that is looked for, Hz."""


@dataclass(frozen=True, kw_only=True)
class Gait:
    """The gait of one individual: its name, its phases and how regular they are."""

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
    touchdowns_per_stride: float
    """How often a foot comes down in a stride, mean over feet: 1 in a clean gait, 2 when every foot taps twice."""


def stance_onsets(stance: Array, dt: float, threshold: float = 0.5) -> Array:
    """Times (s) at which a signal (T,) rises through the threshold, interpolated between samples."""
    above = stance > threshold
    before = np.flatnonzero(~above[:-1] & above[1:])
    low, high = stance[before], stance[before + 1]
    return (before + (threshold - low) / (high - low)) * dt


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
    onsets = [stance_onsets(stance[:, leg], dt, threshold) for leg in range(len(LEGS))]
    if min(len(times) for times in onsets) < 3:
        return _no_gait(float((stance > threshold).mean()) if len(stance) else 0.0)
    duty = np.mean([_duty(stance[:, leg], onsets[leg], dt, threshold) for leg in range(len(LEGS))])
    return gait_of_onsets(onsets, float(duty), bound_tolerance)


def gait_of_onsets(onsets: Sequence[Array], duty: float, bound_tolerance: float = 0.05) -> Gait:
    """The gait of stances that begin at these times of every leg, s, and fill this share of a stride."""
    if min(len(times) for times in onsets) < 3:
        return _no_gait(duty)
    rates = np.array([(len(times) - 1) / (times[-1] - times[0]) for times in onsets])
    return _gait(
        [stride_phases(onsets[i], onsets[j]) for i, j in PAIRS],
        frequency_hz=float(rates.mean()),
        duty=duty,
        in_step=rates.max() <= 1.25 * rates.min(),  # two steps for another's one keep a perfect, meaningless phase
        touchdowns_per_stride=1.0,  # its stride is the time between two of them
        bound_tolerance=bound_tolerance,
    )


def measure_footfalls(contact: NDArray[np.bool_], dt: float) -> Gait:
    """Measure one individual's gait from the contacts (T, leg) of its feet with the ground, sampled every dt seconds.

    The stride is the rhythm that all feet together have most of. A foot's phase in a stride is that of its first
    harmonic, which is the middle of its stance.
    """
    stance = contact.astype(float)
    touchdowns = [len(stance_onsets(stance[:, leg], dt)) for leg in range(len(LEGS))]
    if min(touchdowns) < 3:
        return _no_gait(float(stance.mean()) if len(stance) else 0.0)
    rates = np.fft.rfftfreq(8 * len(stance), dt)
    swinging = (stance - stance.mean(axis=0)) * np.hanning(len(stance))[:, None]
    strength = np.abs(np.fft.rfft(swinging, 8 * len(stance), axis=0))  # (rate, leg)
    possible = (rates >= STRIDE_HZ[0]) & (rates <= STRIDE_HZ[1])
    frequency = float(rates[np.argmax(possible * (strength**2).sum(axis=1))])

    def at(rate: float) -> Array:
        """(leg,) strength of the strongest component within 10 % of a rate."""
        found: Array = strength[np.abs(rates - rate) <= 0.1 * rate].max(axis=0)
        return found

    stride = 1 / (frequency * dt)  # in samples; windows are two strides long and begin a stride apart
    middles = np.arange(stride, len(stance) - stride, stride)
    if len(middles) < 3:
        return _no_gait(float(stance.mean()) if len(stance) else 0.0)
    time = np.arange(len(stance))
    windows = 1 + np.cos(np.pi * np.clip((time - middles[:, None]) / stride, -1, 1))
    phases = -np.angle((windows * np.exp(-2j * np.pi * time / stride)) @ stance) / (2 * np.pi)  # (stride, leg)
    return _gait(
        [(phases[:, j] - phases[:, i]) % 1.0 for i, j in PAIRS],
        frequency_hz=frequency,
        duty=float(stance.mean()),
        in_step=bool((at(frequency) > np.maximum(at(frequency / 2), at(2 * frequency) / 2)).all()),
        touchdowns_per_stride=float(np.mean(touchdowns)) / (len(stance) * dt * frequency),
    )


def footfall_error(contact: NDArray[np.bool_], stance: NDArray[np.bool_]) -> float:
    """How far feet are from doing what their half-centres say, 0 … 2, mean over feet.

    It is the share of the time in which a foot stands or swings where its half-centre, a sample before, said the
    opposite, plus the share of touchdowns too many or missing: one is wanted for every stance of the half-centre, and
    one more or less is allowed for the ends of the time. contact: (T, leg) whether a foot is on the ground. stance: (T,
    leg) whether its extensor is active.
    """
    if len(contact) < 2:  # it fell at once
        return 2.0
    apart = (contact[1:] != stance[:-1]).mean(axis=0)
    touchdowns, stances = (np.sum(~one[:-1] & one[1:], axis=0) for one in (contact, stance))
    wrong = np.maximum(np.abs(touchdowns - stances) - 1, 0) / np.maximum(stances, 1)
    return float((apart + np.minimum(wrong, 1.0)).mean())


def classify(left_right: Array, fore_hind: Array, diagonal: Array, duty: float, bound_tolerance: float = 0.05) -> str:
    """The gait's name, from phases (2,) each, by the rules used with Danner's model (Lemieux et al. 2016).

    They have no name for four feet that land together, which is a pronk. Two sides that agree within 0.1 count by their
    mean: else a regular gait would have no name where they lie on either side of a border.
    """
    left_right, fore_hind, diagonal = (circular_distance(p, 0.0) for p in (left_right, fore_hind, diagonal))
    fore_hind, diagonal = (p if np.ptp(p) > 0.1 else np.full(2, p.mean()) for p in (fore_hind, diagonal))

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
    elif (left_right <= 0.1).all() and (fore_hind <= 0.2).all():
        return "pronk"
    return "none"


def _duty(stance: Array, onsets: Array, dt: float, threshold: float) -> float:
    """Share of samples in stance, over the whole strides of a leg."""
    first, last = (int(np.ceil(time / dt)) for time in (onsets[0], onsets[-1]))
    return float((stance[first:last] > threshold).mean())


def _gait(
    phases: Sequence[Array],
    frequency_hz: float,
    duty: float,
    in_step: bool,
    touchdowns_per_stride: float,
    bound_tolerance: float = 0.05,
) -> Gait:
    """The gait with these phases of every pair in every stride; none unless all legs step equally often."""
    pairs = [circular_mean(one) for one in phases]
    left_right, fore_hind, diagonal = ((pairs[i][0], pairs[i + 1][0]) for i in (0, 2, 4))
    concentration = min(r for _, r in pairs) if in_step else 0.0
    label = "none"
    if concentration >= MIN_CONCENTRATION:
        label = classify(np.array(left_right), np.array(fore_hind), np.array(diagonal), duty, bound_tolerance)
    return Gait(
        label=label,
        frequency_hz=frequency_hz,
        left_right_phase=left_right,
        fore_hind_phase=fore_hind,
        diagonal_phase=diagonal,
        duty=duty,
        concentration=concentration,
        touchdowns_per_stride=touchdowns_per_stride,
    )


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
        touchdowns_per_stride=0.0,
    )
