"""Correlations outlive the noise of single cells, in tables and in the records that follow them."""

from itertools import combinations

import numpy as np
import pytest

from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.trends import Summed, follow_trends, keep_trends
from dpcore.post.records.weighted import fit_weighted
from dpcore.post.tables.margins import Margin, margins_of


@pytest.mark.parametrize("rare", [1e-9, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("goal", [-300.0, 300.0])
def test_a_correlation_that_noise_alone_shows_leaves_finite_counts(rare: float, goal: float):
    """Where a few of many records are not of one value, their scores are in the hundreds."""
    shares = np.array([100.0, rare, rare, 0.0])
    model = np.maximum(np.outer(shares, shares) / shares.sum(), 1e-12)
    noisy = model + goal * np.sign(np.outer([-1, 1, 1, 0], [-1, 1, 1, 0]))
    table = model.copy()
    keep_trends([table], [model], [Margin((0, 1), noisy, 10.0)], {0: 3, 1: 3})
    assert np.isfinite(table).all()
    assert (table >= 0).all()
    assert table.sum() == pytest.approx(model.sum())


def counts_of_visits(slope: float) -> np.ndarray:
    """Of two kinds of visits, which most people make none of, and who makes one makes the other."""
    shares = np.array([0.77, 0.12, 0.05, 0.03, 0.02, 0.01])
    ranks = np.cumsum(shares) - shares / 2
    ranks = (ranks - shares @ ranks) / np.sqrt(shares @ (ranks - shares @ ranks) ** 2)
    table = np.outer(shares, shares) * np.exp(slope * np.outer(ranks, ranks))
    for _ in range(50):
        for axis in (0, 1):
            table *= np.expand_dims(shares, axis) / table.sum(axis, keepdims=True)
    return 4000 * table


def correlation(table: np.ndarray) -> float:
    """Of the ranks of both sides."""
    scores = []
    for axis in (0, 1):
        shares = table.sum(1 - axis) / table.sum()
        ranks = np.cumsum(shares) - shares / 2
        ranks = ranks - shares @ ranks
        scores.append(ranks / np.sqrt(shares @ ranks**2))
    return float(np.sum(np.outer(*scores) * table) / table.sum())


@pytest.mark.parametrize(("error", "most"), [(0.1, 0.005), (20.0, 0.05)])
def test_rare_cells_hardly_spoil_a_correlation(error: float, most: float):
    """Noise of 20 in each cell, as many as rare ones hold, would be 0.1 in their sum of products."""
    generator = np.random.default_rng(11)
    truth = [counts_of_visits(slope) for slope in np.linspace(-0.15, 0.35, 21)]
    models = [np.outer(t.sum(1), t.sum(0)) / t.sum() for t in truth]
    noisy = [Margin((0, 1), t + generator.normal(0, error, t.shape), error**2) for t in truth]
    tables = [model.copy() for model in models]
    keep_trends(tables, models, noisy, {0: 6, 1: 6})
    wrong = [correlation(table) - correlation(t) for table, t in zip(tables, truth, strict=True)]
    assert max(map(correlation, truth)) > 0.3
    assert np.sqrt(np.mean(np.square(wrong))) < most


def test_a_sum_of_products_shows_a_correlation_that_noise_in_cells_hides():
    generator, halves = np.random.default_rng(14), np.array([-8.0, 8, 8, 8, 8, 8])
    truth = [counts_of_visits(slope) for slope in np.linspace(-0.15, 0.35, 21)]
    models = [np.outer(t.sum(1), t.sum(0)) / t.sum() for t in truth]
    noisy = [
        Margin((i, i + 1), t + generator.normal(0, 60, t.shape), 3600.0)
        for i, t in enumerate(truth)
    ]
    sums = {
        margin.attributes: Summed(np.outer(halves, halves), float(halves @ t @ halves), 8000.0**2)
        for margin, t in zip(noisy, truth, strict=True)
    }
    wrong = []
    for known in ({}, sums):
        tables = [model.copy() for model in models]
        keep_trends(tables, models, noisy, dict.fromkeys(range(22), 6), known)
        found = [
            correlation(table) - correlation(t) for table, t in zip(tables, truth, strict=True)
        ]
        wrong.append(np.sqrt(np.mean(np.square(found))))
    assert 2 * wrong[1] < wrong[0]


def test_columns_that_no_record_has_both_of_have_no_correlation():
    """Hours of who works, and months without work of who does not."""
    model = np.array([[0.0, 0.0, 30.0], [0.0, 0.0, 40.0], [20.0, 50.0, 5.0]])
    table, noisy = model.copy(), np.where(model > 0, model + 3.0, 0.0)
    keep_trends([table], [model], [Margin((0, 1), noisy, 10.0)], {0: 2, 1: 2})
    np.testing.assert_array_equal(table, model)


def test_records_that_a_refit_leads_away_from_their_correlations_are_kept():
    generator = np.random.default_rng(15)
    codes = np.repeat(np.arange(5), 40)[:, None].repeat(2, axis=1)
    codes[::4, 1] = generator.integers(0, 5, 50)
    target = Margin((0, 1), np.diag(np.full(5, 40.0)), 4.0)
    unrelated = np.stack([codes[:, 0], generator.permutation(codes[:, 1])], axis=1)
    _, found = follow_trends(
        RecordColumns((5, 5), {0: 5, 1: 5}), [target], codes, lambda *_: unrelated
    )
    assert found is codes


@pytest.mark.slow
def test_records_have_a_strong_correlation_that_noise_of_other_tables_contradicts():
    """Children ever born and alive: as tables of either with ten other columns have different noise,
    the least sum of squares makes the two differ."""
    generator, rows, sizes = np.random.default_rng(12), 2000, (5,) * 12
    codes = generator.integers(0, 5, (rows, 12))
    codes[:, 1] = np.where(generator.random(rows) < 0.95, codes[:, 0], codes[:, 1])
    pairs = list(combinations(range(12), 2))
    tables = margins_of(codes, sizes, pairs)
    targets = [
        Margin(
            pair, table + (0 if pair == (0, 1) else generator.normal(0, 40, table.shape)), 1600.0
        )
        for pair, table in zip(pairs, tables, strict=True)
    ]
    found = []
    for in_order in ({}, {0: 5, 1: 5}):
        columns = RecordColumns(sizes, in_order)
        made = fit_weighted(columns, targets, rows, np.random.default_rng(13))
        found.append(correlation(made.margins(sizes, [(0, 1)])[0].astype(float)))
        counts = made.margins(sizes, [(0,)])[0]
        assert np.abs(counts - np.bincount(codes[:, 0])).max() < 60
    wanted = correlation(tables[0].astype(float))
    assert found[0] < wanted - 0.1
    assert abs(found[1] - wanted) < (wanted - found[0]) / 2
