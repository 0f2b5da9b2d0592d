"""One run of a series of counts: it measures a weighted sum of periods and publishes joint estimates.

The tally has one more axis than the tables, the period, which determines the weight of each record
(``dpcore.domain.series``); the result is an ordinary release of counts in steps:

    period x sex  --weights of run t-->  sex, in steps  --noise-->  y_t  --with y_1..y_(t-1)-->  tables

**Sensitivity.**  In one run a record has a weight of at most 1024 steps, so a unit of m records has at
most m * 1024 steps: the run alone is as private as ``adjacency`` says, whatever happens in other runs.
All runs together cost less than their sum (``domain.series``, the price of a run).

Tables have one row for each cell and quantity.  Tables of run t use the published draws of earlier
runs, and revise none of their numbers (``post.series``).

**Records.**  A run that measures its period alone draws the counts of that period, from which records
and models follow as from a single release (``of_period``).  Counts are rounded to whole records.  That
adds at most 1/12 to a variance that is much larger, unless the noise is hardly more than one record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.domain.series import STEPS, Factor, each_alone
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.post.combined_noise import Noise, half_width, stddev
from dpcore.post.series import QUANTITIES, YEAR, PeriodEstimates, combination, counted, estimate
from dpcore.releases.abilities import RunOfSeries
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.replicates import drawn_again, replicate_generator
from dpcore.releases.table import (
    ENDS,
    LEVEL,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    interval_columns,
)
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.microdata import Microdata

MEASURED = {"measured": "sum over all periods to date, each multiplied by a public number"}
"""The quantity of a run if nothing else can be computed."""

MEANINGS = ", ".join(f"{name} ({words})" for name, words in (QUANTITIES | MEASURED).items())

NEVER_REVISED = (
    "Later runs do not change earlier numbers: an estimate for a period uses only runs up to it."
)


@dataclass(frozen=True)
class SeriesRun(RunOfSeries):
    """Run number ``run`` of a series that counts the tables of ``tables``.

    ``domain``: the period, and the columns of ``tables``; without a period if each run's table contains
    only one period.  ``tables``: the release of counts of records; ``year``: the periods in a year.
    """

    tables: TableOfCounts
    factor: Factor
    run: int
    year: int = YEAR

    chart = "series"
    statistics = ("quantity", "estimate", "standard_error", *ENDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.factor.run(self.run)  # refuses a run number outside the series

    @cached_property
    def in_steps(self) -> TableOfCounts:
        """The release ``tables``, for weights in steps."""
        most = self.adjacency.most * STEPS
        weighted = replace(self.adjacency, most=most, weighted=True)
        tables = self.tables
        if isinstance(tables, Microdata):  # only counted: no records are fitted to steps
            of = tables.name, tables.domain, tables.rows, tables.share
            tables = MarginTables(*of, tables.tables, tables.noise, adjacency=self.adjacency)
        return replace(tables, rows=self.rows * STEPS, share=self.share, adjacency=weighted)

    @cached_property
    def of_period(self) -> Release:
        if any(self.factor.steps[1:]):  # one run alone then does not measure its period
            return self
        return replace(self.tables, rows=self.rows, share=self.share, adjacency=self.adjacency)

    def drawn_of_period(self, noisy: Noisy) -> Noisy:
        if self.of_period is self:
            return noisy
        return replace(noisy, values=np.rint(noisy.values / STEPS).astype(np.int64))

    @property
    def mechanism(self) -> Noise:
        mechanism = self.in_steps.mechanism
        if not isinstance(mechanism, Noise):
            raise ValueError(
                "mechanism: a series needs noise on every cell: discrete-laplace or discrete-gaussian"
            )
        return mechanism

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * STEPS * self.run

    @property
    def period(self) -> tuple[Axis, ...]:
        """The axis of periods, if there is one."""
        return self.domain.axes[: len(self.domain.axes) - len(self.tables.domain.axes)]

    @property
    def domains(self) -> tuple[Domain, ...]:
        return tuple(Domain((*self.period, *each.axes)) for each in self.tables.domains)

    def table_name(self, domain: Domain) -> str:
        return self.tables.table_name(Domain(domain.axes[len(self.period) :]))

    def statistic(self, tally: Tally) -> Exact:
        steps = tally.counts * STEPS
        if self.period:
            weights = np.zeros(self.domain.shape[0], dtype=np.int64)
            weights[: self.run] = self.factor.run(self.run)
            steps = tally.counts * weights[tally.codes(0)]
        # A tally has no cells without records, and later periods have weight zero.
        counts = steps > 0
        weighed = Tally(self.domain, tally.cells[counts], steps[counts])
        return self.in_steps.statistic(weighed.roll_up(self.tables.domain.names))

    def publish(self, noisy: Noisy, earlier: Sequence[tuple[SeriesRun, Noisy]] = ()) -> Published:
        """Tables for this run's period; ``earlier``: runs 1..run-1 and their published draws, in order.

        Without the earlier runs, only the weighted sum that this run measured is published.
        """
        runs, factor, quantities = self._combined(noisy, earlier)
        noises = [each.mechanism for each, _ in runs]
        values = np.stack([drawn.values for _, drawn in runs])
        found = {}
        for quantity in quantities:
            estimated = estimate(factor, noises, values, _sum_of(quantity), self.year, LEVEL)
            if estimated is not None:
                found[quantity] = estimated
        ends = np.cumsum([0, *(each.size for each in self.tables.domains)])
        tables = [
            self._table(domain, found, slice(*part))
            for domain, part in zip(self.domains, pairwise(ends), strict=True)
        ]
        facts: dict[str, object] = {
            "run": self.run,
            "periods": self.factor.periods,
            "counted_as": [step / STEPS for step in self.factor.run(self.run)],
            "revises": NEVER_REVISED,
        }
        return Published(tuple(tables), facts)

    def _combined(
        self, noisy: Noisy, earlier: Sequence[tuple[SeriesRun, Noisy]]
    ) -> tuple[list[tuple[SeriesRun, Noisy]], Factor, Sequence[str]]:
        """The runs that are used, the weights of their periods, and the quantities they determine."""
        runs = [*earlier, (self, noisy)]
        if [each.run for each, _ in runs] == list(range(1, self.run + 1)):
            return runs, self.factor, list(QUANTITIES)
        # Alone, the measured sum is treated as the count of a first period.
        return [(self, noisy)], each_alone(1), ["measured"]

    def replicate_noise(
        self, noisy: Noisy, number: int, earlier: Sequence[tuple[SeriesRun, Noisy]] = ()
    ) -> Mapping[str, NDArray[np.float32]]:
        """Simulated noise of all runs in every quantity.

        The noise of an earlier run is drawn as in its own bundle: replicates of the same number belong
        together in all bundles of a series.
        """
        runs, factor, quantities = self._combined(noisy, earlier)
        counts = [counted(_sum_of(quantity), len(runs), self.year) for quantity in quantities]
        weights = np.stack([combination(factor, each) for each in counts if each is not None])
        generators = [replicate_generator(drawn) for _, drawn in runs]
        sizes = [each.size for each in self.tables.domains]

        def noise() -> Floats:
            again = [
                run.mechanism.simulate(sum(sizes), generator)
                for (run, _), generator in zip(runs, generators, strict=True)
            ]
            several = weights @ np.stack(again) / STEPS
            parts = np.split(several, np.cumsum(sizes)[:-1], axis=1)
            return np.concatenate([part.ravel() for part in parts])

        ends = np.cumsum([len(weights) * size for size in sizes])[:-1]
        tables = np.split(drawn_again(noise, number), ends, axis=1)
        names = [self.table_name(domain) for domain in self.domains]
        return dict(zip(names, tables, strict=True))

    def _table(self, domain: Domain, found: dict[str, PeriodEstimates], part: slice) -> Table:
        """All quantities of the cells in one part of the statistic, one after another."""
        size = part.stop - part.start
        # The period is the first axis, so the cells of this run's period lie together.
        here = np.arange(size) + (size * (self.run - 1) if self.period else 0)
        several = list(found.values())
        errors = np.repeat([each.standard_error for each in several], size)
        columns = [
            *describe_cells(domain, np.tile(here, len(found))),
            TableColumn("quantity", np.repeat(list(found), size), f"What is estimated: {MEANINGS}"),
            TableColumn(
                "estimate",
                np.concatenate([each.values[part] for each in several]),
                "Records, from the noisy statistics of this and all earlier runs; unbiased, and may be"
                " negative",
            ),
            error_column(errors, "estimate"),
            *interval_columns(
                np.concatenate([each.lower[part] for each in several]),
                np.concatenate([each.upper[part] for each in several]),
                "the exact number",
            ),
        ]
        return Table("tables", self.table_name(domain), columns, (UNCERTAINTY,))

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        said = []
        for quantity, words in QUANTITIES.items():
            periods = counted(quantity, self.run, self.year)
            if periods is not None:
                weights, noises = combination(self.factor, periods), [self.mechanism] * self.run
                error = stddev(weights, noises) / STEPS
                width = half_width(weights, noises, LEVEL) / STEPS
                note = "if earlier runs had the same noise" if self.run > 1 else ""
                said += [
                    ErrorStatement(f"standard error of the {words}", error, note),
                    ErrorStatement(f"90% interval of the {words}: plus or minus", width, note),
                ]
        return tuple(said)


def _sum_of(quantity: str) -> str:
    """The phrase for the periods that a quantity sums over."""
    return "period" if quantity == "measured" else quantity


UNCERTAINTY = Uncertainty(
    "estimate",
    "standard_error",
    ENDS,
    "exact",
    "The noise is the sum of the independent noises of the runs, each multiplied by a public number."
    " Its standard deviation is exact, and the interval contains the exact number with probability at"
    " least 90%. Intervals of counts are cut at zero; they are not empty even if the estimate is"
    " negative. Tables over different columns may disagree. If a run counts all periods to date, the"
    " interval does not include later changes of earlier records.",
)
