"""The release plan: one document that holds everything public.

A plan names the dataset and its public facts, the columns, the budget, what is to be released and
how it is published.  ``load_plan`` reads it and refuses what is missing or contradictory;
``Plan.built`` turns it into the releases of ``dpcore``, each with its exact share of the budget.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, StrictInt, ValidationError, field_validator, model_validator

from dpcore.adjacency import Adjacency, Relation
from dpcore.budget import Budget, Weight, split
from dpcore.errors import InputError, PlanError
from dpcore.releases.base import Release
from schemas.blanks import refuse_blanks
from schemas.columns import Column, IdentifierColumn, ReadColumn
from schemas.document import Section, explain_errors, read_yaml
from schemas.numbers import WrittenRational
from schemas.operation import Operation
from schemas.protection import Protection
from schemas.releases import AnyRelease, Name, SurveyFacts, check_names
from schemas.source import Source, beside
from schemas.synthesis import Synthesis
from schemas.unit import WEIGHT, UnitColumn, Weights

LARGEST_ALPHA = 1000
"""More than this is no privacy: a ratio of exp(1000) between the odds."""

LEAST_AMOUNT = Fraction(1, 10**50)
"""Less than this is beyond floating point once it is shared out; it stands for nothing, write 0."""

LARGEST_SHARE_BITS = 6000
"""Exact shares may be this long; they must fit in a manifest."""


NAMEABLE = re.compile(r"[^\W\d_][\w .-]{0,99}")
"""The names that a column may have."""


class Amount(Section):
    """An amount of privacy: alpha (epsilon), beta (delta), and gamma of random DP."""

    alpha: WrittenRational = Field(description="epsilon of differential privacy.")
    beta: WrittenRational = Field(
        default=Fraction(0), description="delta; for mechanisms that spend it."
    )
    gamma: WrittenRational = Field(
        default=Fraction(0),
        description="The chance of random differential privacy; for mechanisms that spend it.",
    )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.alpha == 0:
            raise ValueError("alpha must be positive")
        if self.alpha > LARGEST_ALPHA:
            raise ValueError(f"alpha must be {LARGEST_ALPHA} at most; more protects nobody")
        if any(0 < amount < LEAST_AMOUNT for amount in (self.alpha, self.beta, self.gamma)):
            raise ValueError("alpha, beta and gamma must be 1e-50 at least where they are not 0")
        if self.beta >= 1 or self.gamma >= 1:
            raise ValueError("beta and gamma must be below 1")
        return self

    @property
    def budget(self) -> Budget:
        return Budget(self.alpha, self.beta, self.gamma)


class BudgetSection(Section):
    """What the dataset was granted over its whole life, and what this plan asks of it."""

    granted: Amount = Field(description="The total over the life of the dataset.")
    requested: Amount = Field(description="What one release of this plan may cost.")

    @model_validator(mode="after")
    def _within(self) -> Self:
        if not self.granted.budget.covers(self.requested.budget):
            raise ValueError("requested is more than granted")
        return self


class Publication(Section):
    """What the bundle says about itself and its publisher."""

    title: str = Field(description="One line.")
    description: str = Field(default="", description="What the survey is about.")
    publisher: str = Field(default="", description="Who publishes.")
    contact: str = Field(default="", description="Whom readers may ask.")
    licence: str = Field(default="", description="What readers may do with the bundle.")
    citation: str = Field(default="", description="How the survey is cited.")
    requester: str = Field(default="", description="Who asked for the release; published.")
    approval: bool = Field(
        default=False,
        description="Whether a disclosure officer must approve before anything is published.",
    )
    curator_type: Literal["Government", "Industry", "Nonprofit"] | None = Field(
        default=None, description="What the publisher is, for the registry of deployments."
    )
    region: str = Field(default="", description="What region the data describe.")
    intended_use: str = Field(default="", description="What the release is for.")

    @field_validator("title")
    @classmethod
    def _one_line(cls, title: str) -> str:
        if not title.strip() or title.splitlines() != [title]:
            raise ValueError("must be one line of text, and not empty")
        return title

    @field_validator("requester")
    @classmethod
    def _printable(cls, requester: str) -> str:
        if not requester.isprintable():
            raise ValueError("must be one line of printable text")
        return requester.strip()


class Plan(Section):
    """Everything public about a release."""

    dprelease: Literal[1] = Field(description="Version of this document's form.")
    dataset: Name = Field(description="The ledger keeps one budget per dataset.")
    source: Source = Field(
        description="A Parquet or CSV file, `package://NAME/PATH` for a file inside an installed "
        "Python package, a table of a DuckDB or PostgreSQL database, or a survey on Spark. Never "
        "published."
    )
    rows: StrictInt = Field(
        ge=1,
        le=2**40,
        description="The public number of records, n; with add-remove, or a privacy unit of several "
        "records, a public guess of it: a scale for noise and errors, never taken for the number.",
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
    budget: BudgetSection
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
    publication: Publication
    operation: Operation = Field(
        default=Operation(), description="When it runs and what it tells; no part of the digest."
    )

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if isinstance(self.source, str) and re.match("(?!package:)[a-z0-9+]+://", self.source):
            raise ValueError(
                "source: a database is written {postgresql: URL, table: SCHEMA.TABLE}, and files"
                " that are elsewhere {spark: MASTER, parquet: URL}"
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
        _refuse_twice("releases", [section.name for section in self.releases])
        _refuse_twice("synthesis", [table.name for table in self.synthesis])
        self._check_spending()
        parts = [part for share in self.shares for part in (share.alpha, share.beta, share.gamma)]
        if any(part.denominator.bit_length() > LARGEST_SHARE_BITS for part in parts):
            raise ValueError("releases: the weights have too many digits together; shorten them")
        built = self._build()
        for i, release in enumerate(built):
            try:
                check_names(release)
            except ValueError as error:
                raise ValueError(f"releases[{i}].{error}") from None
            try:
                release.expected_error()  # there must be noise that the share buys
            except ValueError as error:
                raise ValueError(f"releases[{i}]: {error}") from None
        names = {section.name: section for section in self.releases}
        by_name = {release.name: release for release in built}
        for i, table in enumerate(self.synthesis):
            table.check(f"synthesis[{i}]", names)
            try:
                source = by_name[table.from_]
                table.sampler(source)
                table.refining(by_name)
                if table.households:
                    table.households.check(source.domain, self.columns)
            except ValueError as error:
                raise ValueError(f"synthesis[{i}].{error}") from None
        return self

    def _check_unpublished(self) -> None:
        """Columns that are read and not published have names of their own."""
        taken = {name.lower() for name in self.columns}
        for place, name in self.unpublished.items():
            if not NAMEABLE.fullmatch(name):
                raise ValueError(f"{place}.column: is no name that a column can have")
            if name.lower() in taken:
                raise ValueError(
                    f"{place}.column: {name!r} has a use already; take it out of columns, or copy the"
                    " column at the source"
                )
            taken.add(name.lower())
        if self.weights and not any(section.counts_weights for section in self.releases):
            raise ValueError("weights: no release is `weighted`; leave them out")

    def _check_spending(self) -> None:
        """What is asked for can be spent, and what a mechanism needs was asked for."""
        requested = self.budget.requested
        for name, amount in (("beta", requested.beta), ("gamma", requested.gamma)):
            spenders = [getattr(section, f"spends_{name}") for section in self.releases]
            if amount and not any(spenders):
                raise ValueError(
                    f"budget.requested.{name}: no mechanism of this plan can spend {name}; ask for 0"
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
                built.append(section.release(self.facts, shares[i]))
            except ValueError as error:
                raise ValueError(f"releases[{i}].{error}") from None
        return tuple(built)

    @property
    def unit(self) -> UnitColumn | None:
        """The privacy unit of several records, where it is none of one row."""
        return self.privacy_unit if isinstance(self.privacy_unit, UnitColumn) else None

    @property
    def protection(self) -> Protection:
        """Unit and relation in words."""
        return Protection(self.adjacency, self.rows, self.unit)

    @property
    def adjacency(self) -> Adjacency:
        """Which tables are neighbours."""
        if self.unit is None:
            return Adjacency(self.neighbours)
        return Adjacency(self.neighbours, self.unit.max_rows, unit=self.unit.column)

    @property
    def unpublished(self) -> dict[str, str]:
        """Columns that are read and not published, by the key that names them."""
        named = {"privacy_unit": self.unit, "weights": self.weights}
        return {key: section.column for key, section in named.items() if section}

    @property
    def read_columns(self) -> Mapping[str, ReadColumn]:
        """Every column that the private steps read."""
        columns: dict[str, ReadColumn] = {**self.columns}
        if self.unit:
            columns[self.unit.column] = IdentifierColumn()
        if self.weights:
            columns[self.weights.column] = WEIGHT
        return columns

    @property
    def facts(self) -> SurveyFacts:
        """What the releases are built from."""
        return SurveyFacts(self.columns, self.rows, self.adjacency, self.weights)

    @property
    def shares(self) -> list[Budget]:
        """The share of each release by weight: alpha of all, beta and gamma of those that spend it."""
        return split(
            self.budget.requested.budget,
            [
                Weight(s.weight, s.weight * s.spends_beta, s.weight * s.spends_gamma)
                for s in self.releases
            ],
        )

    @cached_property
    def built(self) -> Mapping[str, Release]:
        """The releases by name, in the plan's order."""
        return {release.name: release for release in self._build()}

    def section(self, name: str) -> AnyRelease:
        """What the plan says about one release."""
        return next(section for section in self.releases if section.name == name)

    def public(self) -> dict[str, Any]:
        """The plan as JSON values, without the table's place and what is the operator's alone."""
        return self.model_dump(mode="json", by_alias=True, exclude={"source", "operation"})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the public plan: the same digest means the same statistics and noise."""
        return digest_of(self.public())


def load_plan(path: Path | str, overrides: Mapping[str, Any] | None = None) -> Plan:
    """Read a plan; ``overrides`` replace values at dotted places, such as ``source``.

    Raises ``PlanError`` with one line for each fault.
    """
    path = Path(path)
    document = read_yaml(path)
    for place, value in (overrides or {}).items():
        _set(document, place, value)
    refuse_blanks(path, document)
    try:
        plan = Plan.model_validate(document)
    except ValidationError as error:
        raise PlanError(
            f"{path}: the plan is not valid\n{explain_errors(error, document)}"
        ) from None
    if "source" in (overrides or {}):
        return plan
    return plan.model_copy(update={"source": beside(path, plan.source)})


def published_plan(public: Mapping[str, Any]) -> Plan:
    """The plan that a manifest holds: all of it but the place of the private table."""
    return Plan.model_validate({**public, "source": "withheld"})


def digest_of(public: Mapping[str, Any]) -> str:
    """SHA-256 of a public plan in canonical JSON, as a manifest holds it."""
    text = json.dumps(public, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_dataset(name: str) -> str:
    """The name, if a plan could have it for its dataset; raises ``InputError`` otherwise."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,79}", name):
        raise InputError(f"dataset {name!r}: use small letters, digits and -, at most 80 of them")
    return name


def check_release_id(release_id: str) -> str:
    """The id, if it can name a folder and a charge; raises ``InputError`` otherwise."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,99}", release_id):
        raise InputError(
            f"release id {release_id!r}: use small letters, digits and -, at most 100 of them"
        )
    return release_id


def _set(document: dict[str, Any], place: str, value: Any) -> None:
    """Replace the value at a dotted place; positions in a list are numbers."""
    *parents, last = (
        int(part) if re.fullmatch("[0-9]{1,9}", part) else part for part in place.split(".")
    )
    node: Any = document
    try:
        for part in parents:
            node = node[part]
        node[last] = value  # a key that no plan has is refused with the rest of the document
    except (KeyError, IndexError, TypeError):
        raise PlanError(f"--set {place}: the plan has no such place") from None


def _refuse_twice(place: str, names: list[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"{place}[{i}].name: {name!r} stands twice")
