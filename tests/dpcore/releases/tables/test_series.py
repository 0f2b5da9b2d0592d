"""Runs of a series: what each measures, and what all of them publish together."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.series import STEPS, each_alone, square_root
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.post.series import QUANTITIES, counted
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.microdata import Microdata
from dpcore.releases.tables.series import SeriesRun

MONTHS = Categories("month", tuple(f"2026-{m:02d}" for m in range(1, 6)))
SEX, KIND = Categories("sex", ("F", "M")), Categories("kind", ("a", "b", "c"))
INSIDE = Domain((SEX, KIND))
SHARE = Budget.of("1", "1e-6")
ADD_REMOVE = Adjacency("add-remove")
COUNTS = np.random.default_rng(5).integers(0, 60, (5, 2, 3))
HISTOGRAM = Histogram("h", INSIDE, 400, SHARE)
MARGINS = MarginTables("m", INSIDE, 400, SHARE, ((0,), (0, 1)), "discrete-gaussian")
MICRODATA = Microdata("d", INSIDE, 400, SHARE, (), "discrete-gaussian")


def runs(tables, factor=None, **changes) -> list[SeriesRun]:
    """All runs of a series of five months, with four periods in a year."""
    domain = Domain((MONTHS, *tables.domain.axes))
    factor = factor or square_root(5)
    made = {"adjacency": ADD_REMOVE, "year": 4} | changes
    return [SeriesRun("s", domain, 400, SHARE, tables, factor, t, **made) for t in range(1, 6)]


def tally(domain: Domain, months: int) -> Tally:
    """The records of the first months."""
    counts = np.where(np.arange(5)[:, None, None] < months, COUNTS, 0).ravel()
    cells = np.flatnonzero(counts)
    return Tally(domain, cells, counts[cells])


def exact(run: SeriesRun, months: int) -> np.ndarray:
    return run.statistic(tally(run.domain, months))._statistic.values


@pytest.mark.parametrize("make", [square_root, each_alone])
def test_a_run_counts_each_record_by_the_weight_of_its_period(make):
    for run in runs(HISTOGRAM, make(5)):
        weights = np.array(run.factor.run(run.run))
        expected = np.tensordot(weights, COUNTS[: run.run], 1).ravel()
        assert exact(run, run.run).tolist() == expected.tolist()


def test_records_of_later_periods_do_not_count_yet():
    for run in runs(MARGINS):
        assert exact(run, run.run).tolist() == exact(run, 5).tolist()


@pytest.mark.parametrize("tables", [HISTOGRAM, MARGINS])
def test_without_noise_every_quantity_of_every_table_is_exact(tables):
    published = []
    for run in runs(tables):
        noiseless = Noisy(exact(run, run.run))
        found = run.publish(noiseless, published)
        published.append((run, noiseless))
        for table, domain in zip(found.tables, run.domains, strict=True):
            gone = tuple(i + 1 for i, axis in enumerate(INSIDE.axes) if axis not in domain.axes)
            counts = COUNTS[: run.run].sum(axis=gone).reshape(run.run, -1)
            at = table.columns["quantity"]
            for quantity in QUANTITIES:
                often = counted(quantity, run.run, 4)
                estimates = table.columns["estimate"][at == quantity]
                expected = [] if often is None else often @ counts
                assert estimates == pytest.approx(expected, abs=1e-6)
            assert set(table.columns["month"]) == {MONTHS.categories[run.run - 1]}
            assert table.columns["sex"][: counts.shape[1]].tolist() == sorted(
                table.columns["sex"][: counts.shape[1]].tolist()
            )


def test_without_the_earlier_runs_only_what_was_measured_is_published():
    run = runs(HISTOGRAM)[2]
    noisy = Noisy(exact(run, 3))
    (table,) = run.publish(noisy).tables
    assert set(table.columns["quantity"]) == {"measured"}
    assert table.columns["estimate"] == pytest.approx(noisy.values / STEPS)
    (again,) = run.publish(noisy, [(runs(HISTOGRAM)[1], noisy)]).tables
    assert set(again.columns["quantity"]) == {"measured"}


@pytest.mark.slow
@pytest.mark.parametrize("tables", [HISTOGRAM, MARGINS, MICRODATA])
def test_records_of_a_run_are_those_of_its_period(tables):
    for run in runs(tables, each_alone(5)):
        release, noiseless = run.of_period, Noisy(exact(run, 5))
        drawn = run.drawn_of_period(noiseless)
        assert release.domain == INSIDE
        counts, error = release.supported_margin(drawn, ("sex", "kind"))
        assert counts == pytest.approx(COUNTS[run.run - 1].ravel())
        assert error == pytest.approx(run.mechanism.stddev / STEPS, rel=0.15)
        domain, codes = release.sample(drawn, int(COUNTS[run.run - 1].sum()))
        found = np.bincount(domain.pack(codes), minlength=6)
        assert np.abs(found - COUNTS[run.run - 1].ravel()).max() <= 3 * error
        assert run.drawn_of_period(replace(noiseless, reproducible=True)).reproducible


def test_a_run_that_weighs_periods_has_no_records_of_one():
    for run in runs(HISTOGRAM):
        noisy = Noisy(exact(run, 5))
        assert run.of_period is run
        assert run.drawn_of_period(noisy) is noisy


def test_a_year_is_as_long_as_the_series_says():
    seen = {
        year: set(
            runs(HISTOGRAM, each_alone(5), year=year)[3]
            .publish(
                Noisy(np.zeros(6, dtype=np.int64)),
                [(r, Noisy(np.zeros(6, dtype=np.int64))) for r in runs(HISTOGRAM)[:3]],
            )
            .tables[0]
            .columns["quantity"]
        )
        for year in (3, 4, 5)
    }
    assert seen[3] == set(QUANTITIES)
    assert seen[4] == set(QUANTITIES) - {"change-on-year"}
    assert seen[5] == set(QUANTITIES) - {"change-on-year", "year"}


def test_a_table_of_one_period_needs_no_column_for_it():
    run = SeriesRun(
        "s", INSIDE, 400, SHARE, HISTOGRAM, each_alone(5), 3, adjacency=Adjacency("add-remove")
    )
    only = COUNTS[2].ravel()
    cells = np.flatnonzero(only)
    statistic = run.statistic(Tally(INSIDE, cells, only[cells]))._statistic.values
    assert statistic.tolist() == (only * STEPS).tolist()
    assert "month" not in run.publish(Noisy(statistic)).tables[0].columns


def test_noise_on_some_cells_only_is_refused():
    thresholded = ThresholdedHistogram("h", INSIDE, 400, Budget.of("1"))
    run = replace(runs(thresholded)[0], share=Budget.of("1"))
    with pytest.raises(ValueError, match="a series needs noise on every cell"):
        _ = run.mechanism
    with pytest.raises(ValueError, match="period: must lie between 1 and 5, not 6"):
        SeriesRun("s", INSIDE, 400, SHARE, HISTOGRAM, each_alone(5), 6)
