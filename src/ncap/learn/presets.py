"""The presets of evolution that `ncap train` offers."""

from typing import Final

from ncap.learn.ars import ARS
from ncap.learn.cma import CMA

PRESETS: Final[dict[str, dict[str, ARS | CMA]]] = {
    "default": {
        "ncap": CMA(population=8, sigma=0.14, modulated=True, cooling=0.97),
        "mlp": ARS(population=32, sigma=0.1),
    },
    "plain": {
        "ncap": CMA(population=16, sigma=0.14),
        "mlp": ARS(population=32, sigma=0.1),
    },
    "few": {
        "ncap": CMA(population=8, sigma=0.2),
        "mlp": ARS(population=32, sigma=0.1),
    },
    "ars": {
        "ncap": ARS(population=16, sigma=0.14),
        "mlp": ARS(population=32, sigma=0.1),
    },
    "ranks": {
        "ncap": ARS(population=16, sigma=0.14, ranks=True),
        "mlp": ARS(population=32, sigma=0.1, ranks=True),
    },
    "decay": {
        "ncap": ARS(population=16, sigma=0.14, decay=0.01),
        "mlp": ARS(population=32, sigma=0.1, decay=0.01),
    },
    "raw": {
        "ncap": ARS(population=16, sigma=0.14),
        "mlp": ARS(population=32, sigma=0.1, normalises=False),
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

EPISODES: Final[dict[type[ARS] | type[CMA], int]] = {ARS: 1, CMA: 3}
"""How many training episodes a candidate plays in an epoch."""
SECONDS: Final = 5.0
"""How long they are, s. Most falls happen in the first seconds and the gait is found in them, so three short episodes
tell more than a long one."""
WHOLE: Final = ("paper", "released")
"""Presets whose training episodes are as long as the task's."""
EPOCHS_UNTIL_MORE: Final = 25
"""Epochs of CMA-ES after which every candidate plays that many training episodes more."""
