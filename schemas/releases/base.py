"""Base classes of the sections of all kinds, with their access to the plan's columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    StrictStr,
    StringConstraints,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import Composition
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.releases.abilities import Weighable
from dpcore.releases.base import Release
from dpcore.releases.counts.unit import BEST
from dpcore.releases.replicates import REPLICATE
from dpcore.releases.table import MOST_FILES, TABLE, UNBIASED
from dpcore.suggestion import suggestion
from schemas.document import Section, absent, inside
from schemas.numbers import WrittenRational
from schemas.survey.columns import Column
from schemas.survey.curves import Curves
from schemas.survey.unit import Weights
from schemas.text import Line

Name = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=80, strict=True)
]
Columns = Mapping[str, Column]
R = TypeVar("R")
N = TypeVar("N", int, float)

GAUSSIAN = (
    "discrete-gaussian",
    "gaussian-process",
    "noisy-gradients",
    "noisy-scores",
)
"""Mechanisms whose noise is Gaussian."""

LARGEST_WEIGHT = 10**6
LONGEST_FILE = 240
"""The largest number of bytes in a table's name; most file systems allow 255 including the extension."""


@dataclass(frozen=True)
class SurveyFacts:
    """The facts from which the releases of a plan are built: public facts of the survey as a whole.

    ``rows``: the number of records or, if neighbours differ in this number, a guess used only as a
    scale. ``size``: for wide records, the column with the number of members. ``strata``, ``cluster``,
    ``unit``: if any, the columns of strata and clusters, and the noun for a unit of several records.
    ``curves``: columns that form one function, by the function's name.
    """

    columns: Columns
    rows: int
    adjacency: Adjacency
    weights: Weights | None = None
    size: str = ""
    curves: Curves = field(default_factory=dict)
    strata: str = ""
    cluster: str = ""
    clusters: int = 0
    unit: str = ""

    @property
    def weighted(self) -> "SurveyFacts":
        """The facts of the same survey, in which each step of weight counts as a record.

        Raises ``ValueError`` if the survey has no weights.
        """
        if self.weights is None:
            raise ValueError("weighted: the plan states no `weights`")
        most = self.adjacency.most * self.weights.most_steps
        adjacency = replace(self.adjacency, most=most, weighted=True)
        return replace(self, rows=self.weights.total_steps, adjacency=adjacency)


Product = Literal["Summary statistics", "Machine learning model", "Synthetic data"]
"""Kinds of published data, in the terms of the registry of deployments."""


OF_A_CURVE = (
    "a curve: each row has an interval and a band; `bundle.evaluate` computes other points."
)
"""``ReleaseSection.without_replicates`` of a function at points."""


class ReleaseSection(Section):
    """Base class of the sections of all kinds.

    ``words``: the kind's name in headings; ``product``: the kind of published data;
    ``includes_sampling``: whether its tables have a column ``sampling_error``; ``without_replicates``:
    how to use tables that have none, if not by columns of errors and intervals.
    """

    words: ClassVar[str]
    product: ClassVar[Product] = "Summary statistics"
    includes_sampling: ClassVar[bool] = False
    without_replicates: ClassVar[str] = ""

    if TYPE_CHECKING:  # every kind states its own, but not all have columns
        kind: str
        mechanism: str
        columns: list[str]

    name: Name = Field(
        description="Names the release and its tables. A release id and name are drawn only once."
    )
    title: Line = Field(
        default="",
        max_length=100,
        exclude_if=absent,
        description="The heading in the report; by default made from the name.",
    )
    weight: WrittenRational = Field(
        default=Fraction(1),
        description="The share of the requested budget, relative to other releases.",
    )

    @model_validator(mode="after")
    def _positive(self) -> Self:
        if self.weight == 0:
            raise ValueError("weight: must be positive; a release without budget cannot be drawn")
        if not Fraction(1, LARGEST_WEIGHT) <= self.weight <= LARGEST_WEIGHT:
            raise ValueError(f"weight: must lie between 1/{LARGEST_WEIGHT} and {LARGEST_WEIGHT}")
        return self

    @classmethod
    def only_with(cls) -> Mapping[str, Sequence[str]]:
        """For each key that only some mechanisms use, these mechanisms."""
        return {}

    @model_validator(mode="after")
    def _used(self) -> Self:
        """Refuse a key that the mechanism does not use, unless it has its default."""
        for key, mechanisms in self.only_with().items():
            default = type(self).model_fields[key].get_default(call_default_factory=True)
            if self.mechanism not in mechanisms and getattr(self, key) != default:
                raise ValueError(
                    f"{key}: the mechanism {self.mechanism} does not use it, only"
                    f" {' and '.join(mechanisms)}; leave it out"
                )
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, section: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(section)
        for key, mechanisms in cls.only_with().items():
            described = handler.resolve_ref_schema(schema)["properties"][key]
            described["description"] += f" Only with {' or '.join(mechanisms)}."
        return schema

    @property
    def subject(self) -> str:
        """The subject of the release in one line; by default its columns."""
        return listed(self.columns, ", ")

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        """Build the release. Messages of ``ValueError`` begin with the place in the section."""
        raise NotImplementedError

    def make(
        self, kind: Callable[..., R], domain: Domain, survey: SurveyFacts, share: Budget, **own: Any
    ) -> R:
        """Make a release of this ``kind``. ``own``: the fields that only this kind has."""
        return kind(self.name, domain, survey.rows, share, adjacency=survey.adjacency, **own)

    def release(self, survey: SurveyFacts, share: Budget) -> Release:
        """The release described by the plan."""
        return self.build(survey, share)

    @property
    def counts_weights(self) -> bool:
        """Whether the release counts sums of weights instead of records."""
        return False

    @property
    def by_design(self) -> bool:
        """Whether the release always uses the survey's weights and strata, without a key `weighted`."""
        return False

    @property
    def finds(self) -> str:
        """The column whose categories or bounds the release finds, or "". If any, it is drawn first."""
        return ""

    @property
    def judges(self) -> str:
        """The synthetic table whose quality the release measures, or "". If any, it is drawn last."""
        return ""

    @property
    def public_totals(self) -> str:
        """The column by which the plan states exact numbers of records, or ""."""
        return ""

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian, which needs a beta for every alpha, but no beta for rho."""
        return self.mechanism in GAUSSIAN

    @property
    def may_fail(self) -> bool:
        """Whether the mechanism has a failure probability, which costs beta under any composition."""
        return False

    def spends_beta(self, composition: Composition) -> bool:
        """Whether the mechanism needs a share of beta."""
        return self.may_fail or (self.gaussian and composition == "basic")

    @property
    def spends_gamma(self) -> bool:
        """Whether the mechanism is one of random differential privacy."""
        return False


class GroupedSection(ReleaseSection):
    """Base class of sections that may be evaluated for each group of records."""

    by: StrictStr | list[StrictStr] | None = Field(
        default=None,
        exclude_if=absent,
        description="A column of categories or whole numbers, or a list of columns: publishes numbers"
        " for each group. All groups cost as much as one group, or at most as two if a record may move"
        " from one group to another.",
    )

    @property
    def groups(self) -> list[str]:
        """The columns that define the groups."""
        return [self.by] if isinstance(self.by, str) else self.by or []

    def group_axes(self, columns: Columns) -> list[Axis]:
        """The axes of the columns that define the groups."""
        return [declared(columns, name, "by").axis(name) for name in self.groups]

    def of_groups(self, subject: str) -> str:
        """The subject of the section, followed by the columns of groups."""
        return f"{subject} by {listed(self.groups, ' x ')}" if self.groups else subject


class GroupsSection(GroupedSection):
    """Base class of sections on one numeric column, for all records or for each group."""

    column: StrictStr = Field(description="A numeric column.")

    def domain(self, columns: Columns) -> Domain:
        """The columns of groups, and the numeric column."""
        own = declared(columns, self.column, "column").axis(self.column)
        return domain_of([*self.group_axes(columns), own])

    @property
    def subject(self) -> str:
        return self.of_groups(self.column)


class WeightedSection(ReleaseSection):
    """Base class of sections in which each step of weight may count as one record."""

    weighted: StrictBool = Field(
        default=False,
        description="Whether records count by the plan's `weights`, for estimates of the population.",
    )

    @property
    def counts_weights(self) -> bool:
        return self.weighted

    def release(self, survey: SurveyFacts, share: Budget) -> Release:
        return self.build(survey.weighted if self.weighted else survey, share)


class CountingSection(WeightedSection):
    """Base class of sections that count records, or sum their weights instead."""

    def release(self, survey: SurveyFacts, share: Budget) -> Release:
        of_steps = super().release(survey, share)
        if not self.weighted:
            return of_steps
        assert survey.weights is not None
        if not isinstance(of_steps, Weighable):
            raise ValueError("weighted: this mechanism counts records only")
        return of_steps.weighed(survey.weights.step)


def one_each(value: N | list[N], columns: list[str]) -> tuple[N, ...]:
    """One value for each column. A list is unchanged; a single value is used for all columns."""
    return tuple(value) if isinstance(value, list) else (value,) * len(columns)


def listed(names: list[str], between: str) -> str:
    """Names in one line; long lists are shortened for titles in tables."""
    shown = names if len(names) <= 6 else [*names[:4], f"and {len(names) - 4} more"]
    return between.join(shown)


def declared(columns: Columns, name: str, place: str = "columns") -> Column:
    if name not in columns:
        raise ValueError(
            f"{place}: the plan declares no column {name!r}{suggestion(name, columns)}"
        )
    return columns[name]


def domain_of(axes: list[Axis]) -> Domain:
    with inside("columns: "):
        return Domain(tuple(axes))


def check_names(release: Release, replicates: bool) -> None:
    """Raise ``ValueError`` if two columns or two files that a release publishes have the same name.

    ``replicates``: whether the tables have columns of replicates, which readers identify by a prefix of
    their names.
    """
    if not release.statistics:
        return
    files: dict[str, tuple[str, ...]] = {}
    # Readers of a table look for every name in `UNBIASED`, even if its release publishes only some.
    others = dict.fromkeys((*release.statistics, *UNBIASED, *BEST), "a statistic")
    domains = release.domains
    if len(domains) > MOST_FILES:
        others[TABLE] = "the name of its table"
    axes = {id(axis): axis for domain in domains for axis in domain.axes}  # shared by many tables
    names = {key: release.published_names(axis) for key, axis in axes.items()}
    for domain in domains:
        taken = others.copy()
        for axis in domain.axes:
            for name in names[id(axis)]:
                # In lower case, because DuckDB and many file systems ignore case.
                other = taken.setdefault(name.lower(), repr(axis.name))
                if replicates and name.lower().startswith(REPLICATE):
                    other = "a replicate"
                if other != repr(axis.name):
                    raise ValueError(
                        f"columns: {axis.name!r} and {other} would both be published as {name!r};"
                        " rename the column"
                    )
        file = release.table_name(domain).lower()
        if len(domains) <= MOST_FILES and len(file.encode()) > LONGEST_FILE:
            raise ValueError(
                f"columns: the file name of the table of {list(domain.names)} would have"
                f" {len(file.encode())} bytes, more than {LONGEST_FILE}; shorten the columns' names"
            )
        if files.setdefault(file, domain.names) != domain.names:
            raise ValueError(
                f"columns: the tables of {list(files[file])} and {list(domain.names)} would both"
                f" be the file {file!r}; rename a column"
            )
