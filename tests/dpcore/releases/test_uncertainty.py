"""Every table of every kind of release says how wrong its numbers may be."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.cell_values import ends_of
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.abilities import Evaluable, Samplable
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.parts import DensityOfParts
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.numbers.mean_curve import MeanCurve
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.table import Table, TableColumn, Uncertainty
from tests.dpcore.releases.contract import CASES, KINDS, drawn, draws, one_of_each

pytestmark = pytest.mark.usefixtures("short_fits")
FUNCTIONS = [
    name
    for name, case in KINDS.items()
    if isinstance(case.release, Evaluable) and not isinstance(case.release, MeanCurve)  # of time
]


@cache
def published(name):
    case = CASES[name]
    release = case.release
    noisy = drawn(release, np.array(case.near + case.company))
    return noisy, release.publish(noisy)


def tables(name):
    noisy, of = published(name)
    return noisy, of.tables


@pytest.mark.parametrize("name", KINDS)
def test_the_same_noisy_statistic_publishes_the_same_tables_and_records(name):
    release, (noisy, first) = CASES[name].release, published(name)
    again = Noisy.from_bytes(noisy.to_bytes())
    assert noisy.reproducible
    second = replace(release).publish(again)
    assert first.facts == second.facts
    for one, other in zip(first.tables, second.tables, strict=True):
        assert one.columns.keys() == other.columns.keys() == one.descriptions.keys()
        for column, values in one.columns.items():
            np.testing.assert_array_equal(values, other.columns[column])
            assert len(values) == len(next(iter(one.columns.values())))
    if isinstance(release, Samplable):
        np.testing.assert_array_equal(release.sample(noisy, 7)[1], release.sample(again, 7)[1])


@pytest.mark.parametrize("name", KINDS)
def test_numbers_come_with_errors_intervals_and_names_that_the_plan_can_check(name):
    release, (_, found) = CASES[name].release, tables(name)
    own = {column for axis in release.domain.axes for column in release.published_names(axis)}
    if release.statistics:
        assert {release.table_name(d) for d in release.domains} <= {t.name for t in found}
    for table in found:
        require_inside(release, table)
        assert set(table.about.values()) <= set(release.domain.names)
        if release.statistics and table.about:
            assert set(table.about) <= own
            assert set(table.columns) - set(table.about) <= set(release.statistics)
        assert table.uncertainty, table.name
        for uncertainty in table.uncertainty:
            assert uncertainty.statement
            if uncertainty.standard_error is not None:
                assert np.all(known(table.columns[uncertainty.standard_error]) >= 0)
            if uncertainty.interval is not None:
                lower, upper = (known(table.columns[end]) for end in uncertainty.interval)
                assert np.all(lower <= upper)


def known(values):
    """The numbers that are not missing."""
    return np.ma.compressed(values)


NEVER_NEGATIVE = {"noisy_count", "estimate", "best_estimate", "noisy_mean"}
"""Columns of unbiased numbers: noise may take them where no exact number is."""


def near(release, table, column):
    """A published number, or the nearest that is possible where noise took an unbiased one outside."""
    values = np.ma.filled(np.ma.asarray(table.columns[column], dtype=float), np.nan)
    if column == "noisy_mean":
        return np.clip(values, *ends_of(release.domain.axes[-1]))
    if (
        column in NEVER_NEGATIVE
        and table.folder == "tables"
        and not isinstance(release, Moments | MeasuredModel | MeanCurve)
    ):
        changes = np.ma.asarray(table.columns.get("quantity", np.full(len(values), "")))
        least = np.where(np.char.startswith(changes.astype(str), "change"), -np.inf, 0.0)
        return np.clip(values, least, float(release.most_rows * getattr(release, "step", 1)))
    return values


ALPHAS = (Fraction(1, 20), Fraction(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each(type))
def test_no_number_lies_outside_its_own_interval_however_much_noise_there_is(name):
    case = CASES[name]
    share = replace(case.release.share, alpha=case.release.share.alpha * ALPHAS[0])
    release = replace(case.release, share=share)
    noisy = drawn(release, case.near + case.company)
    for table in release.publish(noisy).tables:
        require_inside(release, table)


def require_inside(release, table):
    for stated in table.uncertainty:
        if stated.interval is None:
            continue
        value = near(release, table, stated.column)
        lower, upper = (
            np.ma.filled(np.ma.asarray(table.columns[end], dtype=float), np.nan)
            for end in stated.interval
        )
        slack = 1e-9 * (1 + np.nanmax(np.abs([lower, upper, value]), initial=0.0))
        outside = (value < lower - slack) | (value > upper + slack)
        assert not outside.any(), (table.name, stated.column, value[outside], lower[outside])


SEX = Categories("sex", ("F", "M", "X"))
PAY = Grid("pay", 0.0, 100.0, 64)
GROUPS = {
    "mean": RatioMean("m", Domain((SEX, PAY)), 500, Budget.of("1")),
    "mean of few": RatioMean("m", Domain((PAY,)), 20, Budget.of("1"), adjacency=Adjacency("add-remove")),
    "mean curves": MeanCurve(
        "c", Domain((SEX, PAY, replace(PAY, name="later"))), 500, Budget.of("1", "1e-6"), times=(0, 1)
    ),
    "moments": Moments("m", Domain((SEX, PAY)), 500, Budget.of("1", "1e-6")),
    "densities": DensityOfParts(
        "d", Domain((SEX, PAY)), 500, Budget.of("1"),
        BinnedDensity("d", Domain((PAY,)), 500, Budget.of("1"), (0.1,)),
    ),
    "normal densities": DensityOfParts(
        "d", Domain((SEX, PAY)), 500, Budget.of("1", "1e-6"),
        SpectralDensity("d", Domain((PAY,)), 500, Budget.of("1", "1e-6"), (0.2,)),
    ),
}  # fmt: skip
"""Of groups that are empty, tiny and ordinary."""


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
@pytest.mark.parametrize("name", GROUPS)
def test_no_group_of_nobody_has_a_value(name, alpha):
    release = GROUPS[name]
    share = replace(release.share, alpha=release.share.alpha * alpha)
    release = replace(release, share=share)
    many = len(release.domain.axes) > 1
    second = release.domain.size // SEX.size
    codes = np.r_[np.full(497, 20), second + np.array([3, 9, 60])] if many else np.array([9])
    for noisy in draws(release, codes, 1 if "densities" in name else 10):
        (table, *_) = release.publish(noisy).tables
        require_inside(release, table)
        columns, hidden = table.columns, ~np.ma.getmaskarray(table.columns["reason"])
        stated = {u.column: u.standard_error for u in table.uncertainty} | {
            "mean": "standard_error"
        }
        for column in {"mean", "estimate", "density"} & set(columns):
            for each in (column, stated[column]):
                assert np.array_equal(np.ma.getmaskarray(columns[each]), hidden), each
        if not many:
            continue
        if name == "moments":
            of = np.array(
                [f"{o} {c}" for o, c in zip(columns["other"], columns["category"], strict=True)]
            )
            nobody, everybody = (of == f"sex {each}" for each in "XF")
        else:
            nobody, everybody = (np.asarray(columns["sex"] == each) for each in "XF")
        assert hidden[nobody].all()
        if alpha >= 1:
            assert not hidden[everybody].any()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_had_at_points_of_its_domain(name):
    release, (noisy, _) = CASES[name].release, tables(name)
    axes = getattr(release, "feature_axes", release.domain.axes)
    points = {
        axis.name: np.resize(axis.categories, 5)
        if isinstance(axis, Categories)
        else np.linspace(axis.lower, axis.upper, 5)
        for axis in axes
    }
    found = release.evaluate(noisy, points)
    assert all(len(column) == 5 for column in found.values())
    assert np.all(known(found["lower_90"]) <= known(found["upper_90"]))
    with pytest.raises(ValueError, match="points"):
        release.evaluate(noisy, {})
    *_, last = axes
    outside = {name: each[:1] for name, each in points.items()}
    outside[last.name] = np.array([last.upper + 1])
    with pytest.raises(ValueError, match="must lie in"):
        release.evaluate(noisy, outside)


def test_a_machine_takes_nulls_where_its_column_has_them():
    name = "classifier on a column with nulls"
    case, (noisy, _) = CASES[name], tables(name)
    masked = np.ma.masked_array([1.0, 0.0, 1.5], mask=[False, True, False])
    first = case.release.evaluate(noisy, {"x": masked})
    second = case.release.evaluate(noisy, {"x": np.array([1.0, np.nan, 1.5])})
    np.testing.assert_array_equal(first["decision"], second["decision"])
    middle = case.release.evaluate(noisy, {"x": np.array([1.5])})
    assert first["decision"][2] == pytest.approx(middle["decision"][0], abs=1e-12)
    assert abs(first["decision"][1] - first["decision"][2]) > 1e-6
    with pytest.raises(ValueError, match="has no nulls"):
        CASES["classifier"].release.evaluate(tables("classifier")[0], {"x": [None]})


def test_a_table_with_a_name_twice_or_errors_in_missing_columns_is_refused():
    count = TableColumn("count", np.array([1]), "")
    missing = Uncertainty("count", "error", None, "exact", "")
    with pytest.raises(ValueError, match=r"columns that it does not have, \['error'\]"):
        Table("t", "x", [count], (missing,))
    with pytest.raises(ValueError, match="two columns have the same name"):
        Table("t", "x", [count, count])


def test_what_cannot_be_added_up_says_so():
    with pytest.raises(ValueError, match="passed a threshold"):
        CASES["thresholded histogram"].release.sum_variance({"t": np.ones(6)})
