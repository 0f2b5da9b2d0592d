"""A made-up survey of two uneven text columns, the same at every run: its seed is public."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.peers.protocol import Survey
from dpcore.arrays import Integers

COLUMNS = {
    "area": [f"area {i}" for i in range(192)],
    "answer": [f"answer {i}" for i in range(8)],
}
SEED = 20100
PART = 1_000_000


def make_survey(folder: Path, rows: int) -> tuple[Survey, Integers]:
    """The survey, written to the folder, and its exact counts (cells,), row-major."""
    survey = Survey(str(folder / "survey.parquet"), COLUMNS, rows)
    random = np.random.default_rng(SEED)
    counts = np.zeros(len(survey.cells), dtype=np.int64)
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    with pq.ParquetWriter(survey.source, schema) as writer:
        for first in range(0, rows, PART):
            part = min(PART, rows - first)
            codes = [uneven(random, len(texts), part) for texts in COLUMNS.values()]
            columns = [
                pa.DictionaryArray.from_arrays(column, texts).cast(pa.string())
                for column, texts in zip(codes, COLUMNS.values(), strict=True)
            ]
            writer.write_table(pa.table(columns, schema=schema))
            cells = np.ravel_multi_index(codes, [len(texts) for texts in COLUMNS.values()])
            counts += np.bincount(cells, minlength=len(counts))
    return survey, counts


def uneven(random: np.random.Generator, size: int, rows: int) -> Integers:
    """Codes (rows,) below ``size``, low ones more often."""
    return (size * random.random(rows) * random.random(rows)).astype(np.int64)
