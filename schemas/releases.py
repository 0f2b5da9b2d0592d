"""What a plan says about each release, and how it becomes one of ``dpcore``.

One section per kind.  ``build`` gets the columns, the public row count and the share of the budget;
a ``ValueError`` from it begins with the place inside the section.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, StrictFloat, StrictInt, StrictStr, StringConstraints, model_validator

from dpcore.budget import Budget
from dpcore.domain import Axis, Categories, Domain
from dpcore.releases.base import Release
from dpcore.releases.cells import describe_cells
from dpcore.releases.classifier import Classifier
from dpcore.releases.density import BinnedDensity, Density, SpectralDensity
from dpcore.releases.histogram import Histogram
from dpcore.releases.margins import Margins, file_word
from dpcore.releases.microdata import Microdata
from schemas.columns import CategoricalColumn, Column, ContinuousColumn, IntegerColumn
from schemas.document import Section
from schemas.numbers import WrittenRational

Name = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=80, strict=True)
]
Columns = Mapping[str, Column]
Edges = list[float] | StrictInt
Width = Annotated[float, Field(gt=0.01, le=100)]

LARGEST_WEIGHT = 10**6
MOST_BINS = 2**16
MOST_SETS = 2**16


class _ReleaseSection(Section):
    """What all kinds have in common."""

    name: Name = Field(
        description="Names the tables; one draw is ever made per release id and name."
    )
    weight: WrittenRational = Field(
        default=Fraction(1),
        description="The share of the requested budget, relative to the others.",
    )

    @model_validator(mode="after")
    def _positive(self) -> Self:
        if self.weight == 0:
            raise ValueError("weight: must be positive; a release without budget cannot be drawn")
        if not Fraction(1, LARGEST_WEIGHT) <= self.weight <= LARGEST_WEIGHT:
            raise ValueError(f"weight: must lie between 1/{LARGEST_WEIGHT} and {LARGEST_WEIGHT}")
        return self

    @property
    def spends_beta(self) -> bool:
        """Whether the mechanism is an approximate one, which needs a share of beta."""
        return False


class HistogramSection(_ReleaseSection):
    """Counts of every combination of some columns."""

    kind: Literal["histogram"]
    columns: list[StrictStr] = Field(min_length=1)
    bins: dict[str, Edges] = Field(
        default_factory=dict,
        description="For numeric columns: a number of equal bins, or ascending edges.",
    )
    mechanism: Literal["discrete-laplace", "thresholded-laplace"] = "discrete-laplace"

    def build(self, columns: Columns, rows: int, share: Budget) -> Release:
        domain = _binned_domain(columns, self.columns, self.bins)
        return Histogram(self.name, domain, rows, share, self.mechanism == "thresholded-laplace")

    @property
    def title(self) -> str:
        return _listed(self.columns, " x ")


class MarginsSection(_ReleaseSection):
    """Counts over several sets of columns, drawn together."""

    kind: Literal["margins"]
    columns: list[StrictStr] = Field(min_length=1)
    ways: StrictInt | list[StrictInt] | None = Field(
        default=None, description="All sets of this many of the columns; a list adds them up."
    )
    sets: list[list[StrictStr]] | None = Field(default=None, description="Or the sets, listed.")
    bins: dict[str, Edges] = Field(
        default_factory=dict,
        description="For numeric columns: a number of equal bins, or ascending edges.",
    )
    mechanism: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.ways is None) == (self.sets is None):
            raise ValueError("state either ways or sets")
        return self

    @property
    def spends_beta(self) -> bool:
        return self.mechanism == "discrete-gaussian"

    def build(self, columns: Columns, rows: int, share: Budget) -> Release:
        domain = _binned_domain(columns, self.columns, self.bins)
        return Margins(self.name, domain, rows, share, sets=self._positions(), noise=self.mechanism)

    def _positions(self) -> tuple[tuple[int, ...], ...]:
        if self.sets is None:
            assert self.ways is not None
            ways = self.ways if isinstance(self.ways, list) else [self.ways]
            if not ways or any(not 1 <= w <= len(self.columns) for w in ways):
                raise ValueError(f"ways: must lie between 1 and {len(self.columns)}")
            if len(set(ways)) != len(ways):
                raise ValueError("ways: a number stands twice")
            if sum(comb(len(self.columns), w) for w in ways) > MOST_SETS:
                raise ValueError(f"ways: make more than {MOST_SETS} tables; list sets")
            return tuple(
                attrs for w in sorted(ways) for attrs in combinations(range(len(self.columns)), w)
            )
        positions = []
        for i, names in enumerate(self.sets):
            unknown = [name for name in names if name not in self.columns]
            if unknown or not names or len(set(names)) != len(names):
                raise ValueError(f"sets[{i}]: {names} must be distinct names from columns")
            positions.append(tuple(sorted(self.columns.index(name) for name in names)))
        if len(set(positions)) != len(positions) or not positions:
            raise ValueError("sets: one at least, and none twice")
        return tuple(positions)

    @property
    def title(self) -> str:
        return _listed(self.columns, ", ")


class MicrodataSection(_ReleaseSection):
    """Synthetic records that follow the private tables of all pairs of columns."""

    kind: Literal["microdata-margins"]
    columns: list[StrictStr] = Field(min_length=1)
    pairs: list[tuple[StrictStr, StrictStr]] | None = Field(
        default=None,
        description="Only these pairs of columns; fewer pairs have less noise each, but nothing "
        "is said of the others. Without it, all pairs.",
    )
    bins: dict[str, Edges] = Field(
        default_factory=dict,
        description="For numeric columns: a number of equal bins, or ascending edges.",
    )
    mechanism: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-gaussian"

    @property
    def spends_beta(self) -> bool:
        return self.mechanism == "discrete-gaussian"

    def build(self, columns: Columns, rows: int, share: Budget) -> Release:
        domain = _binned_domain(columns, self.columns, self.bins)
        return Microdata(
            self.name, domain, rows, share, sets=self._positions(), noise=self.mechanism
        )

    def _positions(self) -> tuple[tuple[int, ...], ...]:
        """Empty stands for all pairs."""
        if self.pairs is None:
            return ()
        positions = []
        for i, pair in enumerate(self.pairs):
            if not set(pair) <= set(self.columns) or pair[0] == pair[1]:
                raise ValueError(f"pairs[{i}]: {list(pair)} must be two names from columns")
            positions.append(tuple(sorted(self.columns.index(name) for name in pair)))
        if len(set(positions)) != len(positions) or not positions:
            raise ValueError("pairs: one at least, and none twice")
        return tuple(positions)

    @property
    def title(self) -> str:
        return _listed(self.columns, ", ")


class DensitySection(_ReleaseSection):
    """A smooth density of one or two numeric columns."""

    kind: Literal["density"]
    columns: list[StrictStr] = Field(min_length=1, max_length=2)
    bandwidth: float | list[float] = Field(
        description="Standard deviation of the Gaussian kernel, in units of a column's range."
    )
    mechanism: Literal["spectral-gaussian", "binned-laplace"]

    @property
    def spends_beta(self) -> bool:
        return self.mechanism == "spectral-gaussian"

    def build(self, columns: Columns, rows: int, share: Budget) -> Release:
        domain = _domain([_column(columns, name).axis(name) for name in self.columns])
        kind = SpectralDensity if self.spends_beta else BinnedDensity
        widths = _one_each(self.bandwidth, self.columns)
        return kind(self.name, domain, rows, share, widths)

    @property
    def title(self) -> str:
        return _listed(self.columns, " x ")


class Label(Section):
    """What a classifier predicts: categories of a column, or values from a threshold up."""

    column: StrictStr
    positive: list[str | bool | StrictInt | StrictFloat] | None = None
    at_least: float | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.positive is None) == (self.at_least is None):
            raise ValueError("state either positive (categories) or at_least (a number)")
        return self

    def axis(self, columns: Columns) -> tuple[Axis, tuple[int, ...]]:
        """The label's axis and the sign of each of its codes."""
        column = _column(columns, self.column, "label.column")
        if isinstance(column, CategoricalColumn):
            if self.positive is None:
                raise ValueError("label: a categorical column needs positive, a list of categories")
            axis = Categories(self.column, tuple(column.categories), column.nullable)
            if not set(self.positive) < set(axis.categories) or not self.positive:
                raise ValueError("label.positive: must be some of the categories, but not all")
            return axis, tuple(1 if c in self.positive else -1 for c in axis.categories)
        if self.at_least is None:
            raise ValueError("label: a numeric column needs at_least, a number")
        lower = column.bounds[0]
        upper = column.bounds[1] + isinstance(column, IntegerColumn)
        if isinstance(column, IntegerColumn) and not self.at_least.is_integer():
            raise ValueError("label.at_least: must be a whole number, as the column has")
        if not lower < self.at_least < upper:
            raise ValueError("label.at_least: must lie inside the bounds of the column")
        return column.bins(self.column, [lower, self.at_least, upper]), (-1, 1)


class ClassifierSection(_ReleaseSection):
    """A support vector machine with a Gaussian kernel."""

    kind: Literal["classifier"]
    features: list[StrictStr] = Field(min_length=1, max_length=20)
    label: Label
    bandwidth: Width | list[Width] = Field(
        description="Of the Gaussian kernel, numbers scaled to [0, 1] and different categories at "
        "distance 1: one for all features, or one for each.",
    )
    regularisation: float = Field(
        gt=0, le=1, description="lambda in mean hinge loss + lambda ||f||^2; less noise if larger."
    )
    frequencies: StrictInt = Field(
        default=256, ge=1, le=1024, description="Half the dimension of the feature space."
    )
    mechanism: Literal["gaussian-process"] = "gaussian-process"

    @property
    def spends_beta(self) -> bool:
        return True

    def build(self, columns: Columns, rows: int, share: Budget) -> Release:
        if self.label.column in self.features:
            raise ValueError("label.column: is also a feature")
        axis, signs = self.label.axis(columns)
        axes = [_column(columns, name, "features").axis(name) for name in self.features]
        return Classifier(
            self.name,
            _domain([*axes, axis]),
            rows,
            share,
            signs,
            _one_each(self.bandwidth, self.features),
            self.regularisation,
            self.frequencies,
        )

    @property
    def title(self) -> str:
        return f"{self.label.column} from {_listed(self.features, ', ')}"


ReleaseSection = Annotated[
    HistogramSection | MarginsSection | MicrodataSection | DensitySection | ClassifierSection,
    Field(discriminator="kind"),
]


_OF_COUNTS = ("noisy_count", "standard_error", "lower_90", "upper_90", "count")
STATISTICS: Mapping[type[Any], tuple[str, ...]] = {
    Histogram: _OF_COUNTS,
    Margins: (*_OF_COUNTS, "estimate"),
    Density: ("density", "estimate", "standard_error", "lower_90", "upper_90"),
}
"""What stands beside the survey's own columns in a published table, by kind."""


def check_names(release: Release) -> None:
    """Raise ``ValueError`` where two columns or two files that it publishes have one name.

    Capitals make no difference, as for DuckDB and many file systems.  The columns of a classifier
    have names that the survey's cannot have.
    """
    kinds = [kind for kind in STATISTICS if isinstance(release, kind)]
    if not kinds:
        return
    for axes in _tables(release):
        taken = dict.fromkeys(STATISTICS[kinds[0]], "a statistic")
        for axis in axes:
            for name in _published_as(release, axis):
                other = taken.setdefault(name.lower(), repr(axis.name))
                if other != repr(axis.name):
                    raise ValueError(
                        f"columns: {axis.name!r} and {other} would both be published as {name!r};"
                        " rename the column"
                    )
    files: dict[str, tuple[str, ...]] = {}
    for domain in release.domains if isinstance(release, Margins) else ():
        file = ".".join(file_word(name) for name in domain.names).lower()
        if files.setdefault(file, domain.names) != domain.names:
            raise ValueError(
                f"columns: the tables of {list(files[file])} and {list(domain.names)} would both"
                f" be the file {file!r}; rename a column"
            )


def _tables(release: Release) -> Iterator[tuple[Axis, ...]]:
    domains = release.domains if isinstance(release, Margins) else (release.domain,)
    return (domain.axes for domain in domains)


def _published_as(release: Release, axis: Axis) -> list[str]:
    """The names of an axis in a published table: a density prints points, the others cells."""
    if isinstance(release, Density):
        return [axis.name]
    return list(describe_cells(Domain((axis,)), np.empty(0, dtype=np.int64))[0])


def _one_each(value: float | list[float], columns: list[str]) -> tuple[float, ...]:
    """One number for each column: a list as it is, a single number for all."""
    return tuple(value) if isinstance(value, list) else (value,) * len(columns)


def _listed(names: list[str], between: str) -> str:
    """Names in a line, a long list cut short: titles are read in tables and task lists."""
    shown = names if len(names) <= 6 else [*names[:4], f"and {len(names) - 4} more"]
    return between.join(shown)


def _column(columns: Columns, name: str, place: str = "columns") -> Column:
    if name not in columns:
        raise ValueError(f"{place}: the plan declares no column {name!r}")
    return columns[name]


def _domain(axes: list[Axis]) -> Domain:
    try:
        return Domain(tuple(axes))
    except ValueError as error:
        raise ValueError(f"columns: {error}") from None


def _binned_domain(columns: Columns, names: list[str], bins: Mapping[str, Any]) -> Domain:
    for name in names:
        _column(columns, name)
    unknown = sorted(set(bins) - set(names))
    if unknown:
        raise ValueError(f"bins: {unknown} are not among the columns of the release")
    return _domain([_binned_axis(_column(columns, name), name, bins.get(name)) for name in names])


def _binned_axis(column: Column, name: str, edges: list[float] | int | None) -> Axis:
    if isinstance(column, CategoricalColumn):
        if edges is not None:
            raise ValueError(f"bins.{name}: a categorical column has no bins")
        return column.axis(name)
    if edges is None:
        if isinstance(column, ContinuousColumn):
            raise ValueError(f"bins.{name}: missing; a continuous column needs bins to be counted")
        return column.axis(name)
    if isinstance(edges, int):
        edges = _equal_edges(column, edges, name)
    try:
        return column.bins(name, edges)
    except ValueError as error:
        raise ValueError(f"bins.{name}: {error}") from None


def _equal_edges(column: IntegerColumn | ContinuousColumn, count: int, name: str) -> list[float]:
    lower, upper = column.bounds[0], column.bounds[1] + isinstance(column, IntegerColumn)
    if not 1 <= count <= MOST_BINS:
        raise ValueError(f"bins.{name}: at least one bin, and {MOST_BINS} at most")
    if isinstance(column, IntegerColumn) and (upper - lower) % count:
        raise ValueError(
            f"bins.{name}: {count} equal bins of whole numbers do not fill the bounds; list edges"
        )
    return [lower + (upper - lower) * i / count for i in range(count)] + [upper]
