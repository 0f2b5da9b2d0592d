"""Records follow further tables, as far as these are no noise."""

import numpy as np
import pytest

from dpcore.domain.axes import Bins, Categories
from dpcore.post.records.calibrate import MOST, FollowedMargin, Target, calibrated, target
from dpcore.post.tables.margins import Margin

HEALTH = Categories("health", ("a", "b", "c", "d"))
VISITS = Bins("visits", tuple(map(float, range(11))), integer=True)


ROWS = 20_000


def population(seed: int, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    health = generator.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    return health, np.minimum(generator.poisson(1 + 2 * health), 9)


def tables(health, visits):
    return np.bincount(health * 10 + visits, minlength=40).astype(float)


def of_both(table, variance: float, health, visits) -> Target:
    """A table of health by visits for records of both."""
    return wanted(
        [HEALTH, VISITS], [HEALTH, VISITS], table.reshape(4, 10), variance, [health, visits]
    )


def wanted(theirs, ours, table, variance: float, columns) -> Target:
    def margin(kept: tuple[int, ...]) -> Margin:
        others = tuple(axis for axis in range(table.ndim) if axis not in kept)
        cells = np.prod([table.shape[axis] for axis in others])
        return Margin(kept, table.sum(others), variance * cells)

    found = target(theirs, ours, np.stack(columns, axis=1), margin)
    assert found is not None
    return found


def test_records_agree_with_a_precise_table_that_they_were_not_drawn_from():
    generator = np.random.default_rng(1)
    health, visits = population(2)
    truth = tables(health, visits)
    alone = generator.permutation(visits)  # as records of independent columns
    noisy = truth + generator.normal(0, 10, 40)
    chosen = calibrated(ROWS, [of_both(noisy, 100.0, health, alone)], generator)
    found = tables(health[chosen], alone[chosen])
    before = np.abs(tables(health, alone) - truth).sum()
    assert np.abs(found - truth).sum() < before / 5
    assert np.bincount(chosen).max() <= MOST + 1


@pytest.mark.slow
def test_noise_is_not_followed():
    health, visits = population(4)
    cells, truth = health * 10 + visits, tables(health, visits)
    moved = []
    for seed, error in enumerate(10 * [50.0, 300.0, 1000.0]):
        generator = np.random.default_rng(seed)
        noisy = truth + generator.normal(0, error, 40)
        chosen = calibrated(ROWS, [of_both(noisy, error**2, health, visits)], generator)
        moved.append(np.abs(tables(health[chosen], visits[chosen]) - truth).sum() / len(cells))
    assert np.median(moved) < 0.01
    assert np.mean(np.array(moved) > 0.1) < 0.2


def test_the_same_generator_chooses_the_same_records():
    health, _ = population(7, 500)
    table = wanted([HEALTH], [HEALTH], np.array([300.0, 100.0, 50.0, 50.0]), 4.0, [health])
    first, second = (calibrated(500, [table], np.random.default_rng(8)).tolist() for _ in range(2))
    assert first == second


def test_a_table_in_finer_bins_is_followed_in_the_bins_of_the_records():
    """A record in the middle of a wide bin says nothing about the narrow ones that it covers."""
    health, visits = population(11)
    wide = Bins("visits", (0.0, 3.0, 6.0, 10.0), integer=True)
    coarse = np.searchsorted([3, 6], visits, side="right")
    alone = np.random.default_rng(12).permutation(coarse)
    truth = tables(health, visits).reshape(4, 10)
    found = wanted([HEALTH, VISITS], [HEALTH, wide], truth, 1.0, [health, alone])
    assert [margin.table.shape for margin in found.margins] == [(4,), (3,), (4, 3)]
    assert found.margins[1].variance.tolist() == [12.0, 12.0, 16.0]
    chosen = calibrated(ROWS, [found], np.random.default_rng(13))
    expected = np.bincount(health * 3 + coarse, minlength=12)
    assert (
        np.abs(np.bincount(health[chosen] * 3 + alone[chosen], minlength=12) - expected).max() < 50
    )


def test_records_stay_where_noisy_tables_leave_none_of_them():
    """One table says that all records are in the first row, the other that all are in the second."""
    codes = np.array([[0, 1], [1, 0], [1, 1]])
    one, other = (np.array(counts) for counts in ([3.0, -3.0], [-3.0, 3.0]))
    targets = [
        Target(codes[:, :1], [FollowedMargin((0,), counts, np.full(2, 1e-4))])
        for counts in (one, other)
    ]
    chosen = calibrated(3, targets, np.random.default_rng(1))
    assert sorted(chosen.tolist()) == [0, 1, 2]
