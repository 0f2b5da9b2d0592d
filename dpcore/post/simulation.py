"""How wrong post-processed counts are, by repeating the mechanism on the published ones.

What is made of a noisy table (not negative, whole, adding up) has no simple law.  But everything
that makes it is public: take the published counts for the exact ones, add noise of the same law,
process it in the same way, and see how far the result falls from where it began (the parametric
bootstrap, Efron & Tibshirani 1993, section 6.5).  Cells of about the same count fare alike, so their
errors are pooled: a table of many cells needs few repetitions.

The noise of a simulation protects nobody and is drawn from an ordinary generator.
"""

from __future__ import annotations

import math

import numpy as np

from dpcore.events import Event, GaussianEvent, KNormEvent, LaplaceEvent, RandomLaplaceEvent
from dpcore.post.margins import Floats, Integers
from dpcore.post.simplex import round_to_total

POOL = 100
"""Errors are averaged over about this many cells of neighbouring counts."""

POOLS = 24
"""The most pools."""

LEAST_CELLS = 10
"""Cells to a pool, at least: of few cells, those that fell near a level are those that erred little."""


def noise_like(event: Event, size: int, generator: np.random.Generator) -> Integers:
    """(size,) whole numbers of the law that an event records, for simulation alone.

    Gaussian and Euclidean K-norm noise is drawn continuous and rounded.  Under random differential
    privacy some counts have no noise; which, is not known: all get some.
    """
    if isinstance(event, LaplaceEvent | RandomLaplaceEvent):
        passing = -math.expm1(-1 / float(event.scale))
        one, other = generator.geometric(passing, (2, size))
        return np.asarray(one - other)
    if isinstance(event, GaussianEvent):
        return np.rint(generator.normal(0, float(event.variance) ** 0.5, size)).astype(np.int64)
    if isinstance(event, KNormEvent) and event.norm == "l2":
        directions = generator.normal(size=(size // event.dimension, event.dimension))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = generator.gamma(event.dimension, float(event.scale), (len(directions), 1))
        return np.rint(directions * lengths).astype(np.int64).ravel()
    raise ValueError(f"the noise of {event} cannot be simulated")


def likely_counts(noisy: Integers, counts: Integers, stddev: float) -> Integers:
    """Whole counts (k,) as far apart as the exact ones, of the same total: where to simulate from.

    ``counts`` (k,), made of noisy counts (k,), are spread out by the noise in them.  Drawn towards
    their mean by the share of the variance that is not noise, they have the spread of the exact ones.
    """
    spread = float(noisy.var())
    kept = math.sqrt(max(0.0, 1 - stddev**2 / spread)) if spread > 0 else 0.0
    mean = counts.mean()
    return round_to_total(np.maximum(mean + kept * (counts - mean), 0), int(counts.sum()))


def pooled_means(
    values: Integers | Floats, levels: Integers | Floats, at: Integers | Floats
) -> Floats:
    """Mean values at the levels ``at`` (m,), of values seen at levels, both of one shape.

    Values of neighbouring levels are pooled, those at level zero apart, and interpolated between.
    """
    most = min(POOLS, values.shape[-1] // LEAST_CELLS)
    values, levels = values.ravel(), levels.ravel()
    zero = levels <= 0
    above, seen = levels[~zero], values[~zero]
    order = np.argsort(above, kind="stable")
    pools = np.array_split(order, max(1, min(most, len(above) // POOL)))
    if not len(above):
        return np.full(at.shape, values.mean())
    result = np.interp(
        at, [above[pool].mean() for pool in pools], [seen[pool].mean() for pool in pools]
    )
    return np.where(at <= 0, values[zero].mean(), result) if zero.any() else np.asarray(result)
