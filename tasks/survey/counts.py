"""The number of records in a table whose rows each stand for several records.

    sex  age   n
    F    0-17  212      a row of n = 212 is 212 records with these values
    F    18-   530

The engine adds up the counts without making records. A count that is missing, negative or not whole is
no answer of a person but a fault of the file, so it is refused whatever the plan's rule for invalid
values.
"""

from __future__ import annotations

from typing import Any

from dpcore.domain.adjacency import Adjacency
from schemas.survey.unit import COUNT


def wrong_rows(found: int, rows: int, adjacency: Adjacency) -> list[str]:
    """A line on the fault if ``rows`` is public and wrong; a private number is checked by the tally."""
    if not adjacency.public_rows or found == rows:
        return []
    return [
        f"the table does not have the {rows} records that `rows` in the plan states; count the records"
        " at the source and correct the plan (the number becomes public)"
    ]


def wrong_counts(table: Any, counts: str, rows: int, adjacency: Adjacency) -> list[str]:
    """A line on the fault if a count is not valid, or if counts do not add up to the public number.

    A value that is not a whole number is null in ``table``.  The sum is exact up to 2**53, which is
    more than any public number of records.
    """
    column = table[counts]
    found = table.aggregate(
        rows=table.count(),
        valid=column.between(*COUNT.bounds).sum(),
        total=column.sum().cast("float64"),
    ).to_pyarrow()
    records, valid, total = (found[name][0].as_py() or 0 for name in ("rows", "valid", "total"))
    if records == valid:
        return wrong_rows(int(total), rows, adjacency)
    wrong = f"{records - valid} row{'s' * (records - valid != 1)}"
    return [
        f"column {counts!r}, counts: {wrong} without a whole number from 0 to {COUNT.bounds[1]};"
        " correct them at the source"
    ]
