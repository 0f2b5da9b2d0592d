"""Cells and codes of a domain, and the tally over it."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.domain import LARGEST_WORD, Bins, Categories, Domain, Grid, Tally, ascending, size_text
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


sizes = st.one_of(st.integers(1, 9), st.integers(1, LARGEST_WORD))


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


@pytest.mark.parametrize(
    "names", [("age",), ("q59", "q0"), WIDE.names[::-1], WIDE.names[20:], ("income", "q1"), ()]
)
def test_a_wide_tally_is_rolled_up_as_a_loop_over_records_counts(names: tuple[str, ...]):
    generator = np.random.default_rng(3)
    codes = generator.integers(0, WIDE.shape, (40, len(WIDE.axes)))[generator.integers(0, 40, 300)]
    tally = Tally.of(WIDE, WIDE.pack(codes))
    assert tally.cells.shape == (len(tally.counts), 2)
    rolled = tally.roll_up(names)
    counted = Counter(tuple(row) for row in codes[:, [WIDE.names.index(n) for n in names]].tolist())
    found = [tuple(row) for row in rolled.domain.unpack(rolled.cells).tolist()]
    assert dict(zip(found, rolled.counts.tolist(), strict=True)) == counted
    assert found == sorted(found)
    if rolled.domain.size < 1000:
        np.testing.assert_array_equal(tally.margin(names), rolled.dense())


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
