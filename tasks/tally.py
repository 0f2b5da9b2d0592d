"""Tally the survey: one GROUP BY that counts the records in every occupied cell.

The cell of a record is computed inside DuckDB from the public axes, each record alone:

    SELECT (code of axis 0 * size 1 + code of axis 1) * ... AS cell, count(*) GROUP BY cell

    Categories    position in the list, by a join with the list
    Bins          number of inner edges at or below the value, by a balanced tree of comparisons
    Grid          floor((value - lower) / (upper - lower) * cells), the upper bound in the last cell
    null          the last cell of a nullable axis

The floating-point steps are those of ``dpcore.domain``, in the same order and on the same doubles,
so SQL and numpy agree on every record, also at the edges.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcore.domain import Axis, Bins, Categories, Domain, Grid, Tally
from dpcore.errors import DataError
from tasks.sql import quote, real
from tasks.survey import FAULTS, TABLE, connect, guarded

if TYPE_CHECKING:
    import duckdb


def tally(database: Path, domain: Domain, rows: int | None = None) -> Tally:
    """How many records fall in each occupied cell of the domain: private.

    ``database``: the file that ``tasks.survey.ingest`` made, private.  ``domain`` and ``rows``, the
    number of records that must be counted, are public.  Raises ``DataError`` if a record has no
    cell or the counts do not add up to ``rows``; the message holds no value.
    """
    with connect(database) as connection:
        cells, counts = guarded(
            lambda: _count(connection, domain), DataError, "the survey table could not be tallied"
        )
    if np.any(np.ma.getmaskarray(cells)):
        raise DataError(
            f"a record has no cell in {' x '.join(domain.names)}: validate the survey table first"
        )
    if rows is not None and counts.sum() != rows:
        raise DataError("the survey table does not have the number of records that the plan states")
    return Tally(domain, np.asarray(cells, dtype=np.int64), np.asarray(counts, dtype=np.int64))


def _count(connection: duckdb.DuckDBPyConnection, domain: Domain) -> tuple[Any, Any]:
    """Cell ids, ascending, and counts; a masked id stands for records without a cell."""
    unread = connection.execute(
        f"SELECT sum(failures) FROM {FAULTS} WHERE list_contains(?, name)", [list(domain.names)]
    ).fetchone()
    if unread and unread[0]:
        raise DataError("values of the wrong type were found: validate the survey table first")
    cell = "CAST(0 AS BIGINT)"
    joins, parameters = [], {}
    for i, axis in enumerate(domain.axes):
        code = _code(axis, i)
        cell = f"({cell} * {axis.size} + {code})"
        if isinstance(axis, Categories):
            parameters[f"categories{i}"] = list(axis.categories)
            joins.append(
                f" LEFT JOIN (SELECT unnest($categories{i}) AS value,"
                f" unnest(range({len(axis.categories)})) AS code) AS axis{i}"
                f" ON {_value(axis)} = axis{i}.value"
            )
    found = connection.execute(
        f"SELECT {cell} AS cell, count(*) AS records FROM {TABLE} AS survey{''.join(joins)}"
        " GROUP BY cell ORDER BY cell",
        parameters,
    ).fetchnumpy()
    return found["cell"], found["records"]


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
