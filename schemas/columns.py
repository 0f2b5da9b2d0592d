"""A plan's public description of a column and its values.

A categorical column lists its categories; an integer or continuous column states its bounds.  These
alone determine the checks on the survey table, the cells of every release and the columns of synthetic
tables: nothing is derived from the values themselves.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_serializer,
    model_validator,
)

from dpcore.domain import Axis, Bins, Categories, Grid
from schemas.dates import PartOfDate
from schemas.document import Section

Outside = Literal["refuse", "clamp"]

Invalid = Literal["refuse", "clamp", "own-cell", "drop"]
"""What happens to values that are not valid: not a listed category, outside the bounds, not finite, or
null in a column that is not nullable.  What cannot be read as its column's type is read as null.

    refuse      the release stops
    clamp       a number goes to the nearest bound; anything else counts as null, or in the first cell
                of a column that is not nullable
    own-cell    it counts as null, and every column is nullable
    drop        its record is left out

All but the first are defined for every record, and act on each record alone: tables that differ in one
record, or in those of one unit, still do so afterwards, and where a record is replaced by another its
place stays, except with ``drop``.
"""

NULLABLE = "Whether null is a value; it gets a cell."
DESCRIPTION = "What the column means, for readers."

_Kind = TypeVar("_Kind")
_Listed = Annotated[list[_Kind], Field(min_length=1)]


def _of_one_type(value: Any) -> Any:
    """Refuse mixed types in one message; pydantic would give one for every type that it tried."""
    kinds = {type(item) for item in value} if isinstance(value, list) else set()
    if len(kinds) > 1 and kinds != {int, float}:
        other = next((item for item in value if not isinstance(item, str)), None)
        quoted = f"; quote {json.dumps(str(other))} if it is text" if str in kinds else ""
        raise ValueError(
            f"must all be of one type: text, whole numbers, numbers or truth values{quoted}"
        )
    return value


def _two_numbers(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) != 2:
        raise ValueError("needs two numbers: the smallest and the largest value")
    return value


_Categories = _Listed[StrictStr] | _Listed[StrictBool] | _Listed[StrictInt] | _Listed[StrictFloat]


class CategoricalColumn(Section):
    """A column that takes one of a list of categories."""

    type: Literal["categorical"]
    categories: Annotated[
        _Categories, BeforeValidator(_of_one_type, json_schema_input_type=_Categories | str)
    ] = Field(
        description="Every value that may occur, all of one type; quote text that YAML would read "
        "as a number or as yes/no. Or a public CSV file with a column of this name, in the plan's"
        " folder, whose values are text.",
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="What a category means, for the codebook."
    )
    nullable: bool = Field(default=False, description=NULLABLE)
    description: str = Field(default="", description=DESCRIPTION)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.categories)) != len(self.categories):
            raise ValueError("categories: a category is listed twice")
        if any(isinstance(c, int) and abs(c) >= 2**63 for c in self.categories):
            raise ValueError("categories: whole numbers must fit in 64 bits")
        unknown = set(self.labels) - {str(category) for category in self.categories}
        if unknown:
            raise ValueError(f"labels: {sorted(unknown)} are not among the categories")
        return self

    def axis(self, name: str) -> Axis:
        """The cells of this column, one per category."""
        return Categories(name, tuple(self.categories), self.nullable)


class IntegerColumn(Section):
    """A column of whole numbers between public bounds, both included."""

    type: Literal["integer"]
    bounds: Annotated[tuple[StrictInt, StrictInt], BeforeValidator(_two_numbers)] = Field(
        description="Smallest and largest value."
    )
    outside: Outside = Field(
        default="refuse",
        description="What happens to values outside the bounds: stop the release, or move them to "
        "the nearest bound.",
    )
    from_: PartOfDate | None = Field(
        default=None,
        alias="from",
        description="The part of a date from which the numbers are computed, where the survey has no "
        "column of this name.",
    )
    nullable: bool = Field(default=False, description=NULLABLE)
    unit: str = Field(default="", description="What the numbers count, such as years or EUR.")
    description: str = Field(default="", description=DESCRIPTION)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _check_bounds(*self.bounds)
        if self.from_:
            self.from_.check(self.bounds)
        if max(abs(bound) for bound in self.bounds) > 2**53:
            raise ValueError("bounds: larger than 2**53")
        return self

    @model_serializer(mode="wrap")
    def _brief(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without ``from`` where there is none: the digests of such plans know nothing of it."""
        return {k: v for k, v in dump(self).items() if v is not None}

    def axis(self, name: str) -> Axis:
        """One cell per whole number."""
        lower, upper = self.bounds
        return Grid(name, lower, upper + 1, upper - lower + 1, self.nullable, integer=True)

    def bins(self, name: str, edges: list[float]) -> Axis:
        """Cells of several whole numbers; the last edge is the largest value plus one."""
        _check_edges(edges, self.bounds[0], self.bounds[1] + 1)
        if any(edge != int(edge) for edge in edges):
            raise ValueError("edges of an integer column must be whole numbers")
        return Bins(name, tuple(float(e) for e in edges), self.nullable, integer=True)


class ContinuousColumn(Section):
    """A column of real numbers between public bounds."""

    type: Literal["continuous"]
    bounds: Annotated[tuple[float, float], BeforeValidator(_two_numbers)] = Field(
        description="Smallest and largest value."
    )
    grid: StrictInt = Field(
        default=1024,
        ge=2,
        le=65536,
        description="Values are rounded to this many equal cells between the bounds.",
    )
    outside: Outside = Field(
        default="refuse",
        description="What happens to values outside the bounds: stop the release, or move them to "
        "the nearest bound.",
    )
    nullable: bool = Field(default=False, description=NULLABLE)
    unit: str = Field(default="", description="What the numbers count, such as years or EUR.")
    description: str = Field(default="", description=DESCRIPTION)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _check_bounds(*self.bounds)
        return self

    def axis(self, name: str) -> Axis:
        """The fine grid."""
        return Grid(name, *self.bounds, self.grid, self.nullable)

    def bins(self, name: str, edges: list[float]) -> Axis:
        """Cells between the given edges."""
        _check_edges(edges, *self.bounds)
        return Bins(name, tuple(float(e) for e in edges), self.nullable)


Column = Annotated[
    CategoricalColumn | IntegerColumn | ContinuousColumn, Field(discriminator="type")
]


def made_total(column: Column, invalid: Invalid) -> Column:
    """The column as a plan with this rule reads it."""
    if invalid == "own-cell":
        return column.model_copy(update={"nullable": True})
    if invalid == "clamp" and not isinstance(column, CategoricalColumn):
        return column.model_copy(update={"outside": "clamp"})
    return column


class IdentifierColumn(Section):
    """A column that identifies privacy units: read as text, in no release, and never null."""

    nullable: Literal[False] = False


ReadColumn = CategoricalColumn | IntegerColumn | ContinuousColumn | IdentifierColumn
"""A column that the private steps read: one of the plan's, or the privacy unit's."""


def part_of_date(column: ReadColumn) -> PartOfDate | None:
    """The part of a date that a column is, if it is one."""
    return column.from_ if isinstance(column, IntegerColumn) else None


def sources(columns: Mapping[str, ReadColumn]) -> dict[str, str]:
    """By column, the survey's column from which it is read: of its own name, or the one of a date."""
    parts = {name: part_of_date(column) for name, column in columns.items()}
    return {name: part.column if part else name for name, part in parts.items()}


def column_description(text: str, column: Column | None) -> str:
    """The description of a published column, with the plan's description of the survey's column."""
    if column is None or not column.description:
        return text
    return f"{text}: {column.description}" if text else column.description


def column_metadata(name: str | None, columns: Mapping[str, Column]) -> dict[str, str]:
    """Metadata for a published column that is about the survey's column ``name``."""
    if name is None:
        return {}
    facts, column = {"column": name}, columns[name]
    if isinstance(column, CategoricalColumn):
        if column.labels:
            facts["labels"] = json.dumps(column.labels, ensure_ascii=False)
    elif column.unit:
        facts["unit"] = column.unit
    return facts


def _check_bounds(lower: float, upper: float) -> None:
    if not -1e300 <= lower < upper <= 1e300:
        raise ValueError("bounds: must be finite (1e300 at most), the smaller first")


def _check_edges(edges: list[float], lower: float, upper: float) -> None:
    if len(edges) < 2 or any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
        raise ValueError("edges must ascend, two of them at least")
    if edges[0] != lower or edges[-1] != upper:
        raise ValueError(
            f"edges must begin at {lower!r} and end at {upper!r}, so that every value has a bin"
            " (for whole numbers the end is the largest value plus one)"
        )
