"""Count tables of a bundle, read as people read them: labels along each side, numbers with errors."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.releases.groups import GROUP
from schemas.columns import CategoricalColumn, Column
from schemas.numbers import plain
from tasks.report.svg import figure

Floats = NDArray[np.float64]
Columns = Mapping[str, Column]

NULL = "null"
NORMAL_90 = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True)
class Counts:
    """A table of counts: ``keys`` and ``labels`` (axes, k) of each of k cells, and (k,) numbers.

    Two cells of one side may have the same label, but not the same key.  ``of``: what is counted.
    """

    names: Sequence[str]
    keys: Sequence[Sequence[Hashable]]
    labels: Sequence[Sequence[str]]
    value: Floats
    lower: Floats
    upper: Floats
    error: Floats
    of: str = "records"
    number: str = "noisy count"
    """What each value is."""

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
        """What is counted by what."""
        return f"{self.of.capitalize()} by {', '.join(self.names)}"

    @property
    def plus_minus(self) -> str:
        """Half of the interval; the longest where they differ, as near zero."""
        halves = (self.upper - self.lower) / 2
        low, high = (figure(float(f"{end:.3g}")) for end in (halves.min(), halves.max()))
        return f"±{high}" if low == high else f"±{high} at most"

    def grid(self, values: NDArray[Any]) -> NDArray[Any]:
        """(k,) values of a dense table in its shape."""
        return values.reshape(self.shape)

    def with_error(self, error: float) -> "Counts":
        """The same counts with another standard error, and normal 90% intervals."""
        half = NORMAL_90 * error
        return replace(
            self,
            lower=self.value - half,
            upper=self.value + half,
            error=np.full(len(self.value), error),
        )

    def cell(self, i: int) -> str:
        """What a cell is, in one line."""
        return " · ".join(axis[i] for axis in self.labels)


def read_counts(table: Mapping[str, NDArray[Any]], columns: Columns, of: str = "records") -> Counts:
    """The count table in a Parquet file's columns; the plan's columns tell what its sides are."""
    names = sides_of(table, columns)
    keys = [_keys(table, name) for name in names]
    labels = [read_labels(table, name, columns) for name in names]
    numbers = (noisy(table), table["lower_90"], table["upper_90"], table["standard_error"])
    value, lower, upper, error = (np.asarray(v, dtype=np.float64) for v in numbers)
    return Counts(names, keys, labels, value, lower, upper, error, of, _number(table, of))


def read_labels(table: Mapping[str, NDArray[Any]], name: str, columns: Columns) -> list[str]:
    """The label of each row of a table on one side."""
    return [_label(key, columns[name]) for key in _keys(table, name)]


def noisy(table: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The unbiased counts of a table: after agreement where there are such."""
    return table["estimate" if "estimate" in table else "noisy_count"]


def _number(table: Mapping[str, NDArray[Any]], of: str) -> str:
    if of == "weights":
        return "estimated sum of weights" if "estimate" in table else "noisy sum of weights"
    return "estimate" if "estimate" in table else "noisy count"


def sides_of(published: Iterable[str], columns: Columns) -> list[str]:
    """The survey's columns among the columns of a published table, in the table's order."""
    ends = ("_from", GROUP)
    names = (
        n if n in columns else n.removesuffix(ends[0]).removesuffix(ends[1]) for n in published
    )
    return [name for name in dict.fromkeys(names) if name in columns]


def category_text(value: Any, column: Column) -> str:
    """A category with its label, if the plan gives one."""
    meaning = column.labels.get(str(value)) if isinstance(column, CategoricalColumn) else None
    text = plain(value) if isinstance(value, float) else str(value)
    return f"{text}: {meaning}" if meaning else text


def _keys(table: Mapping[str, NDArray[Any]], name: str) -> list[Hashable]:
    if name in table:
        return [None if _missing(value) else value for value in table[name].tolist()]
    if name + GROUP in table:
        return [None if _missing(n) else f"group {n:.0f}" for n in table[name + GROUP].tolist()]
    ends = zip(table[f"{name}_from"].tolist(), table[f"{name}_to"].tolist(), strict=True)
    return [None if _missing(low) else (low, high) for low, high in ends]


def _label(key: Any, column: Column) -> str:
    if key is None:
        return NULL
    if not isinstance(key, tuple):
        return category_text(key, column)
    low, high = (plain(float(end)) for end in key)
    if column.type == "integer":
        if low == high:
            return low
        if low[0] != "-":
            return f"{low}–{high}"
    return f"{low} to {high}"


def _missing(value: Any) -> bool:
    return value is None or value != value
