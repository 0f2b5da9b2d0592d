"""Checks the survey table against the plan, by counting inside its engine.

The checks are a Pandera schema (``survey.checks``).  Pandera's own ``validate`` would fetch every
failing record and put the values into its error. Instead, one query with the checks' Ibis expressions
counts the records that break each rule.  Memory does not grow with the number of faults, and no value
leaves the engine.

    the survey table is not as the plan declares:
      column 'age', type: 3 rows cannot be read as the declared type: 3 with ...
      column 'income', bounds: 1 row outside the bounds
"""

from collections.abc import Mapping
from typing import Any

from dpcore.errors import DataError
from schemas.survey.checks import RULES, survey_schema
from schemas.survey.columns import CategoricalColumn, IdentifierColumn, Invalid, ReadColumn
from schemas.survey.reading import part_of_date
from schemas.survey.unit import COUNT, of_weights
from tasks.survey.private_file import call_guarded
from tasks.survey.reading import Survey, Unread, open_survey
from tasks.survey.sources import UNFITTING
from tasks.survey.sql import sql_type

REMEDIES = {
    "type": "Numbers are read as 1234.5, dates as 2024-01-31 and 2024-01-31 17:30, or as the column's"
    " `format` says; list the codes that mean no answer under its `missing`.",
    "null": "A column with `nullable: true` may lack values.",
    "bounds": "`outside: clamp` of a column moves its values to the nearest bound.",
    "category": "Categories are compared character by character: 01 is not 1, and a blank at an end, or"
    " an accent that is a separate character, makes another value.",
}
"""For each rule, the settings of a published column with which a plan can allow such values."""

_NUMBER = {
    "separated": "with separators, a decimal comma or a percent sign (state `format`)",
    "date": "dates (`from` reads their parts)",
    "text": "text (use `type: categorical`, or list the codes that mean no answer under `missing`)",
}
LOOKS: Mapping[str, Mapping[str, str]] = {
    "whole": {"number": "with decimals (use `type: continuous`)", **_NUMBER},
    "real": _NUMBER,
    "truth": {
        "number": "numbers other than 0 and 1",
        "text": "text other than true and false",
    },
    "date": {
        "number": "numbers",
        "date": "dates in another form (state `format`; the offset must be Z), or that do not exist",
        "text": "text",
    },
}
"""For each wanted type, words for each kind of unreadable values, with the setting that reads them."""

IDENTIFIERS = (
    "The privacy unit's column must hold text or a whole number in every record: correct it at the"
    " source."
)
WEIGHTS = (
    "Weights must be numbers from 0: correct them at the source, or state in `invalid` of the plan what"
    " happens to other values."
)
INVALID = "`invalid` in the plan can state what happens to such values, instead of a refusal."

Faults = dict[tuple[str, str], int]
"""Number of records that break a rule, by column and rule."""


def validate(
    survey: Survey, columns: Mapping[str, ReadColumn], invalid: Invalid = "refuse"
) -> None:
    """Raise a ``DataError`` that lists everything that does not fit the plan, and every broken rule.

    ``survey`` is private.  The error names columns, rules and numbers of records; neither it nor its
    cause or context contains a value. If ``invalid`` is not ``refuse``, no value is refused.
    """
    with open_survey(survey) as (table, unread, unfit):
        lines = [f"  {line}" for line in unfit]
        if invalid == "refuse":
            lines += _broken(table, unread, columns, whole=not unfit)
    if lines:
        raise DataError("\n".join([UNFITTING, *lines]))


def _broken(
    table: Any, unread: Unread, columns: Mapping[str, ReadColumn], whole: bool
) -> list[str]:
    """A line for each broken rule, and then advice on how a plan can allow such values."""
    faults = call_guarded(
        lambda: _count(table, unread, columns, whole),
        DataError,
        "the survey table could not be checked",
    )
    # Faults of the counts are in ``unfit`` already (``wrong_counts``).
    broken = {
        place: rows for place, rows in faults.items() if rows and columns[place[0]] is not COUNT
    }
    order, rules = list(columns), list(RULES)
    lines = [
        f"  column {name!r}, {rule}: {rows} {'row' if rows == 1 else 'rows'} {RULES[rule]}"
        f"{_looks(columns[name], unread[name]) if rule == 'type' else ''}"
        f"{_divided(columns[name]) if rule == 'category' else ''}"
        for (name, rule), rows in sorted(
            broken.items(), key=lambda item: (order.index(item[0][0]), rules.index(item[0][1]))
        )
    ]
    units = {name for name, column in columns.items() if isinstance(column, IdentifierColumn)}
    weighed = {name for name, column in columns.items() if of_weights(column)}
    known = {REMEDIES.get(rule, INVALID) for name, rule in broken if name not in units | weighed}
    known |= {WEIGHTS for name, _ in broken if name in weighed}
    known |= {IDENTIFIERS for name, _ in broken if name in units}
    remedies = (*REMEDIES.values(), IDENTIFIERS, WEIGHTS, INVALID)
    return [*lines, *(f"  {remedy}" for remedy in remedies if remedy in known)]


def _looks(column: ReadColumn, looks: Mapping[str, int]) -> str:
    """Text on the unreadable values: how many are of each kind."""
    wanted = {"BIGINT": "whole", "DOUBLE": "real", "BOOLEAN": "truth"}.get(sql_type(column), "")
    if getattr(column, "format", "") and any(looks.values()):
        decimals = ", or with decimals" * (wanted == "whole" and not part_of_date(column))
        return f": not written as `format` says{decimals}"
    known = LOOKS["date" if part_of_date(column) else wanted] if wanted else {}
    found = [f"{rows} {known[look]}" for look, rows in looks.items() if look in known]
    return f": {', '.join(found)}" if found else ""


def _divided(column: ReadColumn) -> str:
    """A hint if only some categories have labels: an equals sign may have divided one value."""
    if not isinstance(column, CategoricalColumn):
        return ""
    labelled = [code for code in map(str, column.categories) if code in column.labels]
    if len(labelled) in (0, len(column.categories)):
        return ""
    one = f"{labelled[0]}={column.labels[labelled[0]]}"
    return f'; if {one} is one value, write it as "{one}" in the questionnaire, in quotation marks'


def _count(table: Any, unread: Unread, columns: Mapping[str, ReadColumn], whole: bool) -> Faults:
    """Count the records that break each rule; ``whole``: whether the table should have all columns."""
    there = {name: column for name, column in columns.items() if name in unread}
    schema = survey_schema(there)
    lacks = tuple(table.columns) != tuple(schema.columns) or set(unread) != set(there)
    if lacks or (whole and len(there) < len(columns)):
        raise DataError("the copy of the survey has other columns than the plan: run again")
    faults = {(name, "type"): sum(looks.values()) for name, looks in unread.items()}
    faults |= _count_in_engine(table, schema)
    # A value of the wrong type was stored as null; it must count as one fault, not two.
    for name in there:
        if (name, "null") in faults:
            faults[name, "null"] -= faults[name, "type"]
    return faults


def _count_in_engine(table: Any, schema: Any) -> Faults:
    """The number of failing records of every check, from one query with one row of answers.

    The values that pass are counted, and all other values except null have failed: Spark finds members
    of a list by hash, but other values only by comparing with every member.
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
