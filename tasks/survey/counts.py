"""The number of records of a table in which each row is several records.

    sex  age   n
    F    0-17  212      a row of n = 212 is 212 records with these values
    F    18-   530

The engine adds up the counts and makes no records of them.  A count that is missing, negative or not
whole is no answer of a person: the file is then no table of records, and is refused under every rule
for values that are not valid.
"""

from __future__ import annotations

from typing import Any

from dpcore.errors import DataError
from schemas.survey.unit import COUNT


def total_of_counts(table: Any, counts: str) -> int:
    """The number of records (private); raises ``DataError`` if a count is not valid.

    A value that is not a whole number is null in ``table``.  The sum is exact up to 2**53, which is
    more than any public number of records.
    """
    column = table[counts]
    found = table.aggregate(
        rows=table.count(),
        valid=column.between(*COUNT.bounds).sum(),
        total=column.sum().cast("float64"),
    ).to_pyarrow()
    rows, valid, total = (found[name][0].as_py() or 0 for name in ("rows", "valid", "total"))
    if rows != valid:
        wrong = f"{rows - valid} row{'s' * (rows - valid != 1)}"
        raise DataError(
            "the survey table is not as the plan declares:\n"
            f"  column {counts!r}, counts: {wrong} without a whole number from 0 to {COUNT.bounds[1]}"
        )
    return int(total)
