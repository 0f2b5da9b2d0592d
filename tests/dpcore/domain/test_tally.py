"""The tally over a domain."""

from collections import Counter

import numpy as np
import pytest

from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from tests.dpcore.domain.test_domain import DOMAIN, WIDE


@pytest.mark.parametrize(
    ("domain", "names"),
    [
        *((DOMAIN, names) for names in [("age",), ("income", "place"), DOMAIN.names[::-1], ()]),
        *((WIDE, names) for names in [("age",), ("q59", "q0"), WIDE.names[::-1], WIDE.names[20:]]),
    ],
)
def test_rolling_up_counts_what_a_loop_over_records_counts(domain: Domain, names: tuple[str, ...]):
    generator = np.random.default_rng(3)
    few = generator.integers(0, domain.shape, (40, len(domain.axes)))
    codes = few[generator.integers(0, 40, 300)]
    tally = Tally.of(domain, domain.pack(codes))
    assert tally.cells.shape == (len(tally.counts), *([2] if domain is WIDE else []))
    rolled = tally.roll_up(names)
    assert rolled.domain.names == names
    counted = Counter(map(tuple, codes[:, [domain.names.index(n) for n in names]].tolist()))
    found = [tuple(row) for row in rolled.domain.unpack(rolled.cells).tolist()]
    assert dict(zip(found, rolled.counts.tolist(), strict=True)) == counted
    assert found == sorted(found)
    if rolled.domain.size < 1000:
        np.testing.assert_array_equal(tally.margin(names), rolled.dense())


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
