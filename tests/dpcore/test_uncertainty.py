"""Every table of every kind of release says how wrong its numbers may be."""

import numpy as np
import pytest

from dpcore.budget import Budget
from dpcore.domain import Categories, Domain
from dpcore.privacy_line import perturb
from dpcore.releases.base import Evaluable, Table, Uncertainty
from dpcore.releases.histogram import Histogram
from dpcore.releases.machine import KernelMachine
from dpcore.sampling.source import SeededSource
from dpcore.statistic import Noisy
from tests.conftest import those_slow
from tests.dpcore.contract import CASES, FITTED, tally_of

every_case = pytest.mark.parametrize("name", those_slow(CASES, FITTED))

FUNCTIONS = [name for name, case in CASES.items() if isinstance(case.release, Evaluable)]


def tables(case):
    release = case.release
    exact = release.statistic(tally_of(release.domain, np.array(case.near + case.company)))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(1))
    return noisy, release.publish(noisy).tables


@every_case
def test_numbers_come_with_errors_and_intervals_that_hold_them_in_order(name):
    _, published = tables(CASES[name])
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
    _, published = tables(case)
    for table in published:
        assert set(table.about.values()) <= set(case.release.domain.names)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_had_at_points_of_its_domain(name):
    release, (noisy, _) = CASES[name].release, tables(CASES[name])
    axes = release.feature_axes if isinstance(release, KernelMachine) else release.domain.axes
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
    release, (noisy, (table, *_)) = CASES[name].release, tables(CASES[name])
    found = release.evaluate(noisy, {n: table.columns[n] for n in release.domain.names})
    for column, values in found.items():
        expected = table.columns[column]
        # The grid of a function has a jitter that its interpolant has not.
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-3 * np.abs(expected).max())


def test_a_machine_takes_nulls_where_its_column_has_them():
    case = CASES["classifier on a column with nulls"]
    noisy, _ = tables(case)
    masked = np.ma.masked_array([1.0, 0.0, 1.5], mask=[False, True, False])
    first = case.release.evaluate(noisy, {"x": masked})
    second = case.release.evaluate(noisy, {"x": np.array([1.0, np.nan, 1.5])})
    np.testing.assert_array_equal(first["decision"], second["decision"])
    middle = case.release.evaluate(noisy, {"x": np.array([1.5])})
    assert first["decision"][1] != middle["decision"][0] == first["decision"][2]
    with pytest.raises(ValueError, match="has no nulls"):
        CASES["classifier"].release.evaluate(tables(CASES["classifier"])[0], {"x": [None]})


def test_a_table_that_names_columns_it_has_not_is_refused():
    columns = {"count": np.array([1])}
    with pytest.raises(ValueError, match="are no columns"):
        Table("t", "x", columns, {"count": ""}, {"age": "age"})
    missing = Uncertainty("count", "error", None, "exact", "")
    with pytest.raises(ValueError, match="are no columns"):
        Table("t", "x", columns, {"count": ""}, uncertainty=(missing,))


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
