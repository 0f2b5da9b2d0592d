"""The contents of a plan and the values derived from them; ``Plan`` adds the checks of the whole plan.

``PlanDocument.built`` holds its releases as ``dpcore`` objects, each with its exact share of the budget.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, StrictInt, StrictStr

from dpcore.accounting.budget import Budget, ShareWeight, split
from dpcore.accounting.concentrated import promise_of
from dpcore.domain.adjacency import Adjacency, Relation
from dpcore.line.mechanism import promise_together
from dpcore.line.statistic import Noisy
from dpcore.post.units import assumptions
from dpcore.releases.abilities import DrawsSetting, JudgesRecords, of_period
from dpcore.releases.base import Release
from schemas.document import Section, absent, inside
from schemas.plan.analysis import Analysis
from schemas.plan.budget import BudgetSection
from schemas.plan.digest import digest_of
from schemas.plan.linked import SIZE, Linked
from schemas.plan.operation import Operation
from schemas.plan.protection import Protection
from schemas.plan.publication import Publication
from schemas.plan.series import Series, of_any_run
from schemas.plan.synthesis import Synthesis
from schemas.releases import AnyRelease, Name, SurveyFacts
from schemas.releases.compared import compared_columns
from schemas.releases.microdata import MicrodataSection
from schemas.releases.quality import QualitySection
from schemas.survey.columns import (
    Column,
    IdentifierColumn,
    IntegerColumn,
    Invalid,
    ReadColumn,
)
from schemas.survey.curves import Curve
from schemas.survey.derived import groups_of
from schemas.survey.source import Source
from schemas.survey.unit import COUNT, UnitColumn, Weights


class PlanDocument(Section):
    """All public facts of a release."""

    dprelease: Literal[1] = Field(description="The version of this document's format.")
    dataset: Name = Field(description="The ledger keeps one budget per dataset.")
    source: Source = Field(
        description="A Parquet, CSV, Excel, Stata or SPSS file; `package://NAME/PATH` for a file in"
        " a Python package; or a table of DuckDB, PostgreSQL or Spark. Never published."
    )
    rows: StrictInt = Field(
        ge=1,
        le=2**40,
        description="The public number of records, n. With add-remove, or a privacy unit of several"
        " records, a public guess is enough: it is used only as a scale for noise and errors. With"
        " `linked`, the number of units; with `series`, of the records of one period.",
    )
    counts: StrictStr | None = Field(
        default=None,
        exclude_if=absent,
        min_length=1,
        description="If a row of the source represents several records: the column with their"
        " number. It must not be among `columns`. Then `rows` is its sum, and `row` in `privacy_unit`"
        " means one record. Not available with weights or units of several records.",
    )
    privacy_unit: Literal["row"] | UnitColumn = Field(
        description="The protected unit: one record, or all records of a unit."
    )
    neighbours: Relation = Field(
        description="Tables are neighbours if the records of one unit are replaced (replace-one), or"
        " added or removed (add-remove). The number of records is public only if one record is"
        " replaced by one record."
    )
    weights: Weights | None = Field(
        default=None,
        description="Survey weights, for models, and for counts with `weighted`.",
    )
    strata: StrictStr | None = Field(
        default=None,
        exclude_if=absent,
        description="The column of the strata within which the survey was drawn; it must be among"
        " `columns`. A unit belongs to the stratum of its first record.",
    )
    cluster: StrictStr | None = Field(
        default=None,
        exclude_if=absent,
        description="The column of the clusters that were drawn, such as sampling points, if they are"
        " larger than privacy units. It must be among `columns`. A unit belongs to the cluster of its"
        " first record.",
    )
    clusters: StrictInt | None = Field(
        default=None,
        exclude_if=absent,
        ge=2,
        description="The number of drawn clusters, if the column of `cluster` has more values.",
    )
    linked: Linked | None = Field(
        default=None,
        exclude_if=absent,
        description="Makes one record of all members of a privacy unit, for linked synthetic tables.",
    )
    series: Series | None = Field(
        default=None,
        exclude_if=absent,
        description="The series to which this release belongs, if any.",
    )
    budget: BudgetSection
    invalid: Invalid = Field(
        default="refuse",
        description="What happens to values that are not valid. `refuse`: the release stops. `clamp`:"
        " a number is moved to the nearest bound; any other value counts as null, or in the first cell"
        " if the column has no nulls. `own-cell`: the value counts as null, and every column is"
        " nullable. `drop`: the record is left out. With `clamp` and `own-cell`, null and negative"
        " weights count as 0, and other weights that are not finite as the largest weight. Records"
        " without a valid identifier are left out. All except `refuse` extend the guarantee to tables"
        " that do not fit the plan.",
    )
    columns: dict[str, Column] = Field(
        min_length=1, description="The columns by name. Other columns of the table are ignored."
    )
    curves: dict[str, Curve] = Field(
        default_factory=dict,
        exclude_if=absent,
        description="Groups of columns that form one function, such as the load in each hour of a day,"
        " by name.",
    )
    releases: list[AnyRelease] = Field(
        min_length=1, description="The releases; each gets a share of the budget by weight."
    )
    synthesis: list[Synthesis] = Field(
        default_factory=list,
        description="Synthetic tables.",
    )
    analyses: list[Analysis] = Field(
        default_factory=list,
        exclude_if=absent,
        description="Models to publish with their errors, computed from the noisy tables at no cost.",
    )
    publication: Publication
    operation: Operation = Field(
        default=Operation(),
        description="The plan's schedule, requests and warnings; not in the digest.",
    )

    def release(self, section: AnyRelease, share: Budget) -> Release:
        """A release with this share. Messages of ``ValueError`` begin with the place in the section."""
        if self.series:
            return self.series.release(section, self.facts, share)
        if self.linked and self.unit and isinstance(section, MicrodataSection):
            section = self.linked.widened(section, self.columns, self.unit)
        if isinstance(section, QualitySection):
            section = section.of_records(self.synthesis, self.releases)
        return section.release(self.facts, share)

    @property
    def unit(self) -> UnitColumn | None:
        """The privacy unit, if it may have several records; None if it is one row."""
        return self.privacy_unit if isinstance(self.privacy_unit, UnitColumn) else None

    @property
    def protection(self) -> Protection:
        """The privacy unit and the neighbouring relation in words."""
        periods = self.series.bound(self.columns) if self.series else None
        open_texts, open_numbers = self._found
        return Protection(
            self.adjacency,
            self.rows,
            self.unit,
            self.invalid,
            periods=periods.most if periods else None,
            grows=self.series is not None and self.series.part < 1,
            counted=self.counts is not None,
            totals=tuple(filter(None, (section.public_totals for section in self.releases))),
            # With `invalid: clamp` all columns are clamped, which the rule for invalid values states.
            clamped=tuple(
                name
                for name, column in self.columns.items()
                if self.invalid != "clamp" and getattr(column, "outside", "") == "clamp"
            ),
            open_texts=open_texts,
            open_numbers=open_numbers,
        )

    @property
    def adjacency(self) -> Adjacency:
        """The neighbouring relation: which tables are neighbours."""
        if self.unit is None:
            return Adjacency(self.neighbours)
        if self.linked:
            return Adjacency(self.neighbours, unit=self.unit.column)  # one wide record each
        one = Adjacency(self.neighbours, self.unit.max_rows, unit=self.unit.column)
        return self.series.adjacency(one) if self.series else one

    @property
    def most_together(self) -> int:
        """The largest number of a unit's records in one synthetic table or model."""
        return self.unit.max_rows if self.unit and not self.linked else 1

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions behind sampling errors of models and moments, in addition to independent
        records."""
        weights = self.weights.column if self.weights else None
        return *assumptions(self.most_together, weights, self.strata), *self.cut_off

    @property
    def cut_off(self) -> tuple[str, ...]:
        """If a search finds bounds: a sentence on the numbers beyond them."""
        names = ", ".join(self._found[1])
        return (
            f"Numbers of {names} beyond the bounds that were found count as the nearest bound; errors"
            " and intervals do not include the difference.",
        ) * bool(names)

    @property
    def includes_sampling(self) -> bool:
        """Whether some published errors include sampling error."""
        return bool(self.analyses) or any(s.includes_sampling for s in self.releases)

    @property
    def unpublished(self) -> dict[str, str]:
        """The columns that are read but not published, by the plan's key that names them."""
        named = {"privacy_unit.column": self.unit, "weights.column": self.weights}
        places = {place: section.column for place, section in named.items() if section}
        return places | ({"counts": self.counts} if self.counts else {})

    @property
    def design_columns(self) -> tuple[str, ...]:
        """The columns of strata and clusters."""
        return tuple(filter(None, (self.strata, self.cluster)))

    @property
    def read_columns(self) -> Mapping[str, ReadColumn]:
        """Every column that the private steps read."""
        columns: dict[str, ReadColumn] = {**self.columns}
        if self.unit:
            columns[self.unit.column] = IdentifierColumn(source_name=self.unit.source_name)
        if self.weights:
            columns[self.weights.column] = self.weights.read
        if self.counts:
            columns[self.counts] = COUNT
        return columns

    @property
    def record_columns(self) -> Mapping[str, Column]:
        """The columns of the counted records: the plan's columns, or the columns of wide records."""
        if self.linked and self.unit:
            return self.linked.wide(self.columns, self.unit)
        return self.columns

    @property
    def described_columns(self) -> Mapping[str, Column]:
        """Every column that published tables may describe."""
        axes = (axis for release in self.built.values() for axis in release.domain.axes)
        return {**self.columns, **self.record_columns, **dict(compared_columns(axes))}

    @property
    def unused(self) -> list[str]:
        """Unpublished columns of the survey."""
        used = {name for release in self.built.values() for name in release.domain.names}
        members = {name.rpartition(".")[0] for name in used}  # of linked tables: age of age.2
        follow = {group.name for name in used for group in groups_of(name, self.columns)}
        return [name for name in self.columns if name not in used | members | follow]

    @property
    def published_columns(self) -> Mapping[str, Column]:
        """All published columns."""
        columns, unused = self.described_columns, set(self.unused)
        return {name: column for name, column in columns.items() if name not in unused}

    @property
    def facts(self) -> SurveyFacts:
        """The public facts from which releases are built."""
        size = SIZE if self.linked else ""
        return SurveyFacts(
            self.record_columns,
            self.rows,
            self.adjacency,
            self.weights,
            size,
            self.curves,
            self.strata or "",
            self.cluster or "",
            self.clusters or 0,
            self.unit.name if self.unit and not self.linked else "",
        )

    @property
    def requested(self) -> Budget:
        """The price of one release of the plan in the grant's terms: (alpha, beta, gamma), or (rho,
        beta, gamma)."""
        composition = self.budget.composition
        return self.budget.cost(
            any(section.spends_beta(composition) for section in self.releases),
            any(section.spends_gamma for section in self.releases),
        )

    @property
    def _found(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of open categorical columns, and of open numeric columns."""
        texts = [n for n in self.open_columns if self.columns[n].type == "categorical"]
        return tuple(texts), tuple(n for n in self.open_columns if n not in texts)

    @property
    def drawn_settings(self) -> list[str]:
        """Settings found in the records before all other numbers, with noise and within the budget."""
        own = [
            f"the {release.setting} of {name}"
            for name, release in self.of_period.items()
            if isinstance(release, DrawsSetting)
        ]
        return [*self.protection.found, *own]

    @property
    def open_columns(self) -> list[str]:
        """The columns with categories or bounds that are found before anything else is measured."""
        return [name for name, column in self.columns.items() if column.open]

    @property
    def finding(self) -> list[str]:
        """The releases that search for these categories or bounds."""
        return [section.name for section in self.releases if section.finds]

    @property
    def inside_bins(self) -> frozenset[str]:
        """The releases that values of synthetic records follow inside their bins."""
        return frozenset(name for table in self.synthesis for name in table.within_bins.values())

    @property
    def judging(self) -> list[str]:
        """The releases that measure the quality of synthetic tables."""
        return [section.name for section in self.releases if section.judges]

    def with_found(self, found: Mapping[str, Any]) -> Self:
        """The plan with the found categories and bounds, unchecked.

        ``found``: for each column, its texts with noisy counts, or its bounds.
        """
        columns = {
            name: column.with_found(found.get(name))
            if column.open and not isinstance(column, IntegerColumn)
            else column
            for name, column in self.columns.items()
        }
        return self.changed(columns=columns)

    @property
    def promise(self) -> Budget:
        """The (alpha, beta, gamma) that one release of the plan guarantees by itself.

        If alpha was requested, this is the request. For a request in rho, beta is the grant's beta, or 0
        if all mechanisms are pure and the sum of their alphas is smaller.
        """
        requested, asked = self.requested, self.budget.requested
        if not requested.rho:
            return requested
        if asked.alpha is not None:
            return Budget(asked.alpha, asked.beta, asked.gamma)
        if self.open_columns:  # the searches' results decide about other mechanisms
            return promise_of(requested, self.budget.granted.beta)
        events = [release.event for release in self.built.values()]
        return promise_together(events, requested, self.budget.granted.beta)

    @property
    def shares(self) -> list[Budget]:
        """The share of each release by weight. Beta and gamma go only to releases that spend them."""
        composition = self.budget.composition
        return split(
            self.requested,
            [
                ShareWeight(
                    s.weight, s.weight * s.spends_beta(composition), s.weight * s.spends_gamma
                )
                for s in self.releases
            ],
        )

    @cached_property
    def built(self) -> Mapping[str, Release]:
        """The releases by name, in the plan's order."""
        found = dict[str, Release]()
        sections = [*enumerate(zip(self.releases, self.shares, strict=True))]
        # Those that measure records come last: they depend on the records' source.
        for i, (section, share) in sorted(sections, key=lambda each: bool(each[1][0].judges)):
            with inside(f"releases[{i}]."):
                found[section.name] = self.counting(self.release(section, share), found)
        return {section.name: found[section.name] for section in self.releases}

    def counting(
        self,
        release: Release,
        built: Mapping[str, Release],
        draws: Callable[[str], Noisy] | None = None,
    ) -> Release:
        """The release; if it measures records, with the number of rows from the records' source."""
        if not isinstance(release, JudgesRecords):
            return release
        name = next(table.from_ for table in self.synthesis if table.name == release.of)
        return release.counting(built[name], draws(name) if draws else None)

    @cached_property
    def of_period(self) -> Mapping[str, Release]:
        """The releases from which records and models are made; in a series, of one period."""
        return {name: of_period(release) for name, release in self.built.items()}

    @property
    def prices(self) -> Mapping[str, Budget]:
        """The charge for each release: its share, or the amount that a run adds to its series."""
        if self.series is None:
            return {name: release.share for name, release in self.built.items()}
        return {name: self.series.price(release) for name, release in self.built.items()}

    @property
    def series_id(self) -> str:
        """SHA-256 of the part of the plan that all runs of a series share; empty without a series."""
        return digest_of(of_any_run(self.public())) if self.series else ""

    def changed(self, **sections: Any) -> Self:
        """The plan with some sections replaced and not checked, for comparisons with this plan."""
        # A copy would keep the releases that were built from the replaced sections.
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_construct(**kept | sections)

    def section(self, name: str) -> AnyRelease:
        """The plan's section about one release."""
        return next(section for section in self.releases if section.name == name)

    def public(self) -> dict[str, Any]:
        """The plan as JSON values, without the table's location, its private names and the operation."""
        hidden: dict[str, Any] = {"source": True, "operation": True}
        hidden |= {"privacy_unit": {"source_name"}, "weights": {"source_name"}}
        hidden["columns"] = {name: {"source_name"} for name in self.columns}
        return self.model_dump(mode="json", by_alias=True, exclude=hidden)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the public plan. The same digest means the same statistics and noise."""
        return digest_of(self.public())
