"""Counts over a tree of regions in a plan."""

import csv
import io
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from dpcore.accounting.budget import Budget
from dpcore.arrays import Booleans, Integers
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.releases.base import Release
from dpcore.releases.tables.hierarchy import Hierarchy
from dpcore.releases.tables.totals import Totals
from schemas.document import Section
from schemas.releases.base import Columns, CountingSection, SurveyFacts, declared, domain_of, listed
from schemas.releases.binning import Bins, binned_domain
from schemas.releases.rules import Stated, condition
from schemas.survey.columns import CategoricalColumn
from schemas.survey.public_files import csv_text

Code = StrictStr | StrictInt | StrictFloat | StrictBool


def _as_text(rows: Any) -> Any:
    """Rows as one CSV text, which is faster to copy than millions of values."""
    if isinstance(rows, str):
        return rows
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ValueError("list rows of values, or name a CSV file")
    if any(not isinstance(value, str | int | float) for row in rows for value in row):
        raise ValueError("the values of a row are text, numbers or truth values")
    return csv_text(rows)


def _read(counts: Any) -> Any:
    """The totals, unchanged. ``ValueError`` for the name of a file that was not read with the plan."""
    if isinstance(counts, str):
        raise ValueError("must be a mapping, rows, or a CSV file of a hierarchy's column `by`")
    return counts


Members = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=list[list[Code]] | str)]


class RegionsSection(Section):
    """The tree of regions, which is public."""

    columns: list[StrictStr] = Field(
        min_length=1,
        description="Categorical columns, from the largest regions to the smallest.",
    )
    members: Members = Field(
        description="One row for each smallest region, with a value for each column; or a CSV file in"
        " the plan's folder with exactly these columns. The whole row identifies a region, so one code"
        " may occur in several larger regions.",
    )

    def build(self, columns: Columns) -> Regions:
        """The regions over the plan's columns."""
        axes = []
        for name in self.columns:
            column = declared(columns, name, "hierarchy.columns")
            if not isinstance(column, CategoricalColumn):
                raise ValueError(f"hierarchy.columns: {name} must be categorical")
            axes.append(column.axis(name))
        domain = domain_of(axes)
        domain.require_one_word("a hierarchy")
        return _regions(domain, self.members)


@lru_cache(maxsize=4)
def _regions(domain: Domain, members: str) -> Regions:
    """The regions listed in a text; cached, because a plan is built several times in one run."""
    rows = list(csv.reader(io.StringIO(members, newline="")))
    for line, row in enumerate(rows, 1):
        if not all(value and value.isprintable() for value in row):
            raise ValueError(
                f"hierarchy.members, row {line}: {row} lacks a name, or a name contains a line break or"
                " another unprintable character"
            )
    cells = _cells(domain, rows, "hierarchy.members")
    order = np.argsort(cells)
    again = np.flatnonzero(np.diff(cells[order]) == 0)
    if len(again):
        raise ValueError(f"hierarchy.members: {rows[order[again[0]]]} is listed twice")
    return Regions(domain, cells[order])


def _cells(domain: Domain, rows: Sequence[Sequence[Code]], place: str) -> Integers:
    """The cell (k,) of each row on the domain of its columns."""
    if not rows or any(len(row) != len(domain.axes) for row in rows):
        raise ValueError(f"{place}: each row needs a value for each of {list(domain.names)}")
    codes = []
    for axis, values in zip(domain.axes, zip(*rows, strict=True), strict=True):
        assert isinstance(axis, Categories)
        # Compared as text, because a CSV file has no types.
        known = {str(category): i for i, category in enumerate(axis.categories)}
        found = [known.get(str(value), -1) for value in values]
        if -1 in found:
            unknown = values[found.index(-1)]
            raise ValueError(f"{place}: {unknown!r} is not among the categories of {axis.name}")
        codes.append(found)
    return domain.pack(np.array(codes, dtype=np.int64).T)


class TotalsSection(Section):
    """Public numbers of records, with which the estimates agree exactly."""

    by: StrictStr = Field(
        description="The column of the hierarchy whose regions have these totals."
    )
    counts: Annotated[
        dict[StrictStr, StrictInt] | list[list[Code]],
        BeforeValidator(_read, json_schema_input_type=dict[str, int] | list[list[Code]] | str),
    ] = Field(
        description="The number of records of each region. If `by` is the first column, a mapping."
        " Otherwise rows with the region's values and its number, or a CSV file in the plan's folder"
        " with these columns and `records`.",
    )

    def build(self, regions: Regions) -> Totals:
        """The totals, in the order of the regions."""
        names = regions.domain.names
        if self.by not in names:
            raise ValueError(f"totals.by: {self.by!r} is not a column of the hierarchy")
        level = names.index(self.by) + 1
        rows = self.counts
        if isinstance(rows, dict):
            if level > 1:
                raise ValueError(f"totals.counts: list rows; {self.by} is inside {names[0]}")
            rows = [[code, count] for code, count in rows.items()]
        counts = [row[-1] if row else -1 for row in rows]
        if any(type(count) is not int or not 0 <= count < 2**61 for count in counts):
            raise ValueError("totals.counts: each row must end with a number of records")
        domain = Domain(regions.domain.axes[:level])
        cells = _cells(domain, [row[:-1] for row in rows], "totals.counts")
        order = np.argsort(cells)
        if not np.array_equal(cells[order], regions.nodes[level]):
            raise ValueError(
                f"totals.counts: state each {self.by} of the hierarchy once, and no other"
            )
        return Totals(level, np.array(counts, dtype=np.int64)[order])


class HierarchySection(CountingSection):
    """Consistent counts at all levels of a tree of regions."""

    words: ClassVar[str] = "Counts by region"
    kind: Literal["hierarchy"]
    hierarchy: RegionsSection
    columns: list[StrictStr] = Field(
        default_factory=list, description="The columns of the table of each region, if any."
    )
    bins: Bins
    totals: TotalsSection | None = Field(
        default=None,
        description="Public numbers of records of the regions of one level. If they were counted in"
        " these records, the promise is only for tables with the same numbers.",
    )
    impossible: list[dict[StrictStr, Stated]] = Field(
        default_factory=list,
        description="Cells where nobody can be, such as {tract: ['9900']} or"
        " {county: ['001'], age: [0]}: all cells whose values are in the list or range of"
        " every named column."
        " Their estimate is 0.",
    )
    mechanism: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-laplace"

    @property
    def public_totals(self) -> str:
        return self.totals.by if self.totals else ""

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        both = [name for name in self.columns if name in self.hierarchy.columns]
        if both:
            raise ValueError(f"columns: {both} are columns of the hierarchy")
        regions = self.hierarchy.build(survey.columns)
        cells = binned_domain(survey.columns, self.columns, self.bins)
        domain = domain_of([*regions.domain.axes, *cells.axes])
        domain.require_one_word("a hierarchy")
        return self.make(
            Hierarchy,
            domain,
            survey,
            share,
            regions=regions,
            noise=self.mechanism,
            totals=self.totals.build(regions) if self.totals else None,
            possible=self._possible(regions, cells) if self.impossible else None,
        )

    def _possible(self, regions: Regions, cells: Domain) -> Booleans:
        """Whether each cell is possible (leaves, cells): no entry of ``impossible`` applies to it."""
        # Records outside the listed regions are an additional, last leaf, which no entry can exclude.
        possible = np.ones((regions.sizes[-1], cells.size), dtype=bool)
        listed = possible[: len(regions.leaves)]
        sides = [
            (domain, domain.unpack(ids))
            for domain, ids in (
                (regions.domain, regions.leaves),
                (cells, np.arange(cells.size)),
            )
        ]
        for i, entry in enumerate(self.impossible):
            place = f"impossible[{i}]"
            holds = [np.ones(len(codes), dtype=bool) for _, codes in sides]
            for name, given in entry.items():
                side = int(name not in regions.domain.names)
                position, those = condition(sides[side][0], f"{place}.{name}", name, given)
                holds[side] &= np.isin(sides[side][1][:, position], those)
            if not entry or not (holds[0].any() and holds[1].any()):
                raise ValueError(f"{place}: matches no region of the hierarchy")
            listed[np.ix_(*holds)] = False
        if not listed.any():
            raise ValueError("impossible: excludes every region; remove an entry")
        return possible

    @property
    def subject(self) -> str:
        regions = listed(self.hierarchy.columns, " > ")
        return listed([regions, *self.columns], " x ")
