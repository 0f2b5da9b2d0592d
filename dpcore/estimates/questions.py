"""Questions that one or two tables answer: correlations, independence and quantiles, with their errors.

All start from the best estimate of a table, whose cells have a known covariance.  Errors are to first
order.  The influence of a cell is the derivative of an answer by the cell's share, so

    sampling^2 = m sum of share influence^2 / n,    privacy^2 = variance of sum of influence count / n^2

m: the most records of one unit (``dpcore.post.units``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from dpcore.arrays import Booleans, Floats
from dpcore.domain.axes import Bins, Categories, Grid, middles
from dpcore.errors import InputError
from dpcore.estimates.design import ModelRecords, Variable
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.inside import moved_inside
from dpcore.estimates.model import LEANING, SPANNED, Coefficient, notes_inside, unmeasured
from dpcore.post.levels import SIGMAS_95
from dpcore.post.tables.margins import Attributes
from dpcore.post.tables.refined import MOST_REFINED, Refined


@dataclass(frozen=True)
class Independence:
    """A chi-square test that two columns are independent; it includes sampling and noise."""

    columns: tuple[str, str]
    statistic: float
    degrees: int
    p_value: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        says = f"independence of {' and '.join(self.columns)}: p = {self.p_value:.3g}"
        says += f" (chi-square {self.statistic:.4g}, degrees of freedom {self.degrees})"
        return "\n".join([says, *(f"Note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class Quantile:
    """A quantile, placed inside its bin by synthetic records, and its 95% interval, which ends at bin
    edges."""

    column: str
    level: float
    value: float
    interval: tuple[float, float]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        ends = " to ".join(f"{end:.6g}" for end in self.interval)
        says = f"quantile {self.level:.4g} of {self.column}: {self.value:.6g} (95% interval {ends})"
        return "\n".join([says, *(f"Note: {note}" for note in self.notes)])


def correlation(evidence: Evidence, one: str, other: str) -> Coefficient:
    """Pearson's correlation of two columns of numbers; records with a null in either are left out.

    Correlation inside cells is taken from the synthetic records; ``spanned`` is the share of the
    variances that lies between cells.  The errors allow for the rest as in models
    (``estimates.calibrated``).
    """
    attributes, shares, rows, kept = _shares(evidence, one, other)
    records = _without_nulls(evidence, attributes)
    first, second = (_number(evidence, records, name, f"{one}, {other}") for name in (one, other))
    moments = []
    for side in (first, second):
        axis = attributes.index(side.attributes[0])
        cells = evidence.codes[records.kept, side.attributes[0]]
        counts = np.bincount(cells, minlength=len(side.cells))
        squares = np.bincount(cells, side.values[records.kept] ** 2, len(side.cells))
        square = np.where(counts > 0, squares / np.maximum(counts, 1), side.cells**2)
        shape = [-1 if i == axis else 1 for i in range(2)]
        mean = float(np.sum(shares * side.cells.reshape(shape)))
        # Within a cell values differ, so their mean square is more than the square of their mean.
        centred = (side.cells - mean).reshape(shape)
        around = (square - 2 * mean * side.cells + mean**2).reshape(shape)
        moments.append((centred, around, float(np.sum(shares * around)), side.values - mean))
    (x, x2, vx, x_of), (y, y2, vy, y_of) = moments
    if vx <= 0 or vy <= 0:
        raise InputError(f"{one}, {other}: the noise is larger than the variance of one of them")
    scale = (vx * vy) ** 0.5
    cells = np.ravel_multi_index(tuple(evidence.codes[records.kept][:, attributes].T), shares.shape)
    counts = np.bincount(cells, minlength=shares.size).reshape(shares.shape)
    sums = np.bincount(cells, (x_of * y_of)[records.kept], shares.size).reshape(shares.shape)
    xy = np.where(counts > 0, sums / np.maximum(counts, 1), x * y)
    moved = moved_inside(evidence, records, first, second, evidence.table(attributes))
    moved = moved / rows / scale
    value = float(np.sum(shares * xy)) / scale + moved
    influence = (xy / scale - value * (x2 / vx + y2 / vy) / 2) * kept
    sampling = evidence.most * float(np.sum(np.maximum(shares, 0) * influence**2)) / rows
    privacy = evidence.agreement.combination_variance({attributes: influence / rows})
    name = f"correlation of {one} and {other}"
    between = max(float(np.sum(shares * x**2)) / vx, 0.0) * max(
        float(np.sum(shares * y**2)) / vy, 0.0
    )
    spanned = min(between**0.5, 1.0)
    value = float(np.clip(value, -1.0, 1.0))  # the nearest possible correlation
    # Half of the effect of a correlation of 1 inside cells, as in a model.
    open_inside = (moved / 2) ** 2 + ((1 - spanned) / 2) ** 2
    errors = sampling**0.5, (privacy + open_inside) ** 0.5
    notes = evidence.assumes + (f"{name}: {LEANING}",) * (spanned < SPANNED)
    notes += tuple(notes_inside((first, second), records, evidence))
    return Coefficient(name, value, *errors, spanned, within=(-1.0, 1.0), notes=notes)


def independence(evidence: Evidence, one: str, other: str) -> Independence:
    """A test whether two columns are independent; records with a null in either are left out.

    The statistic is the squared distance of the noisy table from the product of its margins, in the
    metric of its covariance, which adds sampling of independent columns and noise.
    """
    attributes, table, rows, kept = _shares(evidence, one, other)
    shares = table[np.ix_(*(np.flatnonzero(kept.any(axis=1 - i)) for i in range(2)))]
    axes = [evidence.domain.axes[a] for a in attributes]
    if kept.size > MOST_REFINED:
        raise InputError(f"{one}, {other}: a test takes at most {MOST_REFINED:,} cells")
    noise = Refined(axes, [(evidence.agreement, evidence.domain.axes)]).covariance
    cells = np.flatnonzero(kept)
    first, second = shares.sum(axis=1), shares.sum(axis=0)
    distance = (shares - np.outer(first, second)).ravel()
    margins = [np.maximum(each, 0) / np.maximum(each, 0).sum() for each in (first, second)]
    expected = np.outer(*margins).ravel()
    of_shares = (np.eye(len(cells)) - expected[:, None]) / rows  # by the counts: they add up to one
    covariance = of_shares @ noise[np.ix_(cells, cells)] @ of_shares.T
    drawn = (np.diag(expected) - np.outer(expected, expected)) / rows
    covariance = covariance + evidence.most * drawn
    # The derivative of a distance by the shares: of each cell, of its row's sum and of its column's.
    rows_of = np.repeat(np.eye(len(first)), len(second), axis=0)
    columns_of = np.tile(np.eye(len(second)), (len(first), 1))
    slope = np.eye(len(cells))
    slope = slope - (rows_of @ rows_of.T) * np.tile(second, len(first))[:, None]
    slope = slope - (columns_of @ columns_of.T) * np.repeat(first, len(second))[:, None]
    values, vectors = np.linalg.eigh(slope @ covariance @ slope.T)
    degrees = (len(first) - 1) * (len(second) - 1)
    if degrees == 0:
        raise InputError(f"{one}, {other}: a column of one value is independent of any other")
    # The differences have this many dimensions; further eigenvalues are rounding errors.
    largest = slice(len(values) - degrees, None)
    statistic = float(np.sum((vectors[:, largest].T @ distance) ** 2 / values[largest]))
    p_value = float(chdtrc(degrees, statistic))
    return Independence((one, other), statistic, degrees, p_value, evidence.assumes)


def quantile(evidence: Evidence, column: str, level: float) -> Quantile:
    """A quantile of a column of numbers in bins, nulls left out.

    The interval is Woodruff's (1952), from the noisy shares below edges.  Inside its bin the quantile is
    placed by the synthetic records there, or linearly if there are none.  Merged cells have less noise,
    but wider bins, than the column's own: the narrower interval is the answer.
    """
    if not 0 < level < 1:
        raise InputError(f"level: must lie between 0 and 1, not {level}")
    tables = [evidence, *(own for name, own in evidence.alone.items() if name == column)]
    found = (_quantile(each, column, level) for each in tables)
    return min(found, key=lambda each: each.interval[1] - each.interval[0])


def _quantile(evidence: Evidence, column: str, level: float) -> Quantile:
    """The quantile from one table of the column."""
    place = _place(evidence, column)
    axis = evidence.domain.axes[place]
    if not isinstance(axis, Bins | Grid):
        raise InputError(f"{column}: has no bins, so it has no quantiles")
    counts = evidence.table((place,))[: axis.cells]
    rows = float(counts.sum())
    if rows <= 0:
        raise InputError(
            f"{column}: has no quantiles, because after noise no records with a value are left"
        )
    edges = axis.edge(np.arange(axis.cells + 1))
    # Noisy counts may be negative, so their sums may fall: an interval ends where they first and last
    # reach a level.
    sums = np.r_[0.0, np.cumsum(counts)] / rows
    rising, lasting = np.maximum.accumulate(sums), np.minimum.accumulate(sums[::-1])[::-1]
    below = np.clip((rising + lasting) / 2, 0.0, 1.0)
    last = min(int(np.searchsorted(below, level, side="right")) - 1, axis.cells - 1)
    part = (level - below[last]) / max(below[last + 1] - below[last], 1e-300)
    made = np.asarray(evidence.columns[column], dtype=np.float64)[evidence.codes[:, place] == last]
    value = float(np.quantile(made, part) if made.size else np.interp(level, below, edges))
    inside = np.zeros(axis.cells)
    inside[:last], inside[last] = 1.0, part
    influence = np.zeros(axis.size)
    influence[: axis.cells] = inside - level
    privacy = evidence.agreement.combination_variance({(place,): influence / rows})
    error = (evidence.most * level * (1 - level) / rows + privacy) ** 0.5
    # Positions inside bins are unknown: the interval ends at edges, or at the last whole number.
    first = min(np.searchsorted(rising, level - SIGMAS_95 * error, side="right") - 1, last)
    end = max(np.searchsorted(lasting, level + SIGMAS_95 * error), last + 1)
    lower, upper = (edges[np.clip(i, 0, axis.cells)] for i in (first, end))
    interval = float(lower), max(float(upper) - axis.integer, value)
    return Quantile(column, level, value, interval, evidence.assumes)


def _without_nulls(evidence: Evidence, attributes: Attributes) -> ModelRecords:
    """The synthetic records; only those with a value in all these columns are kept."""
    names = [evidence.domain.names[a] for a in attributes]
    null = np.any([np.ma.getmaskarray(evidence.columns[name]) for name in names], axis=0)
    if null.all():
        raise InputError(f"{', '.join(names)}: no record has a value in all of them")
    return ModelRecords(evidence.domain, evidence.codes, ~null)


def _number(evidence: Evidence, records: ModelRecords, name: str, asked: str) -> Variable:
    """A column of numbers, its values and its mean in each cell."""
    place = _place(evidence, name)
    axis = evidence.domain.axes[place]
    if isinstance(axis, Categories) and any(isinstance(each, str) for each in axis.categories):
        raise InputError(f"{asked}: a correlation needs two columns of numbers")
    values = np.asarray(evidence.columns[name][records.kept], dtype=np.float64)

    def at_middles() -> Floats:
        return np.asarray(np.ma.filled(middles(axis).astype(np.float64), 0.0))

    return Variable.over(name, values, records, (place,), at_middles)


def _place(evidence: Evidence, name: str) -> int:
    if name not in evidence.domain.names:
        raise InputError(f"{name}: is not one of {', '.join(evidence.domain.names)}")
    return evidence.domain.names.index(name)


def _shares(evidence: Evidence, one: str, other: str) -> tuple[Attributes, Floats, float, Booleans]:
    """For two columns: attributes, shares of records without nulls, their number, which cells count."""
    if one == other:
        raise InputError(f"{one}: name two columns")
    attributes = tuple(sorted(_place(evidence, name) for name in (one, other)))
    if not evidence.agreement.covers(attributes):
        raise unmeasured("", [[one, other]])
    table = evidence.table(attributes)
    kept = np.ones(table.shape, dtype=bool)
    for i, attribute in enumerate(attributes):
        if evidence.domain.axes[attribute].nullable:
            np.moveaxis(kept, i, 0)[-1] = False
    rows = float(table[kept].sum())
    if rows <= 0:
        raise InputError(
            f"{one}, {other}: nothing can be computed, because after noise no records with both values"
            " are left; ask about columns with more values"
        )
    return attributes, np.where(kept, table, 0.0) / rows, rows, kept
