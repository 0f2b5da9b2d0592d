"""Noisy margins with most of their noise removed, by shrinkage towards a model of all of them.

A mixture fitted to all margins (``mixture``) has little noise but may be wrong; a noisy table is
unbiased but mostly noise.  A better table lies between them, cell by cell:

    denoised = model + r (noisy - model),     r = s^2 / (s^2 + noise variance),     s^2 = t model^e

The variance s^2 of the truth around the model is estimated from the table itself: the scale t and the
exponent e (1: as for counts; 2: proportional errors) maximise the likelihood of the noisy cells, which
are normal with variance s^2 + noise variance about the model.  This is empirical Bayes shrinkage
(Efron & Morris 1973) towards a regression.  Where the noise is small, or the model wrong, r is near
one and the noisy table hardly changes; where a table is pure noise, r is near zero.

The result is biased, unlike the noisy margins.  It is meant for synthetic records, whose error it
halves on tables of many cells.

>>> import numpy as np
>>> model, noisy = np.array([[40.0, 10.0], [10.0, 40.0]]), np.array([[44.0, 8.0], [3.0, 45.0]])
>>> shrink(model, noisy, 1e6).round(2).tolist(), shrink(model, noisy, 1e-6).round(2).tolist()
([[40.0, 10.0], [10.0, 40.0]], [[44.0, 8.0], [3.0, 45.0]])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from dpcore.arrays import Booleans, Floats
from dpcore.post.records.mixture import fit_mixture
from dpcore.post.records.nested import Nested
from dpcore.post.tables.margins import Margin, Residual

EXPONENTS = (1.0, 1.5, 2.0)
SCALES = tuple(10.0 ** (quarter / 4) for quarter in range(-24, 17))
"""Candidates for e and t; t is near zero where the model fits perfectly."""

TILTS, RAKED = 12, 3
"""Steps to a table with a rank correlation, and how often its columns are adjusted in each."""

FITTED = 3
"""How often a correlation and the other deviations of a table from its model are estimated in turn."""

LEAST = 1e-3
"""Of the model, in any cell of such a table."""

STEEPEST = 20.0
"""The largest exponent of a step: factors stay finite."""

NO_NOISE = 4.0
"""In standard deviations of the noise."""


def denoise(
    sizes: Sequence[int],
    margins: Sequence[Margin],
    generator: np.random.Generator,
    *,
    total: float,
    measured: Sequence[Margin | Residual] | None = None,
    ordered: Collection[int] = (),
    linked: Sequence[int] | None = None,
    forms: Booleans | None = None,
    nested: Sequence[Nested] = (),
    progress: Callable[[int, int], None] | None = None,
) -> list[Margin]:
    """The margins with less noise and some bias; their stated variance is still that of the noise.

    ``margins``: noisy, of one attribute or more each; ``measured``: what they were made of, by default
    themselves, which the model is fitted to; ``total``, ``ordered``, ``linked``, ``forms``,
    ``nested``, ``progress``: as for ``fit_mixture``.

    Tables may be slightly negative and need not agree.
    """
    noisy = [each for each in margins if each.variance > 0]  # a cell that is the total has no noise
    if total == 0 or not noisy:
        return list(margins)
    drawn = [each for each in measured or noisy if each.variance > 0 and each.attributes]
    known = {attribute for each in drawn for attribute in each.attributes}
    constant = [Margin((a,), np.array([total]), 1.0) for a in range(len(sizes)) if a not in known]
    mixture = fit_mixture(
        sizes,
        [*drawn, *constant],
        generator,
        total=total,
        ordered=ordered,
        linked=linked,
        forms=forms,
        nested=nested,
        progress=progress,
    )
    models = [total * mixture.shares(margin.attributes) for margin in noisy]
    shrunken = [
        shrink(model, margin.table, margin.variance)
        for model, margin in zip(models, noisy, strict=True)
    ]
    values = {a: (linked or sizes)[a] for a in ordered}
    keep_trends(shrunken, models, noisy, values)
    better = iter(
        margin._replace(table=table) for margin, table in zip(noisy, shrunken, strict=True)
    )
    return [next(better) if margin.variance > 0 else margin for margin in margins]


def keep_trends(
    shrunken: Sequence[Floats],
    models: Sequence[Floats],
    noisy: Sequence[Margin],
    values: Mapping[int, int],
) -> None:
    """Give the tables of two ordered columns the rank correlations that the noisy tables show.

    Shrinkage cell by cell takes away much of a correlation that no single cell shows.  Its noise is
    small, being spread over all cells, so it is shrunken by itself, towards that of the model and
    as much as the correlations of all pairs say.  Cells that a strong correlation excludes become
    empty.  ``values``: by ordered attribute, how many of its first cells are values; changes
    ``shrunken``.
    """
    trends = [
        (place, trend)
        for place, margin in enumerate(noisy)
        if len(margin.attributes) == 2 and all(a in values for a in margin.attributes)
        if (trend := _trend(models[place], [values[a] for a in margin.attributes])) is not None
    ]
    if not trends:
        return
    found, errors = np.transpose([_moment(models[i], noisy[i], t) for i, t in trends])
    spread = max(float(np.mean(found**2 - errors)), 0.0)
    for (place, trend), moment, error in zip(trends, found, errors, strict=True):
        wanted = moment * max(spread / (spread + error), 1 - error / moment**2)
        model = models[place]
        goal = float(np.sum(trend * model)) + wanted
        shrunken[place][...] = _tilted(
            np.maximum(shrunken[place], LEAST * model), model, trend, goal
        )


def _moment(model: Floats, noisy: Margin, trend: Floats) -> tuple[float, float]:
    """How much larger the sum of products with the trend is than the model's, and its variance.

    Least squares for a in: noisy = model (1 + a trend) + other deviations, of variance in proportion
    to the model, + noise.  Where these other deviations are large beside the noise, it is the sum
    of the noisy table itself; where noise is all, cells count by how many records they have.
    """
    linear, distance = model * trend, noisy.table - model
    slope = 0.0
    for _ in range(FITTED):
        evidence = log_likelihoods(model, model + distance - slope * linear, noisy.variance)
        others = SCALES[int(evidence[0].argmax())] * model + noisy.variance
        known = float(np.sum(linear**2 / others))
        slope = float(np.sum(linear * distance / others)) / known
    scale = float(np.sum(linear * trend))
    return scale * slope, scale**2 / known


def _tilted(table: Floats, model: Floats, trend: Floats, goal: float) -> Floats:
    """The positive table times exp(a trend), with about this sum of its products with the trend and the
    model's counts of either column: all three have one shape."""
    # Where all but a few records share one value, the trend of the others is in the hundreds.
    furthest = min(1.0, STEEPEST / float(np.abs(trend).max()))
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
    """A table of products of both columns' ranks, of variance one each; None where one has no spread, or
    no record has values of both."""
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


def shrink(
    model: Floats, noisy: Floats, variance: float | Floats, evidence: Floats | None = None
) -> Floats:
    """A table between the model and the noisy one; all three have the same shape.

    ``model``: positive counts; ``variance``: of the noise in each cell; ``evidence``: the log
    likelihood of each candidate for e and t, by default that of this table alone.
    """
    if evidence is None:
        evidence = log_likelihoods(model, noisy, variance)
    spread = _spread(model, evidence)
    return np.asarray(model + spread / (spread + variance) * (noisy - model))


def kept_beside(model: Floats, noisy: Floats, variance: float) -> Floats:
    """The part of its distance from the model that each cell (k,) of a noisy table keeps.

    All of it where the distance is no noise, as of a value that many people have; the other cells
    are judged without these.
    """
    outside = (noisy - model) ** 2 > (NO_NOISE**2) * variance
    spread = _spread(model, log_likelihoods(model[~outside], noisy[~outside], variance))
    return np.where(outside, 1.0, spread / (spread + variance))


def _spread(model: Floats, evidence: Floats) -> Floats:
    """The variance of the truth around each cell of the model."""
    exponent, scale = np.unravel_index(int(evidence.argmax()), evidence.shape)
    return np.asarray(SCALES[scale] * np.maximum(model, 1e-9) ** EXPONENTS[exponent])


def log_likelihoods(model: Floats, noisy: Floats, variance: float | Floats) -> Floats:
    """(exponents, scales) log likelihood of the noisy table about the model, up to a constant."""
    base = np.maximum(model.ravel(), 1e-9)
    variance = np.ravel(variance)
    squares = (noisy - model).ravel() ** 2
    result = np.empty((len(EXPONENTS), len(SCALES)))
    for i, exponent in enumerate(EXPONENTS):
        power = base**exponent
        for j, scale in enumerate(SCALES):
            both = scale * power + variance
            result[i, j] = -float(np.sum(np.log(both / variance) + squares / both)) / 2
    return result
