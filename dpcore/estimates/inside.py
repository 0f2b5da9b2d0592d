r"""Positions of values inside their bins, estimated from the shares of neighbouring bins.

A total over records of a function g of some columns is computed from a table: the sum over its cells
of count times the mean of g in the cell.  Inside a bin a of one column, the values of records that are
in cell b of the other columns need not have the mean of all records of the bin: wages rise with
experience inside a bin of five years too.  Let q_b(x) be the share of records with value x that are in
b.  If q_b is nearly linear inside the bin, and the values of all records of the bin have variance v(a),

    mean of x in (a, b), less the mean in a   =   v(a) q_b'(a) / q_b(a),

and to first order the total is therefore too small by

    sum over a, b of  n(a) dg/dx (a, b) v(a) q_b'(a),

(Sheppard 1898 corrects moments of one column in a similar way).  Shares change slowly even where bins
differ in width or counts fall by half from one to the next, so their slope is taken between the means of
neighbouring bins.  The total is linear in the table except for n(a).  A cell of a single value that many
records share says nothing about neighbouring values and is left out.

>>> from dpcore.domain.axes import Bins
>>> age = Bins("age", (0, 10, 20, 30), False)
>>> rising = np.array([[30.0, 0.0], [20.0, 10.0], [10.0, 20.0]])  # older ones are more often "yes"
>>> age_of_old = np.outer([1.0, 1.0, 1.0], [0.0, 1.0])  # changes by 1 with each year, of old ones
>>> means, variances = np.array([5.0, 15.0, 25.0]), np.full(3, 100 / 12)
>>> round(moved_in_bins(age_of_old, rising, age, 0, means, variances)[0], 1)
25.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.axes import Bins
from dpcore.estimates.design import ModelRecords, Variable
from dpcore.estimates.evidence import Evidence
from dpcore.post.levels import SIGMAS_95
from dpcore.post.tables.margins import Attributes

FEW = 10.0
"""Bins with fewer records than the average divided by this number are ignored."""


def moved_inside(
    evidence: Evidence, records: ModelRecords, first: Variable, second: Variable, table: Floats
) -> float:
    """The amount by which a product's sum over its table is too small because of bins, shrunk towards
    zero by the size of its random error (James & Stein 1961)."""
    attributes = sorted({*first.attributes, *second.attributes})
    axes, found = [records.domain.axes[a] for a in attributes], 0.0
    for place, axis in enumerate(axes):
        if not isinstance(axis, Bins) or len(axes) < 2:
            continue
        # The evidence has the columns' own names; a formula's domain has names without dots.
        column = evidence.columns[evidence.domain.names[attributes[place]]]
        changes: Floats = np.zeros(table.shape)
        for one, other in ((first, second), (second, first)):
            slopes = replace(one, cells=slopes_in_cells(one, records, axis.name, column))
            product = slopes.times(other, records)
            assert product is not None  # the product itself was made
            changes = changes + product.cells
        inside = bins_of(records, attributes[place], column)
        moved, weights = moved_in_bins(changes, table, axis, place, *inside)
        chance = float(np.sum(weights**2 * np.maximum(table, 0.0)))
        chance += evidence.agreement.combination_variance({tuple(attributes): weights})
        found += moved * max(1 - chance / max(moved**2, 1e-300), 0.0)
    return found


def opened_by_bins(
    evidence: Evidence,
    records: ModelRecords,
    pairs: Sequence[tuple[Variable, Variable]],
    tables: Mapping[Attributes, Floats],
) -> Floats:
    """(k, q) standard errors of q sums of products over their ``tables``, from the unknown positions of
    values inside each of k bins.

    If a bin has a share s of its column's records, the 95% error is min(1, 2 s^2) times the largest
    possible change.  Many bins locate values; one bin with most of the records does not.  This is an
    argument, not a bound; ``benchmarks.unasked`` measures it.
    """
    reach = cache(partial(reach_in_cells, evidence, records))
    found: dict[tuple[int, int], Floats] = {}
    for column, (first, second) in enumerate(pairs):
        attributes = tuple(sorted({*first.attributes, *second.attributes}))
        for place, attribute in enumerate(attributes):
            axis = records.domain.axes[attribute]
            if not isinstance(axis, Bins):
                continue
            change: Floats = np.zeros(tables[attributes].shape)
            for one, other in ((first, second), (second, first)):
                product = replace(one, cells=reach(one, attribute)).times(other, records)
                assert product is not None  # the product itself was made
                change = change + product.cells
            moved = np.moveaxis(change * tables[attributes], place, 0)
            moved = moved.reshape(len(moved), -1).sum(axis=1)[: axis.cells]
            moved *= openness(axis, evidence.table((attribute,))[: axis.cells]) / SIGMAS_95
            for cell in np.flatnonzero(moved):
                found.setdefault((attribute, int(cell)), np.zeros(len(pairs)))[column] = moved[cell]
    return np.array(list(found.values())).reshape(-1, len(pairs))


def reach_in_cells(
    evidence: Evidence, records: ModelRecords, variable: Variable, attribute: int
) -> Floats:
    """The largest change of a variable's mean in each of its cells if values of one column lay elsewhere
    in the cell, within its records' values; with the sign of the slope."""
    name = evidence.domain.names[attribute]
    slopes = slopes_in_cells(
        variable, records, records.domain.axes[attribute].name, evidence.columns[name]
    )
    if not slopes.any():
        return slopes
    codes = records.codes[records.kept][:, list(variable.attributes)]
    cells = np.ravel_multi_index(tuple(codes.T), slopes.shape)
    values, mean = variable.values[records.kept], variable.cells.ravel()
    least, most = mean.copy(), mean.copy()
    np.minimum.at(least, cells, values)
    np.maximum.at(most, cells, values)
    reach = np.maximum(most - mean, mean - least)
    return np.asarray(np.sign(slopes) * reach.reshape(slopes.shape))


def openness(axis: Bins, counts: Floats) -> Floats:
    """(cells,) the 95% error as a fraction of the largest possible change; 0 for a single value."""
    single = (np.diff(axis.edges) == 0) | np.isin(axis.edges[:-1], axis.masses)
    some = np.maximum(counts, 0.0)
    return np.where(single, 0.0, np.minimum(2 * (some / max(some.sum(), 1.0)) ** 2, 1.0))


def moved_in_bins(
    changes: Floats, table: Floats, axis: Bins, place: int, means: Floats, variances: Floats
) -> tuple[float, Floats]:
    """The amount by which the sum of a function over a table is too small, because of the bins of one
    axis; and its derivative by the count of each cell (with n(a) fixed).

    ``changes``: dg/dx inside each cell, x being the column of this axis, in the shape of the table;
    ``means``, ``variances``: (cells,) of x in each bin.
    """
    weights = np.zeros(table.shape)
    counts = np.moveaxis(table, place, 0).reshape(table.shape[place], -1)
    alone = counts.sum(axis=1)
    kept = np.flatnonzero((np.diff(axis.edges) > 0) & ~np.isin(axis.edges[:-1], axis.masses))
    # In bins of few records, noise could give shares of any size.
    kept = kept[alone[kept] * len(kept) > abs(alone[kept].sum()) / FEW]
    if len(kept) < 2 or counts.shape[1] < 2:
        return 0.0, weights
    change = np.moveaxis(changes, place, 0).reshape(counts.shape)[kept]
    alone, shares = alone[kept, None], counts[kept] / alone[kept, None]
    slopes: Any = np.gradient(np.eye(len(kept)), means[kept], axis=0)
    of_share = slopes.T @ (alone * variances[kept, None] * change)
    # One more record in a cell lowers the shares of the other cells in its bin.
    moved = (of_share - np.sum(of_share * shares, axis=1, keepdims=True)) / alone
    whole = np.moveaxis(weights, place, 0)
    whole[kept] = moved.reshape(len(kept), *whole.shape[1:])
    return float(np.sum(of_share * shares)), weights


def slopes_in_cells(variable: Variable, records: ModelRecords, name: str, column: Any) -> Floats:
    """The slope of a variable on a column inside each of the variable's cells, in their shape, by
    regression over the records (m,) there; 0 if it is constant, like a condition that a bin meets."""
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


def bins_of(records: ModelRecords, attribute: int, column: Any) -> tuple[Floats, Floats]:
    """(cells,) the mean and the variance of a column of numbers (m,) in each bin, over the records; in a
    bin without records, for values spread evenly."""
    axis = records.domain.axes[attribute]
    assert isinstance(axis, Bins)
    kept = ~np.ma.getmaskarray(column)
    x, cells = np.ma.getdata(column)[kept].astype(np.float64), records.codes[kept, attribute]
    number = np.bincount(cells, minlength=axis.cells)
    some, number = number > 0, np.maximum(number, 1)
    mean = np.bincount(cells, x, axis.cells) / number
    variance = np.bincount(cells, (x - mean[cells]) ** 2, axis.cells) / number
    edges = np.array(axis.edges, dtype=np.float64)
    even = np.maximum(np.diff(edges) ** 2 - axis.integer, 0.0) / 12
    middle = (edges[:-1] + edges[1:] - axis.integer) / 2
    return np.where(some, mean, middle), np.where(some, variance, even)
