"""Sums over bins, corrected by what neighbouring bins say of the values inside."""

import numpy as np
import pytest

from dpcore.domain.axes import Bins, Grid
from dpcore.domain.domain import Domain
from dpcore.estimates.design import ModelRecords, Variable
from dpcore.estimates.inside import bins_of, moved_in_bins, openness, slopes_in_cells

FIVES = Bins("years", (*range(0, 45, 5), 45), integer=True)
SCHOOL = Grid("school", 0, 18, 19, integer=True)


def moved(
    changes: np.ndarray, table: np.ndarray, bins: Bins = FIVES, years: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Values lie evenly inside the bins, or are those of ``years``."""
    codes = np.empty((0, 1), dtype=np.int64)
    if years is not None:
        codes = np.searchsorted(bins.edges, years, side="right")[:, None] - 1
    records = ModelRecords(Domain((bins,)), codes, np.ones(len(codes), dtype=bool))
    column = np.ma.masked_array([] if years is None else years)
    return moved_in_bins(changes, table, bins, 0, *bins_of(records, 0, column))


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
    correction, _ = moved(changes, table, years=years)
    return float(years @ school), float(np.sum(values * table)), correction


def test_the_correction_takes_away_most_of_the_error_of_wide_bins():
    for seed in range(5):
        exact, from_bins, correction = sums(50_000, seed)
        assert abs(exact - from_bins) > 2000  # of the correlation of both, 4%
        assert abs(exact - from_bins - correction) < 0.2 * abs(exact - from_bins)


def test_a_function_of_one_column_does_not_move():
    table = np.random.default_rng(0).random((FIVES.cells, SCHOOL.size))
    alone = np.outer(np.arange(FIVES.cells) ** 2.0, np.ones(SCHOOL.size))
    assert moved(alone, table)[0] == pytest.approx(0.0, abs=1e-9)
    assert moved(alone[:, 0], table[:, 0])[0] == 0.0


def test_bins_of_one_number_do_not_move():
    single = Bins("years", tuple(range(10)), integer=True)
    table = np.random.default_rng(0).random((9, 19))
    values = np.outer(np.arange(9.0), np.arange(19.0))
    assert moved(values, table, single)[0] == 0.0


def test_a_value_that_many_records_have_says_nothing_of_its_neighbours():
    bins = Bins("pay", (0.0, 0.0, 10.0, 20.0, 30.0, 40.0))
    table = np.random.default_rng(1).random((5, 19))
    values = np.outer([0.0, 5, 15, 25, 35], np.arange(19.0))
    crowded = table.copy()
    crowded[0] += 1000.0
    assert moved(values, table, bins)[0] != 0.0
    assert moved(values, crowded, bins)[0] == pytest.approx(moved(values, table, bins)[0])


def test_a_condition_that_a_bin_meets_as_a_whole_does_not_change_inside_it():
    generator = np.random.default_rng(0)
    years = generator.integers(0, 45, 4000)
    domain = Domain((FIVES,))
    records = ModelRecords(domain, (years // 5)[:, None], np.ones(4000, dtype=bool))

    def slopes(values: np.ndarray) -> np.ndarray:
        variable = Variable.over("u", values, records, (0,), lambda: np.zeros(FIVES.cells))
        return slopes_in_cells(variable, records, "years", np.ma.masked_array(years))

    assert not slopes((years >= 20).astype(float)).any()
    assert np.allclose(slopes(3.0 * years), 3.0)
    within = slopes((years >= 22).astype(float))
    assert np.flatnonzero(within).tolist() == [4]


def test_the_weights_say_what_a_record_moves_from_one_cell_to_another():
    generator = np.random.default_rng(2)
    table, changes = generator.uniform(50, 100, (9, 19)), generator.normal(size=(9, 19))
    before, weights = moved(changes, table)
    for cell, other in [((0, 0), (0, 3)), ((4, 7), (4, 8)), ((8, 18), (8, 1))]:
        more = table.copy()
        more[cell] += 1e-4
        more[other] -= 1e-4  # the number of records in the bin is taken as known
        by = (moved(changes, more)[0] - before) / 1e-4
        assert by == pytest.approx(weights[cell] - weights[other], rel=1e-3)


def test_columns_that_are_independent_do_not_move_however_uneven_the_bins_are():
    table = np.outer([8000, 1500, 400, 90, 9, 1, 0.5, 0.2, 0.1], np.arange(1.0, 20.0))
    changes = np.outer(np.ones(FIVES.cells), np.arange(19.0))
    assert moved(changes, table)[0] == pytest.approx(0.0, abs=1e-6)


def test_the_last_bin_may_be_far_wider_than_its_neighbours():
    """Pay with a bound far above it, and a tax that grows with it by shares that bins know well."""
    generator = np.random.default_rng(3)
    pay = np.clip(np.exp(generator.normal(8, 0.5, 20_000)), 0, 49_999)
    bins = Bins("pay", (0, 1500, 2000, 2500, 3000, 3500, 4500, 6000, 50_000))
    paid = generator.random(20_000) < np.clip(pay / 20_000, 0, 1)
    codes = np.searchsorted(bins.edges, pay, side="right") - 1
    table = np.zeros((bins.cells, 2))
    np.add.at(table, (codes, paid.astype(int)), 1.0)
    means = np.bincount(codes, pay) / table.sum(axis=1)
    exact, from_bins = float(pay @ paid), float(means @ table[:, 1])
    changes = np.outer(np.ones(bins.cells), [0.0, 1.0])
    correction, _ = moved(changes, table, bins, pay)
    assert abs(exact - from_bins) > 0.01 * exact
    assert abs(exact - from_bins - correction) < 0.5 * abs(exact - from_bins)


def test_a_bin_with_most_of_the_records_says_nothing_of_where_they_are_and_a_point_mass_all():
    tens = Bins("x", (0, 10, 20, 30, 40), False)
    assert openness(tens, np.full(4, 50.0)) == pytest.approx(np.full(4, 1 / 8))
    assert openness(tens, np.array([5000.0, 50.0, -50.0, 50.0]))[[0, 2]].tolist() == [1.0, 0.0]
    massed = Bins("x", (0, 0, 10, 20, 30), False)
    assert openness(massed, np.array([900.0, 50.0, 50.0, 0.0])) == pytest.approx(
        [0, 0.005, 0.005, 0]
    )
