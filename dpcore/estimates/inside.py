r"""Where values lie inside their bins, as the counts of neighbouring bins say.

A total over records of a function g of some columns is computed from a table: the sum over its cells of
count times g at the cell's mean.  Inside a bin a of one column, of width w, the values of records that
are in cell b of the other columns need not have the mean of all records of the bin: wages differ by
experience inside five years of it too.  With the density p(x, b) nearly straight inside a bin,

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
>>> age_of_old = np.outer([5.0, 15.0, 25.0], [0.0, 1.0])
>>> round(moved_inside(age_of_old, rising, axes), 1)
25.0
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis, Bins

FEW = 10.0
"""Bins with fewer records than the average over this number correct less."""


def moved_inside(values: Floats, table: Floats, axes: Sequence[Axis]) -> float:
    """By how much the sum over the cells of ``values`` times ``table`` is too small; both have the shape
    of the axes."""
    found = 0.0
    for place, axis in enumerate(axes):
        if not isinstance(axis, Bins) or len(axes) < 2:
            continue
        edges = np.array(axis.edges, dtype=np.float64)
        width, middles = np.diff(edges), (edges[:-1] + edges[1:]) / 2
        kept = np.flatnonzero((width > 0) & ~np.isin(edges[:-1], axis.masses))
        if len(kept) < 2:
            continue
        width, middles = width[kept], middles[kept]
        g, counts = (
            np.moveaxis(each, place, 0)[kept].reshape(len(kept), -1) for each in (values, table)
        )
        squared = width**2 - 1 if axis.integer else width**2
        slope = np.gradient(counts / width[:, None], middles, axis=0) * width[:, None]
        alone = counts.sum(axis=1, keepdims=True)
        # In a nearly empty bin noise would make shares of any size.
        share = counts / np.maximum(alone, abs(alone.mean()) / FEW + 1e-300)
        apart = slope - share * slope.sum(axis=1, keepdims=True)
        change = np.gradient(g, middles, axis=0)
        found += float(np.sum(change * (squared / 12)[:, None] * apart))
    return found
