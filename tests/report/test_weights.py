"""Figures of weights: every trained weight of any table has its place."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from ncap.circuits.animal import animal
from ncap.policies.ncap import NCAPPolicy
from ncap.report.weights import circuit_weights

BLOCKS = ["AF.fore", "AF.hind", "PF.fore", "PF.hind"]
WHOLE_BODY = ["AF.fore", "AF.hind", "PF", "PF.fore", "PF.hind"]


@pytest.mark.parametrize(
    ("policy", "titles", "weights"),
    [
        # per girdle 2 × 20 afferent and 2 × 2 motor weights; by default 2 × 4 + 2, with fast pools and hips, and 6 of
        # the posture for the whole body; biases are left out
        (NCAPPolicy(circuit=animal("paper")), BLOCKS, 2 * (40 + 4)),
        (NCAPPolicy(circuit=animal("paper"), copies=8), BLOCKS, 2 * (40 + 4)),
        (NCAPPolicy(), WHOLE_BODY, 2 * (40 + 10) + 6),
        # of the rhythm generator's 28 synapse rows six come from the brainstem
        (NCAPPolicy(circuit=animal().trained_by(["RG"])), ["RG"], 28 - 6),
    ],
    ids=["paper", "overparameterised", "default", "rhythm"],
)
def test_every_weight_is_drawn_before_and_after(policy, titles, weights):
    theta = policy.space.initial + 0.01  # no weight is 0, so that each has a circle
    figure = circuit_weights(policy, theta)
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes] == titles
    drawn = sum(len(axes.collections[0].get_offsets()) for axes in figure.axes)
    blocks = [block for block in policy.space.blocks if ".bias" not in block.name]
    before = sum(np.count_nonzero(policy.space.unpack(policy.space.initial)[block.name]) for block in blocks)
    after = sum(block.initial.size for block in blocks)
    assert after == weights
    assert drawn == before + after
    plt.close(figure)
