"""A survey table that is handed over in memory, on the private side like any other survey.

It is read by way of Arrow, so a data frame means the same as a Parquet file that is written of it.
"""

from typing import Any, NoReturn

import pyarrow as pa


class MemoryTable:
    """A pandas, Arrow or Polars table, or a DuckDB relation; its text says nothing of what it holds."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __repr__(self) -> str:
        return "the table in memory"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private table in memory does not leave its process")

    def arrow(self) -> pa.Table:
        """The table (private); raises an exception that may quote it where Arrow cannot hold it."""
        if hasattr(self._table, "iloc"):  # pandas; its index is no column
            return pa.Table.from_pandas(self._table, preserve_index=False)
        return pa.table(self._table)
