"""Faults of reading: a value is read by its type, its collation, or the values beside it."""

from __future__ import annotations

from benchmarks.mutations.fault import Fault

FORMS = ("tests/tasks/survey/test_forms.py",)
IN_MEMORY = "no audit hands over a table in memory"


def _of_reading(name: str, module: str, old: str, new: str, **seen: str) -> Fault:
    return Fault(name, f"tasks/survey/{module}.py", old, new, FORMS, **seen)


READING: tuple[Fault, ...] = (
    _of_reading(
        "a float is no text",
        "sql",
        "    if kind in _FLOATS:\n        return (",
        "    if kind in _FLOATS:\n        return 'CAST(NULL AS VARCHAR)'\n        return (",
        audit="plan of persons",
    ),
    _of_reading(
        "text of a database is compared by its collation",
        "sources",
        'f"decode(encode({value}))" if kind == "VARCHAR" else value',
        "value",
        audit="plan of persons",
    ),
    _of_reading(
        "decimals keep their zeros",
        "sql",
        "f\"rtrim(rtrim({as_text}, '0'), '.')\"",
        "as_text",
        unseen="no audit writes decimals",
    ),
    _of_reading(
        "a time is text by the session's zone",
        "sql",
        'return f"make_timestamp(epoch_us(CAST({value} AS TIMESTAMPTZ)))"',
        'return f"CAST({value} AS TIMESTAMP) + INTERVAL 9 HOUR"',
        unseen="no audit writes times with a zone",
    ),
    _of_reading(
        "a column of objects has the type that all of them have",
        "memory",
        '    if kind == "object":\n        return write(series)\n',
        "",
        unseen=IN_MEMORY,
    ),
    _of_reading(
        "a category is read by its code",
        "memory",
        "return write(series.cat.categories).take(pa.array(codes, mask=codes < 0))",
        "return pa.array(codes, mask=codes < 0)",
        unseen=IN_MEMORY,
    ),
)
