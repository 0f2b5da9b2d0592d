"""Published intervals hold what they say, for every kind of release and several populations.

All draws are from fixed seeds.  Bounds lie more than five standard errors from what is expected: with
other seeds a test would fail with a probability below 1e-6.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.coverage.measure import Coverage, band_coverage, measure
from benchmarks.coverage.populations import POPULATIONS, RELEASES, tally
from benchmarks.coverage.shapes import by_shape
from benchmarks.coverage.strata import by_size, of_file
from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.densities.bandwidth import Bandwidth, SteadyBandwidth
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.tuned import TunedDensity, TunedFunction
from dpcore.releases.machines.curves import FeatureSums
from dpcore.releases.machines.descent import Descent
from dpcore.releases.machines.gradients import GradientClassifier
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.series import SeriesRun
from papers.minimax_count.release import MinimaxCount
from papers.near_records.release import NearRecords, NearSeries
from papers.sampled_histogram.release import SampledHistogram
from tests.conftest import those_slow
from tests.dpcore.releases.contract import concrete_releases

FITTED = (
    *("margins", "gaussian margins", "microdata", "adaptive microdata", "margins, rows private"),
    *("microdata, rows private", "weighted margins", "weighted microdata"),
)
"""Kinds whose records are fitted anew for every draw."""

FAR = 5.2
"""Standard errors of a coverage."""


def cases() -> Iterator[Any]:
    """Name, population, draws; how far coverage may exceed 0.9, and a ratio of errors differ from 1."""
    counts = ("histogram", "histogram, rows private", "weighted histogram")
    yield from ((name, 0, 8, 0.03, 0.2) for name in counts)
    trees = ("hierarchy", "gaussian hierarchy", "hierarchy, rows private")
    yield from ((name, 0, 8, 0.03, 0.1) for name in trees)
    # One number in each draw: the ratio of errors has a standard error of 5 per cent.
    yield from ((name, 0, 600, 0.0, 0.25) for name in ("count", "mean", "count, rows private"))
    yield from [("random histogram", 0, 200, 0.0, 0.25), ("mean, rows private", 2, 600, 0.0, 0.25)]
    yield ("mean by group", 0, 200, 0.0, 0.12)
    slow = [(name, 0, 4, 0.03, 0.25) for name in FITTED]
    slow += [("margins", 1, 4, 0.05, 0.25), ("hierarchy", 2, 8, 0.05, 0.4)]
    # Densities allow for rounding to their grid: their intervals hold more often.
    bands = ("binned density", "spectral density", "gamma density", "body density")
    bands += ("coefficient density", "spectral density, rows private", "density by group")
    slow += [(name, 1, 20, 0.1, 0.25) for name in (*bands, "density beside point masses")]
    slow += [(name, 2, 100, 0.1, 0.25) for name in ("function", "function, rows private")]
    slow += [(name, 2, 400, 0.04, 0.2) for name in ("classifier", "regression")]
    slow += [("classifier, rows private", 2, 400, 0.04, 0.2)]
    yield from (pytest.param(*each, marks=pytest.mark.slow) for each in slow)


def found(name: str, population: int, draws: int) -> list[Coverage]:
    release = RELEASES[name](POPULATIONS[population].rows)
    records = tally(POPULATIONS[population], release.domain)
    return measure(release, records, draws, seed=1000 * population)


@pytest.mark.parametrize(("name", "population", "draws", "over", "off"), [*cases()])
def test_intervals_hold_nine_times_in_ten_and_errors_are_those_stated(
    name: str, population: int, draws: int, over: float, off: float
):
    for column in found(name, population, draws):
        if column.interval:
            assert column.cover >= 0.9 - FAR * column.doubt, column
            assert column.cover <= 0.9 + over + FAR * column.doubt, column
        assert np.isnan(column.rms) or abs(column.rms - 1) <= off, column


@pytest.mark.parametrize("name", ["thresholded histogram", "histogram of occupied cells"])
def test_cells_that_passed_a_threshold_lie_in_their_intervals(name: str):
    """At least 90 per cent by proof; near it, because the noise is wide."""
    for column in found(name, 0, 60):
        assert 0.9 - FAR * column.doubt <= column.cover <= 0.92 + FAR * column.doubt
        # The stated error is an average over counts that need not be so: cautious here.
        assert 0.8 <= column.rms <= 2.5


@pytest.mark.parametrize(("cells", "rows"), [(16, 70), (64, 300), (256, 70)])
def test_intervals_around_counts_hold_where_the_noise_is_larger_than_the_cells(cells, rows):
    """Noise of standard error 14 shows little of cells of one to five records on average."""
    generator = np.random.default_rng(cells + rows)
    found: dict[str, list[tuple[float, float]]] = {}
    for draw in range(4):
        chosen = generator.choice(cells, rows, p=generator.dirichlet(np.full(cells, 0.1)))
        counts = np.bincount(chosen, minlength=cells)
        domain = Domain((Categories("cell", tuple(range(cells))),))
        release = Histogram("h", domain, rows, Budget.of("1/5"))
        for row in by_size(release, Tally(domain, np.arange(cells), counts), 15, 100 * draw):
            if row["column"] == "count":
                size = float(row["cells"])
                found.setdefault(row["exact"], []).append((float(row["cover"]) * size, size))
    covered = {exact: np.sum(each, axis=0) for exact, each in found.items()}
    assert {
        exact: held / size for exact, (held, size) in covered.items() if held / size < 0.87
    } == {}


@pytest.mark.parametrize(
    "name",
    those_slow(["histogram, rows private", "gaussian hierarchy", *FITTED[1:3]], FITTED),
)
def test_intervals_around_counts_hold_for_cells_of_every_size(name: str):
    """At their rate or more often, and in small cells they are shorter than the unbiased ones.

    In this small population the noise is as large as most cells, and a fit takes some middling ones for
    empty: those are held a few per cent less often.
    """
    population = POPULATIONS[1]
    release = RELEASES[name](population.rows)
    rows = list(by_size(release, tally(population, release.domain), 12))
    counts, others = (
        [r for r in rows if (r["column"] == "count") is is_it] for is_it in (True, False)
    )
    for count, unbiased in zip(counts, others, strict=True):
        assert count["exact"] == unbiased["exact"]
        if float(count["cells"]) >= 20:
            assert float(count["cover"]) >= (0.82 if count["exact"] == "10-99" else 0.88)
        if count["exact"] in ("0", "1-9") and "margins" in name:
            assert float(count["width"]) < 0.8 * float(unbiased["width"])


def test_pairs_of_a_public_table_are_measured_by_size(tmp_path):
    generator = np.random.default_rng(1)
    kind = generator.choice(["a", "b", "c"], 500)
    frame = pd.DataFrame({"kind": kind, "sex": generator.choice([0, 1], 500)})
    frame.assign(income=generator.lognormal(size=500)).to_parquet(tmp_path / "t.parquet")
    release, records = of_file(tmp_path / "t.parquet", "5")
    assert records.counts.sum() == release.rows == 500
    assert release.domain.shape[:2] == (3, 2)
    assert {row["column"] for row in by_size(release, records, 1)} == {"count", "estimate"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["binned density", "spectral density", "gamma density"])
def test_densities_lie_in_their_intervals_and_bands(name: str):
    release = RELEASES[name](POPULATIONS[1].rows)
    assert isinstance(release, Density)
    found = band_coverage(release, 2000)
    assert 0.88 <= found["each"] <= 0.92
    assert 0.88 <= found["simultaneous"] <= 0.92


@pytest.mark.parametrize("answered", [pytest.param(1.0, marks=pytest.mark.slow), 0.02])
def test_bands_hold_the_exact_kernel_density_whatever_the_shape(answered: float):
    """At 5,000 records, all or 100 of them with a value, atoms and spikes included, on a fine grid."""
    for row in by_shape(60, "binned-laplace", answered=answered):
        if row["columns"] == 1:
            # 60 draws: a standard error of 4 per cent.
            assert row["cover"] >= 0.8, row
            assert row["left"] < 0.25, row
        else:
            break


@pytest.mark.parametrize("name", ["quantiles", "quantiles by group"])
def test_ranks_of_all_groups_at_once_lie_within_the_stated_error(name: str):
    each, together = found(name, 0, 200)
    assert each.interval == "each"
    assert each.cover >= together.cover >= 0.9
    # The bound is for the worst table; on these a tenth of it is too little.
    release = RELEASES[name](POPULATIONS[0].rows)
    object.__setattr__(release, "rank_error", release.rank_error / 10)
    narrow = measure(release, tally(POPULATIONS[0], release.domain), 50)[1]
    assert narrow.cover < 0.9


def test_every_kind_of_release_with_intervals_is_measured():
    measured = {type(build(100)) for build in RELEASES.values()}
    # Bandwidths err in rank; the others' intervals have tests of their own (moments state
    # those of a population), and those of a drawn bandwidth, or of groups that were drawn, are those of
    # the release at them.  Sums of features have none: a classifier is fitted to them.  What a descent
    # finds without noise is no function of a statistic: ``test_descent`` takes its steps.
    assert concrete_releases() - measured <= {
        Moments,
        Bandwidth,
        SteadyBandwidth,
        TunedDensity,
        TunedFunction,
        CompressedMicrodata,
        MinimaxCount,
        SampledHistogram,
        NearRecords,
        NearSeries,
        SeriesRun,
        FeatureSums,
        Descent,
        GradientClassifier,
    }


def test_an_understated_error_is_found():
    """The measure has power: intervals two thirds as wide hold too little."""
    shrunk = RELEASES["histogram"](POPULATIONS[0].rows)
    records = tally(POPULATIONS[0], shrunk.domain)
    object.__setattr__(shrunk, "interval", lambda noisy: (noisy.values - 6, noisy.values + 6))
    narrow = next(c for c in measure(shrunk, records, 5) if c.column == "noisy_count")
    assert narrow.large < 0.85
    assert np.isfinite(narrow.rms)
