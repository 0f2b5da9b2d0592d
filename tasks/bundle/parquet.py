"""Writes tables as Parquet files, with descriptions of their columns and of their release."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcore.releases.replicates import precision_of, replicate_names, replicates
from dpcore.releases.table import TABLE, Table, TableColumn
from schemas.bundle.manifest import REPLICATES
from schemas.bundle.table_file import HeldTable, ReplicatesRecord, TableFile, UncertaintyRecord
from schemas.survey.columns import Column, column_description, column_metadata
from tasks.bundle.digests import sha256_of

ROWS = 2**15
"""Row groups have about this many rows, so that a table can be read without the others."""

LARGEST_GROUP = 2**20
"""The most rows of a row group."""

MOST_IN_CSV = 2**20
"""Larger tables of replicates are not written as CSV, which takes ten bytes for each number."""


def write_table(
    root: Path,
    table: Table,
    survey: Mapping[str, Column],
    about: Mapping[str, str],
    more: Iterable[Table] = (),
) -> TableFile:
    """Write one table under ``root``; returns the manifest's record of the file.

    ``survey``: the plan's description of the survey's columns.  ``about`` goes into the file's own
    metadata, so that a file without its bundle still says what it is.  ``more``: blocks of further rows,
    with nulls only in columns where the plan allows nulls or the first block has some.
    """
    return write_tables(root, table.name, [table], survey, about, {}, more)


def write_tables(
    root: Path,
    name: str,
    tables: Sequence[Table],
    survey: Mapping[str, Column],
    about: Mapping[str, str],
    noise: Mapping[str, NDArray[np.float32]],
    more: Iterable[Table] = (),
) -> TableFile:
    """Write tables of one release as one file, as SQL's ``GROUPING SETS`` does: the rows of a table are
    together, and are null in columns of other tables.

    Columns of one name have one type and one meaning.  ``noise``: replicates by the name of the table.
    ``more``: further rows of a single table.
    """
    more = iter(more)
    second = [table for table in (next(more, None),) if table is not None]
    path = f"{tables[0].folder}/{name}.parquet"
    parts = _columns_of(tables)
    descriptions = {
        part.name: column_description(part.description, survey.get(part.about or ""))
        for part in parts
    }
    fields = [
        pa.field(
            part.name,
            _arrow(part.values).type,
            nullable=not _never_null(tables, part, survey),
            metadata={"description": descriptions[part.name]} | column_metadata(part.about, survey),
        )
        for part in parts
    ]
    metadata: dict[str, str | bytes] = {
        **about,
        "pandas": _for_pandas(fields, tables, bool(second)),
    }
    schema = pa.schema(fields, metadata=metadata)
    groups = chain(_row_groups(tables), ([block] for block in chain(second, more)))
    _write(root / path, schema, (_joined(some, schema) for some in groups))
    return TableFile(
        path=path,
        rows=pq.read_metadata(root / path).num_rows,
        bytes=(root / path).stat().st_size,
        sha256=sha256_of(root / path),
        columns=arrow_types(schema),
        descriptions=descriptions,
        about={part.name: part.about for part in parts if part.about is not None},
        uncertainty=[
            UncertaintyRecord(**asdict(u))
            for u in dict.fromkeys(u for table in tables for u in table.uncertainty)
        ],
        replicates=_write_replicates(root, name, tables, about, noise),
        holds={
            table.name: HeldTable(rows=_rows(table), columns=list(table.about)) for table in tables
        }
        if len(tables) > 1
        else {},
    )


def _write_replicates(
    root: Path,
    name: str,
    tables: Sequence[Table],
    about: Mapping[str, str],
    noise: Mapping[str, NDArray[np.float32]],
) -> ReplicatesRecord | None:
    """Write a file with the replicates of each row of the tables; returns None if they have none."""
    path, column = f"replicates/{name}.parquet", tables[0].unbiased
    if not column or not all(len(noise.get(table.name, ())) for table in tables):
        return None
    types = [precision_of(table.columns[column], noise[table.name]) for table in tables]
    kind = pa.from_numpy_dtype(np.result_type(*types))
    names = replicate_names(len(noise[tables[0].name]))
    which = [pa.field(TABLE, pa.string())] if len(tables) > 1 else []
    schema = pa.schema(
        [*which, *(pa.field(each, kind) for each in names)],
        metadata={**about, "dprelease.replicates": f"of {column}. {REPLICATES}"},
    )

    def rows(some: Sequence[Table]) -> pa.Table:
        titles = [pa.array([t.name for t in some for _ in range(_rows(t))])] if which else []
        drawn = [replicates(np.asarray(t.columns[column]), noise[t.name]) for t in some]
        numbers = np.concatenate(drawn, axis=1)
        return pa.table([*titles, *(pa.array(each).cast(kind) for each in numbers)], schema=schema)

    # Nobody filters by these columns. Rounded numbers end in zeros: split by position, bytes repeat.
    split = dict.fromkeys(names, "BYTE_STREAM_SPLIT")
    stated = [TABLE] if which else False
    _write(root / path, schema, map(rows, _row_groups(tables)), stated, split)
    return ReplicatesRecord(
        path=path,
        bytes=(root / path).stat().st_size,
        sha256=sha256_of(root / path),
        column=column,
        number=len(names),
        type=str(kind),
    )


def _write(
    path: Path,
    schema: pa.Schema,
    parts: Iterable[pa.Table],
    stated: list[str] | bool = True,
    encoding: dict[str, str] | None = None,
) -> None:
    """Write a Parquet file of these rows; ``stated``: the columns with dictionaries and statistics."""
    path.parent.mkdir(exist_ok=True)  # without parents: a run that was stopped has removed the root
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=stated,
        write_statistics=stated,
        column_encoding=encoding,
    ) as writer:
        for rows in parts:
            writer.write_table(rows, row_group_size=LARGEST_GROUP)


def _never_null(tables: Sequence[Table], part: TableColumn, survey: Mapping[str, Column]) -> bool:
    """Whether a column of synthetic records has no nulls, and according to the plan cannot have any."""
    if tables[0].folder != "microdata" or part.name != part.about:
        return False
    return not survey[part.about].nullable and _arrow(part.values).null_count == 0


def _columns_of(tables: Sequence[Table]) -> list[TableColumn]:
    """All columns, first those that describe cells; several tables get a column of table names."""
    # In reverse, so that a column keeps the description of the first table that has it.
    parts = {part.name: part for table in reversed(tables) for part in reversed(table.parts)}
    found = [*reversed(parts.values())]
    if len(tables) == 1:
        return found
    found.sort(key=lambda part: part.about is None)
    text = "Name of the table that the row belongs to; columns of other tables are empty"
    return [TableColumn(TABLE, np.array([], dtype=str), text), *found]


def _row_groups(tables: Sequence[Table]) -> Iterator[list[Table]]:
    """Yield groups of consecutive tables with about ``ROWS`` rows together."""
    some: list[Table] = []
    for table in tables:
        some.append(table)
        if sum(map(_rows, some)) >= ROWS:
            yield some
            some = []
    if some:
        yield some


def _rows(table: Table) -> int:
    return len(table.parts[0].values)


def _joined(tables: Sequence[Table], schema: pa.Schema) -> pa.Table:
    columns = [{part.name: part.values for part in table.parts} for table in tables]
    arrays: list[pa.Array] = []
    for field in schema:
        pieces, empty = [], 0
        for table, values in zip(tables, columns, strict=True):
            if field.name in values:
                pieces += [pa.nulls(empty, field.type)] if empty else []
                pieces.append(_arrow(values[field.name]))
                empty = 0
            elif field.name == TABLE:
                pieces.append(pa.repeat(pa.scalar(table.name), _rows(table)))
            else:
                empty += _rows(table)
        pieces += [pa.nulls(empty, field.type)] if empty else []
        arrays.append(pa.concat_arrays(pieces))
    return pa.table(arrays, schema=schema)


def write_csv(root: Path, file: TableFile) -> TableFile:
    """Also write a table of the bundle as CSV, nulls as empty; returns its new record."""
    again, digest = file.replicates, _as_csv(root / file.path, root / file.csv)
    if again and again.number * file.rows <= MOST_IN_CSV:
        beside = _as_csv(root / again.path, root / again.csv)
        again = again.model_copy(update={"csv_sha256": beside})
    return file.model_copy(update={"csv_sha256": digest, "replicates": again})


def _as_csv(path: Path, target: Path) -> str:
    with (
        pq.ParquetFile(path) as parquet,
        csv.CSVWriter(target, parquet.schema_arrow) as writer,
    ):
        for batch in parquet.iter_batches():
            writer.write_batch(batch)
    return sha256_of(target)


def arrow_types(schema: pa.Schema) -> dict[str, str]:
    """Column names and Arrow types as text, in order."""
    return {field.name: str(field.type) for field in schema}


def _for_pandas(fields: Sequence[pa.Field], tables: Sequence[Table], more: bool) -> bytes:
    """Metadata by which pandas reads whole numbers with nulls as Int64, not as floats.

    ``more``: whether there are further rows, which may also contain nulls.
    """
    full: dict[str, int] = {}
    for table in tables:
        for part in table.parts:
            full[part.name] = full.get(part.name, 0) + (not np.ma.is_masked(part.values))
    whole = [
        f.name
        for f in fields
        if f.type == pa.int64() and (full[f.name] < len(tables) or (more and f.nullable))
    ]
    frame = pa.schema(fields).empty_table().to_pandas().astype(dict.fromkeys(whole, "Int64"))
    metadata: bytes = pa.Schema.from_pandas(frame, preserve_index=False).metadata[b"pandas"]
    return metadata


def _arrow(values: NDArray[Any]) -> pa.Array:
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.asarray(values)
    if plain.dtype.kind == "U":
        return pa.array(plain.tolist(), type=pa.string(), mask=mask)
    return pa.array(plain, mask=mask)
