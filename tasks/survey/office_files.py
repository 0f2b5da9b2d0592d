"""Tables from spreadsheets and statistical packages: Excel, Stata and SPSS, by reader packages.

    survey.xlsx    the first sheet; its first row has the names; a row without any value is no record
    survey.dta     Stata; missing values of all sorts are null, and so is empty text
    survey.sav     SPSS; values that it declares missing are values, which a plan lists under ``missing``

Each value is read on its own, like a value of a table in memory.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from dpcore.errors import DataError, InputError
from tasks.survey.memory import Column, MemoryTable, written_each

READERS = {".xlsx": "openpyxl", ".dta": "pyreadstat", ".sav": "pyreadstat", ".zsav": "pyreadstat"}
"""The packages that read files, by the ending of their names."""

FIRST = {
    ".dta": datetime(1960, 1, 1),
    ".sav": datetime(1582, 10, 14),
    ".zsav": datetime(1582, 10, 14),
}
"""The moment from which each program counts its dates."""

DAYS = ("%td", "%d", "DATE", "ADATE", "EDATE", "SDATE", "JDATE")
TIMES = ("%tc", "%tC", "DATETIME", "YMDHMS")
"""Formats of columns of dates, without their widths."""


def _reader(path: Path) -> Any:
    name = READERS[path.suffix.lower()]
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f'{path}: needs the package {name}; run: pip install "dprelease[files]"'
        ) from None


def office_table(path: Path) -> MemoryTable:
    """The table in a file; raises ``InputError`` if its reader is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # readers' warnings quote values
        return _Sheet(path) if path.suffix.lower() == ".xlsx" else _StatisticalFile(path)


class _Sheet(MemoryTable):
    """The first sheet of a workbook."""

    def __init__(self, path: Path) -> None:
        rows = _cells(path)
        header = ["" if cell.value is None else str(cell.value) for cell in next(rows, ())]
        self._path, self._header, self._unknown = path, header, set[int]()
        found = ([_dated(cell) for cell in row] for row in rows)
        self._rows = [row for row in found if any(value is not None for value in row)]
        if _has_formulas(path):
            self._unknown = {
                place
                for written, known in zip(_cells(path, formulas=True), _cells(path), strict=True)
                for place, (f, v) in enumerate(zip(written, known, strict=True))
                # Empty text counts as a value too.
                if f.data_type == "f" and v.value is None and v.data_type == "n"
            }

    def __repr__(self) -> str:
        return str(self._path)

    @property
    def names(self) -> list[str]:
        return self._header

    def column(self, name: str, wrong: str | None = None) -> Column:
        place = self._header.index(name)
        if place in self._unknown:
            raise DataError(
                f"{self._path}: holds formulas without values; open and save it in the spreadsheet"
                " program"
            )
        values = (row[place] if place < len(row) else None for row in self._rows)
        return written_each(map(_as_stored, values), wrong)


def _cells(path: Path, formulas: bool = False) -> Iterator[Sequence[Any]]:
    """Yield the cells of each row, with the values of formulas, or with the formulas themselves."""
    book = _reader(path).load_workbook(path, read_only=True, data_only=not formulas)
    sheet = book.worksheets[0]
    sheet.reset_dimensions()  # some programs write wrong ones
    yield from sheet.iter_rows()
    book.close()


def _has_formulas(path: Path) -> bool:
    with ZipFile(path) as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/")]
        return any(re.search(rb"<f[ >]", book.read(name)) for name in sheets)


def _dated(cell: Any) -> Any:
    """The value of a cell; a day is stored as midnight, and only the format shows that it is one."""
    at = cell.value
    if not isinstance(at, datetime) or at.time() != time.min:
        return at
    return at if "h" in str(cell.number_format).lower() else at.date()


def _as_stored(value: Any) -> Any:
    """A number as the workbook stores it, a float; the reader returns whole numbers as integers."""
    if type(value) is not int:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf


class _StatisticalFile(MemoryTable):
    def __init__(self, path: Path) -> None:
        self._path, self._known = path, metadata(path)

    def __repr__(self) -> str:
        return str(self._path)

    @property
    def names(self) -> list[str]:
        return list(self._known.column_names)

    def column(self, name: str, wrong: str | None = None) -> Column:
        frame, _ = _read(self._path, usecols=[name])
        moment = _moments(self._path, self._known.original_variable_types[name])
        values = frame[name] if moment is None else map(moment, frame[name])
        return written_each((None if value == "" else value for value in values), wrong)


def _read(path: Path, **options: Any) -> Any:
    """A data frame of the stored values, and the file's metadata on its columns."""
    reader = _reader(path)
    if path.suffix.lower() == ".dta":
        return reader.read_dta(path, disable_datetime_conversion=True, **options)
    return reader.read_sav(path, disable_datetime_conversion=True, user_missing=True, **options)


def metadata(path: Path) -> Any:
    """The metadata of a Stata or SPSS file on its columns; no value is read."""
    return _read(path, metadataonly=True)[1]


def is_of(kind: str, formats: tuple[str, ...]) -> bool:
    """Whether a column's format is one of these, whatever its width."""
    return kind in formats or kind.rstrip("0123456789.") in formats


def _moments(path: Path, kind: str) -> Callable[[float], date | str | None] | None:
    """A function from a column's numbers to dates: days or milliseconds in Stata, seconds in SPSS."""
    stata = path.suffix.lower() == ".dta"
    if not is_of(kind, DAYS + TIMES):
        return None
    unit = (
        timedelta(days=1)
        if stata and is_of(kind, DAYS)
        else timedelta(milliseconds=1 if stata else 1000)
    )

    def moment(value: float) -> date | str | None:
        if math.isnan(value):
            return None
        try:
            at = FIRST[path.suffix.lower()] + value * unit
            return at.date() if is_of(kind, DAYS) else at
        except OverflowError:
            return "no date"

    return moment
