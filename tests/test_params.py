import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncap.errors import UserError
from ncap.params import Block, ParamSpace

SIGNED = Block(name="w", initial=np.array([[1.0, -2.0], [0.0, 4.0]]), signs=np.array([[1, -1], [0, 1]]), copies=3)
FREE = Block(name="b", initial=np.array([0.5]))
SPACE = ParamSpace([SIGNED, FREE])


def test_flat_vectors_hold_every_copy_and_act_as_their_sum():
    # 3 copies of 4 weights and 1 bias; each copy starts with a third of the weight
    assert SPACE.size == 13
    assert SPACE.initial[:4] == pytest.approx([1 / 3, -2 / 3, 0, 4 / 3])
    weights = SPACE.unpack(SPACE.initial)
    assert weights["w"] == pytest.approx(SIGNED.initial)
    assert weights["b"] == pytest.approx([0.5])


@given(st.lists(st.floats(-5, 5), min_size=26, max_size=26))
def test_constrained_vectors_keep_their_signs_and_change_nothing_else(values):
    theta = np.array(values).reshape(2, 13)
    kept = SPACE.constrain(theta)
    assert np.all(kept * SPACE.signs >= 0)
    assert np.array_equal(kept[SPACE.signs * theta >= 0], theta[SPACE.signs * theta >= 0])


@given(st.lists(st.floats(-5, 5), min_size=13, max_size=13))
def test_compressing_keeps_what_acts(values):
    theta = np.array(values)
    compact = ParamSpace([Block(name=b.name, initial=b.initial, signs=b.signs) for b in SPACE.blocks])
    small = SPACE.compress(theta)
    assert small.shape == (compact.size,) == (5,)
    for name, weights in compact.unpack(small).items():
        assert weights == pytest.approx(SPACE.unpack(theta)[name], abs=1e-12)


def test_a_vector_of_the_wrong_length_is_refused():
    with pytest.raises(UserError, match="13 weights are needed, not 12"):
        SPACE.unpack(np.zeros(12))
