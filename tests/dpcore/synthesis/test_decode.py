"""Synthetic codes become records in the survey's own columns, categories and types."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.tables.margins import MarginTables
from dpcore.sampling.source import SeededSource
from dpcore.synthesis.column import ColumnDensity
from dpcore.synthesis.decode import decode_records
from tests.chance import FALSE_ALARM

PLACE = Categories("place", ("a", "b"), nullable=True)
YES = Categories("yes", (True, False))
AGE = Bins("age", (0.0, 5.0, 20.0, 21.0), nullable=True, integer=True)
INCOME = Bins("income", (-10.0, 0.0, 0.5, 90.0))
YEAR = Grid("year", 1990.0, 2000.0, 10, integer=True)
HEIGHT = Grid("height", 1.0, 2.0, 4, nullable=True)
DOMAIN = Domain((PLACE, YES, AGE, INCOME, YEAR, HEIGHT))
CODES = DOMAIN.unpack(np.random.default_rng(1).integers(DOMAIN.size, size=20_000))


@cache
def decoded() -> dict[str, np.ndarray]:
    return decoded_with({})


def decoded_with(densities: dict) -> dict[str, np.ndarray]:
    return decode_records(DOMAIN, CODES, densities, np.random.default_rng(2))


@pytest.mark.slow
def test_every_column_of_the_domain_comes_out_with_its_type():
    columns = decoded()
    assert tuple(columns) == DOMAIN.names
    kinds = {name: column.dtype.kind for name, column in columns.items()}
    assert kinds == {
        "place": "U",
        "yes": "b",
        "age": "i",
        "income": "f",
        "year": "i",
        "height": "f",
    }
    assert all(len(column) == len(CODES) for column in columns.values())


def test_nulls_are_where_the_codes_say_and_nowhere_else():
    for i, (axis, column) in enumerate(zip(DOMAIN.axes, decoded().values(), strict=True)):
        null = (CODES[:, i] == axis.size - 1) if axis.nullable else np.zeros(len(CODES), bool)
        np.testing.assert_array_equal(np.ma.getmaskarray(column), null)


def test_categories_are_those_of_the_codes():
    columns = decoded()
    for name, expected in (("place", ("a", "b", None)), ("yes", (True, False))):
        codes = CODES[:, DOMAIN.names.index(name)]
        assert columns[name].tolist() == [expected[code] for code in codes]


@pytest.mark.parametrize("axis", [AGE, INCOME, YEAR, HEIGHT], ids=lambda axis: axis.name)
def test_values_lie_in_the_cells_of_their_codes(axis: Bins | Grid):
    column = decoded()[axis.name]
    codes, edges = CODES[:, DOMAIN.names.index(axis.name)], np.asarray(axis.edges)
    kept = ~np.ma.getmaskarray(column)
    values, codes = np.ma.getdata(column)[kept], codes[kept]
    assert np.all(values >= edges[codes])
    assert np.all(values < edges[codes + 1])
    assert set(codes) == set(range(axis.cells))


@pytest.mark.slow
def test_whole_numbers_of_a_bin_are_equally_likely_where_the_plan_says_uniform():
    ages = decoded_with({"age": ColumnDensity.uniform(AGE)})["age"].compressed()
    inside = ages[(ages >= 5) & (ages < 20)]
    assert stats.chisquare(np.bincount(inside - 5, minlength=15)).pvalue > FALSE_ALARM
    assert set(ages) == set(range(21))


@pytest.mark.slow
def test_real_numbers_follow_the_density_of_their_column_inside_each_bin():
    edges = np.linspace(-10, 90, 201)
    mass = stats.gamma(2, scale=8).cdf(edges + 10)
    density = ColumnDensity(edges, mass / mass[-1])
    income = decoded_with({"income": density})["income"]
    for lower, upper in zip(INCOME.edges, INCOME.edges[1:], strict=False):
        inside = income[(income >= lower) & (income < upper)]
        levels = np.interp([lower, upper], edges, density.cumulative)
        ranks = (np.interp(inside, edges, density.cumulative) - levels[0]) / np.diff(levels)
        assert len(inside) > 1000
        assert stats.kstest(ranks, "uniform").pvalue > FALSE_ALARM
    uniform = (income[income >= 0.5] - 0.5) / 89.5
    assert stats.kstest(uniform, "uniform").pvalue < 1e-9


def test_noise_in_narrow_cells_does_not_look_like_usual_values():
    """Cholesterol from 0 to 499, ten people of each value: noise of as many would make half of them
    vanish and double others."""
    axis = Grid("x", 0.0, 500.0, 500, integer=True)
    exact = np.rint(4500 * stats.norm(200, 40).pdf(np.arange(500))).astype(np.int64)
    exact[300] += 300  # a value that many have
    release = MarginTables(
        "m", Domain((axis,)), 4800, Budget(rho=Fraction(1, 200)), ((0,),), "discrete-gaussian"
    )
    tally = Tally.of(release.domain, np.arange(500), exact)
    noisy = perturb(release.statistic(tally), release.mechanism, release.share, SeededSource(4))
    shares = np.diff(ColumnDensity.of(release, noisy, "x").cumulative)
    drawn = np.maximum(noisy.values, 0) / np.maximum(noisy.values, 0).sum()
    wrong, wrong_before = (np.abs(each - exact / exact.sum()).sum() for each in (shares, drawn))
    assert wrong < 0.5 * wrong_before
    assert shares[300] * exact.sum() == pytest.approx(exact[300], rel=0.15)


def test_no_records_make_empty_columns():
    columns = decode_records(DOMAIN, CODES[:0], {}, np.random.default_rng(2))
    assert {name: len(column) for name, column in columns.items()} == dict.fromkeys(DOMAIN.names, 0)


def test_cells_are_described_in_the_survey_s_own_terms():
    described = describe_cells(DOMAIN)
    columns = {column.name: column.values for column in described}
    assert {column.about for column in described} == set(DOMAIN.names)
    codes = DOMAIN.unpack(np.arange(DOMAIN.size))
    first, last = columns["age_from"], columns["age_to"]
    for code, low, high in zip(codes[:, 2], first.tolist(), last.tolist(), strict=True):
        assert (low, high) == [(0, 4), (5, 19), (20, 20), (None, None)][code]
    assert columns["year"].tolist() == (1990 + codes[:, 4]).tolist()
    for code, low, high in zip(
        codes[:, 3], columns["income_from"].tolist(), columns["income_to"].tolist(), strict=True
    ):
        assert (low, high) == [(-10, 0), (0, 0.5), (0.5, 90)][code]
    assert columns["height_from"].tolist()[:5] == [1, 1.25, 1.5, 1.75, None]
    assert columns["place"].tolist()[-1] is None
