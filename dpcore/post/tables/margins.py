"""Margins: count tables over some of the attributes of a survey, and how they are counted.

Attributes are numbered 0..k-1; attribute ``a`` has the codes 0..sizes[a]-1.  A record is a row of
``k`` codes.  The margin of the attributes (a, b) counts the records in every cell of their table:

    codes (rows, k)                 margin of (0, 2), sizes (2, 3, 2)

      a0 a1 a2                            a2=0  a2=1
       0  2  1                     a0=0     0     2
       0  0  1          ---->      a0=1     1     0
       1  1  0

A noisy margin includes the variance of its noise, the same in each cell.  Everything in this package
uses such margins and public numbers only; no function here has access to a survey.

>>> import numpy as np
>>> codes = np.array([[0, 2, 1], [0, 0, 1], [1, 1, 0]])
>>> margins_of(codes, (2, 3, 2), [(0, 2)])[0].tolist()
[[0, 2], [1, 0]]
>>> noisy = Margin((0, 2), np.array([[0.4, 2.5], [0.0, -0.1]]), variance=0.25)
>>> summed_to(noisy.table, noisy.attributes, (2,)).round(6).tolist()
[0.4, 2.4]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers

Attributes = tuple[int, ...]


class Margin(NamedTuple):
    """One noisy margin.

    ``attributes``: ascending attribute numbers; ``table``: one axis per attribute, in that order;
    ``variance``: of the noise in each cell, positive (independent between cells and margins).
    """

    attributes: Attributes
    table: Floats
    variance: float


class Residual(NamedTuple):
    """A noisy table with centred axes: it contains no information about the tables inside it.

    ``variance``: of the noise in each cell before the centring.
    """

    attributes: Attributes
    table: Floats
    variance: float


def checked_attributes(attributes: Sequence[int], sizes: Sequence[int]) -> Attributes:
    """The attributes as a tuple of ascending numbers below ``len(sizes)``, or ``ValueError``."""
    result = tuple(int(attribute) for attribute in attributes)
    known = all(0 <= attribute < len(sizes) for attribute in result)
    if not known or list(result) != sorted(set(result)):
        raise ValueError(
            f"attributes must ascend without repetition within 0..{len(sizes) - 1}, not {result}"
        )
    return result


def cells(attributes: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of cells of the table of these attributes."""
    return math.prod(sizes[attribute] for attribute in attributes)


def summed_to(table: NDArray[Any], attributes: Attributes, kept: Attributes) -> NDArray[Any]:
    """The table of ``attributes``, summed over those that are not in their subset ``kept``."""
    gone = tuple(axis for axis, attribute in enumerate(attributes) if attribute not in kept)
    return np.asarray(table.sum(axis=gone))


def one_way(sizes: Sequence[int], margins: Sequence[Margin]) -> list[Margin]:
    """The margin of every single attribute, summed from the first margin that contains it.

    If it has a single value, its margin is the total, which a measurement may leave out.
    """
    result = []
    for attribute in range(len(sizes)):
        holding = [margin for margin in margins if attribute in margin.attributes]
        if not holding and sizes[attribute] == 1 and margins:
            total = np.array([margins[0].table.sum()])
            result.append(Margin((attribute,), total, margins[0].variance))
            continue
        if not holding:
            raise ValueError(f"attribute {attribute} is in no margin")
        table = summed_to(holding[0].table, holding[0].attributes, (attribute,))
        result.append(Margin((attribute,), table, holding[0].variance))
    return result


def packed(columns: Integers, attributes: Attributes, sizes: Sequence[int]) -> Integers:
    """The cell of every record in the flattened (row-major) margin of ``attributes``.

    ``columns``: (k, rows), one row per attribute.  Returns (rows,).
    """
    result = np.zeros(columns.shape[1], dtype=np.int64)
    for attribute in attributes:
        result *= sizes[attribute]
        result += columns[attribute]
    return result


def margins_of(
    codes: Integers,
    sizes: Sequence[int],
    attributes_list: Iterable[Sequence[int]],
    weights: Integers | None = None,
) -> list[Integers]:
    """The margins of a table of records: one integer count table for each tuple of attributes.

    ``codes``: (rows, k), with 0 <= codes[:, a] < sizes[a]; ``weights``: (rows,) how many records each
    row counts as, with a sum below 2^53.
    """
    columns = np.ascontiguousarray(codes.T, dtype=np.int64)
    result = []
    for given in attributes_list:
        attributes = checked_attributes(given, sizes)
        size = cells(attributes, sizes)
        counts = np.bincount(packed(columns, attributes, sizes), weights, minlength=size)
        shape = [sizes[attribute] for attribute in attributes]
        result.append(counts.astype(np.int64).reshape(shape))
    return result
