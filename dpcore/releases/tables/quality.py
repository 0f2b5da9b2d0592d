"""The quality of synthetic records, measured privately, so that bad records need not be published.

Records were drawn from the output of other releases, so they are public; ``criteria`` measures how much
they differ from the rows.  Replacing a row changes each of k criteria by at most ``STEPS`` steps (the
lemma there), so discrete Laplace noise of scale k STEPS/alpha on all of them costs alpha.

A criterion is **accepted** if its whole interval is below its limit: with probability 95% its value
without noise is below it too.  All of this follows from the noisy values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from dpcore.arrays import Booleans, Floats
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteLaplace
from dpcore.releases.abilities import Prepared
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.table import ENDS as INTERVAL
from dpcore.releases.table import (
    LEVEL,
    TWO_SIDED,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    error_column,
    interval_columns,
)
from dpcore.releases.tables.criteria import STEPS, Criterion, Distance
from dpcore.releases.work import Work

ROW_SECONDS, ROW_BYTES = 4e-6, 400
"""CPU seconds and bytes for each row and criterion."""


@dataclass(frozen=True)
class RecordQuality(Prepared):
    """How much synthetic records differ from the rows of the survey, by each criterion.

    Args:
        of: the name of the synthetic table.
        records: its records by cell, which are public; None before they are drawn.
        withholds: whether the records are published only if all criteria are met.
        counted: the number of rows and its standard error, if that number is private.
    """

    criteria: tuple[Criterion, ...] = ()
    of: str = ""
    withholds: bool = True
    records: Tally | None = None
    counted: tuple[float, float] | None = None

    chart = "criteria"
    finer = "fewer criteria"

    def require_publishable(self) -> None:
        super().require_publishable()
        for i, (each, width) in enumerate(zip(self.criteria, self._half_widths, strict=True)):
            if each.at_most <= width:
                raise ValueError(
                    f"accept[{i}].at_most: noise alone makes an interval of plus or minus {width:.2g},"
                    f" so no records could be accepted at a limit of {each.at_most:g}; state a larger"
                    " limit, fewer criteria or a larger `weight`"
                )

    def judging(self, records: Tally) -> RecordQuality:
        """The release with these records."""
        return replace(self, records=records)

    def counting(self, source: Release, noisy: Noisy | None = None) -> RecordQuality:
        """The release with the number of rows that the source of the records measured.

        Before a draw this is the plan's guess, with the error that the measured number will have.  This
        error also decides whether distances use the private number (``own``): the largest increase of an
        interval is as small as possible.
        """
        if self.adjacency.public_rows:
            return self
        assert isinstance(source, TableOfCounts)
        agreement = source.as_measured(noisy).agreement()
        if agreement is None:
            raise ValueError(
                f"records: the number of rows is private, and {source.name} does not estimate it,"
                " because it drops small counts; draw the records from a release with another mechanism"
            )
        number = agreement.margin(())
        rows = self.rows if noisy is None else max(float(number.table), 1.0)
        counted = replace(self, counted=(rows, float(number.variance) ** 0.5))
        if noisy is not None:  # after a draw the mechanism is fixed
            return counted
        own = (replace(c, own=True) if isinstance(c, Distance) else c for c in self.criteria)
        both = counted, replace(counted, criteria=(*own,))
        return min(both, key=lambda each: float(max(each._half_widths / self._half_widths)))

    @cached_property
    def mechanism(self) -> DiscreteLaplace:
        moved = Fraction(STEPS * len(self.criteria))
        present = sum((STEPS * each.present for each in self.criteria), Fraction(0))
        sensitivity = self.adjacency.sensitivity(moved=moved, present=present)
        return DiscreteLaplace.within(self.share, len(self.criteria), sensitivity)

    @property
    def largest_statistic(self) -> int:
        return STEPS * (self.most_rows + self.rows)

    def statistic(self, tally: Tally) -> Exact:
        """The exact values of all criteria; without records, assume all are in the first cell."""
        supposed = np.array([[0] * len(self.domain.axes)])
        records = self.records or Tally.of(
            self.domain, self.domain.pack(supposed), np.array([self.rows])
        )
        most = self.largest_statistic
        size = round(self._size[0])
        found = [each.steps(tally, size, records) for each in self.criteria]
        # Python integers, until the values are known to fit.
        return Exact(np.array([max(-most, min(most, each)) for each in found], dtype=np.int64))

    @property
    def preparation(self) -> Work:
        cells = min(self.rows, self.domain.size) * len(self.criteria)
        return Work(ROW_SECONDS * cells, ROW_BYTES * cells)

    @property
    def _size(self) -> tuple[float, float]:
        """The number of rows and its standard error."""
        return self.counted or (self.rows, 0.0)

    @property
    def _units(self) -> Floats:
        """The change of each published value when its statistic changes by one."""
        return np.array([each.factor for each in self.criteria]) / (STEPS * self._size[0])

    def _errors(self, values: Floats) -> tuple[Floats, Floats]:
        """Standard errors and half-widths of published values (criteria,), from both noises."""
        rows, error = self._size
        wrong = np.array([c.wrong(v) for c, v in zip(self.criteria, values, strict=True)])
        own, number = self._units, wrong * (error / rows)
        errors = np.hypot(self.mechanism.stddev * own, number)
        return errors, np.hypot(self.mechanism.half_width(LEVEL) * own, TWO_SIDED * number)

    @property
    def _half_widths(self) -> Floats:
        return self._errors(np.zeros(len(self.criteria)))[1]

    def _measured(self, noisy: Noisy) -> tuple[Floats, Floats, Floats, Floats]:
        """The published values, their standard errors, and the ends of their intervals."""
        values = noisy.values * self._units
        errors, wide = self._errors(values)
        least = np.array([-np.inf if each.signed else 0.0 for each in self.criteria])
        lower, upper = (np.maximum(values + side, least) for side in (-wide, wide))
        return np.maximum(values, least), errors, lower, upper

    def accepted(self, noisy: Noisy) -> Booleans:
        """Which criteria (criteria,) are met."""
        *_, upper = self._measured(noisy)
        return np.asarray(upper <= [each.at_most for each in self.criteria])

    def publish(self, noisy: Noisy) -> Published:
        values, errors, lower, upper = self._measured(noisy)
        met = self.accepted(noisy)
        limits = np.array([each.at_most for each in self.criteria])
        columns = [
            TableColumn(
                "criterion",
                np.array([c.words for c in self.criteria]),
                "The criterion for the records",
            ),
            TableColumn(
                "at_most", limits, "The largest value that meets the criterion, from the plan"
            ),
            TableColumn(
                "measured", values, "The value plus noise, at least the smallest possible value"
            ),
            error_column(errors, "measured"),
            *interval_columns(lower, upper, "the value without noise"),
            TableColumn("met", met, "Whether the whole interval is at most at_most"),
        ]
        statement = (
            "From the distribution of the noise. The value describes these rows and records; it has no"
            " sampling error."
        )
        law: Literal["exact", "normal"] = "exact"
        if self.counted:
            law = "normal"
            statement += f" The number of rows is estimated: {self._size[0]:,.0f}."
        stated = Uncertainty("measured", "standard_error", INTERVAL, law, statement)
        facts = {
            "records": self.of,
            "accepted": bool(met.all()),
            "withheld": bool(self.withholds and not met.all()),
        }
        return Published((Table("tables", self.name, columns, (stated,)),), facts)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        errors, widths = self._errors(np.zeros(len(self.criteria)))
        return tuple(
            ErrorStatement(
                f"standard error of the {each.words}",
                float(error),
                f"met if the noisy value is below {each.at_most - width:.3g}",
            )
            for each, error, width in zip(self.criteria, errors, widths, strict=True)
        )
