"""A series of releases in a plan: one run for each period, in order.

series: {period: month, periods: 12, in_periods: 1}          the same for every run
dprelease run PLAN --set series.run=3                        the third run, after the first two

Run t reads a table with the periods 1..t, and publishes estimates from the draws of runs 1..t: of period
t, of totals to date and of changes (``dpcore.releases.tables.series``).
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import ROW, Adjacency
from dpcore.domain.axes import Axis, middles
from dpcore.domain.domain import Domain
from dpcore.domain.series import MOST_PERIODS, STEPS, Factor, each_alone, square_root
from dpcore.errors import InputError
from dpcore.post.series import YEAR
from dpcore.releases.abilities import CountsUnits, Repeatable, RunOfSeries
from dpcore.releases.base import Release
from dpcore.releases.models.by_period import EstimatesRun
from dpcore.releases.tables.series import SeriesRun
from schemas.document import Section
from schemas.releases.base import ReleaseSection, SurveyFacts
from schemas.releases.model import ModelSection
from schemas.releases.moments import MomentsSection
from schemas.survey.columns import Column, ContinuousColumn

SCHEDULE = "schedule"

NO_DESIGN = (
    "a series has no weights, strata or clusters. For the population, leave out series: write a plan for"
    " each period, or one plan with the period as a term of its models, such as y ~ 0 + C(period)."
    " Otherwise remove the design"
)


class Periods(NamedTuple):
    """The engine's bound on units: only records in a unit's first ``most`` periods on ``axis`` count."""

    axis: Axis
    most: int


OF_ONE_RUN = ("budget", "rows", "publication", "analyses")
"""Keys of a plan that may differ between runs of one series, in addition to ``synthesis``."""

WORDS = ("description", "labels")
"""Keys of a column that may also differ: words for readers."""


def of_any_run(public: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the public plan that all runs of a series share."""
    common = {key: value for key, value in public.items() if key not in OF_ONE_RUN}
    common |= {"synthesis": []} if "synthesis" in public else {}
    common["columns"] = {
        name: {key: value for key, value in column.items() if key not in WORDS}
        for name, column in public["columns"].items()
    }
    if "series" in common:
        common["series"] = {k: value for k, value in public["series"].items() if k != "run"}
    return common


class Series(Section):
    """A series of runs, and the number of this run."""

    period: StrictStr = Field(
        description="The column with the period of a record: categorical, or whole numbers, with one"
        f" value for each period, in order. Write `{SCHEDULE}` if each run's table contains the records"
        " of only one period."
    )
    periods: StrictInt = Field(
        ge=1, le=MOST_PERIODS, description="The largest number of periods of the series."
    )
    in_periods: StrictInt | Literal["all"] = Field(
        description=(
            "The largest number of periods of one privacy unit. If a unit is in more periods, only the"
            " first count, with at most `max_rows` records in each. The cost of all runs grows with"
            " it."
        )
    )
    run: StrictInt = Field(
        default=1,
        ge=1,
        description="The number of this run's period. Runs go in order. Default: the next period"
        " without a release in the ledger.",
    )
    measures: Literal["to-date", "period"] = Field(
        default="period",
        description="What a run measures: only its period (`period`), or a weighted sum of all"
        " periods so far (`to-date`), which makes totals over many periods accurate. `to-date`"
        " requires that records of past periods never change.",
    )
    year: StrictInt = Field(default=YEAR, ge=2, description="The number of periods in a year.")

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if self.in_periods != "all" and not 1 <= self.in_periods <= self.periods:
            raise ValueError(
                f"in_periods: must be all, or between 1 and {self.periods}, the number of periods; not"
                f" {self.in_periods}"
            )
        if self.run > self.periods:
            raise ValueError(
                f"run: there is no run {self.run}, because the series has {self.periods} periods"
            )
        if self.period == SCHEDULE and self.in_periods != "all":
            raise ValueError(
                "in_periods: cannot be enforced if each table has only one period; write all, or name"
                " the column with the period"
            )
        if self.period == SCHEDULE and self.measures == "to-date":
            raise ValueError(
                "measures: a table with only one period cannot be weighted by period; leave it out, or"
                " name the column with the period"
            )
        return self

    def at(self, run: int) -> "Series":
        """The series at another run. Raises ``InputError`` if there is no run with this number."""
        if run > self.periods:
            raise InputError(
                f"series.periods: all {self.periods} periods were released; begin a new series"
            )
        return self.model_copy(update={"run": run})

    @property
    def column(self) -> str | None:
        """The column with the period, if there is one."""
        return None if self.period == SCHEDULE else self.period

    @property
    def most(self) -> int:
        """The largest number of periods in which one unit is counted."""
        return self.periods if self.in_periods == "all" else self.in_periods

    @property
    def factor(self) -> Factor:
        return (square_root if self.measures == "to-date" else each_alone)(self.periods)

    @property
    def enforced(self) -> bool:
        """Whether the engine enforces the largest number of periods of a unit."""
        return self.column is not None

    @property
    def part(self) -> Fraction:
        """The fraction (0 to 1) of the sensitivity in the privacy event that this run of counts adds."""
        return self._part(self.factor)

    def _part(self, factor: Factor) -> Fraction:
        return Fraction(factor.moved(self.run, self.most), STEPS * self._in_one_run)

    def price(self, run: Release) -> Budget:
        """The amount that this run adds to the price of the series, if runs 1..run-1 had the same noise.

        The amount is rho times the squared fraction, or alpha times the fraction for Laplace noise: see
        ``domain.series``, the price of a run, for the proof. Gaussian noise under basic composition has
        no additive price, so each run costs its share. The ledger enforces all conditions except one
        that it cannot test: no unit enters or leaves a past period.
        """
        share = run.share
        part = self._part(run.factor) if isinstance(run, RunOfSeries) else self.part
        if share.rho:
            return replace(share, rho=share.rho * part**2)
        return share if share.beta else replace(share, alpha=share.alpha * part)

    @property
    def _alone(self) -> Fraction:
        """The largest fraction of the event's sensitivity that one run alone can have."""
        return Fraction(sum(self.factor.steps[: self._in_one_run]), STEPS * self._in_one_run)

    def _share(self, requested: Budget) -> Budget:
        """The share at which one run alone costs the request."""
        if requested.rho:
            return replace(requested, rho=requested.rho / self._alone**2)
        return (
            requested if requested.beta else replace(requested, alpha=requested.alpha / self._alone)
        )

    @property
    def _in_one_run(self) -> int:
        """The largest number of periods of a unit's records in one run's table."""
        return self.most if self.enforced else 1

    def adjacency(self, one_period: Adjacency) -> Adjacency:
        """The neighbouring relation of a run, from ``one_period``, the relation within each period."""
        return replace(one_period, most=one_period.most * self._in_one_run)

    def check(self, columns: Mapping[str, Column], adjacency: Adjacency, weighted: bool) -> None:
        """Raise ``ValueError`` if the rest of a plan contradicts the series."""
        if adjacency.public_rows:
            raise ValueError(
                "series: the number of records of each run would reveal when a unit entered; write"
                " neighbours: add-remove, or name a privacy unit of several records"
            )
        if self.enforced and adjacency.unit == ROW and self.most > 1:
            raise ValueError(
                "series.in_periods: one record is in only one period; write 1, or name a privacy_unit"
                " that is in several periods"
            )
        if weighted:
            raise ValueError(f"weights: {NO_DESIGN}")
        if self.column is not None:
            self._check_column(columns.get(self.column))

    def _check_column(self, column: Column | None) -> None:
        if column is None:
            raise ValueError(
                f"series.period: the plan declares no column {self.period!r}; declare it, or write"
                f" {SCHEDULE} if each run's table has only one period"
            )
        if isinstance(column, ContinuousColumn) or column.nullable:
            raise ValueError(
                f"series.period: {self.period!r} must be categorical or integer, and without nulls"
                " (with invalid: own-cell every column has nulls; use drop)"
            )
        values = column.axis(self.period).size
        if values != self.periods:
            raise ValueError(
                f"series.periods: {self.period!r} has {values} values, but needs one for each of"
                f" {self.periods} periods"
            )

    def bound(self, columns: Mapping[str, Column]) -> Periods | None:
        """The engine's bound on the periods of units; None if the table contains only one period."""
        if self.column is None:
            return None
        return Periods(columns[self.column].axis(self.column), self.most)

    def named(self, columns: Mapping[str, Column]) -> str:
        """The period of this run in words, such as ``period 2 of 3: 2025-T2``."""
        number, periods = f"period {self.run} of {self.periods}", self.bound(columns)
        return f"{number}: {middles(periods.axis)[self.run - 1]}" if periods else number

    def release(
        self, section: ReleaseSection, survey: SurveyFacts, share: Budget
    ) -> SeriesRun | EstimatesRun:
        """This run of one release. Messages of ``ValueError`` begin with the place in its section."""
        if isinstance(section, ModelSection | MomentsSection):
            return self._estimates(section, survey, share)
        share = self._share(share)
        tables = section.release(survey, share)
        counted = tables.in_series() if isinstance(tables, Repeatable) else None
        if counted is None:
            raise ValueError(
                "kind: a series releases counts (histogram, margins, microdata-margins) or estimates"
                " (model, moments). For a mean use a model, such as formula: income ~ 1"
            )
        return SeriesRun(
            section.name,
            self._with_period(counted.domain, survey),
            survey.rows,
            share,
            counted,
            self.factor,
            self.run,
            self.year,
            adjacency=survey.adjacency,
        )

    def _estimates(
        self, section: ModelSection | MomentsSection, survey: SurveyFacts, share: Budget
    ) -> EstimatesRun:
        """A run of estimates. It measures only its period, because ``measures`` is about counts."""
        if self._in_one_run > 1:
            raise ValueError(
                "kind: models and moments of a series need in_periods: 1, or tables of one period each"
                f" (period: {SCHEDULE})"
            )
        inner = section.release(survey, share)
        if isinstance(inner, CountsUnits) and inner.counts_units:
            raise ValueError(
                "kind: a model of a series counts each record once; use moments, or write max_rows: 1"
            )
        return EstimatesRun(
            section.name,
            self._with_period(inner.domain, survey),
            survey.rows,
            share,
            inner,
            self.periods,
            self.run,
            self.most,
            self.year,
            adjacency=survey.adjacency,
        )

    def _with_period(self, domain: Domain, survey: SurveyFacts) -> Domain:
        """The tally's domain for a release: ``domain``, with the column of periods if there is one."""
        if self.column in domain.names:
            raise ValueError(
                f"columns: {self.column!r} is the period of the series; remove it from the release"
            )
        periods = self.bound(survey.columns)
        return Domain((periods.axis, *domain.axes)) if periods else domain
