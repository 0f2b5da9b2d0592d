"""Texts as cells: of seven bytes of UTF-8 each code is made, the first one from the first bytes.

    "Bern"    ->  0x4265726E000000, 0, 0, ...

Every text of at most ``LONGEST`` bytes has a cell, and no two texts have the same one: a text that holds
the character NUL has none, because zeros fill the last code.  Cells ascend as the bytes do.

>>> cells = cells_of(["Bern", "Genève"])
>>> cells.shape, texts_at(cells)
((2, 15), ['Bern', 'Genève'])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain

BYTES = 7
"""Of a code, which then stays below ``words.LARGEST_WORD``: each is a word of its own."""

CODES = 15
LONGEST = BYTES * CODES
"""The longest text, in bytes: 105 letters of ASCII, 52 Greek ones, 35 Chinese ones."""


def texts(column: str) -> Domain:
    """The texts of a column, one cell each."""
    codes = 256**BYTES
    return Domain(
        tuple(
            Grid(f"{column}.{i + 1}", 0.0, float(codes), codes, integer=True) for i in range(CODES)
        )
    )


def has_cell(text: str) -> bool:
    """Whether a text is short enough, and holds no NUL."""
    return len(text) <= LONGEST and len(text.encode()) <= LONGEST and "\0" not in text


def cells_of(several: Sequence[str]) -> Integers:
    """Cells (k, ``CODES``) of texts that have one."""
    filled = b"".join(text.encode().ljust(LONGEST, b"\0") for text in several)
    rows = np.frombuffer(filled, dtype=np.uint8).reshape(-1, CODES, BYTES)
    powers = 256 ** np.arange(BYTES - 1, -1, -1, dtype=np.int64)
    return np.asarray(rows.astype(np.int64) @ powers)


def texts_at(codes: Integers) -> list[str]:
    """The texts of codes (k, any number); bytes that are no UTF-8, which no text has, are replaced."""
    return [
        b"".join(code.to_bytes(BYTES, "big") for code in row)
        .rstrip(b"\0")
        .decode("utf-8", "replace")
        for row in codes.tolist()
    ]
