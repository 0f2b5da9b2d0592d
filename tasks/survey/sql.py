"""Pieces of DuckDB's SQL: names, constants, and the conversion of a source's values.

A value keeps its meaning or becomes null, which the caller counts: text and 3.7 are not integers, and
nothing is rounded.
"""

from collections.abc import Sequence

from schemas.survey.columns import (
    CategoricalColumn,
    ContinuousColumn,
    IdentifierColumn,
    IntegerColumn,
    ReadColumn,
)
from schemas.survey.formats import PLAIN, TIME, TRIMMED, DateFormat, NumberFormat


def quote(name: str) -> str:
    """A column or table name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string as SQL."""
    return "'" + value.replace("'", "''") + "'"


def real(value: float) -> str:
    """Exactly this floating-point number as SQL: a bare 0.1 would be a decimal, rounded later."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"


def sql_type(column: ReadColumn) -> str:
    """The DuckDB type of a column in the survey file."""
    if isinstance(column, IdentifierColumn):
        return "VARCHAR"
    if isinstance(column, CategoricalColumn):
        kinds = {str: "VARCHAR", bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}
        return kinds[type(column.categories[0])]
    return "BIGINT" if isinstance(column, IntegerColumn) else "DOUBLE"


def answered(
    value: str,
    kind: str,
    texts: Sequence[str],
    numbers: Sequence[float],
    form: NumberFormat | None = None,
) -> str:
    """SQL of a value, or null if it is one of the codes that mean no answer; never raises."""
    tests = [f"{written(value, kind)} IN ({', '.join(map(text, texts))})"] if texts else []
    if numbers:
        number = value if _is_number(kind) else _digits(written(value, kind), form or PLAIN)
        known = ", ".join(real(number) for number in numbers if number == number) or "NULL"
        tests.append(f"TRY_CAST({number} AS DOUBLE) IN ({known})")
        if any(number != number for number in numbers):
            as_text = f"lower({_trimmed(written(value, kind))}) = 'nan'"
            tests.append(f"isnan({value})" if kind in _FLOATS else as_text)
    return f"CASE WHEN {' OR '.join(tests)} THEN NULL ELSE {value} END" if tests else value


def clamp(value: str, column: ReadColumn) -> str:
    """SQL that moves a value to the nearest bound if the column says ``clamp``; not NaN and infinity."""
    if isinstance(column, CategoricalColumn | IdentifierColumn) or column.clamps_nothing:
        return value
    bound = real if isinstance(column, ContinuousColumn) else str
    lower, upper = map(bound, column.bounds)
    moved = f"WHEN {value} < {lower} THEN {lower} WHEN {value} > {upper} THEN {upper}"
    # DuckDB orders NaN above every number, so it must not enter the comparison.
    kept = f"WHEN NOT isfinite({value}) THEN {value} " * isinstance(column, ContinuousColumn)
    return f"CASE {kept}{moved} ELSE {value} END"


_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_WHOLE = (*_SIGNED, *(f"U{kind}" for kind in _SIGNED))
_HUGE = ("HUGEINT", "UHUGEINT")
_FLOATS = ("FLOAT", "DOUBLE")
_INTEGER = text(r"\s*[+-]?[0-9]+(\.0*)?\s*")
_SCIENTIFIC = text(r"\s*[+-]?[0-9](\.[0-9]{1,14})?[eE][+]?[0-9]{1,3}\s*")
"""A pattern for at most 15 digits, so that the nearest double is whole only if the number is."""


def is_text(kind: str) -> bool:
    """Whether a DuckDB type is text; an enumeration counts as text."""
    return kind == "VARCHAR" or kind.startswith("ENUM")


def _is_number(kind: str) -> bool:
    return kind in _WHOLE or kind in _FLOATS or kind.startswith("DECIMAL")


def moment(value: str, kind: str) -> str:
    """SQL of a date or a timestamp as a TIMESTAMP, in UTC if it has a zone; null if it is infinite."""
    if "WITH TIME ZONE" in kind or kind.startswith("TIMESTAMPTZ"):
        return f"make_timestamp(epoch_us(CAST({value} AS TIMESTAMPTZ)))"
    # The cast would turn an infinite date into the last day of the year 9999.  Testing whether a time
    # is finite raises an error if it is beyond microseconds, unless it is cast first.
    if kind in ("TIMESTAMP_S", "TIMESTAMP_MS"):
        at = f"TRY_CAST({value} AS TIMESTAMP)"
        return f"CASE WHEN isfinite({at}) THEN {at} END"
    return f"TRY_CAST(CASE WHEN isfinite({value}) THEN {value} END AS TIMESTAMP)"


def written(value: str, kind: str) -> str:
    """SQL of a value as text, which does not depend on the type that stores the value; never raises.

        1, 1.0, 1.00 -> 1       1.50 -> 1.5       true -> true       2024-01-31 00:00 -> 2024-01-31

    One missing value turns the whole numbers of a data frame into floats; this must not change
    categories and identifiers. Floats from 2^53 on, NaN and infinity are null: they may stand for
    several whole numbers or for none.
    """
    as_text = f"CAST({value} AS VARCHAR)"
    if is_text(kind) or kind in _WHOLE or kind in ("BOOLEAN", "UUID", "DATE"):
        return as_text
    # A Parquet file may state its smallest and largest number without NaN. Then DuckDB concludes that no
    # value is NaN, and drops comparisons that exclude NaN, but no function.
    if kind in _FLOATS:
        return (
            f"CASE WHEN isfinite({value}) AND abs({value}) < {real(2**53)}"
            f" THEN CASE WHEN floor({value}) = {value}"
            f" THEN CAST(TRY_CAST({value} AS BIGINT) AS VARCHAR)"
            f" ELSE CAST(CAST({value} AS DOUBLE) AS VARCHAR) END END"
        )
    if kind.startswith("DECIMAL"):
        return as_text if kind.endswith(",0)") else f"rtrim(rtrim({as_text}, '0'), '.')"
    if kind.startswith("TIMESTAMP"):
        at = moment(value, kind)
        day = f"CAST(CAST({at} AS DATE) AS VARCHAR)"
        return f"CASE WHEN {at} = date_trunc('day', {at}) THEN {day} ELSE CAST({at} AS VARCHAR) END"
    return "CAST(NULL AS VARCHAR)"


def _trimmed(value: str) -> str:
    return f"trim({value}, {text(TRIMMED)})"


def _digits(value: str, form: NumberFormat) -> str:
    """SQL that rewrites text in a format to the form 1234.5; null if it has another form."""
    number = _trimmed(value)
    digits = number
    for sign in form.dropped:
        digits = f"replace({digits}, {text(sign)}, '')"
    digits = f"replace({digits}, {text(form.decimal)}, '.') || {text(form.shift)}"
    return f"CASE WHEN regexp_full_match({number}, {text(form.pattern)}) THEN {digits} END"


def dated(value: str, kind: str, form: DateFormat) -> str:
    """SQL that rewrites text or a number in a format to 2024-01-31 and a time; else null."""
    day, pattern = _trimmed(written(value, kind)), form.pattern
    whole, rest = text(f"{pattern}{TIME}?"), text(f"{pattern}({TIME}?)")
    groups = {part: f"regexp_extract({day}, {rest}, {i})" for i, part in enumerate(form.order, 1)}
    month, days = (f"lpad({groups[part]}, 2, '0')" for part in "MD")
    iso = f"{groups['Y']} || '-' || {month} || '-' || {days} || regexp_extract({day}, {rest}, 4)"
    return f"CASE WHEN regexp_full_match({day}, {whole}) THEN {iso} END"


def convert(value: str, kind: str, target: str, form: NumberFormat | None = None) -> str:
    """SQL that converts a value to the target type, or to null if that would lose something.

    Whole numbers may be written 3, 3.0 or 3e0; truth values true, t or 1, and they count as 1 and 0.
    Text keeps its zeros and blanks.  ``form``: how numbers are written in text.  The SQL never raises:
    one wrong value must not stop the reading of the others.
    """
    if target == "VARCHAR":
        return written(value, kind)
    if is_text(kind):
        as_text = f"CAST({value} AS VARCHAR)"
        return _from_text(_digits(as_text, form) if form else as_text, target)
    whole, truth, number = kind in _WHOLE, kind == "BOOLEAN", _is_number(kind)
    if target == "DOUBLE" and (number or truth):
        # DuckDB would round decimals and the longest whole numbers twice; their text is rounded once.
        exact = kind in _HUGE or kind.startswith("DECIMAL")
        return f"TRY_CAST({f'CAST({value} AS VARCHAR)' if exact else value} AS DOUBLE)"
    if target == "BIGINT" and truth:
        return f"CAST({value} AS BIGINT)"
    if target == "BIGINT" and whole:
        return _saturated(value)
    if target == "BIGINT" and number:
        finite = f"isfinite(TRY_CAST({value} AS DOUBLE))"
        return f"CASE WHEN {finite} AND floor({value}) = {value} THEN {_saturated(value)} END"
    if target == "BOOLEAN" and truth:
        return value
    if target == "BOOLEAN" and number:
        return f"CASE WHEN {value} = 0 THEN false WHEN {value} = 1 THEN true END"
    return f"CAST(NULL AS {target})"


_DATED = text(r"\s*[0-9]{1,4}([./-])[0-9]{1,2}[./-][0-9]{2,4}([ T].*)?")
_SEPARATED = text(r"\s*[+-]?[0-9]+([.,_'’ \x{A0}\x{2009}\x{202F}][0-9]+)*\s*%?\s*")


def look(value: str, kind: str, dated: bool) -> str:
    """SQL of the kind of a value that does not have its column's type, for messages; never raises.

    ``dated``: whether a date is wanted; then eight digits count as a date.
    """
    if _is_number(kind) or kind == "BOOLEAN":
        return text("number")
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return text("date")
    if not is_text(kind):
        return text("other")
    value = f"CAST({value} AS VARCHAR)"
    number = f"isfinite(TRY_CAST({value} AS DOUBLE)) AND NOT contains({value}, '_')"
    date = f"regexp_full_match({value}, {_DATED})"
    if dated:
        date += f" OR regexp_full_match({value}, '\\s*[0-9]{{8}}\\s*')"
    return (
        f"CASE WHEN {date} THEN 'date' WHEN {number} THEN 'number'"
        f" WHEN regexp_full_match({value}, {_SEPARATED}) THEN 'separated' ELSE 'text' END"
    )


def _from_text(value: str, target: str) -> str:
    number, trimmed = f"TRY_CAST({value} AS DOUBLE)", f"lower(trim({value}))"
    truth = f"WHEN {trimmed} = 'true' THEN 1 WHEN {trimmed} = 'false' THEN 0"
    if target == "DOUBLE":  # DuckDB would read 1_000 as a thousand; in a survey it is a mistake
        return f"CASE {truth} WHEN NOT contains({value}, '_') THEN {number} END"
    if target == "BIGINT":
        return (
            f"CASE {truth} WHEN regexp_full_match({value}, {_INTEGER}) THEN {_saturated(value)}"
            f" WHEN regexp_full_match({value}, {_SCIENTIFIC}) AND floor({number}) = {number}"
            f" THEN {_saturated(number)} END"
        )
    return (
        f"CASE WHEN {trimmed} IN ('true', 't', '1') THEN true"
        f" WHEN {trimmed} IN ('false', 'f', '0') THEN false END"
    )


def _saturated(value: str) -> str:
    """A whole number as BIGINT; one too large becomes the largest, outside every bound (2**53)."""
    number = f"TRY_CAST({value} AS DOUBLE)"
    return (
        f"coalesce(TRY_CAST({value} AS BIGINT), CASE WHEN {number} > 0 THEN {2**63 - 1}"
        f" WHEN {number} < 0 THEN {-(2**63) + 1} END)"
    )
