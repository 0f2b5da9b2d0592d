"""Texts as cells: each code holds seven bytes of UTF-8; the first code holds the first bytes.

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
"""Bytes in one code, which is then below ``words.LARGEST_WORD``: each code is a separate word."""

CODES = 15
LONGEST = BYTES * CODES
"""The longest text, in bytes: 105 ASCII letters, 52 Greek letters or 35 Chinese characters."""


def texts(column: str) -> Domain:
    """The texts of a column, each of which is one cell."""
    codes = 256**BYTES
    return Domain(
        tuple(
            Grid(f"{column}.{i + 1}", 0.0, float(codes), codes, integer=True) for i in range(CODES)
        )
    )


def has_cell(text: str) -> bool:
    """Whether a text has a cell: it is short enough and contains no NUL."""
    # The first comparison saves encoding very long texts.
    return len(text) <= LONGEST and len(text.encode()) <= LONGEST and "\0" not in text


def cells_of(several: Sequence[str]) -> Integers:
    """The cells (k, ``CODES``) of texts, each of which must have one."""
    filled = b"".join(text.encode().ljust(LONGEST, b"\0") for text in several)
    rows = np.frombuffer(filled, dtype=np.uint8).reshape(-1, CODES, BYTES)
    powers = 256 ** np.arange(BYTES - 1, -1, -1, dtype=np.int64)
    return np.asarray(rows.astype(np.int64) @ powers)


def texts_at(codes: Integers) -> list[str]:
    """The texts of codes (k, any number); bytes that are not UTF-8 are replaced."""
    return [
        b"".join(code.to_bytes(BYTES, "big") for code in row)
        .rstrip(b"\0")
        .decode("utf-8", "replace")
        for row in codes.tolist()
    ]
