"""The tables of a bundle by name, as its manifest lists them; needs numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcore.errors import InputError
from dpcore.releases.table import TABLE
from dpcore.suggestion import suggestion

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class ListedTable:
    """A table of a bundle: its file, the file of its replicates, its columns, a filter for its rows."""

    path: str
    replicates: str | None
    rows: int
    columns: tuple[str, ...]
    filters: list[tuple[str, str, str]] | None = None


def tables_of(manifest: Mapping[str, Any]) -> dict[str, ListedTable]:
    """The tables of a bundle by name, except draws; ``manifest``: its document.

    A name is the file's name without its folder, such as ``all-pairs.age.affairs``.  Names of synthetic
    tables and models include their folder, because a release may have the same name.
    """
    return dict(_listed(manifest))


def read_table(
    bundle: Path, tables: Mapping[str, ListedTable], name: str, replicates: bool = False
) -> pa.Table:
    """A table of the bundle in this folder; with ``replicates``, also their columns."""
    if name not in tables:
        meant = next((table for table in tables if table.endswith(f"/{name}")), name)
        raise InputError(
            f"{bundle}: has no table {name!r}{suggestion(meant, tables, most=3, least=0)}"
        )
    listed = tables[name]
    found = pq.read_table(bundle / listed.path, columns=[*listed.columns], filters=listed.filters)
    if replicates and listed.replicates:
        again = pq.read_table(bundle / listed.replicates, filters=listed.filters)
        for each in again.column_names:
            if each != TABLE:
                found = found.append_column(again.schema.field(each), again[each])
    return found


def _listed(manifest: Mapping[str, Any]) -> Iterator[tuple[str, ListedTable]]:
    """Yield the tables of releases, which may share a file, then the tables of records and models."""
    for record in manifest["releases"]:
        for file in record["files"]:
            path, columns, holds = file["path"], file["columns"], file.get("holds", {})
            again = (file.get("replicates") or {}).get("path")
            if len(holds) < 2:
                name = next(iter(holds), PurePosixPath(path).name.removesuffix(".parquet"))
                yield name, ListedTable(path, again, file["rows"], tuple(columns))
                continue
            cells = {column for held in holds.values() for column in held["columns"]}
            others = [column for column in columns if column not in {*cells, TABLE}]
            for name, held in holds.items():
                filters = [(TABLE, "==", name)]
                columns = (*held["columns"], *others)
                yield name, ListedTable(path, again, held["rows"], columns, filters)
    for record in [*manifest["synthesis"], *manifest["analyses"]]:
        for file in record.values():
            if isinstance(file, dict) and "path" in file:
                name = file["path"].removesuffix(".parquet")
                yield name, ListedTable(file["path"], None, file["rows"], tuple(file["columns"]))


def arrays_of(table: pa.Table) -> Columns:
    """The columns of a table; nulls are masked."""
    return {name: _array(table[name]) for name in table.column_names}


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    null = column.is_null().to_numpy()
    if not null.any():
        return np.asarray(column.to_numpy())
    filled = column.fill_null("" if column.type == pa.string() else 0)
    return np.ma.masked_array(filled.to_numpy(), mask=null)
