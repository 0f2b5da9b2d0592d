"""CSV files as text: their columns, and the line and kind of the first fault.

DuckDB reads them strictly: a surplus field is a fault and is not dropped.  If lines end in
several ways, it reads a copy in which all end with a line feed.  An empty field is null.
"""

import csv
import glob
import gzip
import io
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import InputError
from tasks.survey.private_file import confine, hide_bar
from tasks.survey.sql import text

DELIMITERS = (",", ";", "\t")
LONGEST_HEADER, CHUNK = 2_000_000, 2**20

T = TypeVar("T")

NOT_UTF8 = "is not UTF-8; a spreadsheet saves it as 'CSV UTF-8'"
DAMAGED = "is not a whole gzip file; copy it again from where it was made"
FAULTS = {
    "MISSING COLUMNS": "has fewer fields than the first line",
    "TOO MANY COLUMNS": "has more fields than the first line; quote text that holds the delimiter",
    "LINE SIZE OVER MAXIMUM": "is longer than two million bytes; a quote may not be closed",
    "INVALID ENCODING": NOT_UTF8,
    "UNQUOTED VALUE": 'has a quoted field that does not end with its quote; write " in it as ""',
}
"""Words for each kind of fault of a line that DuckDB reports."""


@dataclass(frozen=True)
class CSVFile:
    """A file, and how it is read."""

    path: Path
    delimiter: str
    columns: int

    def sql(self, more: str = "") -> str:
        """The table of its fields, ``c0`` and so on, all text."""
        kinds = ", ".join(f"c{i}: 'VARCHAR'" for i in range(self.columns))
        return (
            f"read_csv({text(glob.escape(str(self.path)))}, auto_detect=false, header=true,"
            f" delim={text(self.delimiter)}, quote='\"', escape='\"', nullstr='',"
            f" hive_partitioning=false, columns={{{kinds}}}{more})"
        )


def csv_headers(path: Path, name: object) -> dict[str, list[str]]:
    """The first line of a CSV file, split by each delimiter; no other line is kept.

    ``name``: the user's name of the file.  Raises ``InputError`` if it is not text.
    """
    line = _whole(lambda: _first_line(path), name)
    if any("\ud800" <= sign <= "\udfff" for sign in line):
        raise InputError(f"{name}: line 1 {NOT_UTF8}")
    return {d: next(csv.reader(io.StringIO(line, newline=""), delimiter=d), []) for d in DELIMITERS}


def _whole(action: Callable[[], T], name: object) -> T:
    with suppress(EOFError, gzip.BadGzipFile, zlib.error):
        return action()
    raise InputError(f"{name}: {DAMAGED}")


def _first_line(path: Path) -> str:
    """The header; quoted names may contain line ends, and bytes that are not UTF-8 are kept."""
    with (
        opened(path) as file,
        io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="") as read,
    ):
        line = read.readline()
        while line.count('"') % 2 and len(line) < LONGEST_HEADER and (more := read.readline()):
            line += more
    return line


def opened(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open the bytes of a file; ``.gz`` is unpacked."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def with_one_line_end(given: CSVFile, target: Path, name: object) -> bool:
    """Write a copy in which every line ends with a line feed; returns whether line ends differed.

    Line ends inside quotes are part of a value and stay.  Raises ``InputError`` as ``csv_headers`` does.
    """
    return _whole(lambda: _with_one_line_end(given, target), name)


def _with_one_line_end(given: CSVFile, target: Path) -> bool:
    total = np.zeros(3, dtype=np.int64)
    with target.open("wb") as written:
        target.chmod(0o600)
        for inside, piece in _pieces(given.path, given.delimiter):
            if not inside:
                total += _line_ends(piece)
                piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            written.write(piece)
    return int((total > 0).sum()) > 1


def csv_fault(file: CSVFile, used: Iterable[str] = ("COLUMNS(*)",)) -> str | None:
    """The first line whose used columns cannot be read, and why, without quoting it; else None."""
    counted = ", ".join(f"count({column})" for column in used)
    # In one part, so that no part begins within quotes, unless they have no end.
    whole = ", parallel=false" if well_quoted(file) else ""
    rejecting = file.sql(f"{whole}, store_rejects=true, rejects_limit=1")
    # One thread, so that the first fault is found first; no folder for temporary files.
    with duckdb.connect(config={"threads": 1, "temp_directory": ""}) as connection:
        hide_bar(connection)
        confine(connection, file.path)
        connection.execute(f"SELECT {counted} FROM {rejecting}").fetchall()
        found = connection.execute(
            "SELECT line_byte_position, error_type FROM reject_errors ORDER BY 1 LIMIT 1"
        ).fetchone()
    if found is None or found[1] not in FAULTS:
        return None
    return f"line {_line_at(file.path, found[0] - 1)} {FAULTS[found[1]]}"


def well_quoted(file: CSVFile) -> bool:
    """Whether every quoted field ends, and readers agree on every quote: none is after blanks at the
    start of a field, or between quoted and other text."""
    inside = True
    with suppress(EOFError, gzip.BadGzipFile, zlib.error, csv.Error):
        ((inside, _),) = deque(_pieces(file.path, file.delimiter, strict=True), maxlen=1)
    return not inside


def _line_at(path: Path, place: int) -> int:
    """The number of the line with the first byte from this position on that is not a line end."""
    line, passed = 1, 0
    for _, piece in _pieces(path, ","):
        if passed + len(piece) > place:
            before = max(place - passed, 0)
            before = len(piece) - len(piece[before:].lstrip(b"\r\n"))
            line += int(_line_ends(piece[:before]).sum())
            if before < len(piece):
                break
        else:
            line += int(_line_ends(piece).sum())
        passed += len(piece)
    return line


def _pieces(path: Path, delimiter: str, strict: bool = False) -> Iterator[tuple[bool, bytes]]:
    """Yield pieces of the file, each with whether it is inside quotes; no piece splits a line end.

    A quote opens at the start of a field, and is text elsewhere outside quotes.  If ``strict``, raises
    ``csv.Error`` at a quote where readers differ.
    """
    inside, held, starts = False, b"", (delimiter.encode(), b"\n", b"\r")
    # The last byte outside quotes; whether it is a blank at the start of a field, or closes quotes.
    before, blank, closed = b"\n", False, False
    with closing(opened(path)) as file:
        while chunk := file.read(CHUNK):
            chunk = held + chunk
            held = chunk[-1:] if chunk.endswith(b"\r") else b""
            for i, piece in enumerate(chunk.removesuffix(held).split(b'"')):
                if i:
                    if strict and blank and not inside:
                        raise csv.Error
                    closed, inside = inside, not inside and (closed or before in starts)
                    before, blank = b'"', False
                    yield True, b'"'
                if piece and not inside:
                    if strict and closed and piece[:1] not in starts:
                        raise csv.Error
                    last = piece.rstrip(b" ")[-1:]
                    blank = piece.endswith(b" ") and (last or before) in (*starts, b" ")
                    closed, before = False, piece[-1:]
                yield inside, piece
    yield inside, held


def _line_ends(piece: bytes) -> NDArray[np.int64]:
    """The numbers of CR LF, of LF alone and of CR alone."""
    both = piece.count(b"\r\n")
    return np.array([both, piece.count(b"\n") - both, piece.count(b"\r") - both])
