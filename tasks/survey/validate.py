"""Checks the survey table against the plan, by counting inside the engine that holds it.

The checks are a Pandera schema (``survey.checks``).  Pandera's own ``validate`` would fetch every
failing record and put the values into its error; instead, one query counts the records that break
each rule, with the Ibis expressions of the checks.  Memory does not grow with the number of faults,
and no value leaves the engine.

    the survey table is not as the plan declares:
      column 'age', type: 3 rows cannot be read as the declared type
      column 'income', bounds: 1 row outside the bounds
"""

from collections.abc import Mapping
from typing import Any

from dpcore.errors import DataError
from schemas.survey.checks import RULES, survey_schema
from schemas.survey.columns import IdentifierColumn, ReadColumn
from schemas.survey.unit import COUNT, WEIGHT
from tasks.survey.private_file import call_guarded
from tasks.survey.reading import Survey, open_survey

REMEDIES = {
    "type": "Numbers are read as 1234.5, dates as 2024-01-31 and 2024-01-31 17:30; list codes for no"
    " answer under the column's `missing`.",
    "null": "A column with `nullable: true` may lack values.",
    "bounds": "`outside: clamp` of a column moves its values to the nearest bound.",
    "category": "Categories are compared character by character: 01 is not 1, and a blank at an end, or"
    " an accent that is a character of its own, makes another value.",
}
"""By rule, what a plan may say of a column that is published."""

IDENTIFIERS = (
    "The privacy unit's column must hold text or a whole number in every record: correct it at the"
    " source."
)
WEIGHTS = (
    "Weights must be numbers from 0, and counts whole numbers: correct them at the source. For weights,"
    " `invalid` in the plan can also state what happens to other values."
)
INVALID = "`invalid` in the plan can state what happens to such values, instead of a refusal."

Faults = dict[tuple[str, str], int]
"""Number of records that break a rule, by column and rule."""


def validate(survey: Survey, columns: Mapping[str, ReadColumn]) -> None:
    """Raise ``DataError`` with every broken rule of every column.

    ``survey`` is private.  The error names columns, rules and numbers of records, and holds no
    value, nor does its cause or context.
    """
    faults = call_guarded(
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
        units = {name for name, column in columns.items() if isinstance(column, IdentifierColumn)}
        weighed = {name for name, column in columns.items() if column in (WEIGHT, COUNT)}
        known = {
            REMEDIES.get(rule, INVALID) for name, rule in broken if name not in units | weighed
        }
        known |= {WEIGHTS for name, _ in broken if name in weighed}
        known |= {IDENTIFIERS for name, _ in broken if name in units}
        remedies = (*REMEDIES.values(), IDENTIFIERS, WEIGHTS, INVALID)
        lines += [f"  {remedy}" for remedy in remedies if remedy in known]
        raise DataError("\n".join(["the survey table is not as the plan declares:", *lines]))


def _count(survey: Survey, columns: Mapping[str, ReadColumn]) -> Faults:
    schema = survey_schema(columns)
    with open_survey(survey) as (table, unread):
        faults: Faults = {(name, "type"): failures for name, failures in unread.items()}
        if tuple(table.columns) != tuple(schema.columns) or set(unread) != set(columns):
            raise DataError("the copy of the survey has other columns than the plan: run again")
        faults |= _count_in_engine(table, schema)
    # A value of the wrong type was stored as null: it is one fault, not two.
    for name in columns:
        if (name, "null") in faults:
            faults[name, "null"] -= faults[name, "type"]
    return faults


def _count_in_engine(table: Any, schema: Any) -> Faults:
    """Numbers of failing records of every check, from one query with one row of answers.

    The values that pass are counted, and the other values that are not null have failed: Spark finds
    the members of a list by hash, but the others by comparing with every member.
    """
    from pandera.engines.ibis_engine import Engine

    rules: list[tuple[str, str]] = []
    asked = [table.count()]
    for name, column in schema.columns.items():
        if not column.dtype.check(Engine.dtype(table[name].type())):
            raise DataError("the copy of the survey has other types than the plan: run again")
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
