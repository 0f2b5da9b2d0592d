"""Every table of every kind of release says how wrong its numbers may be."""

from functools import cache

import numpy as np
import pytest

from dpcore.axes import Categories
from dpcore.budget import Budget
from dpcore.domain import Domain
from dpcore.privacy_line import perturb
from dpcore.releases.base import Evaluable
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.table import Table, TableColumn, Uncertainty
from dpcore.sampling.source import SeededSource
from dpcore.statistic import Noisy
from tests.dpcore.releases.contract import CASES, tally_of

pytestmark = pytest.mark.usefixtures("short_fits")
every_case = pytest.mark.parametrize("name", CASES)

FUNCTIONS = [name for name, case in CASES.items() if isinstance(case.release, Evaluable)]


@cache
def tables(name):
    case = CASES[name]
    release = case.release
    exact = release.statistic(tally_of(release.domain, np.array(case.near + case.company)))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(1))
    return noisy, release.publish(noisy).tables


@every_case
def test_numbers_come_with_errors_and_intervals_that_hold_them_in_order(name):
    _, published = tables(name)
    for table in published:
        assert table.uncertainty, table.name
        for uncertainty in table.uncertainty:
            assert uncertainty.statement
            if uncertainty.standard_error is not None:
                assert np.all(table.columns[uncertainty.standard_error] >= 0)
            if uncertainty.interval is not None:
                lower, upper = (table.columns[end] for end in uncertainty.interval)
                assert np.all(lower <= upper)


@every_case
def test_columns_that_tell_of_the_survey_say_of_which_column(name):
    case = CASES[name]
    _, published = tables(name)
    for table in published:
        assert set(table.about.values()) <= set(case.release.domain.names)


@every_case
def test_the_names_that_are_checked_are_the_names_that_are_published(name):
    release, (_, published) = CASES[name].release, tables(name)
    own = {column for axis in release.domain.axes for column in release.published_names(axis)}
    if release.statistics:
        assert {release.table_name(d) for d in release.domains} <= {t.name for t in published}
    for table in published:
        if release.statistics and table.about:
            assert set(table.about) <= own
            assert set(table.columns) - set(table.about) <= set(release.statistics)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_had_at_points_of_its_domain(name):
    release, (noisy, _) = CASES[name].release, tables(name)
    axes = getattr(release, "feature_axes", release.domain.axes)
    points = {axis.name: np.linspace(axis.lower, axis.upper, 5) for axis in axes}
    found = release.evaluate(noisy, points)
    assert all(len(column) == 5 for column in found.values())
    assert np.all(found["lower_90"] <= found["upper_90"])
    with pytest.raises(ValueError, match="points"):
        release.evaluate(noisy, {})
    outside = {axis.name: np.array([axis.upper + 1]) for axis in axes}
    with pytest.raises(ValueError, match="must lie in"):
        release.evaluate(noisy, outside)


@pytest.mark.parametrize(
    "name", ["function", "periodic density", "binned density in two dimensions"]
)
def test_a_function_at_the_points_of_its_table_is_the_table(name):
    release, (noisy, (table, *_)) = CASES[name].release, tables(name)
    found = release.evaluate(noisy, {n: table.columns[n] for n in release.domain.names})
    for column, values in found.items():
        expected = table.columns[column]
        # The grid of a function has a jitter that its interpolant has not.
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-3 * np.abs(expected).max())


def test_a_machine_takes_nulls_where_its_column_has_them():
    name = "classifier on a column with nulls"
    case, (noisy, _) = CASES[name], tables(name)
    masked = np.ma.masked_array([1.0, 0.0, 1.5], mask=[False, True, False])
    first = case.release.evaluate(noisy, {"x": masked})
    second = case.release.evaluate(noisy, {"x": np.array([1.0, np.nan, 1.5])})
    np.testing.assert_array_equal(first["decision"], second["decision"])
    middle = case.release.evaluate(noisy, {"x": np.array([1.5])})
    assert first["decision"][1] != middle["decision"][0] == first["decision"][2]
    with pytest.raises(ValueError, match="has no nulls"):
        CASES["classifier"].release.evaluate(tables("classifier")[0], {"x": [None]})


def test_a_table_with_a_name_twice_or_errors_in_missing_columns_is_refused():
    count = TableColumn("count", np.array([1]), "")
    missing = Uncertainty("count", "error", None, "exact", "")
    with pytest.raises(ValueError, match=r"columns that it does not have, \['error'\]"):
        Table("t", "x", [count], (missing,))
    with pytest.raises(ValueError, match="two columns have one name"):
        Table("t", "x", [count, count])


def test_what_cannot_be_added_up_says_so():
    case = CASES["binned density"]
    with pytest.raises(ValueError, match="cannot be added up"):
        case.release.sum_variance({"b": np.ones(1)})
    with pytest.raises(ValueError, match="passed a threshold"):
        CASES["thresholded histogram"].release.sum_variance({"t": np.ones(6)})


def test_the_counts_of_two_cells_err_by_half_the_difference_of_their_noise():
    """Projection to the rows halves the difference of two noises: their error over sqrt 2."""
    release = Histogram("h", Domain((Categories("yes", (False, True)),)), 600, Budget.of("0.5"))
    (table,) = release.publish(Noisy(np.array([371, 236]))).tables
    expected = release.mechanism.stddev / np.sqrt(2)
    np.testing.assert_allclose(table.columns["count_standard_error"], expected, rtol=0.1)
