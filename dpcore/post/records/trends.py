"""Rank correlations of two columns, which show in their table as a whole but in no single cell.

Shrinkage cell by cell would lose them.  ``keep_trends`` measures a correlation, weighting cells by their
records, and keeps it in the table to which records are fitted.  But tables contradict each other, and
the records with the least sum of squares have weaker correlations and more noise from many cells.  So
``follow_trends`` fits them again, to targets that exaggerate the missing correlation.  This method of
multipliers tends to the least sum of squares among records with these correlations.

Source: M. R. Hestenes, Journal of Optimization Theory and Applications 4 (1969), 303-320.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.shrinkage import SCALES, log_likelihoods
from dpcore.post.tables.margins import Attributes, Margin, margins_of

TILTS, RAKED = 12, 3
"""Steps towards a table with a given rank correlation, and rounds of raking in each step."""

FITTED = 3
"""How often a correlation and the table's other deviations from its model are estimated in turn."""

LEAST = 1e-3
"""The smallest count in a cell of such a table, as a fraction of the model's."""

STEEPEST = 20.0
"""The largest exponent of a step, so that factors stay finite."""

REFITTED, OVER = 3, 2.5
"""How often records are refitted at most, and how far the missing correlation is exaggerated."""

CLOSE = 0.02
"""Correlations that differ by less are taken as equal."""


class Summed(NamedTuple):
    """A noisy sum over records of a product of two columns' scores, independent of the noisy tables.

    ``products``: the product for each cell of the table of both columns.
    """

    products: Floats
    total: float
    variance: float


def keep_trends(
    shrunken: Sequence[Floats],
    models: Sequence[Floats],
    noisy: Sequence[Margin],
    in_order: Mapping[int, int],
    sums: Mapping[Attributes, Summed] = MappingProxyType({}),
) -> None:
    """Give the tables of two ordered columns the rank correlations that the noisy tables show.

    Shrinkage cell by cell removes much of a correlation that no single cell shows.  The noise of a
    correlation is small, because it averages over all cells.  So it is shrunken separately towards the
    model's correlation, by an amount estimated from all pairs.  Cells that a strong correlation excludes
    become empty.  ``in_order``: as in ``RecordColumns``; ``sums``: sums of products of some pairs, which
    show their correlations too.  Changes ``shrunken`` in place.
    """
    trends = [
        (place, trend)
        for place, margin in enumerate(noisy)
        if len(margin.attributes) == 2 and all(a in in_order for a in margin.attributes)
        if (trend := _trend(models[place], [in_order[a] for a in margin.attributes])) is not None
    ]
    if not trends:
        return
    both = np.array([float(np.sum(models[place] * trend**2)) for place, trend in trends])
    moments, variances = np.transpose(
        [_moment(models[i], noisy[i], t, sums.get(noisy[i].attributes)) for i, t in trends]
    )
    found, errors = moments / both, variances / both**2
    spread = max(float(np.mean(found**2 - errors)), 0.0)
    # A single strong correlation keeps what its own noise cannot explain, if all others are weak.
    kept = np.maximum(spread / (spread + errors), 1 - errors / np.maximum(found**2, 1e-300))
    for (place, trend), change in zip(trends, both * kept * found, strict=True):
        model = models[place]
        goal = float(np.sum(trend * model)) + change
        # Shrunken cells may be negative, and no factor raises a zero.
        shrunken[place][...] = _tilted(
            np.maximum(shrunken[place], LEAST * model), model, trend, goal
        )


def _moment(
    model: Floats, noisy: Margin, trend: Floats, summed: Summed | None
) -> tuple[float, float]:
    """The excess of the sum of products with the trend over the model's sum, and the variance of this
    estimate.

    The estimate is least squares for a in: noisy = model (1 + a trend) + other deviations, with variance
    in proportion to the model, + noise.  If the other deviations are much larger than the noise, the
    result is the sum from the noisy table itself; if noise dominates, cells are weighted by their
    records.  ``summed`` is another estimate of a, with independent noise.
    """
    linear, distance = model * trend, noisy.table - model
    slope = 0.0
    for _ in range(FITTED):
        evidence = log_likelihoods(model, model + distance - slope * linear, noisy.variance)
        others = SCALES[int(evidence[0].argmax())] * model + noisy.variance
        known = float(np.sum(linear**2 / others))
        slope = float(np.sum(linear * distance / others)) / known
    if summed is not None:
        moved = float(np.sum(summed.products * linear))
        direct = (summed.total - float(np.sum(summed.products * model))) * moved / summed.variance
        slope, known = slope * known + direct, known + moved**2 / summed.variance
        slope /= known
    scale = float(np.sum(linear * trend))
    return scale * slope, scale**2 / known


def _tilted(table: Floats, model: Floats, trend: Floats, goal: float) -> Floats:
    """The positive table times exp(a trend), adjusted to have this sum of products with the trend
    (``goal``) and the model's one-way counts; all three tables have the same shape."""
    # If all but a few records share one value, the trend of the others is in the hundreds.
    furthest = min(1.0, STEEPEST / float(np.abs(trend).max()))
    # Raking changes the correlation again, so both are done in turn.
    for _ in range(TILTS):
        now = float(np.sum(trend * table))
        spread = float(np.sum(trend**2 * table)) - now**2 / float(table.sum())
        step = np.clip((goal - now) / max(spread, 1e-300), -furthest, furthest)
        table = table * np.exp(step * trend)
        for _ in range(RAKED):
            for axis in (0, 1):
                counts = np.maximum(table.sum(axis, keepdims=True), 1e-300)
                table = table * model.sum(axis, keepdims=True) / counts
    return table


def _trend(model: Floats, values: Sequence[int]) -> Floats | None:
    """The table of products of both columns' ranks, each of variance 1; None if a column has no
    variance, or no record has values in both."""
    scores = []
    for axis, count in enumerate(values):
        shares = model.sum(1 - axis)
        inside = np.maximum(shares[:count], 0) / max(shares[:count].sum(), 1e-300)
        ranks = np.cumsum(inside) - inside / 2
        ranks -= np.sum(inside * ranks)
        variance = float(np.sum(inside * ranks**2))
        if variance <= 1e-6:
            return None
        scores.append(np.concatenate([ranks / variance**0.5, np.zeros(len(shares) - count)]))
    products = np.outer(*scores)
    return products if np.sum(model * products**2) > 1e-6 * np.sum(model) else None


class _Followed(NamedTuple):
    """A correlation that records should follow.

    ``place``: the position of its target, a two-way table; ``trend``: the products of ranks; ``goal``:
    the sum of products per record; ``unit``: counts that add 1 to this sum and nothing to either
    column's counts.
    """

    place: int
    trend: Floats
    goal: float
    unit: Floats


def follow_trends(
    columns: RecordColumns,
    targets: Sequence[Margin],
    codes: Integers,
    refit: Callable[[Sequence[Margin], Integers], Integers],
) -> tuple[list[Margin], Integers]:
    """Targets, and records (rows, k) fitted to them, that have the correlations of the given targets.

    ``codes``: records fitted to the targets, possibly fewer than the targets count; ``refit``: fits
    records to other targets, starting from given records.
    """
    in_order = columns.in_order
    moved, followed = list(targets), list[_Followed]()
    for place, target in enumerate(targets):
        table = np.maximum(target.table, 0.0)
        if len(target.attributes) == 2 and all(a in in_order for a in target.attributes):
            trend = _trend(table, [in_order[a] for a in target.attributes])
            if trend is not None:
                unit = np.outer(table.sum(1), table.sum(0)) * trend
                unit *= table.sum() / np.sum(unit * trend)
                goal = float(np.sum(trend * table)) / float(table.sum())
                followed.append(_Followed(place, trend, goal, unit))
    best, nearest = (moved, codes), np.inf
    for number in range(REFITTED + 1):
        held = margins_of(
            codes, columns.sizes, [targets[each.place].attributes for each in followed]
        )
        lacking = [
            each.goal - float(np.sum(each.trend * counts)) / len(codes)
            for each, counts in zip(followed, held, strict=True)
        ]
        # Tables that contradict each other much can lead away from all correlations together.
        if (far := float(np.sum(np.square(lacking)))) >= nearest:
            break
        best, nearest = ([*moved], codes), far
        if number == REFITTED or max(map(abs, lacking), default=0.0) <= CLOSE:
            break
        for each, part in zip(followed, lacking, strict=True):
            before = moved[each.place]
            moved[each.place] = before._replace(table=before.table + OVER * part * each.unit)
        codes = refit(moved, codes)
    return best
