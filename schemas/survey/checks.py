"""The checks of a survey table, as a pandera schema built from the plan alone.

Each check has the name of its rule and is one Ibis expression over the column. So the table's engine
counts the records that break the rule, and no record is fetched.

    rule       a record breaks it if
    type       the value cannot be converted to the declared type (found while the table is read)
    null       the value is missing and the column is not nullable
    empty      the identifier of a privacy unit is empty text or blanks
    category   the value is not a listed category, or level
    bounds     the value lies outside the bounds
    finite     the value is NaN or infinite
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from schemas.survey.columns import (
    CategoricalColumn,
    ContinuousColumn,
    IdentifierColumn,
    IntegerColumn,
    ReadColumn,
)
from schemas.survey.engine import exactly, finite, listed

if TYPE_CHECKING:  # pandera takes seconds to import
    import pandera.ibis as pandera

RULES = {
    "type": "cannot be read as the declared type",
    "null": "missing, but the column is not nullable",
    "empty": "empty, so the privacy unit is unknown",
    "category": "not a listed category",
    "bounds": "outside the bounds",
    "finite": "NaN or infinite",
}
"""The rules by name, in the order of a report, with words for rows that break the rule."""


def survey_schema(columns: Mapping[str, ReadColumn]) -> pandera.DataFrameSchema:
    """The schema of a survey table with exactly these columns.

    The schema is public.  Do not call its ``validate`` on a survey table: pandera fetches the failing
    records and quotes their values; ``tasks.survey.validate`` counts them instead.
    """
    import pandera.ibis as pandera

    schema = {
        name: pandera.Column(
            engine_type(column), checks=_checks(column), nullable=column.nullable, name=name
        )
        for name, column in columns.items()
    }
    return pandera.DataFrameSchema(schema, strict=True, name="survey")


def engine_type(column: ReadColumn) -> Any:
    """The Ibis type in which a column is checked and tallied."""
    import ibis.expr.datatypes as ibis_types

    if isinstance(column, IdentifierColumn):
        return ibis_types.string
    if isinstance(column, CategoricalColumn):
        kinds = {
            str: ibis_types.string,
            bool: ibis_types.boolean,
            int: ibis_types.int64,
            float: ibis_types.float64,
        }
        return kinds[type(column.categories[0])]
    return ibis_types.float64 if isinstance(column, ContinuousColumn) else ibis_types.int64


def _checks(column: ReadColumn) -> list[Any]:
    if isinstance(column, IdentifierColumn):
        return [_check("empty", lambda value: value.strip() != "")]
    values = column.listed
    if column.open:  # unlisted values count in the last category, or as the nearest bound
        return [_check("finite", finite)] if isinstance(column, ContinuousColumn) else []
    if values is not None:
        return [_check("category", lambda column: column.isin(listed(column, values).value))]
    if isinstance(column, IntegerColumn):
        return [_check("bounds", lambda value: value.between(*column.bounds))]
    assert isinstance(column, ContinuousColumn)
    lower, upper = map(exactly, column.bounds)
    return [
        _check("finite", finite),
        # Values that are not finite break only the rule `finite`; DuckDB orders NaN above every number.
        _check("bounds", lambda value: ~finite(value) | value.between(lower, upper)),
    ]


def _check(rule: str, holds: Any) -> Any:
    """A check as a boolean column, which is null for null values (``null`` is a separate rule).

    Pandera's own ``ignore_na`` uses Ibis, which treats NaN as null on Spark.
    """
    import pandera.ibis as pandera

    return pandera.Check(
        lambda data: holds(data.table[data.key]), name=rule, error=rule, ignore_na=False
    )
