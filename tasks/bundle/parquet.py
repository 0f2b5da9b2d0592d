"""Writes tables as Parquet files, with descriptions of their columns and of their release."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpcore.releases.replicates import replicates
from dpcore.releases.table import Table
from schemas.bundle import REPLICATES, ReplicatesRecord, TableFile, UncertaintyRecord
from schemas.columns import Column, column_description, column_metadata


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
    path = f"{table.folder}/{table.name}.parquet"
    descriptions = {
        name: column_description(text, survey.get(table.about.get(name, "")))
        for name, text in table.descriptions.items()
    }
    arrays = [_arrow(values) for values in table.columns.values()]
    fields = [
        pa.field(
            name,
            array.type,
            metadata={"description": descriptions[name]}
            | column_metadata(table.about.get(name), survey),
        )
        for name, array in zip(table.columns, arrays, strict=True)
    ]
    written = pa.table(arrays, schema=pa.schema(fields))
    metadata: dict[str, str | bytes] = {**about, "pandas": _for_pandas(written)}
    again = None
    if noise is not None and table.unbiased and len(noise):
        values = replicates(np.asarray(table.columns[table.unbiased]), noise)
        again = ReplicatesRecord(
            column=table.unbiased, number=len(values), type=str(pa.from_numpy_dtype(values.dtype))
        )
        metadata |= {"dprelease.replicates": f"of {again.column}. {REPLICATES}"}
        for name, numbers in zip(again.names, values, strict=True):
            written = written.append_column(name, pa.array(numbers))
    written = written.replace_schema_metadata(metadata)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    stated = list(table.columns)  # replicates repeat no value, and nobody filters by them
    pq.write_table(
        written, root / path, compression="zstd", use_dictionary=stated, write_statistics=stated
    )
    content = (root / path).read_bytes()
    return TableFile(
        path=path,
        rows=written.num_rows,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        columns=dict(list(arrow_types(written.schema).items())[: len(arrays)]),
        descriptions=descriptions,
        about=dict(table.about),
        uncertainty=[UncertaintyRecord(**asdict(u)) for u in table.uncertainty],
        replicates=again,
    )


def write_csv(root: Path, file: TableFile) -> TableFile:
    """Write a table of the bundle as CSV beside its Parquet file, nulls as empty; its record then."""
    csv.write_csv(pq.read_table(root / file.path), root / file.csv)
    digest = hashlib.sha256((root / file.csv).read_bytes()).hexdigest()
    return file.model_copy(update={"csv_sha256": digest})


def arrow_types(schema: pa.Schema) -> dict[str, str]:
    """Column names and Arrow types as text, in order."""
    return {field.name: str(field.type) for field in schema}


def _for_pandas(table: pa.Table) -> bytes:
    """Metadata by which pandas reads whole numbers with nulls as Int64, not as floats."""
    whole = [
        field.name
        for field in table.schema
        if field.type == pa.int64() and table[field.name].null_count
    ]
    frame = table.slice(0, 0).to_pandas().astype(dict.fromkeys(whole, "Int64"))
    metadata: bytes = pa.Schema.from_pandas(frame, preserve_index=False).metadata[b"pandas"]
    return metadata


def _arrow(values: NDArray[Any]) -> pa.Array:
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.asarray(values)
    if plain.dtype.kind == "U":
        return pa.array(plain.tolist(), type=pa.string(), mask=mask)
    return pa.array(plain, mask=mask)
