"""Where the number of records is private, the rows of a plan are a scale and never taken for it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.releases.abilities import Samplable
from dpcore.releases.base import Release
from dpcore.releases.counts.count import Count
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.machines.classifier import Classifier
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.table import Published
from dpcore.releases.tables.margins import MarginTables
from tests.dpcore.releases.claims import claim, moved
from tests.dpcore.releases.contract import RELATIONS, drawn, opened

ADDED = Adjacency("add-remove")
PURE, APPROXIMATE = Budget.of("1"), Budget.of("1", "1e-6")
TABLE = Domain((Categories("place", ("a", "b", "c")), Bins("age", (0.0, 5.0, 9.0, 12.0))))
LINE = Domain((Grid("x", 0.0, 12.0, 48),))
TRUE = 3000
GUESSES = (300, 20_000)


def records(domain: Domain, rows: int = TRUE) -> Tally:
    shares = np.arange(1, domain.size + 1) ** 0.5
    counts = np.random.default_rng(1).multinomial(rows, shares / shares.sum())
    return Tally(domain, np.arange(domain.size), counts)


def published_of(release: Release, seed: int = 1) -> tuple[Noisy, Published]:
    noisy = drawn(release, records(release.domain), seed)
    return noisy, release.publish(noisy)


@pytest.mark.parametrize(
    "release",
    [
        Histogram("h", TABLE, TRUE, PURE, adjacency=ADDED),
        MarginTables("m", TABLE, TRUE, PURE, ((0,), (0, 1)), adjacency=ADDED),
        Count("c", TABLE.select(("place",)), TRUE, PURE, (2,), adjacency=ADDED),
        ColumnQuantiles("q", LINE, TRUE, PURE, (Fraction(1, 3), Fraction(1, 2)), adjacency=ADDED),
        RatioMean("r", LINE, TRUE, PURE, adjacency=ADDED),
    ],
    ids=lambda release: type(release).__name__ + release.name,
)
def test_what_is_published_of_records_does_not_depend_on_the_guess(release: Release):
    for seed in range(2):
        found = []
        for guess in GUESSES:
            other = replace(release, rows=guess)
            noisy, published = published_of(other, seed)
            sample = other.sample(noisy, 50)[1] if isinstance(other, Samplable) else []
            found.append((noisy, published, sample))
        (one, small, few), (two, large, many) = found
        np.testing.assert_array_equal(one.values, two.values)
        np.testing.assert_array_equal(few, many)
        if isinstance(release, Count):
            assert abs(small.tables[0].columns["count"][0] - 1297) < 20
        assert small.facts == large.facts
        for few, many in zip(small.tables, large.tables, strict=True):
            for name, column in few.columns.items():
                if column.dtype.kind == "f":  # rounded at the largest count that may be
                    np.testing.assert_allclose(column, many.columns[name], rtol=1e-9)
                else:
                    np.testing.assert_array_equal(column, many.columns[name])


@pytest.mark.slow
@pytest.mark.parametrize("guess", GUESSES)
def test_counts_add_up_to_a_noisy_total_near_the_private_one(guess: int):
    for release in (
        Histogram("h", TABLE, guess, PURE, adjacency=ADDED),
        MarginTables("m", TABLE, guess, PURE, ((0,), (0, 1)), adjacency=ADDED),
    ):
        for seed in range(1):
            noisy, published = published_of(release, seed)
            told = release.total(noisy) if isinstance(release, MarginTables) else noisy.values.sum()
            assert {int(table.columns["count"].sum()) for table in published.tables} == {told}
            assert abs(told - TRUE) < 30
            for table in published.tables:
                exact = records(TABLE).roll_up(TABLE.names[: 1 + (len(table.columns["count"]) > 3)])
                inside = table.columns["lower_90"] <= exact.dense()
                inside &= exact.dense() <= table.columns["upper_90"]
                assert inside.mean() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guess", "kind"), zip(GUESSES, (BinnedDensity, SpectralDensity), strict=True)
)
def test_a_density_and_its_estimate_have_mass_one_whatever_the_guess(
    guess: int, kind: type[Density]
):
    release = kind("d", LINE, guess, APPROXIMATE, (0.1,), adjacency=ADDED)
    noisy, published = published_of(release)
    columns = published.tables[0].columns
    cell = 12 / len(columns["x"])
    assert columns["density"].sum() * cell == pytest.approx(1)
    assert columns["estimate"].sum() * cell == pytest.approx(1)
    known = release.basis.density(release.coefficients(noisy))
    assert known.mean() == pytest.approx(TRUE / guess, rel=0.02)
    rows, error = (published.facts[name] for name in ("noisy_rows", "rows_standard_error"))
    assert abs(rows - TRUE) < 4 * error < 1000
    public = (
        published_of(kind("d", LINE, TRUE, APPROXIMATE, (0.1,)))[1].tables[0].columns["density"]
    )
    np.testing.assert_allclose(columns["density"], public, atol=0.01)
    points = {"x": columns["x"][:5]}
    np.testing.assert_allclose(
        release.evaluate(noisy, points)["estimate"], columns["estimate"][:5], rtol=1e-6
    )


LABELLED = Domain((Grid("x", 0.0, 12.0, 6), Categories("yes", (False, True))))
WIDE = Domain((Grid("x", 0.0, 2.0**40, 2**40, integer=True),))
LARGE = [
    Classifier("c", LABELLED, 3, APPROXIMATE, (0.5,), 0.1, 4, (-1, 1), adjacency=ADDED),
    RatioMean("r", WIDE, 3, PURE, adjacency=ADDED),
    ColumnQuantiles("q", LINE, 3, PURE, (Fraction(1, 10**12), Fraction(1, 3)), adjacency=ADDED),
    BinnedDensity("b", LINE, 3, PURE, (0.2,), adjacency=ADDED),
    SpectralDensity("s", LINE, 3, APPROXIMATE, (0.2,), adjacency=ADDED),
    SmoothFunction("f", LINE, 3, APPROXIMATE, "gaussian", (0.1,), (9,), adjacency=ADDED),
]


@pytest.mark.parametrize("adjacency", RELATIONS, ids=str)
@pytest.mark.parametrize("release", LARGE, ids=lambda release: type(release).__name__)
def test_neighbours_of_any_size_lie_within_the_claim(release: Release, adjacency: Adjacency):
    """Around every size at which a rule cuts, and at the largest size that a machine can count."""
    release, random = replace(release, adjacency=adjacency), np.random.default_rng(5)
    cells = np.array([0, release.domain.size // 2, release.domain.size - 1])
    for size in (0, 1, 23, 24, 25, 47, 48, 49, 3071, 3072, 3073, 6143, 6144, 6145, 2**40):
        for shape in np.eye(3), np.ones((1, 3)) / 3:
            for part in shape:
                shared = np.floor(part * size).astype(np.int64)
                gone, come = random.multinomial(adjacency.most, np.ones(3) / 3, size=2)
                if adjacency.relation == "add-remove":
                    gone *= 0
                near, far = (
                    opened(release, Tally(release.domain, cells[has > 0], has[has > 0]))
                    for has in (shared + gone, shared + come)
                )
                assert max(np.abs(near).max(), np.abs(far).max()) < 2**62
                assert moved(release, far - near) <= claim(release)


def test_a_regularisation_that_is_too_weak_for_private_rows_is_refused():
    domain = Domain((LINE.axes[0], Categories("yes", (False, True))))
    facts = ("c", domain, 300, APPROXIMATE, (0.5,), 2e-6, 4, (-1, 1))
    Classifier(*facts)
    with pytest.raises(ValueError, match="regularisation: must be at least 8e-06"):
        Classifier(*facts, adjacency=ADDED)


@pytest.mark.slow
def test_no_records_and_a_wild_draw_are_published():
    """A noisy count of records may be negative, whatever else is drawn."""
    none = Noisy(np.array([-40, -3]))
    mean = RatioMean("r", LINE, 10, PURE, adjacency=ADDED).publish(none).tables[0].columns
    assert mean["lower_90"][0] == pytest.approx(0.125)
    assert mean["upper_90"][0] == pytest.approx(11.875)
    assert np.ma.is_masked(mean["mean"][0])
    histogram = Histogram("h", TABLE, 10, PURE, adjacency=ADDED)
    empty = Noisy(np.full(9, -2))
    assert histogram.publish(empty).tables[0].columns["count"].sum() == 0
    assert len(histogram.sample(empty, 7)[1]) == 7
    margins = MarginTables("m", TABLE, 10, PURE, ((0, 1),), adjacency=ADDED)
    assert margins.publish(empty).tables[0].columns["count"].sum() == 1
    assert len(margins.sample(empty, 7)[1]) == 7
    density = SpectralDensity("s", LINE, 10, APPROXIMATE, (0.2,), adjacency=ADDED)
    steps = Noisy(np.full(density.mechanism.size, -(2**20)))
    columns = density.publish(steps).tables[0].columns
    assert np.ma.getmaskarray(columns["density"]).all()
