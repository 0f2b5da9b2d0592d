"""Weighted records fit margins of any number of rows as well as single records do."""

import numpy as np
import pytest

from dpcore.post.records import weighted
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.fit import fit_records
from dpcore.post.records.weighted import fit_weighted
from dpcore.post.tables.margins import Margin, margins_of
from tests.dpcore.post.records.population import misfit

SIZES = (3, 4, 2, 5)
COLUMNS = RecordColumns(SIZES)
SETS = [(0, 1), (1, 2), (2, 3), (0, 3)]


@pytest.fixture
def small_fits(monkeypatch):
    """As if 4000 records were all that can be fitted at once."""
    monkeypatch.setattr(weighted, "LARGEST_FIT", 4000)


def noisy_margins(rows: int, stddev: float = 3.0, seed: int = 5) -> list:
    random = np.random.default_rng(seed)
    share = random.dirichlet(np.full(np.prod(SIZES), 0.3)).reshape(SIZES)
    margins = []
    for attributes in SETS:
        gone = tuple(a for a in range(len(SIZES)) if a not in attributes)
        table = share.sum(axis=gone) * rows
        margins.append(Margin(attributes, table + random.normal(0, stddev, table.shape), stddev**2))
    return margins


@pytest.mark.parametrize("rows", [0, 1, 3999, 4000])
def test_few_rows_are_fitted_one_by_one(rows, small_fits):
    fitted = fit_weighted(COLUMNS, noisy_margins(rows), rows, np.random.default_rng(1))
    single = fit_records(COLUMNS, noisy_margins(rows), rows, np.random.default_rng(1))
    np.testing.assert_array_equal(fitted.records(), single)


@pytest.mark.parametrize("rows", [4001, 16_001])
def test_the_weights_add_up_to_the_rows_and_the_margins_are_those_of_the_records(rows, small_fits):
    fitted = fit_weighted(COLUMNS, noisy_margins(rows), rows, np.random.default_rng(1))
    records = fitted.records()
    assert len(records) == rows
    assert fitted.weights.min() == 1
    for one, other in zip(
        fitted.margins(SIZES, SETS), margins_of(records, SIZES, SETS), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [7000])
def test_the_fit_is_as_close_as_that_of_single_records(rows, small_fits):
    margins = noisy_margins(rows)
    fitted = fit_weighted(COLUMNS, margins, rows, np.random.default_rng(1))
    single = fit_records(COLUMNS, margins, rows, np.random.default_rng(1))
    cells = sum(table.size for _, table, _ in margins)
    best = misfit(single, SIZES, margins)
    assert misfit(fitted.records(), SIZES, margins) < best + 0.1 * cells


def test_margins_of_another_total_are_scaled(small_fits):
    margins = noisy_margins(300)
    hundredfold = [
        Margin(attrs, table * 100, variance * 100**2) for attrs, table, variance in margins
    ]
    small = fit_weighted(COLUMNS, margins, 30_000, np.random.default_rng(1), total=300)
    large = fit_weighted(COLUMNS, hundredfold, 30_000, np.random.default_rng(1))
    np.testing.assert_array_equal(small.codes, large.codes)
    np.testing.assert_array_equal(small.weights, large.weights)


@pytest.mark.slow
def test_blocks_are_all_records_and_each_has_its_share_of_every_one(small_fits):
    fitted = fit_weighted(COLUMNS, noisy_margins(40_000), 40_000, np.random.default_rng(1))
    blocks = [*fitted.blocks(5)]
    of_rows = [
        sorted(map(tuple, rows.tolist())) for rows in (np.concatenate(blocks), fitted.records())
    ]
    assert of_rows[0] == of_rows[1]
    assert {len(block) for block in blocks} == {8000}
    for counts in zip(*(margins_of(block, SIZES, SETS) for block in blocks), strict=True):
        expected = np.mean(counts, axis=0)
        assert np.all(np.abs(np.array(counts) - expected) <= 6 * np.sqrt(expected + 1))
