"""A plan's public description of a column and its values.

A categorical column lists its categories; an integer or continuous column states its bounds, or the
levels that are its only values.  These alone determine the checks on the survey table, the cells of
every release and the columns of synthetic tables: nothing is derived from the values themselves.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

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
from schemas.document import Section, absent
from schemas.survey.dates import PartOfDate
from schemas.survey.formats import (
    DateFormat,
    Format,
    NumberFormat,
    SourceName,
    date_format,
    number_format,
)
from schemas.survey.found import (
    MOST_FOUND,
    NONE,
    NOTHING_FOUND,
    OPEN,
    OTHER,
    UNKNOWN_BOUNDS,
    USUALLY_FOUND,
    holding,
    publishable,
    unknown,
)
from schemas.text import Line, look_alikes, told_apart


def _of_one_column(outside: Any) -> Any:
    if outside in ("drop", "own-cell"):
        raise ValueError(f"is refuse or clamp; `invalid: {outside}` of the plan is for all columns")
    return outside


Outside = Annotated[Literal["refuse", "clamp"], BeforeValidator(_of_one_column)]

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


def nameable(name: str) -> bool:
    """Whether a text is a valid column name; marks belong to the letters that they follow."""
    letters = "".join(sign for sign in name if not unicodedata.category(sign).startswith("M"))
    return (
        re.fullmatch(r"[^\W\d_][\w .-]*", letters) is not None
        and len(name) <= 100
        and name[0] == letters[0]
    )


NULLABLE = "Whether null is a value; it gets a cell."
DESCRIPTION = "What the column means, for readers."
LABEL = (
    "What readers call the column, in charts and headings; without it, the first clause of a short"
    " description."
)
MISSING = (
    'Codes that stand for no answer, such as [-9, "NA", NaN]: they are read as null, and the column is'
    " nullable. Numbers are compared as numbers, text as it is written; NaN is also a float's."
)

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


def _nullable_if_missing(given: Any) -> Any:
    """Codes of no answer make a column nullable, which need not be stated."""
    if not isinstance(given, dict) or not given.get("missing"):
        return given
    if given.get("nullable") is False:
        raise ValueError("missing: its codes are read as null; leave out `nullable: false`")
    return {**given, "nullable": True}


NAN = "NaN"
"""The code of no answer that floats which are not numbers have."""


def _with_nan(codes: Any) -> Any:
    """YAML's .nan as the word, which JSON has too."""
    return [NAN if c != c else c for c in codes] if isinstance(codes, list | tuple) else codes


_Missing = Annotated[
    list[StrictStr | StrictInt | StrictFloat],
    BeforeValidator(_with_nan),
    Field(description=MISSING),
]


def _as_text(mapping: Any) -> Any:
    """Categories as they are written; YAML reads some of them as numbers."""
    return {str(k): str(v) for k, v in mapping.items()} if isinstance(mapping, dict) else mapping


_Labels = Annotated[
    dict[str, str],
    BeforeValidator(_as_text),
    Field(description="What a category, a level or another value means, for the codebook."),
]


_Categories = _Listed[StrictStr] | _Listed[StrictBool] | _Listed[StrictInt] | _Listed[StrictFloat]


class CategoricalColumn(Section):
    """A column that takes one of a list of categories."""

    type: Literal["categorical"]
    categories: Annotated[
        _Categories, BeforeValidator(_of_one_type, json_schema_input_type=_Categories | str)
    ] = Field(
        description="Every value that may occur, all of one type; quote text that YAML would read "
        "as a number or as yes/no. Or a public CSV file with a column of this name, in the plan's"
        " folder, whose values are text. Or `open`, where nobody can list them: those that enough units"
        " have are found first, with a share of the budget, and all others count as one.",
    )
    at_most: StrictInt = Field(
        default=0,
        ge=0,
        le=MOST_FOUND,
        exclude_if=absent,
        description="With `categories: open`, how many may be found, of the most frequent; 100 by"
        " default.",
    )
    labels: _Labels = Field(default_factory=dict)
    refines: dict[str, Annotated[dict[str, str], BeforeValidator(_as_text)]] = Field(
        default_factory=dict,
        description="By coarser categorical column, the group of every category: the column then follows"
        " from this one in synthetic records. A mapping, or a public CSV file with both columns in the"
        " plan's folder.",
    )
    nullable: bool = Field(default=False, description=NULLABLE)
    missing: _Missing = Field(default_factory=list, exclude_if=absent)
    source_name: SourceName = ""
    label: Line = Field(default="", max_length=60, description=LABEL, exclude_if=absent)
    description: str = Field(default="", description=DESCRIPTION)

    _nullable = model_validator(mode="before")(_nullable_if_missing)

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
            raise ValueError(f"at_most: is for `categories: {OPEN}`; leave it out")
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
        """Whether the categories but the last are found, or yet to be found."""
        return self.at_most > 0

    def with_found(self, texts: Mapping[str, int] | None) -> Self:
        """The column with those of the found texts, by noisy count, that can be its categories."""
        found = publishable(texts or {}, {NONE, OTHER, *map(str, self.missing)})
        kept = found[: self.at_most] or [NONE]
        return self.model_copy(update={"categories": [*kept, OTHER]})

    @model_serializer(mode="wrap")
    def _as_stated(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Stand-ins for what is yet to be found are not written."""
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


class _NumberColumn(Section):
    """What columns of whole and of real numbers have in common."""

    outside: Outside = Field(
        default="refuse",
        description="What happens to values outside the bounds: stop the release, or move them to "
        "the nearest bound.",
    )
    nullable: bool = Field(default=False, description=NULLABLE)
    missing: _Missing = Field(default_factory=list, exclude_if=absent)
    format: Format = ""
    source_name: SourceName = ""
    labels: _Labels = Field(default_factory=dict, exclude_if=absent)
    unit: str = Field(default="", description="What the numbers count, such as years or EUR.")
    label: Line = Field(default="", max_length=60, description=LABEL, exclude_if=absent)
    description: str = Field(default="", description=DESCRIPTION)

    if TYPE_CHECKING:  # both kinds state their own
        bounds: tuple[float, float]
        step: float | None
        levels: Sequence[float] | None
        point_masses: Sequence[float]

    _nullable = model_validator(mode="before")(_nullable_if_missing)

    @model_validator(mode="before")
    @classmethod
    def _bounds_of_levels(cls, given: Any) -> Any:
        """Levels bound a column: its bounds need not be stated."""
        levels = given.get("levels") if isinstance(given, dict) else None
        if not isinstance(levels, list | tuple) or not levels or "bounds" in given:
            return given
        return {**given, "bounds": [levels[0], levels[-1]]}

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        lower, upper = self.bounds
        _check_bounds(lower, upper, self.levels is not None)
        if self.step is not None and max(abs(lower), abs(upper)) / self.step > 2**53:
            raise ValueError("step: too small for these bounds")
        if self.levels is not None:
            if self.step is not None or self.point_masses:
                raise ValueError("levels: cannot be combined with step or point_masses")
            if _descends(self.levels) or (self.levels[0], self.levels[-1]) != self.bounds:
                raise ValueError("levels: must ascend from one bound to the other")
        if unknown := [text for text in self.labels if not self._may_be(text)]:
            raise ValueError(f"labels: {unknown} are not values of the column")
        if _descends(self.point_masses):
            raise ValueError("point_masses: must ascend")
        if any(not lower <= point <= upper for point in self.point_masses):
            raise ValueError("point_masses: must lie within the bounds")
        self._check_format()
        return self

    def _check_format(self) -> None:
        """Raise ``ValueError`` where the format is none, or is not that of such numbers."""
        if not self.format:
            return
        try:
            percent = number_format(self.format).percent
        except ValueError as error:
            raise ValueError(f"format: {error}") from None
        if percent and max(map(abs, self.bounds)) >= 100:
            raise ValueError("format: 12% is read as 0.12; state bounds as shares, such as [0, 1]")

    @property
    def open(self) -> bool:
        """Whether the bounds are found, or yet to be found."""
        return False

    @property
    def clamps_nothing(self) -> bool:
        """Whether numbers are read as they are: bounds that are found are not known then."""
        return self.open or self.outside == "refuse"

    @property
    def listed(self) -> Sequence[Category] | None:
        """The values that may occur, if they are listed."""
        return self.levels

    def _may_be(self, text: str) -> bool:
        """Whether a text is a value of the column, written as the plan writes it."""
        if self.levels is not None:
            return text in {str(level) for level in self.levels}
        with suppress(ValueError):
            return self.bounds[0] <= float(text) <= self.bounds[1] and _spelled(float(text)) == text
        return False

    @property
    def written(self) -> Fraction | None:
        """The step, exactly as it was written."""
        return None if self.step is None else Fraction(str(self.step))


def _spelled(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


STEP = (
    "Synthetic values are multiples of this number, such as 0.01 for an amount in cents or 5 for hours"
    " that people round. The table is not checked for it."
)
LEVELS = (
    "The only values that occur, in ascending order, where a number takes a few: each has a cell of its"
    " own, any other is not valid, and `bounds` need not be stated."
)
POINTS = (
    "Values that many records have, such as 0 and a top code: each has a cell of its own in addition to"
    " the bins, and a density leaves its records out."
)


class IntegerColumn(_NumberColumn):
    """A column of whole numbers between public bounds, both included."""

    type: Literal["integer"]
    bounds: Annotated[tuple[StrictInt, StrictInt], BeforeValidator(_two_numbers)] = Field(
        description="Smallest and largest value."
    )
    step: StrictInt | None = Field(default=None, ge=1, description=STEP)
    levels: list[StrictInt] | None = Field(default=None, min_length=1, description=LEVELS)
    point_masses: list[StrictInt] = Field(default_factory=list, description=POINTS)
    from_: PartOfDate | None = Field(
        default=None,
        alias="from",
        description="What the numbers are computed from, where the survey has no column of this name: "
        "the part of a date.",
    )

    @model_validator(mode="before")
    @classmethod
    def _not_open(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("bounds") == OPEN:
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
        """Without ``from`` where there is none: the digests of such plans know nothing of it."""
        return {k: v for k, v in dump(self).items() if v is not None}

    def _check_format(self) -> None:
        if self.from_ and self.format:
            try:
                date_format(self.format)
            except ValueError as error:
                raise ValueError(f"format: {error}") from None
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
        _check_edges(edges, self.bounds[0], self.bounds[1] + 1)
        if any(edge != int(edge) for edge in edges):
            raise ValueError("edges of an integer column must be whole numbers")
        ends = {end for point in self.point_masses for end in (point, point + 1)}
        cut = tuple(sorted({*map(float, edges), *map(float, ends)}))
        return Bins(name, cut, self.nullable, integer=True, step=self.written)


class ContinuousColumn(_NumberColumn):
    """A column of real numbers between public bounds."""

    type: Literal["continuous"]
    bounds: Annotated[tuple[float, float], BeforeValidator(_two_numbers)] = Field(
        description="Smallest and largest value. Or `open`, where nobody can state them: bounds that few"
        " are beyond are found first, with a share of the budget, and others count as the nearest.",
    )
    searched: StrictBool = Field(
        default=False,
        exclude_if=absent,
        description="Whether the bounds are found; follows from `bounds: open`.",
    )
    grid: StrictInt = Field(
        default=1024,
        ge=2,
        le=65536,
        description="Values are rounded to this many equal cells between the bounds.",
    )
    step: float | None = Field(default=None, gt=0, description=STEP)
    levels: list[float] | None = Field(default=None, min_length=1, description=LEVELS)
    point_masses: list[float] = Field(default_factory=list, description=POINTS)

    @model_validator(mode="before")
    @classmethod
    def _yet_to_be_found(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("bounds") != OPEN:
            return given
        points = given.get("point_masses")
        stand_ins = holding(UNKNOWN_BOUNDS, points if isinstance(points, list) else [])
        return {**given, "bounds": stand_ins, "searched": True}

    @model_serializer(mode="wrap")
    def _as_stated(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Stand-ins for bounds that are yet to be found are not written."""
        written: dict[str, Any] = dump(self)
        return written | {"bounds": OPEN} if self.unsearched and "bounds" in written else written

    @property
    def open(self) -> bool:
        return self.searched

    @property
    def unsearched(self) -> bool:
        """Whether the bounds are yet to be found; others stand in for them."""
        return self.open and self.bounds == holding(UNKNOWN_BOUNDS, self.point_masses)

    def with_found(self, bounds: tuple[float, float] | None) -> Self:
        """The column with the bounds that were found, if any were; they hold its point masses."""
        lower, upper = bounds or NOTHING_FOUND
        if self.step:  # of which there are not too many
            most = self.step * 2**52
            lower, upper = max(lower, -most), min(upper, most)
        found = holding((lower, upper), self.point_masses)
        return self.model_copy(update={"bounds": found})

    def axis(self, name: str) -> Axis:
        """The fine grid, or one cell per level."""
        if self.levels is not None:
            return Categories(name, tuple(self.levels), self.nullable, ordered=True)
        return Grid(name, *self.bounds, self.grid, self.nullable, step=self.written)

    def bins(self, name: str, edges: list[float]) -> Bins:
        """Cells between the given edges, and one for each point mass."""
        _check_edges(edges, *self.bounds)
        points = [float(point) for point in self.point_masses]
        cut = tuple(sorted([*({float(e) for e in edges} - {*points}), *points, *points]))
        return Bins(name, cut, self.nullable, step=self.written)


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
    source_name: SourceName = ""


ReadColumn = CategoricalColumn | IntegerColumn | ContinuousColumn | IdentifierColumn
"""A column that the private steps read: one of the plan's, or the privacy unit's."""


def part_of_date(column: ReadColumn) -> PartOfDate | None:
    """The part of a date that a column is, if it is one."""
    return column.from_ if isinstance(column, IntegerColumn) else None


def sources(columns: Mapping[str, ReadColumn]) -> dict[str, str]:
    """By column, the survey's column from which it is read: of its own name, or of another."""
    return {name: _source(name, column, columns) for name, column in columns.items()}


def _source(name: str, column: ReadColumn, columns: Mapping[str, ReadColumn]) -> str:
    of = part_of_date(column)
    if column.source_name or of is None:
        return column.source_name or name
    base = columns.get(of.column)
    read = base is not None and not part_of_date(base)  # else a computed column, of the same name
    return (base.source_name if read and base else "") or of.column


def source_in_words(name: str, columns: Mapping[str, ReadColumn]) -> str:
    """What a message calls the survey's column: a ``source_name`` is not shown."""
    of = part_of_date(columns[name])
    return name if columns[name].source_name or of is None else of.column


def written_numbers(column: ReadColumn) -> NumberFormat | None:
    """The format of a column of numbers, if the plan states one."""
    if not isinstance(column, _NumberColumn) or part_of_date(column) or not column.format:
        return None
    return number_format(column.format)


def written_dates(column: ReadColumn) -> DateFormat | None:
    """The format of the dates of which a column is a part, if the plan states one."""
    dated = isinstance(column, IntegerColumn) and part_of_date(column) and column.format
    return date_format(dated) if dated else None


def missing_codes(column: ReadColumn) -> tuple[Sequence[str], Sequence[float]]:
    """The text and the numbers that stand for no answer where a column is read."""
    codes = () if isinstance(column, IdentifierColumn) else column.missing
    texts = [code for code in codes if isinstance(code, str)]
    return texts, [float(code) for code in codes if not isinstance(code, str) or code == NAN]


def meaning(column: Column) -> str:
    """What the plan says that a column means."""
    return ": ".join(filter(None, (column.label, column.description)))


def column_description(text: str, column: Column | None) -> str:
    """The description of a published column, with what the survey's column means."""
    return ": ".join(filter(None, (text, meaning(column) if column else "")))


def column_metadata(name: str | None, columns: Mapping[str, Column]) -> dict[str, str]:
    """Metadata for a published column that is about the survey's column ``name``."""
    if name is None:
        return {}
    facts, column = {"column": name}, columns[name]
    if column.labels:
        facts["labels"] = json.dumps(column.labels, ensure_ascii=False)
    if not isinstance(column, CategoricalColumn) and column.unit:
        facts["unit"] = column.unit
    return facts


def _check_bounds(lower: float, upper: float, levels: bool) -> None:
    if lower == upper and not levels:
        raise ValueError(
            f"bounds: contain only {lower:.15g}; state `levels: [{lower:.15g}]` for one value"
        )
    if not -1e300 <= lower <= upper <= 1e300:
        raise ValueError("bounds: must be finite (at most 1e300), the smaller first")


def _descends(numbers: Sequence[float]) -> bool:
    return any(a >= b for a, b in zip(numbers, numbers[1:], strict=False))


def _check_edges(edges: list[float], lower: float, upper: float) -> None:
    if len(edges) < 2 or any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
        raise ValueError("must be at least two ascending edges")
    if edges[0] != lower or edges[-1] != upper:
        raise ValueError(
            f"edges must begin at {lower!r} and end at {upper!r}, so that every value has a bin"
            " (for whole numbers the end is the largest value plus one)"
        )
