"""Scores that are learned from a search sample, for mechanisms that are black boxes.

``propose`` returns scores that may separate the draws of both sides.  Bounds hold whatever the scores
are, because outcomes are counted on fresh draws.

>>> generator = np.random.default_rng(1)
>>> near, far = generator.normal(size=(2, 1000, 2))
>>> far[:, 1] += 0.5
>>> [str(score) for score in propose(near, far)][:2]
['number 1', 'log-ratio by number 1']
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from dpcore.arrays import Floats
from dpcore.audit.scores import (
    BinnedRatio,
    Extreme,
    Linear,
    LowBits,
    Projection,
    Quadratic,
    Score,
    SumOfScores,
)
from dpcore.line.mechanism import Outputs

BINS = 64
"""Bins of a learned ratio; a score with fewer distinct values has one bin for each."""

SINGLES = 6
"""How many coordinates become scores by themselves: those that differ most."""

WIDEST = 192
"""The most coordinates that are examined: those that differ most."""

CURVED = 24
"""The most numbers of an output to which a quadratic form is fitted."""

_NOISE = 2.5
"""Bins differ clearly only if chi-square over its degrees of freedom is larger than this."""

_RARE = (0.0005, 0.002, 0.005)
_LEVELS = np.unique(np.r_[_RARE, np.linspace(0, 1, BINS + 1)[1:-1], 1 - np.array(_RARE)])


def propose(near: Outputs, far: Outputs) -> list[Score]:
    """Scores to try, from search draws (n, d) of the two sides."""
    width = near.shape[1]
    learned = {j: _learned(Projection(j), near, far) for j in _candidates(near, far)}
    ratios = {j: ratio for j, (ratio, _) in learned.items()}
    clearness = {j: clear for j, (_, clear) in learned.items()}
    telling = sorted(ratios, key=lambda j: -clearness[j])
    scores: list[Score] = []
    for j in telling[:SINGLES]:
        scores += [Projection(j), ratios[j]]
    if width > 1:
        chosen = [j for j in telling if clearness[j] > _NOISE] or telling[:1]
        scores.append(SumOfScores(tuple(ratios[j] for j in chosen)))
        scores += [Extreme(True), Extreme(False), *linear(near, far, sorted(telling))]
        if width <= CURVED and not any(np.isnan(side).any() for side in (near, far)):
            scores.append(quadratic(near, far))
    many = [j for j in sorted(ratios) if len(ratios[j].edges) >= BINS // 2]
    return scores + low_bits(near, far, many)


def _candidates(near: Outputs, far: Outputs) -> list[int]:
    """The coordinates to examine: all, or those whose means differ by most standard errors."""
    width = near.shape[1]
    if width <= WIDEST:
        return list(range(width))
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cell may be absent from all draws
        means = [np.nanmean(side, axis=0) for side in (near, far)]
        absent = [np.isnan(side).mean(axis=0) for side in (near, far)]
        spread = np.nanstd(near, axis=0) + np.nanstd(far, axis=0)
        gaps = np.nan_to_num(np.abs(means[0] - means[1]) / spread, posinf=1e9)
    gaps += np.abs(absent[0] - absent[1])
    return sorted(np.argsort(-gaps, kind="stable")[:WIDEST].tolist())


def _learned(base: Score, near: Outputs, far: Outputs) -> tuple[BinnedRatio, float]:
    """The log-ratio of counts in bins of a score, and chi-square over its degrees of freedom, which says
    how clearly the bins differ.

    Bins are the values of the score, or quantiles if there are many.
    """
    values = base(near), base(far)
    together = np.concatenate(values)
    together = together[~np.isnan(together)]
    # A few thousand values show whether many are distinct, without sorting all of them.
    edges = np.unique(together[:: max(1, len(together) // 4096)])
    if len(edges) <= BINS:
        edges = np.unique(together)
    if len(edges) > BINS:
        edges = np.unique(np.quantile(together, _LEVELS, method="nearest"))
    counts = [_bin_counts(edges, side) for side in values]
    total = counts[0] + counts[1]
    used = total >= 10
    difference = (counts[0] - counts[1])[used] ** 2 / total[used]
    clearness = float(difference.sum() / max(1, np.count_nonzero(used) - 1))
    return BinnedRatio(base, edges, log_ratio(*counts)), clearness


def _bin_counts(edges: Floats, values: Floats) -> Floats:
    absent = np.isnan(values)
    bins = np.searchsorted(edges, values, side="right")
    bins[absent] = len(edges) + 1
    return np.bincount(bins, minlength=len(edges) + 2).astype(np.float64)


def log_ratio(near: Floats, far: Floats) -> Floats:
    """The log of the ratio of shares, for counts that may be zero."""
    return np.asarray(
        np.log((near + 0.5) / (near.sum() + 0.5)) - np.log((far + 0.5) / (far.sum() + 0.5))
    )


def linear(near: Outputs, far: Outputs, columns: list[int]) -> list[Score]:
    """Scores weighted by the difference of means: raw, over variances or whitened; and the plain sum."""
    sides = []
    for side in (near, far):
        values = side[:, columns].astype(np.float64)
        sides.append(np.where(np.isfinite(values), values, np.nan))
    with np.errstate(invalid="ignore"):
        lowest = np.nan_to_num(np.fmin.reduce(np.concatenate(sides), axis=0))
    filled = [np.where(np.isnan(side), lowest, side) for side in sides]
    means = [side.mean(axis=0) for side in filled]
    difference = means[0] - means[1]
    centred = np.concatenate([side - mean for side, mean in zip(filled, means, strict=True)])
    variances = centred.var(axis=0)
    safe = np.where(variances > 0, variances, variances[variances > 0].min(initial=1.0))
    covariance = (centred / np.sqrt(safe)).T @ (centred / np.sqrt(safe)) / len(centred)
    # A direction without variance separates best: the ridge only keeps it finite.
    covariance += 1e-9 * np.eye(len(columns))
    whitened = np.linalg.solve(covariance, difference / np.sqrt(safe)) / np.sqrt(safe)
    labelled = {
        "difference of means": difference,
        "difference of means over variances": difference / safe,
        "whitened difference of means": whitened,
        "sum of all numbers": np.ones(len(columns)),
    }
    result: list[Score] = []
    for label, direction in labelled.items():
        weights, absent = np.zeros(near.shape[1]), np.zeros(near.shape[1])
        size = np.linalg.norm(direction)
        weights[columns] = direction / (size if size > 0 else 1.0)
        absent[columns] = lowest
        result.append(Linear(weights, absent, label))
    return result


def quadratic(near: Outputs, far: Outputs) -> Quadratic:
    """The quadratic form that separates the sides best in least squares, slightly shrunk."""
    width, together = near.shape[1], np.concatenate([near, far]).astype(np.float64)
    present = np.isfinite(together)
    centre = np.where(present, together, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    values = np.where(present, together - centre, 0.0)
    spread, axes = np.linalg.eigh(values.T @ values / len(values))
    # Numbers that do not vary among search draws are left to the linear scores.
    whiten = axes * np.where(spread > 1e-12 * spread.max(), np.maximum(spread, 1e-300) ** -0.5, 0)
    white = values @ whiten
    upper = np.triu_indices(width)
    features = np.column_stack(
        [np.ones(len(white)), white, white[:, upper[0]] * white[:, upper[1]]]
    )
    target = np.repeat([1.0, -1.0], [len(near), len(far)])
    gram = features.T @ features + 1e-3 * len(features) * np.eye(features.shape[1])
    fitted = np.linalg.solve(gram, features.T @ target)
    curvature = np.zeros((width, width))
    curvature[upper] = fitted[width + 1 :]
    return Quadratic(centre, whiten, fitted[1 : width + 1], curvature)


def low_bits(near: Outputs, far: Outputs, columns: list[int]) -> list[Score]:
    """Scores of the last digits of the coordinates whose last digits differ most, if any differ."""
    found: list[tuple[float, Score]] = []
    for j in columns:
        for residue in (None, 1, 4):
            ratio, clearness = _learned(LowBits(j, residue), near, far)
            if clearness > _NOISE:
                found.append((clearness, ratio))
    found.sort(key=lambda pair: -pair[0])
    return [score for _, score in found[:SINGLES]]


def refined(scores: Iterable[Score], near: Outputs, far: Outputs) -> list[Score]:
    """The scores, and learned log-ratios of those that are ``Linear`` or ``Extreme``."""
    result: list[Score] = []
    for score in scores:
        result.append(score)
        if isinstance(score, Linear | Extreme):
            result.append(_learned(score, near, far)[0])
    return result
