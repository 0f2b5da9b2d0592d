"""Replicates: their spread is the error of every sum, share, ratio and median of unbiased counts."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.abilities import Replicable
from dpcore.releases.base import Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.replicates import (
    FEWEST,
    MOST_NUMBERS,
    precision_of,
    replicate_generator,
    replicate_names,
    replicates,
    replicates_within,
)
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.microdata import Microdata
from tests.dpcore.releases.contract import BY_WEIGHT, CASES
from tests.dpcore.releases.tables import test_series

DOMAIN = Domain(tuple(Categories(f"c{i}", tuple(range(n))) for i, n in enumerate((5, 4, 3))))
PURE, APPROXIMATE = Budget.of("1"), Budget.of("1", "1e-6")
PAIRS = ((0, 1), (0, 2), (1, 2))
GAUSSIAN = MarginTables("m", DOMAIN, 4000, APPROXIMATE, PAIRS, "discrete-gaussian")
RELEASES = {
    "histogram": Histogram("h", DOMAIN, 4000, PURE),
    "margins": MarginTables("m", DOMAIN, 4000, PURE, PAIRS),
    "gaussian margins": GAUSSIAN,
    "residuals": replace(GAUSSIAN, aim="balanced"),
    "residuals, laplace": MarginTables("m", DOMAIN, 4000, PURE, PAIRS, aim="balanced"),
    "microdata": Microdata("m", DOMAIN, 4000, APPROXIMATE, noise="discrete-gaussian"),
    "hierarchy": CASES["gaussian hierarchy"].release,
    "hierarchy beside totals": CASES[
        "hierarchy with totals, and a region where some cannot be"
    ].release,
    "weights": replace(GAUSSIAN, **BY_WEIGHT | {"step": Fraction(5, 2)}),
}
COMPRESSED = CompressedMicrodata("m", DOMAIN, 4000, PURE, keep=3)


def nothing(release: Release, seed: int = 0) -> Noisy:
    """A draw over an empty table: replicates need no more."""
    mechanism = release.mechanism
    numbers = mechanism.output_width(mechanism.size)
    return Noisy(np.random.default_rng(seed).integers(-9, 9, numbers))


def weights_of(sizes: dict[str, int], seed: int) -> dict[str, Floats]:
    generator = np.random.default_rng(seed)
    return {name: generator.normal(size=size) for name, size in sizes.items()}


def one_sum(noise: dict[str, Floats], weights: dict[str, Floats]) -> Floats:
    return sum(noise[name].astype(float) @ weight for name, weight in weights.items())


@pytest.mark.parametrize(
    "name", ["histogram", "margins", "residuals", "hierarchy beside totals", "weights"]
)
def test_the_spread_of_any_sum_over_all_tables_is_its_exact_variance(name):
    release = RELEASES[name]
    noise = release.replicate_noise(nothing(release), 1500)
    sizes = {table: each.shape[1] for table, each in noise.items()}
    assert list(sizes) == [release.table_name(domain) for domain in release.domains]
    ratios = []
    for seed in range(20):
        weights = weights_of(sizes, seed)
        seen = np.mean(one_sum(noise, weights) ** 2)
        ratios.append(seen / release.sum_variance(weights))
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)
    assert max(ratios) < 1.25
    assert min(ratios) > 0.8


@pytest.mark.parametrize("name", ["margins", "residuals", "residuals, laplace", "weights"])
def test_replicates_that_are_drawn_together_are_those_that_are_drawn_one_by_one(name, monkeypatch):
    release = RELEASES[name]
    noisy, generator = nothing(release), replicate_generator(nothing(release))
    monkeypatch.setattr("dpcore.releases.replicates.MOST_AT_ONCE", 2 * release.measurement.cells)
    found = release.replicate_noise(noisy, 5)
    for i in range(5):
        alone = release.agreement(release.noise_alone(generator))
        alone = replace(alone, total=None if alone.total is None else 0.0)
        for domain, attrs in zip(release.domains, release.tables, strict=True):
            table = release.unit.scaled(alone.margin(attrs).table.ravel())
            np.testing.assert_allclose(found[release.table_name(domain)][i], table, atol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("short_fits")
def test_both_rounds_of_compressed_tables_are_drawn():
    draw = nothing(COMPRESSED)
    noise = COMPRESSED.replicate_noise(draw, 1500)
    assert set(noise) == {table.name for table in COMPRESSED.publish(draw).tables}
    for seed in range(5):
        weights = weights_of({name: each.shape[1] for name, each in noise.items()}, seed)
        seen = np.mean(one_sum(noise, weights) ** 2)
        assert seen == pytest.approx(COMPRESSED.sum_variance(weights), rel=0.2)


@pytest.mark.parametrize("name", ["margins", "residuals", "microdata"])
def test_tables_agree_in_every_replicate(name):
    release = RELEASES[name]
    noise = [each.astype(float) for each in release.replicate_noise(nothing(release), 5).values()]
    first, second, third = (
        each.reshape(5, *domain.shape) for each, domain in zip(noise, release.domains, strict=True)
    )
    assert first.sum(axis=2) == pytest.approx(second.sum(axis=2), abs=1e-3)
    assert second.sum(axis=1) == pytest.approx(third.sum(axis=1), abs=1e-3)
    assert third.sum(axis=(1, 2)) == pytest.approx(np.zeros(5), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("tables", [test_series.HISTOGRAM, test_series.MARGINS])
def test_replicates_of_a_series_are_those_of_all_its_runs(tables):
    series = test_series.runs(tables)
    all_runs = [(run, nothing(run, i)) for i, run in enumerate(series)]
    run, noisy = all_runs[-1]
    noise = run.replicate_noise(noisy, 1500, all_runs[:-1])
    for table in run.publish(noisy, all_runs[:-1]).tables:
        seen = np.sqrt(np.mean(noise[table.name] ** 2, axis=0))
        assert seen == pytest.approx(table.columns["standard_error"], rel=0.12)
    # A replicate of the change is the difference of those of two bundles.
    earlier = all_runs[-2][0].replicate_noise(all_runs[-2][1], 1500, all_runs[:-2])
    cells = tables.domains[0].size
    name = run.table_name(run.domains[0])
    quantities = list(
        dict.fromkeys(run.publish(noisy, all_runs[:-1]).tables[0].columns["quantity"])
    )
    change = noise[name][:, quantities.index("change") * cells :][:, :cells]
    assert change == pytest.approx(noise[name][:, :cells] - earlier[name][:, :cells], abs=1e-3)


def test_what_has_no_unbiased_counts_has_no_replicates():
    passed = CASES["thresholded histogram"].release
    assert passed.replicate_noise(Noisy(np.zeros(2, dtype=np.int64)), 40) == {}
    for name in ("mean", "classifier"):
        assert not isinstance(CASES[name].release, Replicable)


def test_large_tables_have_fewer_replicates_and_very_large_ones_none():
    assert replicates_within(40, 10**6) == 40
    assert replicates_within(40, 2**22) == 16
    assert replicates_within(40, MOST_NUMBERS // FEWEST + 1) == 0
    assert replicates_within(5, 100) == 5
    assert replicates_within(0, 100) == 0
    assert replicate_names(200)[0] == "replicate_001"


def test_the_same_draw_has_the_same_replicates():
    release = RELEASES["margins"]
    one, other = (release.replicate_noise(nothing(release, seed), 3) for seed in (1, 2))
    again = release.replicate_noise(nothing(release, 1), 3)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not any(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("largest", "spread", "kind"),
    [
        (1e3, 5.0, np.float32),
        (1e9, 5.0, np.float64),
        (1e3, 1e6, np.float32),
        (1e3, 0.0, np.float64),
    ],
)
def test_rounding_changes_no_sum_by_a_hundredth_of_the_noise_of_one_cell(largest, spread, kind):
    generator = np.random.default_rng(0)
    published = generator.uniform(0, largest, 20_000)
    noise = generator.laplace(0, spread, (40, 20_000)).astype(np.float32)
    found, exact = replicates(published, noise), published + noise.astype(float)
    assert found.dtype == precision_of(published, noise) == kind
    moved = (found - exact).sum(axis=1)
    assert np.mean(moved**2) ** 0.5 <= 0.01 * spread
    last_bit = found.view(np.uint32 if kind is np.float32 else np.uint64) & 1
    assert last_bit.any() == (spread == 0)


def test_replicates_of_whole_numbers_are_whole_numbers():
    published, noise = np.arange(100), np.random.default_rng(0).integers(-9, 9, (40, 100))
    assert np.array_equal(replicates(published, noise.astype(np.float32)), published + noise)
