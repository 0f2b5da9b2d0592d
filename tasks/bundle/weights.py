"""Weights that a reader gives to the rows of a table of counts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcore.arrays import Floats
from dpcore.errors import InputError
from dpcore.releases.counts.cells import BIN
from dpcore.releases.table import UNBIASED
from dpcore.releases.tables.groups import GROUP
from dpcore.suggestion import suggestion
from tasks.bundle.listing import Columns

Weights = Callable[[Columns], ArrayLike] | ArrayLike | None
"""A weight for each row of a table, or a function from its columns to weights; None for all rows."""

MOST_NAMED = 8
"""An error lists at most this many values of a column."""


def counts_in(table: str, columns: Columns) -> NDArray[Any]:
    """The most accurate unbiased counts (rows,) of a table."""
    value = next((columns[name] for name in UNBIASED if name in columns), None)
    if value is None:
        raise InputError(f"{table}: is not a table of counts")
    return value


def factors_of(table: str, columns: Columns, weights: Weights) -> Floats:
    """The finite weights (rows,); a row with a null weight gets weight 0."""
    rows = counts_in(table, columns).shape
    try:
        given = weights(columns) if callable(weights) else weights
    except KeyError as error:
        raise InputError(
            f"{table}: has no column {error.args[0]!r}"
            f"{suggestion(error.args[0], columns, most=3, least=0)} (NAME_from and NAME_to are the ends"
            " of a binned column's bins)"
        ) from None
    chosen: Any = np.ma.asarray(np.ones(rows) if given is None else given)
    if chosen.shape != rows:
        raise InputError(f"{table}: has {rows[0]} rows; give one weight for each")
    try:
        factors = np.ma.filled(chosen, 0).astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{table}: weights must be numbers, or true and false") from None
    if not np.isfinite(factors).all():
        raise InputError(f"{table}: weights must be finite")
    return np.asarray(factors)


def described_values(columns: Columns, survey: Collection[str]) -> str:
    """The type and some values of each of the survey's columns in a table."""
    sides = {f"{name}{end}" for name in survey for end in ("", "_from", "_to", BIN, GROUP)}
    described = []
    for name in (name for name in columns if name in sides):
        values = np.unique(np.ma.compressed(columns[name])).tolist()
        kind = type(values[0]).__name__ if values else "null"
        more = ", ..." if len(values) > MOST_NAMED else ""
        described.append(f"{name} ({kind}): {', '.join(map(repr, values[:MOST_NAMED]))}{more}")
    return "; ".join(described)
