"""The mean of curves, one for each record, at T public times (Hall, Rinaldo & Wasserman 2013).

``dpcore.domain.curves`` defines the curve v of a record, and proves |A v|^2 <= M. The statistic of a
group is the sum of A v over its records, and u times their number if it is private.

**Lemma.**  The squared change of the statistic is at most M + u^2 if a record is added or removed, 4 M
if its curve is replaced, and 2 (M + u^2) if a record of another group replaces it.  *Proof.* Curves may
be v and -v, so |A v - A v'| <= 2 sqrt(M), and u does not change.  In two groups the squares add up.  QED

**The curve** is fitted to all sums by least squares: with noise of variance w in each, the fitted sums
of v have the covariance w G, G = (I + q^2 D'D)^-1 for differences D, whatever the records are.  q
minimises M trace(G).  The half-width of the band is the number of standard errors that simulated noise
exceeds nowhere in 90% of draws.  Between two times curves, estimates and ends of intervals are straight
lines, so a band that is right at all times is also right between them; standard errors there are upper
bounds.

If N is noisy, an interval contains all m with |S_t - m N| within their standard errors (Fieller 1954),
and the band takes the correlations of these differences from the estimated curve, to first order.  Sums
are cut at what ``most_rows`` records can reach (``dpcore.domain.adjacency``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers, wide
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.curves import RecordCurves
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.base import ErrorStatement, Release, named_points
from dpcore.releases.counts.cells import cell_names, describe_cells
from dpcore.releases.densities.banded import BAND, band_meanings
from dpcore.releases.numbers.by_group import groups_of, require_groups
from dpcore.releases.numbers.mean import TOO_LARGE
from dpcore.releases.table import (
    ENDS,
    FEWEST_ERRORS,
    LEVEL,
    REASON,
    TWO_SIDED,
    Published,
    Table,
    TableColumn,
    Uncertainty,
    reason_column,
    unless,
)
from dpcore.releases.work import Work, publishing

TIME = "time"

MOST_CURVES = 256
"""The most curves, because the band of each is simulated separately."""

REPEATS, MOST_SIMULATED = 4000, 2**22
"""How often noise is simulated for a band, and the most simulated numbers; with 4000 draws the level is
accurate to half a per cent."""

WEIGHTS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Candidates for q; the best of these is within a few per cent of the best of all."""

READ, CHUNK = 1e-7, 2**21
"""CPU seconds for each point of a record, and how many points are read at a time."""


@dataclass(frozen=True)
class MeanCurve(Release):
    """The mean curve of all records, or of each group of them.

    The last axes of the domain are grids, one for each of ``times``; the axes before them define the
    groups.  ``step_at_most``: the largest change between neighbouring times, in the unit of the curve,
    if stated.
    """

    finer = "narrower bounds, a smaller step_at_most or fewer groups"

    times: tuple[float, ...] = ()
    step_at_most: float | None = None

    chart = "mean-curves"
    too_large = TOO_LARGE
    statistics = (TIME, "estimate", "standard_error", *ENDS, *BAND, REASON)

    def __post_init__(self) -> None:
        require_groups(self.by.axes, MOST_CURVES, "curve")
        for axis in self.domain.axes[len(self.by.axes) :]:
            if not isinstance(axis, Grid):
                raise ValueError(
                    f"curve: {axis.name!r} is not numeric, or has `levels`; state bounds"
                )
        same = len({axis.cells for axis in self.grids}) == 1
        if not same and any(not axis.integer for axis in self.grids):
            raise ValueError(
                "curve: its columns have different grids; state the same `grid` for all"
            )
        if self.step_at_most is not None:
            self.curves.require_step()
        super().__post_init__()

    @cached_property
    def by(self) -> Domain:
        """The columns that define the groups."""
        return Domain(self.domain.axes[: len(self.domain.axes) - len(self.times)])

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The columns of the curve."""
        return tuple(
            axis for axis in self.domain.axes[len(self.by.axes) :] if isinstance(axis, Grid)
        )

    @cached_property
    def curves(self) -> RecordCurves:
        """The rule from a record's codes to its curve."""
        return RecordCurves(self.grids, self.times, self.step_at_most)

    @property
    def groups(self) -> int:
        """The number of groups, each with a curve."""
        return self.by.size

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        return () if axis in self.grids else cell_names(axis)

    @property
    def counted(self) -> bool:
        """Whether the number of records is measured."""
        nullable = any(axis.nullable for axis in self.grids)
        return self.groups > 1 or nullable or not self.adjacency.public_rows

    @cached_property
    def weight(self) -> int:
        """The weight q of differences."""
        # Differences cost sensitivity, and are informative only if steps are limited.
        if self.step_at_most is None or self.curves.step >= self.curves.reach[0]:
            return 0
        return min(WEIGHTS, key=lambda q: self.curves.length(q) * self._spread(q))

    def _spread(self, weight: int) -> float:
        """The mean of the diagonal of G; the eigenvectors of D'D are cosines."""
        size = len(self.times)
        squared = 4 * np.sin(np.pi * np.arange(size) / (2 * size)) ** 2
        return float(np.mean(1 / (1 + weight**2 * squared)))

    @cached_property
    def record(self) -> int:
        """The weight u of a record's count: sqrt(M) if records are replaced, which costs nothing;
        otherwise the best one for a curve halfway between the middle and a bound."""
        length = self.curves.length(self.weight)
        if self.adjacency.relation == "replace-one":
            return max(math.isqrt(length), 1)
        half = math.sqrt(float(np.mean(self.curves.reach.astype(float) ** 2))) / 2
        return max(round(math.sqrt(half * math.sqrt(length / self._spread(self.weight)))), 1)

    @cached_property
    def design(self) -> Floats:
        """The matrix A (numbers, T) that turns a curve into the numbers that are summed."""
        points = np.eye(len(self.times))
        return np.r_[points, self.weight * np.diff(points, axis=0)] if self.weight else points

    @cached_property
    def covariance(self) -> Floats:
        """The covariance G (T, T) of the fitted curve, for noise of variance 1 in each sum."""
        return np.asarray(np.linalg.inv(self.design.T @ self.design))

    @cached_property
    def mechanism(self) -> DiscreteGaussian:
        length = self.curves.length(self.weight)
        present = length + self.record**2 * self.counted
        # A record that is replaced by one without a value counts in only one of the tables.
        moved = max(4 * length, 2 * present if self.groups > 1 else present)
        squared = self.adjacency.squared(moved=Fraction(moved), present=Fraction(present))
        size = self.groups * (len(self.design) + self.counted)
        # With single cells nothing moves, but noise needs a scale.
        return DiscreteGaussian.within(self.share, size, max(squared, Fraction(1)))

    @cached_property
    def _limits(self) -> Integers:
        """The largest contribution (numbers,) of one record to each number."""
        steps = [2 * self.weight * self.curves.step] * (len(self.times) - 1) if self.weight else []
        return np.array([*self.curves.reach, *steps, *[self.record] * self.counted])

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * int(self._limits.max())

    def statistic(self, tally: Tally) -> Exact:
        counts, first = wide(tally.counts, self.most_rows), len(self.by.axes)
        sums = np.zeros((self.groups, len(self.times) + 1), dtype=counts.dtype)
        many = CHUNK // len(self.times)
        for start in range(0, len(counts), many):
            here = slice(start, start + many)
            codes = np.stack([tally.codes(i)[here] for i in range(len(self.domain.axes))], axis=1)
            group = self.by.pack(codes[:, :first])
            curves, known = self.curves.of(codes[:, first:].astype(np.int64))
            terms = np.c_[curves, np.ones(len(curves), dtype=np.int64)]
            np.add.at(sums, group[known], counts[here][known, None] * terms)
        vectors, rows = sums[:, :-1], sums[:, -1:]
        if self.weight:
            vectors = np.c_[vectors, self.weight * np.diff(vectors, axis=1)]
        if self.counted:
            vectors = np.c_[vectors, self.record * rows]
        most = self.most_rows * self._limits
        return Exact(np.clip(vectors, -most, most).astype(np.int64).ravel())

    @cached_property
    def _again(self) -> tuple[Floats, Floats]:
        """Simulated noise of the fitted sums (repeats, T) and of the number of records (repeats, 1), in
        standard deviations of the noise."""
        numbers = len(self.design) + 1
        repeats = min(REPEATS, MOST_SIMULATED // numbers)
        # The law of the noise is public: a fixed seed gives the same band each time.
        drawn = self.mechanism.simulate(repeats * numbers, np.random.default_rng(0))
        noise = drawn.reshape(repeats, numbers) / self.mechanism.stddev
        return noise[:, :-1] @ self.design @ self.covariance, noise[:, -1:] * self._per_row

    @property
    def _per_row(self) -> float:
        """The noise in the number of records, as a multiple of the measured noise: 1/u, or 0."""
        return 1 / self.record if self.counted else 0.0

    def _lengths(self, means: Floats) -> Floats:
        """The standard deviations (T,) of S_t - m_t N for means m (T,), relative to the noise."""
        return np.asarray(np.sqrt(np.diag(self.covariance) + (means * self._per_row) ** 2))

    def factor(self, means: Floats) -> float:
        """The number of standard errors that bounds noise in a mean curve m (T,) in 90% of draws."""
        sums, rows = self._again
        largest = np.max(np.abs(sums - means * rows) / self._lengths(means), axis=1)
        # Not interpolated, so that the band is right in at least 90% of the simulated draws.
        return float(np.quantile(largest, LEVEL, method="higher"))

    def stated(self, noisy: Noisy) -> tuple[dict[str, Floats], Floats, Floats]:
        """The curves with their errors, intervals and bands (groups, T); and for each group (groups,)
        the number of records and the factor of its band."""
        values = noisy.values.reshape(self.groups, -1)
        sums = values[:, : len(self.design)] @ self.design @ self.covariance
        rows = np.full(self.groups, float(self.rows))
        if self.counted:
            rows = values[:, -1] / self.record
        safe = np.where(self._hidden(rows), np.inf, rows)
        # The exact means are within the bounds, and the band would be wider for means beyond them.
        means = np.clip(sums / safe[:, None], -self.curves.reach, self.curves.reach)
        factors = np.array([self.factor(each) for each in means])
        lengths = np.array([self._lengths(each) for each in means])
        found = {
            "estimate": sums / safe[:, None],
            "standard_error": self.mechanism.stddev * lengths / safe[:, None],
        }
        for names, width in ((ENDS, np.full(self.groups, TWO_SIDED)), (BAND, factors)):
            found |= zip(names, self._ends(sums, rows, width), strict=True)
        in_units = {
            name: self.curves.middle + self.curves.half * each for name, each in found.items()
        }
        in_units["standard_error"] = self.curves.half * found["standard_error"]
        return in_units, rows, factors

    def _ends(self, sums: Floats, rows: Floats, width: Floats) -> tuple[Floats, Floats]:
        """The ends (groups, T) of all m with |S_t - m N| within ``width`` standard errors."""
        squared = (width * self.mechanism.stddev)[:, None] ** 2
        of_rows = squared * self._per_row**2
        rest = np.where(self._hidden(rows)[:, None], np.inf, rows[:, None] ** 2 - of_rows)
        middle = sums * rows[:, None] / rest
        half = np.sqrt((squared * np.diag(self.covariance) + sums**2 / rest * of_rows) / rest)
        return middle - half, middle + half

    def _hidden(self, rows: Floats) -> Booleans:
        """Which groups may have no records."""
        return np.asarray(rows <= FEWEST_ERRORS * self.mechanism.stddev * self._per_row)

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """The curve with its error, interval and band at values of ``time`` and of the columns of
        groups; masked if there may be no records."""
        *given, at = named_points(points, (*self.by.names, TIME))
        times = np.array(self.times)
        if not np.all(np.ma.filled((at >= times[0]) & (at <= times[-1]), False)):
            raise ValueError(f"points: time must lie in [{times[0]:.15g}, {times[-1]:.15g}]")
        group = groups_of(self.by, given, len(at))
        # The last time belongs to the interval before it.
        left = np.clip(np.searchsorted(times, at, "right") - 1, 0, len(times) - 2)
        part = (at - times[left]) / (times[left + 1] - times[left])
        found, rows, _ = self.stated(noisy)
        hidden = self._hidden(rows)[group]
        return {
            name: unless(hidden, (1 - part) * each[group, left] + part * each[group, left + 1])
            for name, each in found.items()
        }

    def publish(self, noisy: Noisy) -> Published:
        found, rows, factors = self.stated(noisy)
        size = len(self.times)
        hidden = np.repeat(self._hidden(rows), size)
        columns = [
            *describe_cells(self.by, np.repeat(np.arange(self.groups), size)),
            TableColumn(TIME, np.tile(self.times, self.groups), "The time of a point of the curve"),
        ]
        meanings = (
            "Mean of the records' curves plus noise of mean zero",
            "Standard deviation of the noise in estimate",
            *band_meanings("the mean curve"),
        )
        columns += [
            TableColumn(name, unless(hidden, each.ravel()), meaning)
            for (name, each), meaning in zip(found.items(), meanings, strict=True)
        ]
        columns += [reason_column(hidden)] * self.counted
        stated = self.of_the_curves
        noise = "From the distribution of the noise" + ", to first order" * self.counted
        uncertainty = (
            Uncertainty(
                "estimate", "standard_error", ENDS, "normal", f"{noise}; at each time. {stated}"
            ),
            Uncertainty(
                "estimate",
                "standard_error",
                BAND,
                "simulated",
                "The band contains the whole mean curve, also between times. It is made from the"
                " simulated distribution of the largest noise in standard errors, for each group"
                f" separately. {stated}",
            ),
        )
        facts = {
            "columns": [grid.name for grid in self.grids],
            "function": "Between two times, all columns are interpolated linearly; standard errors"
            " there are upper bounds",
            "simultaneous_factor": factors.tolist(),
            "grid_step": float(2 * self.curves.half[0]),
        }
        if self.counted:
            error = self.mechanism.stddev * self._per_row
            facts |= {"noisy_rows": rows.tolist(), "rows_standard_error": error}
        return Published((Table("tables", self.name, columns, uncertainty),), facts)

    @property
    def of_the_curves(self) -> str:
        """A sentence on errors that are not included, from public values only."""
        found = "Not included: if the plan clamps, a value beyond a bound counts as the bound"
        if not self.grids[0].integer:
            half = self.curves.half.max()
            found += f"; values move to the middle of their cells, by at most {half:.3g}"
        if any(axis.nullable for axis in self.grids):
            found += (
                "; a missing value is interpolated linearly between the record's neighbouring values,"
                " and before the first or after the last value it equals that value: if records begin"
                " late or end early, the mean is of curves extended in this way"
            )
        if self.step_at_most is not None:
            found += (
                f"; if a record has a step larger than {self.step_at_most:.6g} between neighbouring"
                " times, the nearest curve without such a step (by maximal distance) replaces it; this"
                " curve may be higher or lower everywhere"
            )
        return f"{found}."

    @property
    def work(self) -> Work:
        size, distinct = len(self.times), min(self.rows, self.domain.size)
        again = Work(2e-8 * REPEATS * size * self.groups, 40 * MOST_SIMULATED)
        read = Work(READ * distinct * size, 2 * distinct * size + 80 * CHUNK)
        return publishing(self.mechanism.size) + again + read

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        nothing = np.zeros(len(self.times))
        each = self.rows / self.groups
        error = (
            float(np.mean(self.curves.half * self._lengths(nothing))) * self.mechanism.stddev / each
        )
        note = self.of_the_curves
        if self.counted:
            note = f"if the curve is in the middle of its bounds; otherwise larger. {note}"
        if self.groups > 1:
            note = f"in a group of {each:.3g} records, an equal share; {note}"
        of = "averaged over times"
        found = [
            ErrorStatement(f"standard error of the mean curve, {of}", error, note),
            ErrorStatement(
                f"90% band of the whole curve, {of}: plus or minus", self.factor(nothing) * error
            ),
        ]
        if self.counted:
            off = self.mechanism.stddev * self._per_row
            found.append(ErrorStatement("standard error of a number of records", off))
        return tuple(found)
