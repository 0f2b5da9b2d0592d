"""The release plan: one document that holds everything public.

A plan holds the dataset's name and public facts, the columns, the budget, the releases and the
details of publication.  ``load_plan`` reads it and refuses a plan that is incomplete or
contradictory; ``Plan.built`` are its releases in ``dpcore``, each with its exact share of the budget.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dpcore.adjacency import Adjacency, Relation
from dpcore.budget import Budget, Weight, split
from dpcore.errors import PlanError
from dpcore.mechanism import promise_together
from dpcore.releases.base import Release
from dpcore.suggestion import suggestion
from schemas.analysis import Analysis
from schemas.best import BEST, chosen
from schemas.blanks import blanks_of, touches
from schemas.budget import BudgetSection
from schemas.columns import (
    NAMEABLE,
    CategoricalColumn,
    Column,
    IdentifierColumn,
    Invalid,
    ReadColumn,
    check_rounded,
    made_total,
    rounded,
    sources,
)
from schemas.derived import check_groups, groups_of
from schemas.document import Section, faults_of, read_yaml, written_faults
from schemas.linked import SIZE, Linked
from schemas.operation import Operation
from schemas.protection import Protection
from schemas.public_files import read_public_files
from schemas.publication import Publication
from schemas.releases import AnyRelease, Name, SurveyFacts, check_names
from schemas.releases.microdata import MicrodataSection
from schemas.series import Series, of_any_run
from schemas.source import Source, resolve_source
from schemas.synthesis import Synthesis
from schemas.text import look_alikes, refuse_treacherous, told_apart
from schemas.unit import COUNT, WEIGHT, UnitColumn, Weights

LARGEST_SHARE_BITS = 6000
"""The longest denominator of an exact share; shares must fit in a manifest."""


class Plan(Section):
    """Everything public about a release."""

    dprelease: Literal[1] = Field(description="The version of this document's format.")
    dataset: Name = Field(description="The ledger keeps one budget per dataset.")
    source: Source = Field(
        description="A Parquet or CSV file, `package://NAME/PATH` for a file inside an installed "
        "Python package, a table of a DuckDB or PostgreSQL database, or a survey on Spark. Never "
        "published."
    )
    rows: StrictInt = Field(
        ge=1,
        le=2**40,
        description="The public number of records, n. With add-remove, or a privacy unit of several "
        "records, a public guess, used only as a scale for noise and errors. With `linked`, a guess of "
        "the number of units.",
    )
    counts: StrictStr | None = Field(
        default=None,
        min_length=1,
        description="Where each row of the source stands for several records: the column, not among "
        "`columns`, with their number, a whole number from 0. Then `rows` is its sum, and `row` in "
        "`privacy_unit` one of those records. Without weights or units of several records.",
    )
    privacy_unit: Literal["row"] | UnitColumn = Field(
        description="Whose presence is protected: one record, or all records of a unit."
    )
    neighbours: Relation = Field(
        description="Tables are neighbours when the records of one unit are replaced by those of "
        "another, or when they are added or removed. The number of records is public where one record "
        "is replaced by one, and private elsewhere."
    )
    weights: Weights | None = Field(
        default=None, description="Survey weights, for releases that say `weighted`."
    )
    linked: Linked | None = Field(
        default=None,
        description="Makes each privacy unit one record of all its members, for linked synthetic "
        "tables of units and members.",
    )
    series: Series | None = Field(
        default=None, description="The series of releases of which this is one, if it is."
    )
    budget: BudgetSection
    invalid: Invalid = Field(
        default="refuse",
        description="What happens to values that are not valid: they stop the release (`refuse`); a"
        " number goes to the nearest bound and anything else counts as null, or in the first cell of a"
        " column without nulls (`clamp`); they count as null, and every column is nullable"
        " (`own-cell`); or their record is left out (`drop`). With `clamp` and `own-cell`,"
        " weights that are null or negative count as 0, others that are not finite as the largest, and"
        " records without an identifier as one unit. All but `refuse` extend"
        " the guarantee to tables that do not fit the plan.",
    )
    columns: dict[str, Column] = Field(
        min_length=1, description="The columns by name; others in the table are ignored."
    )
    releases: list[AnyRelease] = Field(
        min_length=1, description="What is released, each with a share of the budget by weight."
    )
    synthesis: list[Synthesis] = Field(
        default_factory=list,
        description="Synthetic tables. A tree need not span all columns: those in none of its edges "
        "are drawn independently.",
    )
    analyses: list[Analysis] = Field(
        default_factory=list,
        description="Models that are published with their errors: computed from the noisy tables, at no "
        "cost.",
    )
    publication: Publication
    operation: Operation = Field(
        default=Operation(), description="When it runs and when it warns; not part of the digest."
    )

    @field_validator("columns")
    @classmethod
    def _total(cls, columns: dict[str, Column], info: ValidationInfo) -> dict[str, Column]:
        invalid = info.data.get("invalid", "refuse")
        return {name: made_total(column, invalid) for name, column in columns.items()}

    @model_validator(mode="before")
    @classmethod
    def _as_it_looks(cls, document: Any) -> Any:
        refuse_treacherous(document)
        columns = document.get("columns") if isinstance(document, dict) else None
        if isinstance(columns, dict) and (alike := look_alikes(columns)):
            raise ValueError(f"columns: {told_apart(*alike)}")
        return document

    @model_validator(mode="after")
    def _best(self) -> "Plan":
        """Put the mechanism in the place of every ``best``, and ask for no beta that it spares."""
        plan: Plan = self
        for i, section in enumerate(self.releases):
            if section.mechanism == BEST:
                releases = [*plan.releases[:i], chosen(plan, i), *plan.releases[i + 1 :]]
                plan = plan.changed(releases=releases)
        composition = plan.budget.composition
        if plan is not self and not any(s.spends_beta(composition) for s in plan.releases):
            asked = plan.budget.requested.model_copy(update={"beta": Fraction(0)})
            if composition == "basic":
                budget = plan.budget.model_copy(update={"requested": asked})
                plan = plan.changed(budget=budget)
        return plan

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if isinstance(self.source, str) and re.match("(?!package:)[a-z0-9+]+://", self.source):
            raise ValueError(
                "source: write a database as {postgresql: URL, table: SCHEMA.TABLE}, and remote files"
                " as {spark: MASTER, parquet: URL}"
            )
        if self.invalid == "drop" and self.adjacency.public_rows:
            raise ValueError(
                "invalid: drop makes the number of records private; it needs neighbours: add-remove, or"
                " a privacy unit of several records"
            )
        lowered: dict[str, str] = {}
        for name in self.columns:
            if not NAMEABLE.fullmatch(name):
                raise ValueError(
                    f"columns.{name}: a column name begins with a letter and holds letters, "
                    "digits, blanks and _ . -"
                )
            if lowered.setdefault(name.lower(), name) != name:
                raise ValueError(
                    f"columns.{name}: differs from {lowered[name.lower()]!r} only in capitals"
                )
        self._check_unpublished()
        check_groups(self.columns)
        check_rounded(self.columns)
        self._check_linked()
        if self.series:
            self.series.check(self.columns, self.adjacency, self.weights is not None)
            if self.synthesis:
                raise ValueError("synthesis: records cannot be drawn from one run of a series")
            if self.analyses:
                raise ValueError("analyses: models cannot be fitted to one run of a series")
            if self.operation.schedule and self.operation.schedule.since is None:
                raise ValueError(
                    "operation.schedule.since: state the day from which the periods of the series count"
                )
        _refuse_twice("releases", [section.name for section in self.releases])
        _refuse_twice("synthesis", [table.name for table in self.synthesis])
        _refuse_twice("analyses", [analysis.name for analysis in self.analyses])
        for i, analysis in enumerate(self.analyses):
            try:
                analysis.check(self.record_columns)
            except ValueError as error:
                raise ValueError(f"analyses[{i}].{error}") from None
        self._check_spending()
        parts = [part for share in self.shares for part in (share.alpha, share.beta, share.gamma)]
        if any(part.denominator.bit_length() > LARGEST_SHARE_BITS for part in parts):
            raise ValueError("releases: the weights have too many digits together; shorten them")
        for i, release in enumerate(self.built.values()):
            try:
                check_names(release, self.publication.replicates)
            except ValueError as error:
                raise ValueError(f"releases[{i}].{error}") from None
            try:
                release.expected_error()  # raises if the share is too small for any noise
            except ValueError as error:
                raise ValueError(f"releases[{i}]: {error}") from None
        for i, table in enumerate(self.synthesis):
            try:
                table.sampler(self.built)
                table.refining(self.built)
                table.check_values(self.built[table.from_].domain)
                table.deriving(self.built[table.from_], self.record_columns)
                if table.households:
                    table.households.check(self.built[table.from_].domain, self.columns)
            except ValueError as error:
                raise ValueError(f"synthesis[{i}].{error}") from None
        return self

    def _check_unpublished(self) -> None:
        """Columns that are read but not published must not be used otherwise."""
        taken = {name.lower() for name in (*self.columns, *sources(self.columns).values())}
        for place, name in self.unpublished.items():
            if not NAMEABLE.fullmatch(name):
                raise ValueError(f"{place}: is not a valid column name")
            if name.lower() in taken:
                raise ValueError(
                    f"{place}: {name!r} is already used; remove it from columns, or copy the column at"
                    " the source"
                )
            taken.add(name.lower())
        if self.counts and (self.unit or self.weights):
            raise ValueError(
                "counts: a row that stands for several records says neither which units they belong to"
                " nor what each weighs; read the records themselves, or remove"
                f" {'privacy_unit' if self.unit else 'weights'}"
            )
        if self.weights and not any(section.counts_weights for section in self.releases):
            raise ValueError("weights: no release is `weighted`; remove the weights")

    def _check_linked(self) -> None:
        """Refuse what does not go with wide records."""
        if self.linked is None:
            return
        for place in ("weights", "series"):
            if getattr(self, place):
                raise ValueError(
                    f"linked: wide records have no {place}; write another plan, without `linked`"
                )
        for i, table in enumerate(self.synthesis):
            if table.households:
                raise ValueError(f"synthesis[{i}].households: linked records have members already")
            if table.implicates:
                raise ValueError(f"synthesis[{i}].implicates: not of linked records")
            if table.derived:
                raise ValueError(
                    f"synthesis[{i}].derived: not of linked records; compute it from the two tables"
                )
            kinds = {section.name: section.kind for section in self.releases}
            if kinds.get(table.from_, "microdata-margins") != "microdata-margins":
                raise ValueError(
                    f"synthesis[{i}].from: linked tables are drawn from microdata-margins, whose records"
                    " obey rules"
                )
        for _, name in rounded(self.columns):
            raise ValueError(f"columns.{name}.from: no multiples with linked; leave the column out")
        for name, column in self.columns.items():
            if isinstance(column, CategoricalColumn) and column.refines:
                raise ValueError(f"columns.{name}.refines: not with linked; leave the group out")
        self.linked.check(self.columns, self.unit, self.invalid)

    def _check_spending(self) -> None:
        """Refuse a request beyond the grant, and a beta or gamma that is missing or cannot be spent."""
        requested, composition = self.requested, self.budget.composition
        if not self.budget.caps.covers(requested):
            raise ValueError(
                f"budget: requested is more than granted: it costs {requested}, and all that may be"
                f" spent is {self.budget.caps}"
            )
        beta = [section.spends_beta(composition) for section in self.releases]
        gamma = [section.spends_gamma for section in self.releases]
        for name, spenders in (("beta", beta), ("gamma", gamma)):
            amount = getattr(requested, name)
            if amount and not any(spenders):
                raise ValueError(
                    f"budget.requested.{name}: no mechanism of this plan can spend {name}; write 0"
                )
            for i, section in enumerate(self.releases):
                if spenders[i] and not amount:
                    raise ValueError(
                        f"releases[{i}].mechanism: {section.mechanism} spends {name}, but"
                        f" budget.requested.{name} is 0"
                    )

    def _build(self) -> tuple[Release, ...]:
        shares = self.shares
        built = []
        for i, section in enumerate(self.releases):
            try:
                built.append(self.release(section, shares[i]))
            except ValueError as error:
                raise ValueError(f"releases[{i}].{error}") from None
        return tuple(built)

    def release(self, section: AnyRelease, share: Budget) -> Release:
        """A release with this share; a ``ValueError`` begins with the place in the section."""
        if self.series:
            return self.series.release(section, self.facts, share)
        if self.linked and self.unit and isinstance(section, MicrodataSection):
            section = self.linked.widened(section, self.columns, self.unit)
        return section.release(self.facts, share)

    @property
    def unit(self) -> UnitColumn | None:
        """The privacy unit, if it may have several records; None if it is one row."""
        return self.privacy_unit if isinstance(self.privacy_unit, UnitColumn) else None

    @property
    def protection(self) -> Protection:
        """Unit and relation in words."""
        periods = self.series.bound(self.columns) if self.series else None
        most = periods.most if periods else None
        grows = self.series is not None and self.series.part < 1
        counted = self.counts is not None
        totals = tuple(filter(None, (section.public_totals for section in self.releases)))
        return Protection(
            self.adjacency, self.rows, self.unit, self.invalid, most, grows, counted, totals
        )

    @property
    def adjacency(self) -> Adjacency:
        """Which tables are neighbours."""
        if self.unit is None:
            return Adjacency(self.neighbours)
        if self.linked:
            return Adjacency(self.neighbours, unit=self.unit.column)  # one wide record each
        one = Adjacency(self.neighbours, self.unit.max_rows, unit=self.unit.column)
        return self.series.adjacency(one) if self.series else one

    @property
    def unpublished(self) -> dict[str, str]:
        """Columns that are read but not published, by the plan's key that names them."""
        named = {"privacy_unit.column": self.unit, "weights.column": self.weights}
        places = {place: section.column for place, section in named.items() if section}
        return places | ({"counts": self.counts} if self.counts else {})

    @property
    def read_columns(self) -> Mapping[str, ReadColumn]:
        """Every column that the private steps read."""
        columns: dict[str, ReadColumn] = {**self.columns}
        if self.unit:
            columns[self.unit.column] = IdentifierColumn()
        if self.weights:
            columns[self.weights.column] = WEIGHT
        if self.counts:
            columns[self.counts] = COUNT
        return columns

    @property
    def record_columns(self) -> Mapping[str, Column]:
        """The columns of the records that are counted: the plan's, or those of wide records."""
        if self.linked and self.unit:
            return self.linked.wide(self.columns, self.unit)
        return self.columns

    @property
    def described_columns(self) -> Mapping[str, Column]:
        """Every column that published tables may be about."""
        return {**self.columns, **self.record_columns}

    @property
    def unused(self) -> list[str]:
        """The survey's columns of which nothing is published."""
        used = {name for release in self.built.values() for name in release.domain.names}
        members = {name.rpartition(".")[0] for name in used}  # of linked tables, such as age.2
        follow = {group.name for name in used for group in groups_of(name, self.columns)}
        return [name for name in self.columns if name not in used | members | follow]

    @property
    def published_columns(self) -> Mapping[str, Column]:
        """Every column of which something is published."""
        columns, unused = self.described_columns, set(self.unused)
        return {name: column for name, column in columns.items() if name not in unused}

    @property
    def facts(self) -> SurveyFacts:
        """The public facts from which releases are built."""
        size = SIZE if self.linked else ""
        return SurveyFacts(self.record_columns, self.rows, self.adjacency, self.weights, size)

    @property
    def requested(self) -> Budget:
        """What one release of the plan costs the grant: (alpha, beta, gamma), or (rho, beta, gamma)."""
        composition = self.budget.composition
        return self.budget.cost(
            any(section.spends_beta(composition) for section in self.releases),
            any(section.spends_gamma for section in self.releases),
        )

    @property
    def promise(self) -> Budget:
        """The (alpha, beta, gamma) that one release of the plan keeps by itself.

        Under concentrated composition it is what was requested; else the beta is that of the grant, or 0
        if all mechanisms are pure and their alphas add up to less.
        """
        requested, asked = self.requested, self.budget.requested
        if not requested.rho:
            return requested
        if asked.alpha is not None:
            return Budget(asked.alpha, asked.beta, asked.gamma)
        events = [release.event for release in self.built.values()]
        return promise_together(events, requested, self.budget.granted.beta)

    @property
    def shares(self) -> list[Budget]:
        """The share of each release by weight: of alpha or rho to all, of the rest to those that spend
        it."""
        composition = self.budget.composition
        return split(
            self.requested,
            [
                Weight(s.weight, s.weight * s.spends_beta(composition), s.weight * s.spends_gamma)
                for s in self.releases
            ],
        )

    @cached_property
    def built(self) -> Mapping[str, Release]:
        """The releases by name, in the plan's order."""
        return {release.name: release for release in self._build()}

    @property
    def prices(self) -> Mapping[str, Budget]:
        """What the ledger is charged for each release: its share, or what a run adds to its series."""
        if self.series is None:
            return {name: release.share for name, release in self.built.items()}
        return {name: self.series.price(release) for name, release in self.built.items()}

    @property
    def series_id(self) -> str:
        """SHA-256 of what all runs of the series have in common; empty without a series."""
        return digest_of(of_any_run(self.public())) if self.series else ""

    def changed(self, **sections: Any) -> "Plan":
        """The plan with other sections, which are not checked, to compare with this one."""
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_construct(**kept | sections)

    def section(self, name: str) -> AnyRelease:
        """The plan's section about one release."""
        return next(section for section in self.releases if section.name == name)

    def public(self) -> dict[str, Any]:
        """The plan as JSON values, without the table's location and the operation."""
        optional = ("series", "counts", "linked", "analyses")
        absent = {key for key in optional if getattr(self, key) in (None, [])}
        hidden = {"source", "operation"} | absent
        return self.model_dump(mode="json", by_alias=True, exclude=hidden)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the public plan: the same digest means the same statistics and noise."""
        return digest_of(self.public())


def load_plan(
    plan: Path | str | Mapping[str, Any], overrides: Mapping[str, Any] | None = None
) -> Plan:
    """Read a plan; ``overrides`` replace values at dotted places, such as ``source``.

    ``plan``: a YAML file, or its document as a mapping; relative paths start where the file is, or here.
    Raises ``PlanError`` with one line for each fault.
    """
    if isinstance(plan, Mapping):
        path, document = Path("plan"), deepcopy(dict(plan))
    else:
        path, document = Path(plan), read_yaml(Path(plan))
    for place, value in (overrides or {}).items():
        _set(document, place, value)
    blanks = blanks_of(document)
    read_public_files(path, document)
    try:
        read = Plan.model_validate(document)
        faults = {}
    except ValidationError as error:
        faults = faults_of(error, document, Plan)
    if blanks:
        others = {place: reason for place, reason in faults.items() if not touches(place, blanks)}
        raise PlanError(f"{path}: the plan has blanks\n{written_faults(blanks | others)}")
    if faults:
        raise PlanError(f"{path}: the plan is not valid\n{written_faults(faults)}")
    if "source" in (overrides or {}):
        return read
    return read.model_copy(update={"source": resolve_source(path, read.source)})


def published_plan(public: Mapping[str, Any]) -> Plan:
    """The plan in a manifest, without the location of the private table and the operation."""
    return Plan.model_validate({**public, "source": "withheld"})


def digest_of(public: Mapping[str, Any]) -> str:
    """SHA-256 of a public plan in canonical JSON, as a manifest holds it."""
    text = json.dumps(public, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _set(document: dict[str, Any], place: str, value: Any) -> None:
    """Replace the value at a dotted place; positions in a list are numbers."""
    *parents, last = (
        int(part) if re.fullmatch("[0-9]{1,9}", part) else part for part in place.split(".")
    )
    node: Any = document
    try:
        for part in parents:
            node = node[part]
        node[last] = value  # an unknown key is refused when the document is validated
    except (KeyError, IndexError, TypeError):
        meant = suggestion(part, node) if isinstance(node, dict) else ""
        raise PlanError(f"--set {place}: the plan has no such key{meant}") from None


def _refuse_twice(place: str, names: list[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"{place}[{i}].name: {name!r} is repeated")
