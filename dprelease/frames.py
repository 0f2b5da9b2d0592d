"""Tables as data frames: pandas, Arrow or Polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpcore.errors import InputError

FRAMES = ("pandas", "arrow", "polars")


def check_frames(frames: str) -> None:
    """Raise ``InputError`` for a kind of data frame that is unknown or not installed."""
    if frames not in FRAMES:
        raise InputError(f"frames: must be one of {', '.join(FRAMES)}, not {frames!r}")
    if frames == "polars":
        try:
            import polars  # noqa: F401
        except ImportError:
            raise InputError("frames: polars is not installed; run: pip install polars") from None


def frame_of(table: pa.Table, frames: str) -> Any:
    """An Arrow table as a data frame; whole numbers with nulls stay whole numbers."""
    if frames == "arrow":
        return table
    if frames == "polars":
        import polars

        return polars.from_arrow(table)
    holes = {
        column.type: pd.Int64Dtype()
        for column in table.columns
        if column.null_count and pa.types.is_integer(column.type)
    }
    whole = [name for name in table.column_names if table[name].type in holes]
    frame = table.to_pandas(types_mapper=holes.get)
    kept = [name for name in whole if not table[name].null_count]
    return frame.astype({name: table[name].type.to_pandas_dtype() for name in kept})


def frame_of_columns(columns: Mapping[str, Any], frames: str) -> Any:
    """Arrays, in which nulls are masked, as a data frame."""
    arrays = {
        name: pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values), from_pandas=False)
        for name, values in columns.items()
    }
    return frame_of(pa.table(arrays), frames)
