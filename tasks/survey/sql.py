"""Pieces of DuckDB's SQL: names, constants, and the conversion of a source's values.

A value keeps its meaning or becomes null, which the caller counts: text and 3.7 are not integers, and
nothing is rounded.
"""

from collections.abc import Sequence

from schemas.columns import (
    CategoricalColumn,
    ContinuousColumn,
    IdentifierColumn,
    IntegerColumn,
    ReadColumn,
)


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


def answered(value: str, texts: Sequence[str], numbers: Sequence[float]) -> str:
    """SQL of a value, null where it is one of the codes that stand for no answer; never raises."""
    written = f"CAST({value} AS VARCHAR)"
    tests = [f"{written} IN ({', '.join(map(text, texts))})"] if texts else []
    if numbers:
        tests.append(f"TRY_CAST({written} AS DOUBLE) IN ({', '.join(map(real, numbers))})")
    return f"CASE WHEN {' OR '.join(tests)} THEN NULL ELSE {value} END" if tests else value


def multiples_in_sql(value: str, every: Sequence[int]) -> str:
    """SQL of the first of some numbers of which a value is a multiple, or 0; null for null."""
    whens = (f"WHEN floor({value}::DOUBLE / {m}) * {m} = {value} THEN {m}" for m in every)
    return f"CASE WHEN {value} IS NULL THEN NULL::BIGINT {' '.join(whens)} ELSE 0 END"


def clamp(value: str, column: ReadColumn) -> str:
    """SQL that moves a value to the nearest bound if the column says ``clamp``; not NaN, infinity."""
    if isinstance(column, CategoricalColumn | IdentifierColumn) or column.outside == "refuse":
        return value
    bound = real if isinstance(column, ContinuousColumn) else str
    lower, upper = map(bound, column.bounds)
    moved = f"WHEN {value} < {lower} THEN {lower} WHEN {value} > {upper} THEN {upper}"
    # DuckDB orders NaN above every number, so it has to be kept out of the comparison.
    kept = f"WHEN NOT isfinite({value}) THEN {value} " * isinstance(column, ContinuousColumn)
    return f"CASE {kept}{moved} ELSE {value} END"


_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_WHOLE = (*_SIGNED, *(f"U{kind}" for kind in _SIGNED))
_INTEGER = text(r"\s*[+-]?[0-9]+(\.0*)?\s*")
_SCIENTIFIC = text(r"\s*[+-]?[0-9](\.[0-9]{1,14})?[eE][+]?[0-9]{1,3}\s*")
"""At most 15 digits, so that the nearest double is whole only if the written number is."""


def convert(value: str, kind: str, target: str) -> str:
    """SQL that converts a value to the target type, or to null if that would lose something.

    Whole numbers may be written 3, 3.0 or 3e0; truth values true, t or 1.  Text keeps its zeros and
    blanks.  The SQL never raises: one wrong value must not stop the reading of the others.
    """
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        return _from_text(f"CAST({value} AS VARCHAR)", target)
    whole, truth = kind in _WHOLE, kind == "BOOLEAN"
    fraction = kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL")
    if target == "VARCHAR" and (whole or truth or kind == "DATE"):
        return f"CAST({value} AS VARCHAR)"
    if target == "DOUBLE" and (whole or truth or fraction):
        return f"TRY_CAST({value} AS DOUBLE)"
    if target == "BIGINT" and truth:
        return f"CAST({value} AS BIGINT)"
    if target == "BIGINT" and whole:
        return _saturated(value)
    if target == "BIGINT" and fraction:
        finite = f"isfinite(TRY_CAST({value} AS DOUBLE))"
        return f"CASE WHEN {finite} AND floor({value}) = {value} THEN {_saturated(value)} END"
    if target == "BOOLEAN" and truth:
        return value
    if target == "BOOLEAN" and (whole or fraction):
        return f"CASE WHEN {value} = 0 THEN false WHEN {value} = 1 THEN true END"
    return f"CAST(NULL AS {target})"


def _from_text(value: str, target: str) -> str:
    if target == "VARCHAR":
        return value
    number = f"TRY_CAST({value} AS DOUBLE)"
    if target == "DOUBLE":  # DuckDB would read 1_000 as a thousand; in a survey it is a mistake
        return f"CASE WHEN NOT contains({value}, '_') THEN {number} END"
    if target == "BIGINT":
        return (
            f"CASE WHEN regexp_full_match({value}, {_INTEGER}) THEN {_saturated(value)}"
            f" WHEN regexp_full_match({value}, {_SCIENTIFIC}) AND floor({number}) = {number}"
            f" THEN {_saturated(number)} END"
        )
    trimmed = f"lower(trim({value}))"
    return (
        f"CASE WHEN {trimmed} IN ('true', 't', '1') THEN true"
        f" WHEN {trimmed} IN ('false', 'f', '0') THEN false END"
    )


def _saturated(value: str) -> str:
    """A whole number as BIGINT; one too large becomes 2**62, outside every bound (at most 2**53)."""
    number = f"TRY_CAST({value} AS DOUBLE)"
    return (
        f"CASE WHEN {number} > {real(2**62)} THEN {2**62} WHEN {number} < {real(-(2**62))}"
        f" THEN {-(2**62)} ELSE TRY_CAST({value} AS BIGINT) END"
    )
