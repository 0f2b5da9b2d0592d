"""Quantiles: exact laws and losses on small grids, stated rank errors, and their publication."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency, Relation
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy, Statistic
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import drawn, opened, repeated_draws

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
AGE = Domain((Grid("age", 0, 91, 91, integer=True),))


def quantiles(cells: int, rows: int, levels=QUARTILES, alpha: str = "1") -> ColumnQuantiles:
    domain = Domain((Grid("x", 0.0, 1.0, cells),))
    return ColumnQuantiles("q", domain, rows, Budget.of(alpha), levels)


def log_laws(release: ColumnQuantiles, records: tuple[int, ...]) -> np.ndarray:
    """(levels, cells) the logarithms of the chances of every choice, from the definition."""
    values, n = np.array(records), release.rows
    scores = [
        [
            max(np.sum(values < c) - level * n, level * n - np.sum(values <= c), 0)
            for c in range(release.domain.size)
        ]
        for level in release.levels
    ]
    # Each choice has its part of alpha; the sensitivity of a score is one record.
    rate = float(release.share.alpha) / len(release.levels) / 2
    logs = -rate * np.array(scores, dtype=float)
    return logs - np.logaddexp.reduce(logs, axis=1)[:, None]


def test_one_weighted_record_moves_scores_by_its_steps_at_most_and_some_so_far():
    """All tables of three records of up to two steps of weight in four cells, and all neighbours."""
    of_weights = Adjacency("replace-one", 2, weighted=True)
    release = replace(quantiles(4, 6, (Fraction(1, 4), Fraction(1, 2))), adjacency=of_weights)
    ways = [steps * (cell,) for cell in range(4) for steps in range(3)]
    largest = 0
    for others in combinations_with_replacement(ways, 2):
        rest = sum(others, ())
        scores = np.array([opened(release, (*rest, *way)) for way in ways])
        largest = max(largest, int(np.abs(scores[:, None] - scores[None]).max()))
    assert largest == release.mechanism.sensitivity


def test_choices_follow_the_law_of_the_definition():
    release, records = quantiles(6, 5, alpha="3"), (0, 1, 1, 4, 5)
    draws = repeated_draws(release, records, 40_000, SeededSource(1))
    for level in range(3):
        chances = np.bincount(draws[:, level].astype(int), minlength=6) / 40_000
        np.testing.assert_allclose(chances, np.exp(log_laws(release, records)[level]), atol=0.014)


@pytest.mark.parametrize("records", [(3,), (2, 2, 2, 2), (0, 0, 5, 5), (0, 1, 2, 3, 4, 5)])
def test_an_exact_quantile_scores_zero_and_others_the_records_that_they_miss(records):
    release = quantiles(6, len(records))
    scores = opened(release, records).reshape(3, 6) / 4
    assert (scores.min(axis=1) == 0).all()
    for level, row in zip(QUARTILES, scores, strict=True):
        exact = np.quantile(records, float(level), method="inverted_cdf")
        assert row[int(exact)] == 0
    assert scores.max() <= 3 * len(records) / 4


def test_much_budget_gives_the_quantiles_themselves_sorted_with_the_columns_own_values():
    records = np.repeat([20, 40, 70], (30, 40, 30))
    release = ColumnQuantiles("q", AGE, 100, Budget.of("10000"), QUARTILES)
    noisy = drawn(release, records)
    (table,) = release.publish(noisy).tables
    assert table.columns["age"].tolist() == [20, 40, 70]
    assert table.columns["level"].tolist() == [0.25, 0.5, 0.75]
    crossed = Noisy(np.array([50, 10, 30]))
    assert release.publish(crossed).tables[0].columns["age"].tolist() == [10, 30, 50]


def test_one_record_and_one_value_are_enough():
    assert drawn(quantiles(1, 1), (0,)).values.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ((), "at least one"),
        ((Fraction(0),), "strictly between 0 and 1"),
        ((Fraction(1, 2), Fraction(1, 2)), "must ascend"),
        ((Fraction(1, 2**62),), "^levels: .*2\\^61.*fewer digits"),
    ],
)
def test_levels_that_make_no_sense_are_refused(levels, says):
    with pytest.raises(ValueError, match=says):
        quantiles(6, 10, levels)


def test_columns_without_an_order_or_with_too_many_values_are_refused():
    with pytest.raises(ValueError, match="'x' has real numbers"):
        ColumnQuantiles(
            "q", Domain((Grid("x", 0, 1, 4), AGE.axes[0])), 9, Budget.of("1"), QUARTILES, 1
        )
    many = Grid("n", 0, 5000, 5000, integer=True)
    with pytest.raises(ValueError, match="5000 groups, more than 4096"):
        ColumnQuantiles("q", Domain((many, AGE.axes[0])), 9, Budget.of("1"), QUARTILES, 1)
    with pytest.raises(ValueError, match="too many values"):
        quantiles(2**24, 9)


BY_GROUP = Domain((Categories("place", ("a", "b")), Grid("x", 0.0, 1.0, 4, nullable=True)))


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_no_unit_moves_the_scores_of_groups_by_more_than_their_price(relation: Relation, most: int):
    """Over all tables of two records beside a unit, by the moves of scores and by losses of choices."""
    adjacency = Adjacency(relation, most)
    release = ColumnQuantiles(
        "q", BY_GROUP, 3, Budget.of("1"), QUARTILES, by=1, adjacency=adjacency
    )
    event, cells = release.mechanism.event, range(BY_GROUP.size)
    least = most if adjacency.public_rows else 0
    units = [u for n in range(least, most + 1) for u in combinations_with_replacement(cells, n)]
    moved, together, losses = 0, 0, 0.0
    for shared in combinations_with_replacement(cells, 2):
        scores = np.array([opened(release, shared + unit).reshape(6, 4) for unit in units])
        logs = -scores / float(event.scale)
        logs -= np.logaddexp.reduce(logs, axis=2, keepdims=True)
        for i in range(len(units)) if relation == "replace-one" else [0]:
            moves = np.abs(scores - scores[i]).max(axis=2)
            moved, together = max(moved, moves.max()), max(together, moves.sum(axis=1).max())
            losses = max(losses, np.abs(logs - logs[i]).max(axis=2).sum(axis=1).max())
    assert moved == event.sensitivity
    assert 0.8 * event.selections < together / event.sensitivity <= event.selections
    assert 0.35 < losses <= 1


def test_groups_and_columns_multiply_the_price_of_a_record_that_leaves_one_for_another():
    """Both columns' medians move in both groups, by half a record each."""
    domain = Domain((*BY_GROUP.axes, AGE.axes[0]))
    release = ColumnQuantiles("q", domain, 2, Budget.of("1"), (Fraction(1, 2),), by=1)
    near, far = (
        Statistic(opened(release, domain.pack(np.array([[group, 1, 9]])))) for group in (0, 1)
    )
    assert release.mechanism.moved_by(near, far) == 1
    assert release.mechanism.selections == 2


def test_a_group_without_records_has_any_value_and_few_records_hardly_matter():
    release = ColumnQuantiles("q", BY_GROUP, 9, Budget.of("1"), QUARTILES, by=1)
    draws = repeated_draws(release, (0, 0, 4), 20_000, SeededSource(3))
    for choice in range(3, 6):
        np.testing.assert_allclose(
            np.bincount(draws[:, choice].astype(int)) / 20_000, 0.25, atol=0.018
        )
    noisy = drawn(release, (0,))
    assert release.publish(noisy).tables[0].columns["rank_error_records_90"][0] > 8


def test_much_budget_gives_each_group_its_own_quantiles():
    release = ColumnQuantiles("q", BY_GROUP, 6, Budget.of("10000"), QUARTILES, by=1)
    noisy = drawn(release, (0, 1, 2, 4, 4, 6, 6, 6, 9))
    (table,) = release.publish(noisy).tables
    assert table.columns["place"].tolist() == ["a"] * 3 + ["b"] * 3
    assert table.columns["x_from"].tolist() == [0, 0.25, 0.5, 0.25, 0.25, 0.25]
    assert not np.ma.is_masked(table.columns["x_from"])
    assert "rank_error_records_90" in table.columns
