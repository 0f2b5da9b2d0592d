"""Count tables of a bundle for readers: labels along each side, numbers with errors."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.post.tables.bounded import bounded_interval
from dpcore.releases.counts.cells import BIN, describe_cells
from dpcore.releases.counts.unit import BEST, RECORDS, Unit
from dpcore.releases.table import ENDS, ONE_SIDED, TWO_SIDED
from dpcore.releases.tables.groups import GROUP
from schemas.numbers import plain
from schemas.survey.columns import Column, IntegerColumn
from tasks.charts.svg import figure

Columns = Mapping[str, Column]

NULL = "null"

CLAUSE = re.compile(r"[,;:]|\s\(|\.(?:\s|$)")
YEARS = 1000, 2200
"""Whole numbers without a unit are years if their bounds lie in this range."""

LONGEST = 60
"""A description with at most this many characters serves as a title."""


@dataclass(frozen=True)
class CountTable:
    """A table of counts: ``keys`` and ``labels`` (axes, k) of its k cells, and (k,) numbers.

    Labels on an axis may repeat, keys may not.  ``unit``: the counted unit; ``number``: words for each
    value; ``titles``: readers' names of the columns; ``whole``: the number of all records, if it is
    public.
    """

    names: Sequence[str]
    keys: Sequence[Sequence[Hashable]]
    labels: Sequence[Sequence[str]]
    value: Floats
    lower: Floats
    upper: Floats
    error: Floats
    unit: Unit = RECORDS
    number: str = "noisy count"
    titles: Sequence[str] = ()
    whole: float | None = None

    @classmethod
    def of_axis(
        cls, axis: Axis, value: Floats, error: float, columns: Columns, unit: Unit
    ) -> "CountTable":
        """Counts (cells,) of one column, all with the same normal error."""
        table = {column.name: column.values for column in describe_cells(Domain((axis,)))}
        keys, labels = _keys(table, axis.name), read_labels(table, axis.name, columns)
        errors = np.full(len(value), error)
        ends = bounded_interval(value, TWO_SIDED * error, ONE_SIDED * error, np.inf)
        return cls(
            [axis.name],
            [keys],
            [labels],
            value,
            *ends,
            errors,
            unit,
            f"noisy {unit.number}",
            [called(axis.name, columns)],
        )

    @cached_property
    def sides(self) -> list[list[str]]:
        """The labels along each axis, in the order of the table."""
        return [
            list(dict(zip(keys, labels, strict=True)).values())
            for keys, labels in zip(self.keys, self.labels, strict=True)
        ]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(side) for side in self.sides)

    @property
    def title(self) -> str:
        """The title: the counted things, and the columns."""
        return f"{self.unit.things.capitalize()} by {', '.join(self.quoted)}"

    @property
    def quoted(self) -> list[str]:
        """The titles of the columns for a sentence: in quotes unless they are plain names."""
        return [*map(_quoted, self.titles, self.names)]

    @property
    def plus_minus(self) -> str:
        """Half the width of the widest interval; widths differ near zero."""
        halves = (self.upper - self.lower) / 2
        low, high = (figure(float(f"{end:.3g}")) for end in (halves.min(), halves.max()))
        return f"±{high}" if low == high else f"at most ±{high}"

    def grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values (k,) of a dense table in the shape of its axes."""
        return values.reshape(self.shape)

    def cell(self, i: int) -> str:
        """The labels of a cell in one line."""
        return " · ".join(axis[i] for axis in self.labels)


def read_counts(
    table: Mapping[str, NDArray[Any]], columns: Columns, unit: Unit = RECORDS
) -> CountTable:
    """The count table in the columns of a Parquet file. Its sides are columns of the plan."""
    names = sides_of(table, columns)
    keys = [_keys(table, name) for name in names]
    labels = [read_labels(table, name, columns) for name in names]
    ends = BEST[1:] if BEST[0] in table else ("standard_error", *ENDS)
    error, lower, upper = (table[name] for name in ends)
    numbers = (noisy(table), lower, upper, error)
    value, lower, upper, error = (np.asarray(v, dtype=np.float64) for v in numbers)
    number = f"{'estimated' if 'estimate' in table else 'noisy'} {unit.number}"
    if BEST[0] in table:
        number = f"{unit.number} estimated from all releases"
    titles = [called(name, columns) for name in names]
    return CountTable(names, keys, labels, value, lower, upper, error, unit, number, titles)


def read_labels(
    table: Mapping[str, NDArray[Any]],
    name: str,
    columns: Columns,
    write: Callable[[Any, Column], str] | None = None,
) -> list[str]:
    """The label of each row of a table on one side; in words for a bin. ``write`` formats a category."""
    if name + BIN in table:
        return [NULL if _missing(words) else str(words) for words in table[name + BIN].tolist()]
    write, column = write or category_text, columns[name]
    return [NULL if key is None else write(key, column) for key in _keys(table, name)]


def row_labels(
    table: Mapping[str, NDArray[Any]], names: Sequence[str], columns: Columns
) -> list[str]:
    """The label of each row of a table, joined from its labels on several sides."""
    sides = [read_labels(table, name, columns) for name in names]
    return [", ".join(words) for words in zip(*sides, strict=True)]


def noisy(table: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The most accurate unbiased counts of a table: from all releases, or adjusted between tables."""
    return next(table[name] for name in (BEST[0], "estimate", "noisy_count") if name in table)


def sides_of(published: Iterable[str], columns: Columns) -> list[str]:
    """The survey's columns among the columns of a published table, in the table's order."""
    ends = ("_from", GROUP)
    possible = (n.removesuffix(end) for n in published for end in ([""] if n in columns else ends))
    return [name for name in dict.fromkeys(possible) if name in columns]


def called(name: str, columns: Columns) -> str:
    """Readers' name of a column: its label, a short first clause of its description, or its name. If
    another description begins with the same clause, as for parts of one date, the name is the whole
    description.
    """
    if columns[name].label:
        return columns[name].label
    text = columns[name].description
    first = _first_clause(text)
    others = (each.description for n, each in columns.items() if n != name)
    if any(other.startswith(first) and _first_clause(other) == first for other in others):
        first = text.strip()
    return first if 0 < len(first) <= LONGEST else name


def _first_clause(description: str) -> str:
    return CLAUSE.split(description, maxsplit=1)[0].strip()


def quoted(name: str, columns: Columns) -> str:
    """Readers' name of a column, for a sentence."""
    return _quoted(called(name, columns), name)


def measured(name: str, columns: Columns) -> str:
    """The title of an axis: readers' name of a column, with its unit."""
    unit = getattr(columns[name], "unit", "")
    return called(name, columns) + (f" ({unit})" if unit else "")


def written(column: Column | None, text: str) -> str:
    """A number of a column: a year has no thousands separator."""
    if not isinstance(column, IntegerColumn):
        return text
    dated = column.from_ and column.from_.part
    bare = (
        not (dated or column.unit) and YEARS[0] <= column.bounds[0] <= column.bounds[1] <= YEARS[1]
    )
    return text.replace(",", "") if bare or dated == "year" else text


def figure_of(column: Column | None) -> Callable[[float], str]:
    """The format of a column's numbers along a side of a chart, and in tables."""
    return lambda value: written(column, figure(value))


def category_text(value: Any, column: Column) -> str:
    """A category with its label, if the plan gives one."""
    code, label = code_and_label(value, column)
    return f"{code}: {label}" if label else code


def code_and_label(value: Any, column: Column) -> tuple[str, str]:
    """A category as plans write it, and its label, empty if the plan gives none."""
    code = plain(value) if isinstance(value, float) else str(value)
    return code, column.labels.get(code, column.labels.get(str(value), ""))


def _keys(table: Mapping[str, NDArray[Any]], name: str) -> list[Hashable]:
    if name in table:
        return [None if _missing(value) else value for value in table[name].tolist()]
    if name + GROUP in table:
        return [None if _missing(n) else f"group {n:.0f}" for n in table[name + GROUP].tolist()]
    ends = zip(table[f"{name}_from"].tolist(), table[f"{name}_to"].tolist(), strict=True)
    return [None if _missing(low) else (low, high) for low, high in ends]


def _quoted(title: str, name: str) -> str:
    return title if title == name else f"“{title}”"


def _missing(value: Any) -> bool:
    return value is None or value != value
