r"""Where values lie inside their bins, as the counts of neighbouring bins say.

A total over records of a function g of some columns is computed from a table: the sum over its cells
of count times the mean of g in the cell.  Inside a bin a of one column, of width w, the values of
records that are in cell b of the other columns need not have the mean of all records of the bin: wages
differ by experience inside five years of it too.  With the density p(x, b) nearly straight inside a bin,

    mean of x in (a, b), less the middle   =   w^2 / 12 * p'(a, b) / p(a, b) + O(w^4),

and the same of all records of the bin, which is what their mean in a column alone says.  To first order
the total is therefore too small by

    sum over a, b of  n(a, b) dg/dx (a, b) w^2 / 12 (p'(a, b) / p(a, b) - p'(a) / p(a)),

(Sheppard 1898 corrects moments of one column in this way).  It is linear in the table but for the part
n(a, b) / n(a), so its noise is that of the table times w^2 / 12 over squared distances of bins: little.
Whole numbers have w^2 - 1 in the place of w^2.  Cells of a single value that many records have, say
nothing of the density beside them and are left out.

>>> from dpcore.domain.axes import Bins, Categories
>>> axes = (Bins("age", (0, 10, 20, 30), False), Categories("old", ("no", "yes")))
>>> rising = np.array([[30.0, 0.0], [20.0, 10.0], [10.0, 20.0]])  # older ones are more often "yes"
>>> age_of_old = np.outer([1.0, 1.0, 1.0], [0.0, 1.0])  # changes by 1 with each year, of old ones
>>> round(moved_inside(age_of_old, rising, axes, 0)[0], 1)
25.0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis, Bins
from dpcore.estimates.design import ModelRecords, Variable

FEW = 10.0
"""Bins with fewer records than the average over this number correct nothing."""


def moved_inside(
    changes: Floats, table: Floats, axes: Sequence[Axis], place: int
) -> tuple[float, Floats]:
    """By how much the sum of a function over a table is too small, because of the bins of one axis;
    and by how much more for one more record in each cell.

    ``changes``: dg/dx inside each cell, x being the column of this axis; like ``table`` it has the shape
    of the axes.
    """
    axis, weights = axes[place], np.zeros(table.shape)
    if not isinstance(axis, Bins) or len(axes) < 2:
        return 0.0, weights
    edges = np.array(axis.edges, dtype=np.float64)
    width, middles = np.diff(edges), (edges[:-1] + edges[1:]) / 2
    kept = np.flatnonzero((width > 0) & ~np.isin(edges[:-1], axis.masses))
    if len(kept) < 2:
        return 0.0, weights
    width, middles = width[kept], middles[kept]
    change, counts = (
        np.moveaxis(each, place, 0)[kept].reshape(len(kept), -1) for each in (changes, table)
    )
    squared = width**2 - 1 if axis.integer else width**2
    slopes = np.gradient(np.eye(len(kept)), middles, axis=0) * width[:, None] / width
    alone = counts.sum(axis=1, keepdims=True)
    many = alone > abs(alone.mean()) / FEW  # elsewhere noise would make shares of any size
    alone = np.where(many, alone, 1.0)
    change = change * (squared / 12)[:, None]
    apart = many * (change - np.sum(change * counts / alone, axis=1, keepdims=True))
    slope = slopes @ counts
    moved = slopes.T @ apart - apart * (slope.sum(axis=1, keepdims=True) / alone)
    whole = np.moveaxis(weights, place, 0)
    whole[kept] = moved.reshape(len(kept), *whole.shape[1:])
    return float(np.sum(apart * slope)), weights


def slopes_inside(variable: Variable, records: ModelRecords, name: str, column: Any) -> Floats:
    """How a variable changes with a column inside its cells, in their shape: by regression over the
    records (m,) in each cell; 0 where it does not, as of a condition that a bin meets as a whole."""
    place = records.domain.names.index(name)
    if place not in variable.attributes:
        return np.zeros_like(variable.cells)
    kept = records.kept & ~np.ma.getmaskarray(column)
    codes = records.codes[kept][:, list(variable.attributes)]
    cells, size = np.ravel_multi_index(tuple(codes.T), variable.cells.shape), variable.cells.size
    x, u = np.ma.getdata(column)[kept].astype(np.float64), variable.values[kept]
    number = np.maximum(np.bincount(cells, minlength=size), 1)
    x, u = (each - (np.bincount(cells, each, size) / number)[cells] for each in (x, u))
    squares, products = (np.bincount(cells, x * each, size) for each in (x, u))
    found = np.divide(products, squares, out=np.zeros(size), where=squares > 0)
    return np.asarray(found.reshape(variable.cells.shape))
