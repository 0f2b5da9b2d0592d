"""Tables as pandas data frames, in which whole numbers with nulls stay whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa


def frame_of(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as a data frame."""
    # pandas would turn whole numbers with nulls into floats, which lose digits beyond 2**53.
    holes = {
        column.type: pd.Int64Dtype()
        for column in table.columns
        if column.null_count and pa.types.is_integer(column.type)
    }
    whole = [name for name in table.column_names if table[name].type in holes]
    frame = table.to_pandas(types_mapper=holes.get)
    # The types above apply to every column; columns without nulls get ordinary types again.
    kept = [name for name in whole if not table[name].null_count]
    return frame.astype({name: table[name].type.to_pandas_dtype() for name in kept})


def frame_of_columns(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Arrays, with nulls masked, as a data frame."""
    arrays = {
        name: pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values), from_pandas=False)
        for name, values in columns.items()
    }
    return frame_of(pa.table(arrays))
