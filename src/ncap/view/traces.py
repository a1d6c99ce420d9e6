"""The neurons of a recording that alternate at every site, whose traces are drawn: half-centres, or muscles."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncap.plan import QUADRUPED
from ncap.recording import Recording

Array = NDArray[np.float64]

PAIRS: Final = (("flexor", "extensor"), ("muscle_dorsal", "muscle_ventral"))
"""Neurons that alternate at every site: of legs, and of swimmers."""


class Traces(NamedTuple):
    """What is drawn of them."""

    sites: tuple[str, ...]
    pair: tuple[str, ...]
    """Names of the two; none if nothing is drawn."""
    values: dict[str, Array]
    """Activity (T,) by name and site, flexor.FL, as far as it was recorded."""


def traces_of(recording: Recording) -> Traces:
    """The traces of a recording."""
    sites = (QUADRUPED if recording.robot is None else recording.robot.plan).sites
    values = dict(zip(recording.neuron_names, recording.neurons.T, strict=True))
    values |= dict(zip(recording.signal_names, recording.signals.T, strict=False))
    for pair in PAIRS:
        if any(f"{name}.{site}" in values for name in pair for site in sites):
            return Traces(sites, pair, values)
    return Traces(sites, (), values)
