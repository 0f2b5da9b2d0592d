"""Sums over bins, corrected by what neighbouring bins say of the values inside."""

import numpy as np
import pytest

from dpcore.domain.axes import Bins, Grid
from dpcore.domain.domain import Domain
from dpcore.estimates.design import ModelRecords, Variable
from dpcore.estimates.inside import moved_inside, slopes_inside

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
    changes = np.outer(np.ones(FIVES.cells), np.arange(SCHOOL.size))
    moved, _ = moved_inside(changes, table, (FIVES, SCHOOL), 0)
    return float(years @ school), float(np.sum(values * table)), moved


def test_the_correction_takes_away_most_of_the_error_of_wide_bins():
    for seed in range(5):
        exact, from_bins, moved = sums(50_000, seed)
        assert abs(exact - from_bins) > 2000  # of the correlation of both, 4%
        assert abs(exact - from_bins - moved) < 0.2 * abs(exact - from_bins)


def test_a_function_of_one_column_does_not_move():
    table = np.random.default_rng(0).random((FIVES.cells, SCHOOL.size))
    alone = np.outer(np.arange(FIVES.cells) ** 2.0, np.ones(SCHOOL.size))
    assert moved_inside(alone, table, (FIVES, SCHOOL), 0)[0] == pytest.approx(0.0, abs=1e-9)
    assert moved_inside(alone[:, 0], table[:, 0], (FIVES,), 0)[0] == 0.0


def test_bins_of_one_number_and_columns_without_bins_do_not_move():
    single = Bins("years", tuple(range(10)), integer=True)
    table = np.random.default_rng(0).random((9, 19))
    values = np.outer(np.arange(9.0), np.arange(19.0))
    assert moved_inside(values, table, (single, SCHOOL), 0)[0] == 0.0
    assert moved_inside(table, table, (Grid("a", 0, 9, 9), SCHOOL), 0)[0] == 0.0


def test_a_value_that_many_records_have_says_nothing_of_its_neighbours():
    bins = Bins("pay", (0.0, 0.0, 10.0, 20.0, 30.0, 40.0))
    table = np.random.default_rng(1).random((5, 19))
    values = np.outer([0.0, 5, 15, 25, 35], np.arange(19.0))
    crowded = table.copy()
    crowded[0] += 1000.0
    assert moved_inside(values, table, (bins, SCHOOL), 0)[0] != 0.0
    assert moved_inside(values, crowded, (bins, SCHOOL), 0)[0] == pytest.approx(
        moved_inside(values, table, (bins, SCHOOL), 0)[0]
    )


def test_a_condition_that_a_bin_meets_as_a_whole_does_not_change_inside_it():
    generator = np.random.default_rng(0)
    years = generator.integers(0, 45, 4000)
    domain = Domain((FIVES,))
    records = ModelRecords(domain, (years // 5)[:, None], np.ones(4000, dtype=bool))

    def slopes(values: np.ndarray) -> np.ndarray:
        variable = Variable.over("u", values, records, (0,), lambda: np.zeros(FIVES.cells))
        return slopes_inside(variable, records, "years", np.ma.masked_array(years))

    assert not slopes((years >= 20).astype(float)).any()
    assert np.allclose(slopes(3.0 * years), 3.0)
    within = slopes((years >= 22).astype(float))
    assert np.flatnonzero(within).tolist() == [4]


def test_the_weights_say_what_one_more_record_moves():
    generator = np.random.default_rng(2)
    table, changes = generator.uniform(50, 100, (9, 19)), generator.normal(size=(9, 19))
    moved, weights = moved_inside(changes, table, (FIVES, SCHOOL), 0)
    for cell in [(0, 0), (4, 7), (8, 18)]:
        more = table.copy()
        more[cell] += 1e-4
        by = (moved_inside(changes, more, (FIVES, SCHOOL), 0)[0] - moved) / 1e-4
        assert by == pytest.approx(weights[cell], rel=1e-3)


def test_columns_that_are_independent_do_not_move_however_uneven_the_bins_are():
    table = np.outer([8000, 1500, 400, 90, 9, 1, 0.5, 0.2, 0.1], np.arange(1.0, 20.0))
    changes = np.outer(np.ones(FIVES.cells), np.arange(19.0))
    assert moved_inside(changes, table, (FIVES, SCHOOL), 0)[0] == pytest.approx(0.0, abs=1e-6)
