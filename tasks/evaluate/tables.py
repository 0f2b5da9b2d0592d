"""Reads a real and a synthetic table, as a pair of data frames and as a pair of integer codes.

A column is numeric if both tables hold numbers.  If it has few values in the real table, each value is a
cell, and all other values share one more cell. Otherwise its cells are the intervals between quantiles
of the real table.  The cells of any other column are the texts that occur in either table.  Null is a
separate cell.  Cells depend on the real records here, which a plan never allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpcore.arrays import Integers
from dpcore.errors import InputError
from tasks.survey.csv_file import DELIMITERS, CSVFile, csv_fault, csv_headers
from tasks.survey.private_file import call_guarded

LEAST_RECORDS = 20


@dataclass(frozen=True, eq=False)
class TablePair:
    """Records of two tables in their common columns: numbers as float64 (null is NaN), else text.

    ``left_out``: columns of only one table; ``empty``: columns without a value in both;
    ``most_cells``: a numeric column with more values in the real table is cut at its quantiles.
    """

    real: pd.DataFrame
    synthetic: pd.DataFrame
    left_out: tuple[str, ...]
    most_cells: int
    empty: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        return list(self.real)

    @cached_property
    def numeric(self) -> list[str]:
        return [name for name in self.real if self.real[name].dtype == np.float64]

    @cached_property
    def codes(self) -> tuple[Integers, Integers, tuple[int, ...]]:
        """Codes of the real table (n, k) and the synthetic one (m, k), and numbers of cells (k,)."""
        coded = [self._coded(name) for name in self.columns]
        n = len(self.real)
        both = np.stack([codes for codes, _ in coded], axis=1)
        return both[:n], both[n:], tuple(size for _, size in coded)

    def _coded(self, name: str) -> tuple[Integers, int]:
        """The codes of the real records, then of the synthetic ones; null is the last cell."""
        both = pd.concat([self.real[name], self.synthetic[name]], ignore_index=True)
        null = both.isna().to_numpy()
        if name not in self.numeric:
            codes, texts = pd.factorize(both, sort=True)
            return np.where(null, len(texts), codes).astype(np.int64), len(texts) + 1
        ours = np.unique(self.real[name].dropna())
        values = both.to_numpy()
        if len(ours) <= self.most_cells:
            position = np.searchsorted(ours, values)
            found = np.isin(values, ours)
            codes = np.where(found, position, len(ours))
            return np.where(null, len(ours) + 1, codes), len(ours) + 2
        levels = np.arange(1, self.most_cells) / self.most_cells
        edges = np.unique(np.quantile(self.real[name].dropna(), levels))
        codes = np.searchsorted(edges, values, side="right")
        return np.where(null, len(edges) + 1, codes), len(edges) + 2


def read_pair(real: Path, synthetic: Path, most_cells: int = 20) -> TablePair:
    """Read two Parquet or CSV tables; raises ``InputError`` if they cannot be compared."""
    one, other = read_table(real), read_table(synthetic)
    common = [name for name in one if name in other]
    left_out = tuple(name for name in (*one, *other) if name not in common)
    empty = tuple(name for name in common if one[name].isna().all() and other[name].isna().all())
    common = [name for name in common if name not in empty]
    for path, table in ((real, one), (synthetic, other)):
        if len(table) < LEAST_RECORDS:
            raise InputError(f"{path}: has fewer than {LEAST_RECORDS} records")
    if len(common) < 2:
        raise InputError(
            f"{real} and {synthetic}: have fewer than two common columns that are not empty"
        )
    columns = {name: _alike(one[name], other[name]) for name in common}
    return TablePair(
        pd.DataFrame({name: first for name, (first, _) in columns.items()}),
        pd.DataFrame({name: second for name, (_, second) in columns.items()}),
        left_out,
        most_cells,
        empty,
    )


def read_table(path: Path) -> pd.DataFrame:
    """A Parquet or CSV table; in CSV, only an empty field is null."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if path.suffix.lower() == ".parquet":
        # Without the index, by which pandas would align new columns.
        return call_guarded(
            lambda: pd.read_parquet(path).reset_index(drop=True),
            InputError,
            f"{path}: cannot be read as a Parquet file",
        )
    if not path.name.lower().endswith((".csv", ".csv.gz")):
        raise InputError(f"{path}: must be a .parquet, .csv or .csv.gz file")
    headers = call_guarded(
        lambda: csv_headers(path, path), InputError, f"{path}: cannot be read as CSV"
    )
    delimiter = max(DELIMITERS, key=lambda d: len(headers[d]))
    with suppress(Exception):  # its message would quote the table
        return pd.read_csv(
            path, sep=delimiter, keep_default_na=False, na_values=[""], low_memory=False
        )
    file = CSVFile(path, delimiter, len(headers[delimiter]))
    fault = call_guarded(lambda: csv_fault(file), InputError, f"{path}: cannot be read as CSV")
    raise InputError(f"{path}: {fault or 'cannot be read as CSV'}")


def _alike(one: pd.Series[Any], other: pd.Series[Any]) -> tuple[pd.Series[Any], pd.Series[Any]]:
    if _is_number(one) and _is_number(other):
        return one.astype("Float64").astype(np.float64), other.astype("Float64").astype(np.float64)
    return _as_text(one), _as_text(other)


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _as_text(column: pd.Series[Any]) -> pd.Series[Any]:
    return pd.Series(texts(column), dtype=object)


def texts(values: Iterable[Any]) -> list[str | None]:
    """Values as text, whole numbers without a decimal point; null stays null."""
    return [None if pd.isna(value) else _text(value) for value in values]


def _text(value: Any) -> str:
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value)
