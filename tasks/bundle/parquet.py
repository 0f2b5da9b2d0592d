"""Writes tables as Parquet files, with descriptions of their columns and of their release."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcore.releases.replicates import precision_of, replicates
from dpcore.releases.table import TABLE, Table, TableColumn
from schemas.bundle.manifest import (
    REPLICATES,
    HeldTable,
    ReplicatesRecord,
    TableFile,
    UncertaintyRecord,
)
from schemas.survey.columns import Column, column_description, column_metadata

ROWS = 2**15
"""Row groups have about this many rows, so that a table can be read without the others."""

LARGEST_GROUP = 2**20
"""The most rows of a row group."""


def write_table(
    root: Path,
    table: Table,
    survey: Mapping[str, Column],
    about: Mapping[str, str],
    noise: NDArray[np.float32] | None = None,
) -> TableFile:
    """Write one table under ``root``; returns the manifest's record of the file.

    ``survey``: the plan's description of the survey's columns.  ``about`` goes into the file's own
    metadata, so that a file without its bundle still says what it is.  ``noise``: (number, rows), from
    which replicates of the unbiased column are made, the last columns of the file.
    """
    known = {} if noise is None else {table.name: noise}
    return write_tables(root, table.name, [table], survey, about, known)


def write_tables(
    root: Path,
    name: str,
    tables: Sequence[Table],
    survey: Mapping[str, Column],
    about: Mapping[str, str],
    noise: Mapping[str, NDArray[np.float32]],
) -> TableFile:
    """Write tables of one release as one file, as of ``GROUPING SETS``: a table's rows are together, and
    null in the columns that it does not have.

    Columns of one name have one type and one meaning.  ``noise``: by the name of the table.
    """
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
    metadata: dict[str, str | bytes] = {**about, "pandas": _for_pandas(fields, tables)}
    again, column = None, tables[0].unbiased
    if column and all(len(noise.get(table.name, ())) for table in tables):
        types = [precision_of(table.columns[column], noise[table.name]) for table in tables]
        kind = pa.from_numpy_dtype(np.result_type(*types))
        number = len(noise[tables[0].name])
        again = ReplicatesRecord(column=column, number=number, type=str(kind))
        metadata |= {"dprelease.replicates": f"of {column}. {REPLICATES}"}
        fields += [pa.field(each, kind) for each in again.names]
    schema = pa.schema(fields, metadata=metadata)
    (root / path).parent.mkdir(exist_ok=True)  # not the root: a run that was ended has removed it
    stated = [part.name for part in parts]  # replicates repeat no value, and nobody filters by them
    with pq.ParquetWriter(
        root / path, schema, compression="zstd", use_dictionary=stated, write_statistics=stated
    ) as writer:
        for some in _row_groups(tables):
            writer.write_table(_joined(some, schema, again, noise), row_group_size=LARGEST_GROUP)
    with (root / path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return TableFile(
        path=path,
        rows=sum(_rows(table) for table in tables),
        bytes=(root / path).stat().st_size,
        sha256=digest,
        columns=dict(list(arrow_types(schema).items())[: len(parts)]),
        descriptions=descriptions,
        about={part.name: part.about for part in parts if part.about is not None},
        uncertainty=[
            UncertaintyRecord(**asdict(u))
            for u in dict.fromkeys(u for table in tables for u in table.uncertainty)
        ],
        replicates=again,
        holds={
            table.name: HeldTable(rows=_rows(table), columns=list(table.about)) for table in tables
        }
        if len(tables) > 1
        else {},
    )


def _never_null(tables: Sequence[Table], part: TableColumn, survey: Mapping[str, Column]) -> bool:
    """Whether the plan says that a column of synthetic records has no nulls; and it has none."""
    if tables[0].folder != "microdata" or part.name != part.about:
        return False
    return not survey[part.about].nullable and _arrow(part.values).null_count == 0


def _columns_of(tables: Sequence[Table]) -> list[TableColumn]:
    """Every column, those that describe cells first; with several tables, also which table it is."""
    parts = {part.name: part for table in reversed(tables) for part in reversed(table.parts)}
    found = [*reversed(parts.values())]
    if len(tables) == 1:
        return found
    found.sort(key=lambda part: part.about is None)
    text = "Name of the table that the row belongs to; columns of other tables are empty"
    return [TableColumn(TABLE, np.array([], dtype=str), text), *found]


def _row_groups(tables: Sequence[Table]) -> Iterator[list[Table]]:
    """Consecutive tables of about ``ROWS`` rows together."""
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


def _joined(
    tables: Sequence[Table],
    schema: pa.Schema,
    again: ReplicatesRecord | None,
    noise: Mapping[str, NDArray[np.float32]],
) -> pa.Table:
    """The rows of some tables, one below the other."""
    columns = [{part.name: part.values for part in table.parts} for table in tables]
    arrays: list[pa.Array] = []
    for field in schema:
        if len(arrays) == len(schema) - (again.number if again else 0):
            break
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
    if again:
        drawn = [
            replicates(np.asarray(values[again.column]), noise[table.name])
            for table, values in zip(tables, columns, strict=True)
        ]
        kind = schema.field(again.names[0]).type
        arrays += [pa.array(numbers).cast(kind) for numbers in np.concatenate(drawn, axis=1)]
    return pa.table(arrays, schema=schema)


def write_csv(root: Path, file: TableFile) -> TableFile:
    """Also write a table of the bundle as CSV, nulls as empty; returns its new record."""
    with (
        pq.ParquetFile(root / file.path) as parquet,
        csv.CSVWriter(root / file.csv, parquet.schema_arrow) as writer,
    ):
        for batch in parquet.iter_batches():
            writer.write_batch(batch)
    with (root / file.csv).open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return file.model_copy(update={"csv_sha256": digest})


def arrow_types(schema: pa.Schema) -> dict[str, str]:
    """Column names and Arrow types as text, in order."""
    return {field.name: str(field.type) for field in schema}


def _for_pandas(fields: Sequence[pa.Field], tables: Sequence[Table]) -> bytes:
    """Metadata by which pandas reads whole numbers with nulls as Int64, not as floats."""
    full: dict[str, int] = {}
    for table in tables:
        for part in table.parts:
            full[part.name] = full.get(part.name, 0) + (not np.ma.is_masked(part.values))
    whole = [f.name for f in fields if f.type == pa.int64() and full[f.name] < len(tables)]
    frame = pa.schema(fields).empty_table().to_pandas().astype(dict.fromkeys(whole, "Int64"))
    metadata: bytes = pa.Schema.from_pandas(frame, preserve_index=False).metadata[b"pandas"]
    return metadata


def _arrow(values: NDArray[Any]) -> pa.Array:
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.asarray(values)
    if plain.dtype.kind == "U":
        return pa.array(plain.tolist(), type=pa.string(), mask=mask)
    return pa.array(plain, mask=mask)
