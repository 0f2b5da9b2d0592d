"""Check the survey table against the plan, by counting inside the engine that holds it.

Pandera says what is checked (``schemas.survey``).  Its own ``validate`` fetches every failing
record and puts the values into its error, so it is not called: each check of the schema is asked
for its Ibis expression instead, and one query counts how many records break each rule.  Memory does
not grow with the number of faults, and no value leaves the engine.

    the survey table does not have the form that the plan declares:
      column 'age', type: 3 rows cannot be read as the declared type
      column 'income', bounds: 1 row outside the bounds
"""

from collections.abc import Mapping
from typing import Any

from dpcore.errors import DataError
from schemas.columns import ReadColumn
from schemas.survey import RULES, survey_schema
from tasks.reading import Survey, reading
from tasks.survey import guarded

Faults = dict[tuple[str, str], int]
"""How many records break a rule, by column and rule."""


def validate(survey: Survey, columns: Mapping[str, ReadColumn]) -> None:
    """Raise ``DataError`` with every broken rule of every column; otherwise return nothing.

    ``survey`` is private.  The error names columns, rules and numbers of records, and holds no
    value, nor does its cause or context.
    """
    faults = guarded(
        lambda: _count(survey, columns), DataError, "the survey table could not be checked"
    )
    broken = {place: rows for place, rows in faults.items() if rows}
    if broken:
        order = {name: i for i, name in enumerate(columns)}
        rules = list(RULES)
        lines = [
            f"  column {name!r}, {rule}: {rows} {'row' if rows == 1 else 'rows'} {RULES[rule]}"
            for (name, rule), rows in sorted(
                broken.items(), key=lambda item: (order[item[0][0]], rules.index(item[0][1]))
            )
        ]
        raise DataError(
            "\n".join(["the survey table does not have the form that the plan declares:", *lines])
        )


def _count(survey: Survey, columns: Mapping[str, ReadColumn]) -> Faults:
    schema = survey_schema(columns)
    with reading(survey) as (table, unread):
        faults: Faults = {(name, "type"): failures for name, failures in unread.items()}
        if tuple(table.columns) != tuple(schema.columns) or set(unread) != set(columns):
            raise DataError("the survey file has other columns than the plan: ingest it again")
        faults |= _count_in_engine(table, schema)
    # A value of the wrong type was stored as null: it is one fault, not two.
    for name in columns:
        if (name, "null") in faults:
            faults[name, "null"] -= faults[name, "type"]
    return faults


def _count_in_engine(table: Any, schema: Any) -> Faults:
    """Numbers of failing records of every check, from one query with one row of answers.

    Those that pass are counted, and the rest of the values that are there have failed: of a list,
    Spark looks up what is in it by hash, and what is not by trying them all.
    """
    from pandera.engines.ibis_engine import Engine

    rules: list[tuple[str, str]] = []
    asked = [table.count()]
    for name, column in schema.columns.items():
        if not column.dtype.check(Engine.dtype(table[name].type())):
            raise DataError("the survey file has other types than the plan: ingest it again")
        rules += [(name, "present"), *((name, check.name) for check in column.checks)]
        asked.append(table[name].count())
        asked += [check(table, name).check_output.sum() for check in column.checks]
    answers = table.aggregate(**{f"n{i}": count for i, count in enumerate(asked)}).to_pyarrow()
    rows, *counts = [answers[name][0].as_py() or 0 for name in answers.column_names]
    passed = dict(zip(rules, counts, strict=True))
    faults: Faults = {}
    for name, column in schema.columns.items():
        present = passed[name, "present"]
        if not column.nullable:
            faults[name, "null"] = rows - present
        faults |= {(name, rule.name): present - passed[name, rule.name] for rule in column.checks}
    return faults
