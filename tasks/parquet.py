"""Tables to Parquet files, with the column descriptions and the release they belong to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from schemas.bundle import TableFile


def write_table(
    root: Path,
    path: str,
    columns: Mapping[str, NDArray[Any]],
    descriptions: Mapping[str, str],
    about: Mapping[str, str],
) -> TableFile:
    """Write one table under ``root`` and say what was written.

    ``about`` goes into the file's own metadata, so that a file that has lost its bundle still says
    what it is.
    """
    arrays = [_arrow(values) for values in columns.values()]
    fields = [
        pa.field(name, array.type, metadata={"description": descriptions[name]})
        for name, array in zip(columns, arrays, strict=True)
    ]
    table = pa.table(arrays, schema=pa.schema(fields))
    table = table.replace_schema_metadata(dict(about) | {"pandas": _for_pandas(table)})
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, root / path, compression="zstd")
    return TableFile(
        path=path,
        rows=table.num_rows,
        columns=arrow_types(table.schema),
        descriptions=dict(descriptions),
    )


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
