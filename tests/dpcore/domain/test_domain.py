"""Cells and codes of a domain."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain, size_text
from dpcore.domain.words import LARGEST_WORD, ascending

DOMAIN = Domain(
    (
        Categories("place", ("a", "b"), nullable=True),
        Bins("age", (0.0, 5.0, 9.0, 20.0), integer=True),
        Grid("income", 0.0, 8.0, 4, nullable=True),
    )
)


def test_sizes_count_the_null_cell():
    assert DOMAIN.shape == (3, 3, 5)
    assert DOMAIN.size == 45
    assert DOMAIN.names == ("place", "age", "income")
    assert Domain(()).size == 1


def test_more_cells_than_64_bits_can_number_take_several_words():
    whole = Domain((Grid("x", 0.0, 1.0, LARGEST_WORD),))
    assert whole.unpack(np.array([LARGEST_WORD - 1])).tolist() == [[LARGEST_WORD - 1]]
    wide = Domain((*whole.axes, Categories("a", ("b",), nullable=True)))
    assert wide.words == (LARGEST_WORD, 2)
    assert wide.unpack(np.array([[LARGEST_WORD - 1, 1]])).tolist() == [[LARGEST_WORD - 1, 1]]
    with pytest.raises(ValueError, match="more cells than the 2\\^62 that can be numbered"):
        Domain((Grid("x", 0.0, 1.0, LARGEST_WORD + 1),))


sizes = st.one_of(st.integers(1, 9), st.integers(1, LARGEST_WORD))


@pytest.mark.slow
@given(shape=st.lists(sizes, max_size=80), seed=st.integers(0, 2**32))
def test_cells_of_a_domain_of_any_width_are_numbered_row_major_and_without_loss(shape, seed):
    domain = Domain(tuple(Grid(f"x{i}", 0.0, 1.0, size) for i, size in enumerate(shape)))
    codes = np.random.default_rng(seed).integers(0, shape, (7, len(shape)))
    codes[0], codes[1] = 0, np.array(shape) - 1
    cells = domain.pack(codes)
    assert cells.shape == ((7,) if domain.size <= LARGEST_WORD else (7, len(domain.words)))
    assert math.prod(domain.words) == domain.size
    assert all(size <= LARGEST_WORD for size in domain.words)
    np.testing.assert_array_equal(domain.unpack(cells), codes)
    numbers = [0] * 7
    for i, size in enumerate(shape):
        numbers = [
            number * size + int(code) for number, code in zip(numbers, codes[:, i], strict=True)
        ]
    assert domain.numbers(cells) == numbers
    np.testing.assert_array_equal(domain.at(numbers), cells)
    order = sorted(set(numbers))
    assert ascending(domain.at(order))
    assert len(order) < 2 or not ascending(domain.at(order[::-1]))
    assert not ascending(domain.at([*order, order[-1]]))


WIDE = Domain(
    (
        *(Categories(f"q{i}", ("no", "yes"), nullable=i % 3 == 0) for i in range(60)),
        Grid("income", 0.0, 1.0, 2**33),
        Bins("age", (0.0, 5.0, 9.0, 20.0)),
    )
)


def test_the_number_of_cells_is_stated_however_many_there_are():
    assert size_text(WIDE.size) == "9.88e+31"
    columns = tuple(Categories(f"q{i}", tuple(range(10))) for i in range(400))
    assert size_text(Domain(columns).size) == "1e+400"
    with pytest.raises(
        ValueError, match=r"1e\+400 cells are more than the 2\^62 .* that a sword can"
    ):
        Domain(columns).require_one_word("a sword")


def test_a_column_cannot_appear_twice():
    with pytest.raises(ValueError, match="appears twice"):
        Domain((Categories("a", ("x",)), Categories("a", ("y",))))


def test_edges_of_a_grid_are_even_and_end_at_the_bounds():
    grid = Grid("x", -1.0, 3.0, 8)
    assert grid.edges == (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    bins = DOMAIN.axes[1]
    assert (bins.cells, bins.lower, bins.upper) == (3, 0.0, 20.0)
