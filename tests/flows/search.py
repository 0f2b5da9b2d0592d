"""Look for values in everything that a run leaves behind, however they were written.

A file is searched as it is, and so is what it unpacks to: the cells of SQLite databases,
the columns of Parquet files, base64 texts, and streams of zlib, gzip and zstandard; each of them
again, to a depth of four.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

DEPTH = 4
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{24,}={0,2}")
STREAMS = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]|\x28\xb5\x2f\xfd")


def needles(value: str | int | float) -> list[bytes]:
    """The value in every encoding that is looked for; too short ones would be found by chance."""
    if isinstance(value, str):
        texts = {value, value.upper(), value.lower(), json.dumps(value)[1:-1]}
        packed = set()
    else:
        texts = {repr(value), repr(float(value))}
        packed = {struct.pack(f"{order}d", value) for order in "<>"}
    if isinstance(value, int):
        packed |= {struct.pack(f"{order}q", value) for order in "<>"}
        packed.add(b"J" + struct.pack("<i", value))  # as a pickle has it
    for text in texts:
        for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "latin-1"):
            packed.add(text.encode(encoding, "replace"))
    for plain in list(packed):
        packed |= {plain.hex().encode(), plain.hex().upper().encode()}
        for shift in range(3):
            # The characters at either end also depend on what stands beside the value.
            start, end = (0, 2, 3)[shift], (len(plain) + shift) * 8 // 6
            packed.add(base64.b64encode(b"\0" * shift + plain)[start:end])
    return sorted(needle for needle in packed if len(needle) >= 5)


def pattern_of(texts: Iterable[bytes]) -> re.Pattern[bytes]:
    """Any of the texts, by their first byte: hundreds side by side take ten times as long."""
    groups = groupby(sorted(texts), lambda text: text[:1])
    rests = {first: b"|".join(re.escape(text[1:]) for text in of) for first, of in groups}
    return re.compile(b"|".join(re.escape(f) + b"(?:" + rest + b")" for f, rest in rests.items()))


def occurrences(folder: Path, values: Iterable[str | int | float]) -> list[str]:
    """Where any of the values stands in the files of the folder or in their names."""
    pattern = pattern_of({needle for value in values for needle in needles(value)})
    found = []
    for path in sorted(folder.rglob("*")):
        if pattern.search(str(path.relative_to(folder)).encode()):
            found.append(f"{path} (its name)")
        if path.is_file() and any(pattern.search(view) for view in views(path)):
            found.append(str(path))
    return found


def values_in(folder: Path, values: Iterable[str | int | float]) -> set[str | int | float]:
    """Those of the values that stand in any file of the folder."""
    patterns = {v: pattern_of(needles(v)) for v in values}
    found: set[str | int | float] = set()
    for path in folder.rglob("*"):
        for view in views(path) if path.is_file() else ():
            found |= {v for v in patterns.keys() - found if patterns[v].search(view)}
    return found


def views(path: Path) -> Iterator[bytes]:
    """A file as it is, and everything that it unpacks to."""
    whole = path.read_bytes()
    yield from unpacked(whole, DEPTH)
    if whole.startswith(b"SQLite format 3"):
        yield from (view for cell in _cells(path) for view in unpacked(cell, DEPTH))
    if whole.startswith(b"PAR1"):
        yield from (view for cell in _columns(path) for view in unpacked(cell, DEPTH))


def unpacked(content: bytes, depth: int) -> Iterator[bytes]:
    """The bytes, and what lies packed in them."""
    yield content
    if depth:
        for inner in (*_decoded(content), *_inflated(content)):
            yield from unpacked(inner, depth - 1)


def _decoded(content: bytes) -> Iterator[bytes]:
    for run in BASE64.findall(content):
        text = run.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
        for shift in range(4):
            part = text[shift:]
            yield base64.b64decode(part[: len(part) // 4 * 4])


def _inflated(content: bytes) -> Iterator[bytes]:
    for match in STREAMS.finditer(content):
        packed = content[match.start() :]
        try:
            if packed.startswith(b"\x28\xb5\x2f\xfd"):
                with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
                    inner = stream.read()
            else:
                inner = zlib.decompressobj(wbits=47).decompress(packed)
        except (OSError, zlib.error):
            continue
        if inner:
            yield inner


def _cells(path: Path) -> Iterator[bytes]:
    """Every cell of an SQLite database: long ones are scattered over its pages.

    A copy is opened, because closing a database folds its write-ahead log into it.
    """
    with ExitStack() as stack:
        copies = Path(stack.enter_context(TemporaryDirectory()))
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, copies)
        connection = stack.enter_context(closing(sqlite3.connect(copies / path.name)))
        connection.text_factory = bytes
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in names:
            for row in connection.execute(f'SELECT * FROM "{name.decode()}"'):
                for cell in row:
                    yield cell if isinstance(cell, bytes) else str(cell).encode()


def _columns(path: Path) -> Iterator[bytes]:
    """Every column of a Parquet file as text and as its Arrow buffers."""
    for column in pq.ParquetFile(path).read().columns:
        yield "\n".join(map(repr, column.to_pylist())).encode()
        for chunk in column.chunks:
            yield from (buffer.to_pybytes() for buffer in chunk.buffers() if buffer)
