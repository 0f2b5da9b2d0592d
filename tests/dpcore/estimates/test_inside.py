"""Sums over bins, corrected by what neighbouring bins say of the values inside."""

import numpy as np
import pytest

from dpcore.domain.axes import Bins, Grid
from dpcore.estimates.inside import moved_inside

FIVES = Bins("years", (*range(0, 45, 5), 45), integer=True)
SCHOOL = Grid("school", 0, 18, 19, integer=True)


def sums(rows: int, seed: int) -> tuple[float, float, float]:
    """The sum of products of two related columns, the one computed from fives, and its correction."""
    generator = np.random.default_rng(seed)
    school = np.clip(np.rint(generator.normal(12, 3, rows)), 0, 18).astype(int)
    years = np.clip(np.rint(generator.normal(46 - 2 * school, 6)), 0, 44).astype(int)
    table = np.zeros((FIVES.cells, SCHOOL.size))
    np.add.at(table, (years // 5, school), 1.0)
    of_bin = np.bincount(years // 5, years, FIVES.cells) / np.maximum(table.sum(axis=1), 1)
    values = np.outer(of_bin, np.arange(SCHOOL.size))
    moved = moved_inside(values, table, (FIVES, SCHOOL))
    return float(years @ school), float(np.sum(values * table)), moved


def test_the_correction_takes_away_most_of_the_error_of_wide_bins():
    for seed in range(5):
        exact, from_bins, moved = sums(50_000, seed)
        assert abs(exact - from_bins) > 2000  # of the correlation of both, 4%
        assert abs(exact - from_bins - moved) < 0.2 * abs(exact - from_bins)


def test_a_function_of_one_column_does_not_move():
    table = np.random.default_rng(0).random((FIVES.cells, SCHOOL.size))
    alone = np.outer(np.arange(FIVES.cells) ** 2.0, np.ones(SCHOOL.size))
    assert moved_inside(alone, table, (FIVES, SCHOOL)) == pytest.approx(0.0, abs=1e-9)
    assert moved_inside(alone[:, 0], table[:, 0], (FIVES,)) == 0.0


def test_bins_of_one_number_and_columns_without_bins_do_not_move():
    single = Bins("years", tuple(range(10)), integer=True)
    table = np.random.default_rng(0).random((9, 19))
    values = np.outer(np.arange(9.0), np.arange(19.0))
    assert moved_inside(values, table, (single, SCHOOL)) == 0.0
    assert moved_inside(table, table, (Grid("a", 0, 9, 9), SCHOOL)) == 0.0


def test_a_value_that_many_records_have_says_nothing_of_its_neighbours():
    bins = Bins("pay", (0.0, 0.0, 10.0, 20.0, 30.0, 40.0))
    table = np.random.default_rng(1).random((5, 19))
    values = np.outer([0.0, 5, 15, 25, 35], np.arange(19.0))
    crowded = table.copy()
    crowded[0] += 1000.0
    assert moved_inside(values, table, (bins, SCHOOL)) != 0.0
    assert moved_inside(values, crowded, (bins, SCHOOL)) == pytest.approx(
        moved_inside(values, table, (bins, SCHOOL))
    )
