import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncap.errors import UserError
from ncap.params import Block, Number, ParamSpace

INF = np.inf
SIGNED = Block(
    name="w",
    initial=np.array([[1.0, -2.0], [0.0, 4.0]]),
    low=np.array([[0, -INF], [-INF, 0]]),
    high=np.array([[INF, 0], [INF, INF]]),
    copies=3,
)
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
    kept, signs = SPACE.constrain(theta), np.array([1, -1, 0, 1] * 3 + [0])
    assert np.all(kept * signs >= 0)
    assert np.array_equal(kept[signs * theta >= 0], theta[signs * theta >= 0])


@given(st.lists(st.floats(-5, 5), min_size=13, max_size=13))
def test_compressing_keeps_what_acts(values):
    theta = np.array(values)
    compact = ParamSpace([Block(name=b.name, initial=b.initial, low=b.low, high=b.high) for b in SPACE.blocks])
    small = SPACE.compress(theta)
    assert small.shape == (compact.size,) == (5,)
    for name, weights in compact.unpack(small).items():
        assert weights == pytest.approx(SPACE.unpack(theta)[name], abs=1e-12)


def test_a_vector_of_the_wrong_length_is_refused():
    with pytest.raises(UserError, match="13 weights are needed, not 12"):
        SPACE.unpack(np.zeros(12))


def number(block, *label, initial=0.0, low=-INF, high=INF, spread=True):
    return Number(block=block, label=label, initial=initial, low=low, high=high, spread=spread)


def test_rows_that_are_all_pairs_of_targets_and_sources_become_a_matrix_and_others_a_list():
    rows = [
        *(number("A", target, source, initial=1.0) for target in ("x", "y") for source in ("p", "q", "r")),
        number("A.bias", "x", initial=0.5, spread=False),
        number("B", "x", "p", initial=-1.0, high=0.0),
        number("B", "y", "q", initial=2.0, low=0.0, high=3.0),
    ]
    space = ParamSpace.from_rows(rows, copies=2)
    assert [(block.name, block.initial.shape, block.copies) for block in space.blocks] == [
        ("A", (2, 3), 2), ("A.bias", (1,), 1), ("B", (2,), 2),
    ]  # fmt: skip
    assert space.blocks[0].labels == (("x", "y"), ("p", "q", "r"))
    assert space.size == 12 + 1 + 4
    # bounds hold for the sum of the copies: each of two copies has half of them
    assert space.constrain(np.full(17, 9.0))[-4:].tolist() == [0.0, 1.5, 0.0, 1.5]


def test_weights_are_carried_to_another_space_by_their_names():
    first = ParamSpace.from_rows([number("A", "x", "p", initial=1.0), number("A", "x", "q", initial=2.0)])
    second = ParamSpace.from_rows([number("A", "x", "q", initial=5.0), number("A", "x", "r", initial=7.0)])
    assert first.carried(np.array([10.0, 20.0]), second).tolist() == [20.0, 7.0]
