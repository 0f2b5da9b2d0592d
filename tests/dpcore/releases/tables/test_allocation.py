"""Precisions of tables: errors against simulation, goals against an equal split, and limits."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import BlockGaussian, DiscreteGaussian
from dpcore.releases.tables.allocation import allocate, table_variances
from dpcore.releases.tables.margins import MarginTables
from tests.dpcore.releases.contract import draws

ADD_REMOVE = Adjacency("add-remove")
CENSUS = (16, 7, 16, 16, 7, 14, 6, 5, 2, 10, 10, 10, 42, 2)


def sets(columns: int, *ways: int) -> tuple[tuple[int, ...], ...]:
    return tuple(s for w in ways for s in combinations(range(columns), w))


@pytest.mark.slow
def test_the_aims_differ_as_they_say():
    tables = sets(14, 2)
    variances = {
        aim: table_variances(
            CENSUS, tables, allocate(CENSUS, tables, aim, ADD_REMOVE, "l2"), ADD_REMOVE, "l2"
        )
        for aim in ("mean", "max", tuple(Fraction(1 + 1000 * (i == 0)) for i in range(91)))
    }
    mean, worst, first = variances.values()
    assert mean.mean() < worst.mean()
    assert worst.max() < mean.max()
    assert first[0] < 0.5 * mean[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "adjacency", "more", "aim"),
    [
        ("discrete-gaussian", REPLACE_ONE, (), None),
        ("discrete-laplace", ADD_REMOVE, ((0, 1, 2, 3),), "mean"),
    ],
)
def test_stated_errors_hold_in_simulation(noise, adjacency, more, aim):
    sizes = (2, 2, 2, 3) if noise == "discrete-gaussian" else (2, 2, 2, 2)
    domain = Domain(tuple(Categories(f"c{i}", tuple(range(n))) for i, n in enumerate(sizes)))
    share = Budget.of("0.5", "1e-4") if noise == "discrete-gaussian" else Budget.of("0.5")
    tables = (*sets(4, 1, 2), *more)
    release = MarginTables("m", domain, 200, share, tables, noise, aim=aim, adjacency=adjacency)
    assert release.measurement.allocation.equal == (aim is None)
    records = np.random.default_rng(0).integers(0, domain.size, 200)
    whole = np.bincount(records, minlength=domain.size).reshape(sizes)
    errors = {s: [] for s in tables}
    for noisy in draws(release, records, 300):
        for margin in release.consistent_margins(noisy):
            gone = tuple(a for a in range(4) if a not in margin.attributes)
            errors[margin.attributes].append(margin.table - whole.sum(axis=gone))
    times = []
    for attributes, found in errors.items():
        variance = release.of_nothing.margin(attributes).variance
        times.append(np.mean(np.square(found)) / variance)
        assert np.abs(np.mean(found, axis=0)).max() < 5.5 * (variance / 300) ** 0.5
    assert np.mean(times) == pytest.approx(1, abs=0.08)
    assert 0.65 < min(times) < max(times) < 1.5


@pytest.mark.parametrize("aim", [None, "balanced", "records"])
@pytest.mark.parametrize(
    ("noise", "adjacency"), [("discrete-gaussian", REPLACE_ONE), ("discrete-laplace", ADD_REMOVE)]
)
def test_variances_are_known_without_the_tables(noise, adjacency, aim):
    sizes = (2, 3, 1, 30, 4)
    domain = Domain(tuple(Categories(f"c{i}", tuple(range(n))) for i, n in enumerate(sizes)))
    tables = (*sets(5, 2), (0, 1, 3))
    release = MarginTables(
        "m", domain, 80, Budget.of("40", "1e-6"), tables, noise, aim=aim, adjacency=adjacency
    )
    asked = [*sets(5, 1), *tables]
    expected = [release.of_nothing.margin(attributes).variance for attributes in asked]
    np.testing.assert_allclose(release.cell_variances(asked), expected, rtol=1e-9, atol=1e-12)


def test_blocks_of_differences_with_too_little_noise_are_measured_whole():
    """With alpha so large that the noise does not hide which lattice it fell on."""
    domain = Domain(tuple(Categories(f"c{i}", tuple(range(6))) for i in range(4)))
    for alpha, some in (("0.5", True), ("60", False)):
        share = Budget.of(alpha, "1e-6")
        release = MarginTables("m", domain, 50, share, sets(4, 2), "discrete-gaussian", aim="mean")
        mechanism = release.mechanism
        blocks = mechanism.blocks if isinstance(mechanism, BlockGaussian) else ()
        assert isinstance(mechanism, BlockGaussian | DiscreteGaussian)
        assert any(block.axes for block in blocks) == some


@pytest.mark.parametrize("alpha", ["2", "40"])
@pytest.mark.parametrize("aim", ["max", "records"])
def test_blocks_that_are_measured_whole_and_others_give_all_tables_together(alpha, aim):
    """Columns of many and of few cells: as alpha rises, those of many are measured whole first."""
    domain = Domain(tuple(Categories(f"c{n}", tuple(range(n))) for n in (2, 3, 9, 30)))
    for relation in (REPLACE_ONE, ADD_REMOVE):
        release = MarginTables(
            "m",
            domain,
            500,
            Budget.of(alpha, "1e-9"),
            sets(4, 2),
            "discrete-gaussian",
            aim=aim,
            adjacency=relation,
        )
        zeros = Noisy(np.zeros(release.mechanism.size, dtype=np.int64))
        agreed = release.consistent_margins(zeros)
        assert all(0 < margin.variance < np.inf for margin in agreed)
        weights = {release.table_name(d): np.ones(d.size) for d in release.domains}
        everything = release.sum_variance(weights)
        assert everything == pytest.approx(0, abs=1e-6) or relation is ADD_REMOVE


@pytest.mark.parametrize("aim", ["mean", "records", (Fraction(1), Fraction(2))])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_columns_of_one_category_are_no_trouble(aim, norm):
    for sizes, tables in (((1, 2), ((0,), (1,))), ((1, 3), ((0, 1), (0,))), ((1, 1), ((0,), (1,)))):
        for adjacency in (REPLACE_ONE, ADD_REMOVE):
            found = allocate(sizes, tables, aim, adjacency, norm)
            assert np.all(np.isfinite(table_variances(sizes, tables, found, adjacency, norm)))
