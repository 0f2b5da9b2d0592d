"""Shares and relations that are selected from noisy tables, with intervals that allow for the selection.

A number that was selected because it is large tends to be too large.  So each interval here misses with
a probability that the caller has divided by how many numbers there are to select from (Bonferroni): all
of them are right at once with the caller's probability, whichever are shown.

A weighted sum of Gaussian noises is within its normal quantile.  For a weighted sum of Laplace noises
with variance v the moment generating function is at most 1 / (1 - v s^2 / 2), and Chernoff's bound gives
the interval.  A share P / W gets Fieller's set (``estimates.fieller``), as P - R W is such a sum too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis
from dpcore.estimates.fieller import bounded_fieller
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes


class MeasuredColumns(NamedTuple):
    """One or two columns of tables that agree; the noise of the tables is Gaussian or Laplace.

    ``attributes``: positions of the columns in the agreement.
    """

    axes: tuple[Axis, ...]
    agreement: Agreement
    attributes: Attributes
    gaussian: bool

    @property
    def standard_error(self) -> float:
        """The standard error of a cell of the columns' joint table."""
        return math.sqrt(self.agreement.margin(self.attributes).variance)


class ShareInterval(NamedTuple):
    """A share with both ends of its interval."""

    value: float
    low: float
    high: float


class Relation(NamedTuple):
    """The share of a value among records with another value, and among all other records.

    ``given``, ``shown``: for each a position in the measured columns and a cell; ``correlation``: the
    smallest correlation of the two indicators that the intervals allow, above 0.
    """

    given: tuple[int, int]
    shown: tuple[int, int]
    among: ShareInterval
    others: ShareInterval
    correlation: float


class _Shares(NamedTuple):
    """Quotients with their intervals, arrays of one shape; NaN where there is none."""

    value: Floats
    low: Floats
    high: Floats

    def at(self, *cell: int) -> ShareInterval:
        return ShareInterval(*(float(each[cell]) for each in self))


def deviations(chance: float, gaussian: bool) -> float:
    """Standard errors that noise exceeds in size with at most this probability.

    >>> round(deviations(0.05, gaussian=True), 2), round(deviations(0.05, gaussian=False), 2)
    (1.96, 4.13)
    """
    if gaussian:
        return -float(ndtri(chance / 2))

    def excess(x: float) -> float:
        root = x * x / (1 + math.sqrt(1 + x * x))
        return math.log(x * x / root) - root - math.log(chance)

    return float(brentq(excess, 1e-3, 1e4)) / math.sqrt(2)


def largest_share(measured: MeasuredColumns, chance: float) -> tuple[int, ShareInterval] | None:
    """The most frequent value of one column, and its share; None if that is null or has no interval."""
    agreement, (axis,) = measured.agreement, measured.axes
    counts, whole = agreement.margin(measured.attributes).table, agreement.margin(()).table
    covariance = agreement.combination_covariance(
        [{measured.attributes: _first_cell(axis)}, {(): np.ones(())}]
    )
    shares = _quotients(counts, whole, covariance, chance, measured.gaussian)
    i = int(np.argmax(counts))
    if (axis.nullable and i == axis.size - 1) or not np.isfinite(shares.low[i]):
        return None
    return i, shares.at(i)


def strongest_relation(measured: MeasuredColumns, chance: float) -> Relation | None:
    """The two values of two columns that are associated most; the share of either may be stated.

    None where the noise allows that the columns are independent: the two intervals overlap for all
    pairs of values.  Each interval misses with at most this probability.
    """
    found = [_relation(measured, given, chance) for given in (0, 1)]
    return max(filter(None, found), key=lambda each: each.correlation, default=None)


def _relation(measured: MeasuredColumns, given: int, chance: float) -> Relation | None:
    """The strongest one among shares that are given the values of this column."""
    shown, agreement = 1 - given, measured.agreement
    one, other = (measured.attributes[i] for i in (given, shown))
    n, whole = agreement.margin(measured.attributes).table, agreement.margin(()).table
    n = n.T if given else n
    group, parts = agreement.margin((one,)).table[:, None], agreement.margin((other,)).table
    first = [_first_cell(axis) for axis in measured.axes]
    sums: list[Mapping[Attributes, Floats]] = [
        {measured.attributes: np.outer(*first)},
        {(one,): first[given]},
        {(other,): first[shown]},
        {(): np.ones(())},
    ]
    covariance = agreement.combination_covariance(sums)
    rest = np.array([[-1.0, 0, 1, 0], [0, -1, 0, 1]])  # parts - n, and whole - group
    law = chance, measured.gaussian
    among = _quotients(n, group, covariance[:2, :2], *law)
    others = _quotients(parts - n, whole - group, rest @ covariance @ rest.T, *law)
    least = among.low - others.high
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = group / whole, parts / whole
        correlation = least * np.sqrt(p * (1 - p) / (q * (1 - q)))
    possible = (least > 0) & np.isfinite(correlation)
    for side, axis in enumerate(measured.axes[i] for i in (given, shown)):
        if axis.nullable:
            possible[(slice(None),) * side + (-1,)] = False
    if not possible.any():
        return None
    best = np.argmax(np.where(possible, correlation, -1.0))
    i, j = map(int, np.unravel_index(best, correlation.shape))
    cells = (given, i), (shown, j)
    return Relation(*cells, among.at(i, j), others.at(i, j), float(correlation[i, j]))


def _quotients(
    number: Floats, divisor: Floats, covariance: Floats, chance: float, gaussian: bool
) -> _Shares:
    """Shares of noisy numbers that all have the same joint covariance (2, 2)."""
    number, divisor = np.broadcast_arrays(number, divisor)
    (variance, joint), (_, of_divisor) = covariance.tolist()
    z = deviations(chance, gaussian)
    low, high = bounded_fieller(number, variance, divisor, of_divisor, joint, z)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _Shares(number / divisor, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


def _first_cell(axis: Axis) -> Floats:
    """Weights that pick one cell: the noise has the same law in every cell of a column."""
    return np.asarray(np.eye(axis.size)[0])
