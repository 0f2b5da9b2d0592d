"""The errors that a report states of sums are those that they have."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.budget import Budget
from dpcore.domain import Categories, Domain
from dpcore.post.consistency import make_consistent
from dpcore.post.margins import Margin
from dpcore.releases.margins import Margins
from schemas.columns import CategoricalColumn
from tasks.report.cells import NORMAL_90, Counts, read_counts
from tasks.report.counts import count_table, summed
from tasks.report.synthetic import _implied, count_records

DRAWS = 4000


def counts_of(values: np.ndarray, error: float) -> Counts:
    """A table of two columns whose cells all have one error."""
    rows, columns = np.indices(values.shape)
    sides = [rows.ravel().tolist(), columns.ravel().tolist()]
    labels = [[str(key) for key in side] for side in sides]
    flat, width = values.ravel(), np.full(values.size, error)
    return Counts(["a", "b"], sides, labels, flat, flat - width, flat + width, width)


def test_a_sum_of_independent_cells_has_the_error_that_draws_show():
    random = np.random.default_rng(1)
    draws = random.normal(scale=3.0, size=(DRAWS, 4, 5)).sum(axis=2)
    table = summed(counts_of(np.arange(20.0).reshape(4, 5), 3.0), 0)
    assert table.value.tolist() == [10, 35, 60, 85]
    assert table.error == pytest.approx(draws.std(), rel=0.03)
    assert table.upper - table.value == pytest.approx(NORMAL_90 * table.error)


def test_a_column_of_agreeing_tables_has_the_error_that_draws_show():
    axes = tuple(Categories(n, tuple("xyzuv"[:k])) for n, k in (("a", 3), ("b", 4), ("c", 5)))
    sets = ((0, 1), (0, 2), (1, 2))
    release = Margins("m", Domain(axes), 100, Budget(Fraction(1)), sets)
    variance, shape = release.mechanism.stddev**2, release.domain.shape
    random, sums = np.random.default_rng(2), []
    for _ in range(DRAWS):
        noisy = [
            Margin(attrs, random.normal(scale=variance**0.5, size=domain.shape), variance)
            for attrs, domain in zip(sets, release.domains, strict=True)
        ]
        sums.append(make_consistent(shape, noisy, 0.0)[0].table.sum(axis=1))
    stated = _implied(release, 0, summed(counts_of(np.zeros((3, 4)), 1.0), 0)).error
    assert stated == pytest.approx(np.std(sums), rel=0.03)


def test_records_are_counted_by_category_interval_and_null():
    people = np.array(["F", "M", None, "F"], dtype=object)
    assert count_records(people, ["F", "M", None]).tolist() == [2, 1, 1]
    ages = np.array([17.0, 18.0, 40.0, np.nan])
    assert count_records(ages, [(0, 17), (18, 40), None]).tolist() == [1, 2, 1]
    # A real interval leaves out its upper end, but for the last.
    assert count_records(ages, [(0.0, 18.0), (18.0, 40.0), None]).tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("column", "of", "head"),
    [
        ("noisy_count", "records", "Noisy count"),
        ("estimate", "records", "Estimate"),
        ("noisy_count", "weights", "Noisy sum of weights"),
        ("estimate", "weights", "Estimated sum of weights"),
    ],
)
def test_a_table_s_numbers_are_headed_by_what_they_are(column, of, head):
    sexes = {"sex": CategoricalColumn(type="categorical", categories=["F", "M"])}
    numbers = dict.fromkeys(("lower_90", "upper_90", "standard_error", column), np.ones(2))
    counts = read_counts({"sex": np.array(["F", "M"])} | numbers, sexes, of)
    assert count_table(counts, "x.parquet").header == ("sex", head, "90% interval")
