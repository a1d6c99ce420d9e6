"""The presets of evolution that `ncap train` offers."""

from typing import Final

from ncap.learn.ars import ARS
from ncap.learn.cma import CMA

PRESETS: Final[dict[str, dict[str, ARS | CMA]]] = {
    "default": {
        "ncap": CMA(population=16, sigma=0.14),
        "mlp": ARS(population=64, sigma=0.05),
    },
    "ars": {
        "ncap": ARS(population=16, sigma=0.14),
        "mlp": ARS(population=64, sigma=0.05),
    },
    "paper": {
        "ncap": ARS(population=256, sigma=0.1, copies=8),
        "mlp": ARS(population=256, sigma=0.1),
    },
    "released": {
        "ncap": ARS(population=64, sigma=0.1, decay=0.01, copies=8),
        "mlp": ARS(population=64, sigma=0.02),
    },
}
"""For every preset, the settings for each kind of policy."""

EPISODES: Final = {"walk": 1, "run": 3}
"""Training episodes of an epoch with CMA-ES, by the second word of a task's name. Running is less steady: weights that
run well from one start may fall from another, and one episode does not show it."""
