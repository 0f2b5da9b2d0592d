"""The errors that a report states of sums are those that they have."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.post.tables.consistency import make_consistent
from dpcore.post.tables.margins import Margin
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.unit import Unit
from dpcore.releases.table import TWO_SIDED
from dpcore.releases.tables.margins import MarginTables
from schemas.survey.columns import CategoricalColumn
from tasks.report.cells import CountTable
from tasks.report.synthetic import count_records

DRAWS = 4000


A, B, C = (Categories(n, tuple("xyzuv"[:k])) for n, k in (("a", 3), ("b", 4), ("c", 5)))
COLUMNS = {"a": CategoricalColumn(type="categorical", categories=["x", "y", "z"])}


@pytest.mark.parametrize("public", [True, False])
def test_a_sum_of_cells_has_the_error_that_draws_show_and_knows_a_public_number(public):
    relation = Adjacency() if public else Adjacency("add-remove")
    release = Histogram("h", Domain((A, B)), 100, Budget(Fraction(1)), adjacency=relation)
    random, stddev = np.random.default_rng(1), release.mechanism.stddev
    draws = random.normal(scale=stddev, size=(DRAWS, 3, 4)).sum(axis=2)
    value, error = release.supported_margin(Noisy(np.arange(12)), ("a",))
    assert value == pytest.approx(np.array([6, 22, 38]) + (100 - 66) / 3 * public)
    draws = draws - draws.mean(axis=1, keepdims=True) * public
    assert error == pytest.approx(draws.std(), rel=0.03)
    counts = CountTable.of_axis(A, value, error, COLUMNS, Unit(weighted=True))
    assert counts.upper - counts.value == pytest.approx(TWO_SIDED * error)
    assert (counts.number, counts.sides) == ("noisy sum of weights", [["x", "y", "z"]])


@pytest.mark.slow
def test_a_column_of_agreeing_tables_has_the_error_that_draws_show():
    sets = ((0, 1), (0, 2), (1, 2))
    release = MarginTables("m", Domain((A, B, C)), 100, Budget(Fraction(1)), sets)
    variance, shape = release.mechanism.stddev**2, release.domain.shape
    random, sums = np.random.default_rng(2), []
    for _ in range(DRAWS):
        noisy = [
            Margin(attrs, random.normal(scale=variance**0.5, size=domain.shape), variance)
            for attrs, domain in zip(sets, release.domains, strict=True)
        ]
        sums.append(make_consistent(shape, noisy, 0.0)[0].table.sum(axis=1))
    _, stated = release.supported_margin(
        Noisy(np.zeros(release.measurement.cells, np.int64)), ("a",)
    )
    assert stated == pytest.approx(np.std(sums), rel=0.03)


def test_records_are_counted_by_category_interval_and_null():
    people, sexes = np.array(["F", "M", None, "F"], dtype=object), Categories("s", ("F", "M"), True)
    assert count_records(people, sexes).tolist() == [2, 1, 1]
    ages = np.array([17.0, 18.0, 40.0, np.nan])
    assert count_records(ages, Bins("a", (0, 18, 41), True, integer=True)).tolist() == [1, 2, 1]
    # A real interval leaves out its upper end, but for the last.
    assert count_records(ages, Bins("a", (0.0, 18.0, 40.0), True)).tolist() == [1, 2, 1]
