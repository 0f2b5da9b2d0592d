"""Numbers in order keep what is known of them inside their bins."""

import numpy as np
import pytest

from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.post.records.ordered import PARTS, positions_in_order
from dpcore.synthesis.column import ColumnDensity
from dpcore.synthesis.decode import decode_records
from tests.schemas.releases.test_inequalities import rules_of

MONTHS = Domain(
    tuple(Bins(name, tuple(range(0, 361, 30)), integer=True) for name in ("start", "end"))
)


def stays(mean: float, rows: int = 20_000) -> np.ndarray:
    """(rows, 2) first and last day; as many are there at the beginning as later."""
    generator = np.random.default_rng(7)
    start = generator.integers(-60, 361, 2 * rows)
    both = np.stack([start, start + generator.geometric(1 / (mean + 1), 2 * rows) - 1], axis=1)
    return both[np.all((both >= 0) & (both < 360), axis=1)][:rows]


@pytest.mark.slow
@pytest.mark.parametrize("mean", [4.0])
def test_differences_and_both_columns_are_as_they_were(mean):
    days = stays(mean)
    rules = rules_of(MONTHS, "end >= start")
    made = decode_records(MONTHS, days // 30, {}, np.random.default_rng(2), rules)
    found = made["end"] - made["start"]
    assert found.min() == 0
    assert np.mean(found) == pytest.approx(np.mean(days[:, 1] - days[:, 0]), rel=0.25)
    for column, real in zip(made.values(), days.T, strict=True):
        inner = (column >= 60) & (column < 300)
        share = np.bincount(column[inner] % 30 // 5) / inner.sum()
        assert np.abs(share - 1 / 6).max() < 0.02
        assert np.array_equal(np.bincount(column // 30), np.bincount(real // 30))


def test_without_records_there_is_nothing_to_do():
    found = positions_in_order(
        np.empty((0, 2), dtype=np.int64),
        (3, 3),
        lambda side, cells, positions: cells + positions,
        np.less,
        np.zeros(0, dtype=bool),
        np.random.default_rng(2),
    )
    assert found.shape == (0, 2)


def test_two_columns_of_a_single_bin_still_differ():
    one = Domain(tuple(Bins(name, (0.0, 100.0)) for name in ("low", "high")))
    codes = np.zeros((5_000, 2), dtype=np.int64)
    even = {axis.name: ColumnDensity.uniform(axis) for axis in one.axes}
    made = decode_records(one, codes, even, np.random.default_rng(2), rules_of(one, "high >= low"))
    apart = made["high"] - made["low"]
    assert np.all(apart >= 0)
    assert 100 / PARTS < np.mean(apart) < 100 / 3
