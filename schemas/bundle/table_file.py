"""One table of a bundle: its file, the meaning of its columns, and the errors of its numbers."""

from functools import cached_property
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from dpcore.releases.replicates import replicate_names
from dpcore.releases.table import TABLE
from schemas.document import Section


class UncertaintyRecord(Section):
    """The errors of the numbers in one column (``dpcore.releases.base.Uncertainty``)."""

    column: str
    standard_error: str | None
    interval: tuple[str, str] | None
    method: Literal["exact", "normal", "simulated"]
    statement: str


class ReplicatesRecord(Section):
    """The file of a table's replicates: one of its columns with noise drawn again, to compute errors."""

    path: str
    bytes: int
    sha256: str
    column: str
    number: int
    type: str = Field(description="Arrow type of each replicate.")
    csv_sha256: str | None = Field(
        default=None, description="SHA-256 of the same table as CSV, if there is one."
    )

    @property
    def names(self) -> list[str]:
        return replicate_names(self.number)

    @property
    def csv(self) -> str:
        """The path of the same table as CSV."""
        return self.path.removesuffix("parquet") + "csv"


class HeldTable(Section):
    """One of several tables in a file."""

    rows: int
    columns: list[str] = Field(description="The columns that describe its cells.")


class TableFile(Section):
    """One Parquet file: its path and the meaning of its columns."""

    path: str
    rows: int
    bytes: int
    sha256: str
    columns: dict[str, str] = Field(description="Arrow type of each column, in order.")
    descriptions: dict[str, str]
    about: dict[str, str] = Field(
        description="Published columns that describe a column of the survey, each with its name."
    )
    uncertainty: list[UncertaintyRecord]
    replicates: ReplicatesRecord | None = None
    csv_sha256: str | None = Field(
        default=None, description="SHA-256 of the same table as CSV, unless the plan wants no CSV."
    )
    holds: dict[str, HeldTable] = Field(
        default={},
        description="For a file with several tables: the tables by name, in order. `table_name` is the"
        " name in each row, and columns of other tables are null.",
    )

    @property
    def tables(self) -> list["TableFile"]:
        """One record for each table in the file (``filters`` selects its rows)."""
        # Cached values take part in comparisons: a file that cached itself would be compared for ever.
        return [self] if len(self.holds) < 2 else self.held_tables

    @cached_property
    def held_tables(self) -> list["TableFile"]:
        """The same, for a file of several tables."""
        cells = {column for held in self.holds.values() for column in held.columns}
        others = {c: kind for c, kind in self.columns.items() if c not in cells and c != TABLE}
        return [
            self.model_copy(
                update={
                    "rows": held.rows,
                    "columns": {c: self.columns[c] for c in held.columns} | others,
                    "holds": {name: held},
                }
            )
            for name, held in self.holds.items()
        ]

    @property
    def filters(self) -> list[tuple[str, str, str]] | None:
        """Filters for pyarrow that select the rows of one table; None for all rows."""
        return [(TABLE, "==", name) for name in self.holds] if len(self.holds) == 1 else None

    @property
    def place(self) -> str:
        """The path of the table, and its name in a file of several tables."""
        return f"{self.path}, {TABLE} {self.name}" if self.filters else self.path

    @property
    def name(self) -> str:
        """The name of a table of a release."""
        named = PurePosixPath(self.path).name.removesuffix(".parquet")
        return next(iter(self.holds)) if len(self.holds) == 1 else named

    @property
    def csv(self) -> str:
        """The path of the same table as CSV."""
        return self.path.removesuffix("parquet") + "csv"
