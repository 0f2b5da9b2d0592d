"""A plan's public description of a column and its values.

A categorical column lists its categories; an integer or continuous column states its bounds, or levels
as its only values. Only these facts determine the checks on the survey table, the cells of every release
and the columns of synthetic tables. Nothing is derived from the survey's values.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
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

from dpcore.domain.axes import Axis, Bins, Categories, Category, Grid
from schemas.document import Section, absent, inside
from schemas.survey.dates import PartOfDate
from schemas.survey.formats import SourceName, date_format
from schemas.survey.found import (
    BOTH_OPEN,
    MOST_FOUND,
    NONE,
    NOTHING_FOUND,
    OPEN,
    OTHER,
    UNKNOWN_BOUNDS,
    USUALLY_FOUND,
    HalfOpen,
    held,
    publishable,
    stated_ends,
    unknown,
)
from schemas.survey.keys import (
    DESCRIPTION,
    LABEL,
    LEVELS,
    NULLABLE,
    POINTS,
    STEP,
    Labels,
    Missing,
    as_text,
    nullable_if_missing,
)
from schemas.survey.number_column import NumberColumn, check_edges, two_numbers
from schemas.text import Line, look_alikes, told_apart

Invalid = Literal["refuse", "clamp", "own-cell", "drop"]
"""The rule for values that are not valid: not a listed category, outside the bounds, not finite, or null
in a column that is not nullable. Values that cannot be read as the column's type are read as null.

    refuse      the release stops
    clamp       a number goes to the nearest bound; anything else counts as null, or in the first cell
                of a column that is not nullable
    own-cell    it counts as null, and every column is nullable
    drop        its record is left out

All except ``refuse`` are defined for every record and act on each record separately. So tables that
differ only in one record, or in the records of one unit, still do afterwards. Except with ``drop``, the
number of records stays the same.
"""


def nameable(name: str) -> bool:
    """Whether a text is a valid column name. A combining mark counts as part of the letter before it."""
    letters = "".join(sign for sign in name if not unicodedata.category(sign).startswith("M"))
    return (
        re.fullmatch(r"[^\W\d_][\w .-]*", letters) is not None
        and len(name) <= 100
        and name[0] == letters[0]
    )


_Kind = TypeVar("_Kind")
_Listed = Annotated[list[_Kind], Field(min_length=1)]


def _of_one_type(value: Any) -> Any:
    """Refuse mixed types with a single message; Pydantic would give one message for every tried type."""
    kinds = {type(item) for item in value} if isinstance(value, list) else set()
    if len(kinds) > 1 and kinds != {int, float}:
        other = next((item for item in value if not isinstance(item, str)), None)
        quoted = f"; quote {json.dumps(str(other))} if it is text" if str in kinds else ""
        raise ValueError(
            f"must all be of one type: text, whole numbers, numbers or truth values{quoted}"
        )
    return value


_Categories = _Listed[StrictStr] | _Listed[StrictBool] | _Listed[StrictInt] | _Listed[StrictFloat]


class CategoricalColumn(Section):
    """A column whose values are from a list of categories."""

    type: Literal["categorical"]
    categories: Annotated[
        _Categories, BeforeValidator(_of_one_type, json_schema_input_type=_Categories | str)
    ] = Field(
        description="All possible values, all of one type. Quote text that YAML would read as a"
        " number or as yes/no. Or a public CSV file in the plan's folder with a column of this name."
        " Or `open`, if nobody can list them: a share of the budget then finds the categories that"
        " enough units have, and all other values count as one category.",
    )
    at_most: StrictInt = Field(
        default=0,
        ge=0,
        le=MOST_FOUND,
        exclude_if=absent,
        description="With `categories: open`, the largest number of categories to find, the most"
        " frequent first; 100 by default.",
    )
    labels: Labels = Field(default_factory=dict)
    refines: dict[str, Annotated[dict[str, str], BeforeValidator(as_text)]] = Field(
        default_factory=dict,
        description="For each coarser categorical column, the group of each category of this column."
        " Synthetic records then get the coarser column from this column. Write a mapping, or name a"
        " public CSV file with both columns in the plan's folder.",
    )
    nullable: bool = Field(default=False, description=NULLABLE)
    missing: Missing = Field(default_factory=list, exclude_if=absent)
    source_name: SourceName = ""
    label: Line = Field(default="", max_length=60, description=LABEL, exclude_if=absent)
    description: str = Field(default="", description=DESCRIPTION)

    _nullable = model_validator(mode="before")(nullable_if_missing)

    @model_validator(mode="before")
    @classmethod
    def _yet_to_be_found(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("categories") != OPEN:
            return given
        most = given.get("at_most") or USUALLY_FOUND
        stand_ins = unknown(most) if type(most) is int and most <= MOST_FOUND else []
        return {**given, "at_most": most, "categories": [*stand_ins, OTHER]}

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if self.open and (type(self.categories[0]) is not str or self.categories[-1] != OTHER):
            raise ValueError(f"at_most: only `categories: {OPEN}` uses it; leave it out")
        if len(set(self.categories)) != len(self.categories):
            raise ValueError("categories: a category is listed twice")
        if both := {str(c) for c in self.categories} & {str(c) for c in self.missing}:
            raise ValueError(f"missing: {sorted(both)} are categories too")
        if alike := look_alikes(self.categories):
            raise ValueError(f"categories: {told_apart(*alike)}")
        if any(isinstance(c, int) and abs(c) >= 2**63 for c in self.categories):
            raise ValueError("categories: whole numbers must fit in 64 bits")
        unknown = set(self.labels) - {str(category) for category in self.categories}
        if unknown:
            raise ValueError(f"labels: {sorted(unknown)} are not among the categories")
        return self

    @property
    def open(self) -> bool:
        """Whether a release finds all categories except the last, now or later."""
        return self.at_most > 0

    def with_found(self, texts: Mapping[str, int] | None) -> Self:
        """The column with the found categories. ``texts``: found texts with their noisy counts."""
        found = publishable(texts or {}, {NONE, OTHER, *map(str, self.missing)})
        kept = found[: self.at_most] or [NONE]
        return self.model_copy(update={"categories": [*kept, OTHER]})

    @model_serializer(mode="wrap")
    def _as_stated(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out placeholders for categories not found yet."""
        stand_ins = self.open and self.categories[:-1] == unknown(self.at_most)
        written: dict[str, Any] = dump(self)
        return written | {"categories": OPEN} if stand_ins and "categories" in written else written

    @property
    def listed(self) -> Sequence[Category]:
        """The values that may occur."""
        return self.categories

    def axis(self, name: str) -> Axis:
        """The cells of this column, one per category."""
        return Categories(name, tuple(self.categories), self.nullable, rest=self.open)


class IntegerColumn(NumberColumn):
    """A column of whole numbers between public bounds, both included."""

    type: Literal["integer"]
    bounds: Annotated[tuple[StrictInt, StrictInt], BeforeValidator(two_numbers)] = Field(
        description="Smallest and largest value."
    )
    step: StrictInt | None = Field(default=None, ge=1, description=STEP)
    levels: list[StrictInt] | None = Field(default=None, min_length=1, description=LEVELS)
    point_masses: list[StrictInt] = Field(default_factory=list, description=POINTS)
    from_: PartOfDate | None = Field(
        default=None,
        alias="from",
        description="If the survey has no column of this name: the date column and the part of the"
        " date that gives the numbers.",
    )

    @model_validator(mode="before")
    @classmethod
    def _not_open(cls, given: Any) -> Any:
        if isinstance(given, dict) and stated_ends(given.get("bounds")):
            raise ValueError(
                "bounds: open is for `type: continuous`; write that, with `step: 1` for whole numbers"
            )
        return given

    @model_validator(mode="after")
    def _exact(self) -> Self:
        if self.from_:
            self.from_.check(self.bounds)
        if max(abs(bound) for bound in self.bounds) > 2**53:
            raise ValueError("bounds: larger than 2**53")
        return self

    @model_serializer(mode="wrap")
    def _brief(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out ``from`` if it is empty, so that the digests of older plans stay the same."""
        return {k: v for k, v in dump(self).items() if v is not None}

    def _check_format(self) -> None:
        if self.from_ and self.format:
            with inside("format: "):
                date_format(self.format)
        elif self.format.endswith("%"):
            raise ValueError("format: 12% is read as 0.12, so the type must be continuous")
        else:
            super()._check_format()

    def axis(self, name: str) -> Axis:
        """One cell per whole number, or per level."""
        if self.levels is not None:
            return Categories(name, tuple(self.levels), self.nullable, ordered=True)
        lower, upper = self.bounds
        cells = upper - lower + 1
        return Grid(name, lower, upper + 1, cells, self.nullable, integer=True, step=self.written)

    def bins(self, name: str, edges: list[float]) -> Bins:
        """Cells of several whole numbers; the last edge is the largest value plus one."""
        check_edges(edges, self.bounds[0], self.bounds[1] + 1)
        if any(edge != int(edge) for edge in edges):
            raise ValueError("edges of an integer column must be whole numbers")
        ends = {end for point in self.point_masses for end in (point, point + 1)}
        cut = tuple(sorted({*map(float, edges), *map(float, ends)}))
        masses = tuple(map(float, self.point_masses))
        return Bins(name, cut, self.nullable, True, self.written, masses)


class ContinuousColumn(NumberColumn):
    """A column of real numbers between public bounds."""

    type: Literal["continuous"]
    bounds: Annotated[tuple[float, float], BeforeValidator(two_numbers)] = Field(
        description="Smallest and largest value. Or `open`, if nobody can state both, and [0, open]"
        " if nobody can state one: a share of the budget then finds bounds that contain all except a"
        " few values, and values outside count as the nearest bound.",
    )
    searched: StrictBool = Field(
        default=False,
        exclude_if=absent,
        description="Whether a release finds the bounds. Set by `bounds: open`.",
    )
    ends: HalfOpen = Field(
        default=BOTH_OPEN,
        exclude_if=lambda ends: ends == BOTH_OPEN,
        description="The stated bound if the other is open. Set by `bounds`.",
    )
    grid: StrictInt = Field(
        default=1024,
        ge=2,
        le=65536,
        description="Values are rounded to this many equal cells between the bounds; on a transformed"
        " scale to at most 4,096.",
    )
    step: float | None = Field(default=None, gt=0, description=STEP)
    levels: list[float] | None = Field(default=None, min_length=1, description=LEVELS)
    point_masses: list[float] = Field(default_factory=list, description=POINTS)

    @model_validator(mode="before")
    @classmethod
    def _yet_to_be_found(cls, given: Any) -> Any:
        if not isinstance(given, dict) or (ends := stated_ends(given.get("bounds"))) is None:
            return given
        points = given.get("point_masses")
        stand_ins = held(UNKNOWN_BOUNDS, points if isinstance(points, list) else [], ends)
        return {**given, "bounds": stand_ins, "ends": ends, "searched": True}

    @model_serializer(mode="wrap")
    def _as_stated(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out placeholders for bounds not found yet."""
        written: dict[str, Any] = dump(self)
        if not self.unsearched or "bounds" not in written:
            return written
        half = [OPEN if end is None else end for end in self.ends]
        return written | {"bounds": OPEN if self.ends == BOTH_OPEN else half}

    @property
    def open(self) -> bool:
        return self.searched

    @property
    def unsearched(self) -> bool:
        """Whether the bounds are placeholders, because the search has not run."""
        return self.open and self.bounds == held(UNKNOWN_BOUNDS, self.point_masses, self.ends)

    def with_found(self, bounds: tuple[float, float] | None) -> Self:
        """The column with the found bounds, if any, widened to its point masses; stated bounds stay."""
        lower, upper = bounds or NOTHING_FOUND
        if self.step:  # bounds in a plan may contain at most 2**53 steps too
            most = self.step * 2**52
            lower, upper = max(lower, -most), min(upper, most)
        found = held((lower, upper), self.point_masses, self.ends)
        return self.model_copy(update={"bounds": found})

    def axis(self, name: str) -> Axis:
        """The fine grid, or one cell per level."""
        if self.levels is not None:
            return Categories(name, tuple(self.levels), self.nullable, ordered=True)
        return Grid(name, *self.bounds, self.grid, self.nullable, step=self.written)

    def bins(self, name: str, edges: list[float]) -> Bins:
        """Cells between the given edges, and one for each point mass."""
        check_edges(edges, *self.bounds)
        points = [float(point) for point in self.point_masses]
        # The edge of a point mass is listed twice, because its cell has no width.
        cut = tuple(sorted([*({float(e) for e in edges} - {*points}), *points, *points]))
        return Bins(name, cut, self.nullable, step=self.written)


Column = Annotated[
    CategoricalColumn | IntegerColumn | ContinuousColumn, Field(discriminator="type")
]


def made_total(column: Column, invalid: Invalid) -> Column:
    """The column after a plan's rule for values that are not valid."""
    if invalid == "own-cell":
        return column.model_copy(update={"nullable": True})
    if invalid == "clamp" and not isinstance(column, CategoricalColumn):
        return column.model_copy(update={"outside": "clamp"})
    return column


class IdentifierColumn(Section):
    """A column that identifies privacy units: read as text, never null, and in no release."""

    nullable: Literal[False] = False
    source_name: SourceName = ""


ReadColumn = CategoricalColumn | IntegerColumn | ContinuousColumn | IdentifierColumn
"""A column that the private steps read: a column of the plan, or the privacy unit's identifier."""


def meaning(column: Column) -> str:
    """The meaning of a column according to the plan."""
    return ": ".join(filter(None, (column.label, column.description)))


def column_description(text: str, column: Column | None) -> str:
    """The description of a published column, followed by the meaning of the survey's column."""
    return ": ".join(filter(None, (text, meaning(column) if column else "")))


def column_metadata(name: str | None, columns: Mapping[str, Column]) -> dict[str, str]:
    """Metadata of a published column that describes the survey's column ``name``."""
    if name is None:
        return {}
    facts, column = {"column": name}, columns[name]
    if column.labels:
        facts["labels"] = json.dumps(column.labels, ensure_ascii=False)
    if not isinstance(column, CategoricalColumn) and column.unit:
        facts["unit"] = column.unit
    return facts
