"""Cells and codes of a domain, and the tally over it."""

import numpy as np
import pytest

from dpcore.domain import LARGEST_WORD, Bins, Categories, Domain, Grid, Tally
from tests.dpcore.releases.contract import tally_of

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


def test_cells_are_numbered_row_major():
    cells = np.arange(DOMAIN.size)
    codes = DOMAIN.unpack(cells)
    np.testing.assert_array_equal(codes, np.stack(np.unravel_index(cells, DOMAIN.shape), axis=1))
    np.testing.assert_array_equal(DOMAIN.pack(codes), cells)


def test_cells_of_a_domain_far_larger_than_memory_are_numbered_without_loss():
    domain = Domain(tuple(Grid(f"x{i}", 0.0, 1.0, 2**20) for i in range(3)))
    cells = np.array([0, 1, 2**20, 2**60 - 1, 123_456_789_012_345_678])
    codes = domain.unpack(cells)
    assert [int(a) * 2**40 + int(b) * 2**20 + int(c) for a, b, c in codes] == cells.tolist()
    np.testing.assert_array_equal(domain.pack(codes), cells)


def test_more_cells_than_64_bits_can_number_take_several_words():
    whole = Domain((Grid("x", 0.0, 1.0, LARGEST_WORD),))
    assert whole.unpack(np.array([LARGEST_WORD - 1])).tolist() == [[LARGEST_WORD - 1]]
    wide = Domain((*whole.axes, Categories("a", ("b",), nullable=True)))
    assert wide.words == (LARGEST_WORD, 2)
    assert wide.unpack(np.array([[LARGEST_WORD - 1, 1]])).tolist() == [[LARGEST_WORD - 1, 1]]
    with pytest.raises(ValueError, match="more cells than the 2\\^62 that can be numbered"):
        Domain((Grid("x", 0.0, 1.0, LARGEST_WORD + 1),))


def test_a_column_cannot_appear_twice():
    with pytest.raises(ValueError, match="appears twice"):
        Domain((Categories("a", ("x",)), Categories("a", ("y",))))


def test_edges_of_a_grid_are_even_and_end_at_the_bounds():
    grid = Grid("x", -1.0, 3.0, 8)
    assert grid.edges == (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    bins = DOMAIN.axes[1]
    assert (bins.cells, bins.lower, bins.upper) == (3, 0.0, 20.0)


@pytest.mark.parametrize("names", [("age",), ("income", "place"), ("place", "age", "income"), ()])
def test_rolling_up_counts_what_a_loop_over_records_counts(names: tuple[str, ...]):
    records = np.random.default_rng(5).integers(DOMAIN.size, size=200)
    rolled = tally_of(DOMAIN, records).roll_up(names)
    expected = np.zeros(DOMAIN.select(names).shape, dtype=np.int64)
    for code in DOMAIN.unpack(records):
        expected[tuple(code[DOMAIN.names.index(name)] for name in names)] += 1
    np.testing.assert_array_equal(rolled.dense(), expected.ravel())
    assert rolled.domain.names == names
    assert np.all(np.diff(rolled.cells) > 0)
    assert np.all(rolled.counts > 0)


@pytest.mark.parametrize(
    "counts",
    [
        [2**53, 1, 3, 2**53 + 1],
        [2**61 + 1, 1, 2**61 + 1, 2**62],  # their sum does not fit in 64 bits
    ],
)
@pytest.mark.parametrize("unused", [0, 100])
def test_rolling_up_is_exact_beyond_the_whole_numbers_of_doubles(counts: list[int], unused: int):
    """With unused categories the target has more cells than there are occupied ones."""
    first = Categories("a", ("x", "y", *map(str, range(unused))))
    domain = Domain((first, Categories("b", ("u", "v"))))
    tally = Tally(domain, np.arange(4), np.array(counts))
    rows, columns = tally.roll_up(("a",)), tally.roll_up(("b",))
    assert rows.counts.tolist() == [counts[0] + counts[1], counts[2] + counts[3]]
    assert columns.counts.tolist() == [counts[0] + counts[2], counts[1] + counts[3]]


def test_a_tally_without_records_is_all_zero():
    empty = Tally(DOMAIN, np.array([], dtype=np.int64), np.array([], dtype=np.int64))
    assert empty.dense().tolist() == [0] * DOMAIN.size
    assert empty.roll_up(("age",)).dense().tolist() == [0, 0, 0]
