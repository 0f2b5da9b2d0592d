"""The cell of a record as SQL: what ``dpcore.domain`` says of an axis, for the engine to compute.

    Categories    position in the list, by a join with the list
    Bins          number of inner edges at or below the value, by a balanced tree of comparisons
    Grid          floor((value - lower) / (upper - lower) * cells), the upper bound in the last cell
    null          the last cell of a nullable axis

The floating-point steps are those of ``dpcore.domain``, in the same order and on the same doubles,
so SQL and numpy agree on every record, also at the edges.
"""

from collections.abc import Sequence
from typing import Any

from dpcore.domain import Axis, Bins, Categories, Grid
from tasks.sql import quote, real


def count_cells(table: str, axes: Sequence[Axis]) -> tuple[str, dict[str, Any]]:
    """A query for the occupied cells of a table, and its parameters.

        SELECT (code of axis 0 * size 1 + code of axis 1) * ... AS cell, count(*) GROUP BY cell

    One null cell stands for the records that have none.
    """
    cell, joins = "CAST(0 AS BIGINT)", ""
    parameters: dict[str, Any] = {}
    for i, axis in enumerate(axes):
        cell = f"({cell} * {axis.size} + {_code(axis, i)})"
        if isinstance(axis, Categories):
            parameters[f"categories{i}"] = list(axis.categories)
            joins += (
                f" LEFT JOIN (SELECT unnest($categories{i}) AS value,"
                f" unnest(range({len(axis.categories)})) AS code) AS axis{i}"
                f" ON {_value(axis)} = axis{i}.value"
            )
    query = (
        f"SELECT {cell} AS cell, count(*) AS records FROM {table} AS survey{joins}"
        " GROUP BY cell ORDER BY cell"
    )
    return query, parameters


def _value(axis: Axis) -> str:
    return f"survey.{quote(axis.name)}"


def _code(axis: Axis, position: int) -> str:
    """SQL for the code of a record on one axis; null where it has none."""
    value = _value(axis)
    if isinstance(axis, Categories):
        code, last = f"axis{position}.code", len(axis.categories)
    else:
        cells = _bin(value, axis) if isinstance(axis, Bins) else _grid(value, axis)
        within, last = f"{value} >= {_number(axis, axis.lower)}", axis.cells
        # The upper edge of a whole-number axis is the largest value plus one, so it is left out;
        # NaN is above every number in DuckDB, so it is never within.
        within += f" AND {value} {'<' if axis.integer else '<='} {_number(axis, axis.upper)}"
        code = f"CASE WHEN {within} THEN {cells} END"
    return f"CASE WHEN {value} IS NULL THEN {last} ELSE {code} END" if axis.nullable else code


def _number(axis: Bins | Grid, edge: float) -> str:
    return str(int(edge)) if axis.integer else real(edge)


def _bin(value: str, axis: Bins) -> str:
    """Ten comparisons a record for a thousand bins, where a plain list of cases would take 500."""

    def between(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last + 1) // 2
        above = f"{value} >= {_number(axis, axis.edges[middle])}"
        upper, lower = between(middle, last), between(first, middle - 1)
        return f"CASE WHEN {above} THEN {upper} ELSE {lower} END"

    return between(0, axis.cells - 1)


def _grid(value: str, axis: Grid) -> str:
    if axis.integer:
        return f"{value} - {_number(axis, axis.lower)}"
    lower, width = real(axis.lower), real(axis.upper - axis.lower)
    position = f"floor(({value} - {lower}) / {width} * {real(axis.cells)})"
    return f"CAST(least({position}, {axis.cells - 1}) AS BIGINT)"
