"""A published table: columns, what each of them means, and how wrong its numbers may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.post.tables.bounded import bounded_interval

LEVEL = 0.9
"""The coverage of published intervals: at least, or approximately, as stated with each interval."""

TWO_SIDED, ONE_SIDED = (NormalDist().inv_cdf(chance) for chance in ((1 + LEVEL) / 2, LEVEL))
"""Multiples of the standard error that normal noise exceeds with probability 10%: two- and one-sided."""

FEWEST_ERRORS = 5
"""A divisor must exceed this multiple of its standard error. Otherwise the quotient is far from normal,
and there may be no records.  Laplace noise alone exceeds it in 4 of 10,000 draws."""

UNKNOWN = "too few records or too much noise"

REASON = "reason"
"""The column with the reason why a row has no numbers."""

UNBIASED = ("best_estimate", "estimate", "noisy_count")
"""Columns whose sums are unbiased, the more accurate one first."""

ENDS = ("lower_90", "upper_90")
"""The columns with both ends of 90% intervals."""

MOST_FILES = 1000
"""If a release has more tables, they share one file, whose column ``TABLE`` names each row's table."""

TABLE = "table_name"

COUNT_ENDS = ("count_lower_90", "count_upper_90")
"""Both ends of 90% intervals around ``count``, which is not unbiased."""


@dataclass(frozen=True)
class Uncertainty:
    """How wrong the numbers of one published column may be, and by which method this is known.

    ``standard_error`` and ``interval`` name columns of the same table: the root mean squared error of
    the number, and the ends of an interval, which is a 90% interval for the value without noise unless
    ``statement`` says otherwise.  ``method``: exact, normal (an exact variance and the normal law), or
    simulated (the mechanism and the post-processing, repeated on the published numbers).  ``statement``
    says the rest in words.
    """

    column: str
    standard_error: str | None
    interval: tuple[str, str] | None
    method: Literal["exact", "normal", "simulated"]
    statement: str


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column: ``values`` (k,), nulls masked; ``about``: the survey column that it describes."""

    name: str
    values: NDArray[Any]
    description: str
    about: str | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """A published table: ``parts`` are its columns, of equal length and with different names."""

    folder: str
    name: str
    parts: Sequence[TableColumn]
    uncertainty: tuple[Uncertainty, ...] = ()

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if len(set(names)) != len(names):
            raise ValueError(f"table {self.name}: two columns have the same name, among {names}")
        named = {
            name
            for u in self.uncertainty
            for name in (u.column, u.standard_error, *(u.interval or ()))
            if name
        }
        if not named <= set(names):
            raise ValueError(
                f"table {self.name}: states errors in columns that it does not have,"
                f" {sorted(named - set(names))}"
            )

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """The values of each column."""
        return {part.name: part.values for part in self.parts}

    @property
    def unbiased(self) -> str | None:
        """The column whose sums are unbiased; if there are two, the more accurate one."""
        return next((name for name in UNBIASED if name in self.columns), None)

    @property
    def descriptions(self) -> Mapping[str, str]:
        """The description of each column."""
        return {part.name: part.description for part in self.parts}

    @property
    def about(self) -> Mapping[str, str]:
        """For each column that describes a column of the survey, that survey column."""
        return {part.name: part.about for part in self.parts if part.about is not None}


@dataclass(frozen=True, eq=False)
class Published:
    """What a release publishes: tables, and facts for the manifest (JSON values)."""

    tables: tuple[Table, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


def interval_columns(
    lower: NDArray[Any], upper: NDArray[Any], of: str, names: tuple[str, str] = ENDS
) -> list[TableColumn]:
    """Columns with the ends of 90% intervals for the quantity ``of``."""
    return [
        TableColumn(name, values, f"{side} end of a 90% interval for {of}")
        for name, values, side in zip(names, (lower, upper), ("Lower", "Upper"), strict=True)
    ]


def error_column(
    values: NDArray[Any], of: str, note: str = "", name: str = "standard_error"
) -> TableColumn:
    """The standard error of the column ``of``."""
    return TableColumn(name, values, f"Standard deviation of the noise in {of}{note}")


def reason_column(hidden: Booleans, reason: str = UNKNOWN) -> TableColumn:
    """A column with the reason why rows (k,) have no numbers; null for other rows."""
    reasons = np.ma.masked_array(np.where(hidden, reason, ""), mask=~hidden)
    return TableColumn(REASON, reasons, "Why there is no value and standard error; otherwise null")


def unless(hidden: Booleans | bool, values: Floats) -> Any:
    """Numbers (k,), masked in hidden rows."""
    return (
        np.ma.masked_where(np.broadcast_to(hidden, values.shape), values)
        if np.any(hidden)
        else values
    )


def one_row(column: str, value: float, description: str, about: str | None = None) -> TableColumn:
    """A column of a table that has only one row."""
    return TableColumn(column, np.array([value]), description, about)


def exact_interval(
    noisy: Integers | Floats, half_width: Callable[[float], float], most: float
) -> tuple[Floats, Floats]:
    """The ends (k,) of 90% intervals for numbers from 0 to ``most``, given noisy ones (k,).

    ``half_width(level)``: the size that symmetric noise exceeds with probability at most 1 - level.
    """
    # Noise exceeds the second width in one direction as often as it exceeds the first in either.
    return bounded_interval(noisy, half_width(LEVEL), half_width(2 * LEVEL - 1), most)


def normal_interval(value: Floats, error: Floats | float) -> dict[str, Floats]:
    """Columns with the standard errors (one or (k,)) and normal intervals of values (k,)."""
    width = TWO_SIDED * np.broadcast_to(error, value.shape)
    return {
        "standard_error": np.broadcast_to(error, value.shape).copy(),
        **dict(zip(ENDS, (value - width, value + width), strict=True)),
    }
