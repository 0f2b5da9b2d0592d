"""A survey table in memory, which is private like any other survey.

Only the columns that the plan reads are converted, with Arrow.  A column of Python objects has no type,
and Arrow would infer one from all objects.  So each object is written as text on its own, with a mark
for text or date, and is then read like a field of a CSV file.
"""

import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any, NoReturn, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

Column: TypeAlias = Any
"""An array of Arrow, in one piece or in several."""

OBJECTS = pa.struct([("value", pa.large_string()), ("text", pa.bool_()), ("date", pa.bool_())])
"""Objects as text, with their kind: a column's ``format`` applies to text, or to all but dates."""

Write = Callable[[Iterable[Any]], pa.Array]


class MemoryTable:
    """A pandas, Arrow or Polars table, or a DuckDB relation; its ``str`` reveals no contents."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __repr__(self) -> str:
        return "the table in memory"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private table in memory does not leave its process")

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns."""
        own = hasattr(self._table, "iloc") or hasattr(self._table, "get_column")
        return [str(name) for name in (self._table.columns if own else self._arrow.column_names)]

    @cached_property
    def _arrow(self) -> pa.Table:
        return pa.table(self._table)

    def column(self, name: str, wrong: str | None = None) -> Column:
        """A column (private), in a type that DuckDB reads; objects become ``OBJECTS``.

        ``wrong``: if text is wanted, the text for objects that cannot be written exactly as text.
        """
        place, write = self.names.index(name), partial(written_each, wrong=wrong)
        if hasattr(self._table, "iloc"):  # pandas; its index is no column
            return _of_pandas(self._table.iloc[:, place], write, wrong)
        if hasattr(self._table, "get_column"):  # Polars
            series = self._table.get_column(name)
            known = str(series.dtype) not in ("Object", "Int128", "UInt128")
            return readable(series.to_arrow(), wrong) if known else write(series.to_list())
        return readable(self._arrow.column(place), wrong)


def _of_pandas(series: Any, write: Write, wrong: str | None) -> Column:
    kind = str(series.dtype)
    if kind == "category":
        codes = series.cat.codes.to_numpy()
        return write(series.cat.categories).take(pa.array(codes, mask=codes < 0))
    if kind == "object":
        return write(series)
    if kind == "float16":  # DuckDB cannot read it from Arrow
        return pa.Array.from_pandas(series.astype("float32"))
    try:
        return readable(pa.Array.from_pandas(series), wrong)
    except (pa.ArrowException, TypeError, ValueError):  # a type that Arrow lacks
        return write(series)


def readable(column: Column, wrong: str | None = None) -> Column:
    """A column in a type of which DuckDB reads every value by itself: no value makes it refuse others.

    ``wrong``: the text for what cannot be text.
    """
    if isinstance(column, pa.ChunkedArray):
        chunks = [readable(chunk, wrong) for chunk in column.chunks]
        return pa.chunked_array(chunks) if chunks else pa.nulls(0)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return readable(column.dictionary_decode(), wrong)
    if pa.types.is_timestamp(kind) and kind.tz and kind.unit in ("s", "ms"):
        return column.cast(
            pa.timestamp(kind.unit)
        )  # the same instant; its microseconds may overflow
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _decoded(column, wrong or "")
    if pa.types.is_duration(kind) or pa.types.is_nested(kind):  # of no use, and may overflow too
        return pa.array([b""] * len(column), pa.binary(), mask=np.asarray(column.is_null()))
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal(kind) and kind.scale < 0:
        return readable(column.cast(pa.decimal256(76, 0)), wrong)
    if pa.types.is_decimal256(kind):  # DuckDB cannot read it; as text no digit is lost
        digits = compute.replace_substring_regex(column.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
        return compute.replace_substring_regex(digits, r"\.$", "")
    return column


def _decoded(column: Column, wrong: str) -> Column:
    """Texts, some of which may not be UTF-8: these become ``wrong``."""
    with suppress(pa.ArrowInvalid):
        column.validate(full=True)
        return column
    return pa.array((_utf8(each, wrong) for each in column.cast(pa.large_binary())), column.type)


def _utf8(value: pa.LargeBinaryScalar, wrong: str) -> str | None:
    with suppress(UnicodeDecodeError):
        return value.as_py().decode() if value.is_valid else None
    return wrong


def written_each(values: Iterable[Any], wrong: str | None) -> pa.Array:
    """Python objects, each as text by itself."""
    dates = (date, np.datetime64)
    each = ((written(v, wrong), isinstance(v, str), isinstance(v, dates)) for v in values)
    return pa.array(each, OBJECTS)


def written(value: Any, wrong: str | None = None) -> str | None:
    """A Python object as text, the same for the same value; null for a missing value.

    ``wrong``: the text for an object without an exact text, such as a float from 2^53 on, which may
    stand for several whole numbers. Without ``wrong``, numbers are wanted, and this float is valid.

    >>> [written(value) for value in ("01", 1, 1.0, Decimal("1.50"), True, float("nan"), 2.0**70)]
    ['01', '1', '1', '1.5', 'true', None, '1180591620717411303424']
    >>> [written(value, wrong="") for value in (1.5, 2e60, [1])]
    ['1.5', '', '']
    """
    try:
        return _written(value, wrong)
    except (ArithmeticError, ValueError):  # one odd object must not stop the reading of others
        return wrong or ""


def _written(value: Any, wrong: str | None) -> str | None:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | UUID):
        return str(value) if _is_unicode(str(value)) else wrong or ""
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Decimal | Real):
        return _of_number(value, wrong)
    return _of_time(value, wrong is not None) if isinstance(value, date) else wrong or ""


def _is_unicode(value: str) -> bool:
    """Whether a text is valid Unicode: some programs leave half of a surrogate pair."""
    return value.isascii() or not re.search("[\ud800-\udfff]", value)


def _of_number(value: Decimal | Real, wrong: str | None) -> str | None:
    if math.isnan(value):
        return None
    if isinstance(value, Decimal) and value.is_finite():
        digits = f"{value:f}"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    real = float(value)
    if wrong is not None and abs(real) >= 2**53:
        return wrong
    # In full, because text with an exponent may not be read as this number, as a float would be.
    return str(int(real)) if math.isfinite(real) and real == math.floor(real) else repr(real)


def _of_time(value: date, as_category: bool) -> str:
    """A date as text; ``as_category``: without the time if that is midnight, in whatever type."""
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo:
        value = value.astimezone(UTC).replace(tzinfo=None)
    day, _, clock = value.isoformat(sep=" ").partition(" ")
    return day if clock == "00:00:00" and as_category else f"{day} {clock}"
