"""The gaits of some episodes in one: the commonest, and numbers over all of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ncap.analysis.gaits import MIN_CONCENTRATION, Gait, circular_mean


@dataclass(frozen=True, kw_only=True)
class GaitSummary:
    """The gaits of some episodes: the commonest one, and numbers over all of them.

    Only the phases are means over the episodes that have the commonest gait: those of different gaits have no mean.
    """

    label: str
    share: float
    """Share of the episodes that have this gait."""
    frequency_hz: float
    """Stride frequency, mean over all episodes with strides, Hz."""
    duty: float
    """Share of the time that a foot is on the ground, mean over feet and all episodes."""
    left_right_phase: tuple[float, float] | None
    """Fore, hind; None when the legs do not step."""
    fore_hind_phase: tuple[float, float] | None
    """Left, right."""
    concentration: float
    """R of the least regular pair of legs, median over all episodes."""
    regular_share: float
    """Share of all episodes whose legs keep their phases, R ≥ 0.8."""
    touchdowns_per_stride: float
    """How often a foot comes down in a stride, mean over feet and all episodes with strides."""
    commanded: str | None = None
    """The gait of the circuit alone at this command; "by speed" where wishes change, and each has its own; None without
    a circuit."""
    commanded_share: float | None = None
    """Share of all episodes with the commanded gait."""
    rhythm_ratio: float | None = None
    """Stride frequency of the body over that of the circuit alone, mean over all episodes: 1 when the rhythm leads."""


def summarise_gaits(gaits: Sequence[Gait], commanded: Gait | None = None) -> GaitSummary:
    """The summary of the gaits of some episodes, beside the gait of the circuit alone if it is known."""
    label, count = Counter(gait.label for gait in gaits).most_common(1)[0]
    chosen = [gait for gait in gaits if gait.label == label]
    stepping = [gait for gait in gaits if gait.frequency_hz > 0]
    frequency = float(np.mean([gait.frequency_hz for gait in stepping])) if stepping else 0.0
    share = ratio = None
    if commanded is not None:
        share = sum(gait.label == commanded.label for gait in gaits) / len(gaits)
        if stepping and commanded.frequency_hz > 0:
            ratio = frequency / commanded.frequency_hz

    def phases(name: str) -> tuple[float, float] | None:
        having = [gait for gait in chosen if gait.frequency_hz > 0]
        if not having:
            return None
        first, second = (circular_mean(np.array([getattr(gait, name)[i] for gait in having]))[0] for i in (0, 1))
        return first, second

    return GaitSummary(
        label=label,
        share=count / len(gaits),
        frequency_hz=frequency,
        duty=float(np.mean([gait.duty for gait in gaits])),
        left_right_phase=phases("left_right_phase"),
        fore_hind_phase=phases("fore_hind_phase"),
        concentration=float(np.median([gait.concentration for gait in gaits])),
        regular_share=float(np.mean([gait.concentration >= MIN_CONCENTRATION for gait in gaits])),
        touchdowns_per_stride=float(np.mean([gait.touchdowns_per_stride for gait in stepping])) if stepping else 0.0,
        commanded=None if commanded is None else commanded.label,
        commanded_share=share,
        rhythm_ratio=ratio,
    )
