"""Sequences whose mean features are near given ones, drawn exactly.

Each cell c has a public vector U(c) of whole numbers.  Every ordered sequence z of ``draws`` = k cells
is drawn with a probability proportional to

    exp(-E(z)),   E(z) = |S/n - S(z)/k|^2 / scale,   S the sum of U over n records, S(z) over z

This is done by rejection.  Cells are drawn independently, tilted towards the records, with
probabilities q(c) near exp(l . U(c) - A), and a sequence is kept with probability

    exp(-E(z)) / (M q(z_1) ... q(z_k)).

Completing the square in S(z)/k gives, for every tilt l, a bound M that makes this at most 1.  For the
best tilt the mean of q is the centre of the remaining square; then a sequence of k cells is kept with
probability about prod_j (1 + 2 v_j/(k scale))^(-1/2), v_j the variances of the features.  The tilt is
found in floating point and rounded to integer weights, from which cells are drawn exactly; where
floating point cannot decide whether a sequence is kept, exact arithmetic does.  So the law holds for
any tilt.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.sampling.enclosures import Bounds, LazyUniform, divide_up, exp_bounds
from dpcore.sampling.rejection import fill
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import uniform_integers

_WEIGHT = 2.0**50
_BATCH = 2**18
"""Cells drawn at a time."""

_ROUNDING = 1e-11
"""The relative error of sums of logarithms is below this, by a wide margin."""


class NearMeanLaw:
    """The law of sequences near the mean ``total`` / ``rows`` of the records: private.

    ``total`` (m,): S; ``rows``: n; ``features`` (cells, m): U, whole numbers below 2**20; ``draws``: k;
    ``scale``: a positive rational.
    """

    def __init__(
        self, total: Integers, rows: int, features: Integers, draws: int, scale: Fraction
    ) -> None:
        self._total, self._rows, self._features = total, rows, features
        self._draws, self._scale = draws, scale
        self._target = total / rows
        tilt = self._best_tilt()
        heights = features @ tilt
        log_sum = float(np.logaddexp.reduce(heights))
        self._weights = np.ceil(np.exp(heights - log_sum) * _WEIGHT).astype(np.int64)
        self._sum = int(self._weights.sum())
        self._logs = np.log(self._weights) - math.log(self._sum)
        self._bound = self._least_bound(tilt, log_sum, heights - log_sum - self._logs)
        self._log_bound = math.log(self._bound.numerator) - math.log(self._bound.denominator)

    def sequences(self, size: int, source: RandomSource) -> Integers:
        """How often each cell occurs in each of ``size`` independent sequences, (size, cells)."""
        k, ends = self._draws, np.cumsum(self._weights)

        def attempt(_: int) -> Integers:
            trials = max(1, _BATCH // k)
            uniform = uniform_integers(self._sum, trials * k, source)
            tried = np.searchsorted(ends, uniform, side="right").reshape(trials, k)
            kept: Integers = tried[self._kept(tried, source)]
            return kept

        cells = fill(size, attempt, k) + len(ends) * np.arange(size)[:, None]
        return np.bincount(cells.ravel(), minlength=size * len(ends)).reshape(size, len(ends))

    def _kept(self, tried: Integers, source: RandomSource) -> Booleans:
        """Whether each sequence is kept, (trials,); exact arithmetic decides where floats cannot."""
        sums = self._features[tried].sum(axis=1)
        apart = self._target - sums / self._draws
        exponents = (apart**2).sum(axis=1) / float(self._scale)
        proposals = self._logs[tried].sum(axis=1)
        logs = -exponents - proposals - self._log_bound
        largest = np.abs(self._target).max() ** 2 / float(self._scale)
        error = _ROUNDING * (1 + exponents - proposals + abs(self._log_bound))
        error += 1e-3 * _ROUNDING * (largest + 1)
        words = source.words(len(tried))
        known = np.maximum(words.astype(np.float64), 0.5)
        uniforms = np.log(known) - 64 * math.log(2)
        error += 2 / known + 1e-14  # the undrawn digits, and the rounding to 53 bits
        kept: Booleans = uniforms < logs - error
        near = np.flatnonzero(~kept & (uniforms <= logs + error))
        for i in near.tolist():
            uniform = LazyUniform(int(words[i]), 64, source)
            kept[i] = uniform.below(lambda bits, i=i: self._chance(tried[i], sums[i], bits))  # type: ignore[misc]
        return kept

    def _chance(self, cells: Integers, total: Integers, bits: int) -> Bounds:
        """Enclosure of 2**bits times the probability that a sequence is kept."""
        n, k = self._rows, self._draws
        squared = sum(
            (k * int(a) - n * int(b)) ** 2 for a, b in zip(self._total, total, strict=True)
        )
        exponent = Fraction(squared, (n * k) ** 2) / self._scale
        drawn = math.prod(self._weights[cells].tolist())
        ratio = Fraction(self._sum**k, drawn) / self._bound
        extra = 64 + max(0, ratio.numerator.bit_length() - ratio.denominator.bit_length())
        low, high = exp_bounds(exponent, bits + extra)
        below = ratio.denominator << extra
        return low * ratio.numerator // below, divide_up(high * ratio.numerator, below)

    def _best_tilt(self) -> Floats:
        """l, by Newton's method on a strictly convex function; the law is exact for any l."""
        unit = max(1.0, float(np.abs(self._features).max(initial=1)))
        features, target = self._features / unit, self._target / unit
        ridge = self._draws * float(self._scale) / unit**2 / 2

        def value(tilt: Floats) -> float:
            sums = float(np.logaddexp.reduce(features @ tilt))
            return float(sums - tilt @ target + ridge / 2 * tilt @ tilt)

        tilt = np.zeros(len(target))
        for _ in range(100):
            heights = features @ tilt
            chances = np.exp(heights - np.logaddexp.reduce(heights))
            mean = chances @ features
            slope = mean - target + ridge * tilt
            centred = features - mean
            curvature = (centred * chances[:, None]).T @ centred + ridge * np.eye(len(tilt))
            step = np.linalg.solve(curvature, slope)
            length = 1.0
            while value(tilt - length * step) > value(tilt) and length > 1e-6:
                length /= 2
            tilt = tilt - length * step
            if np.abs(length * step).max(initial=0) < 1e-9:
                break
        return np.asarray(tilt / unit)

    def _least_bound(self, tilt: Floats, log_sum: float, short: Floats) -> Fraction:
        """M, rounded up, from the largest value of the square and the error ``short`` of q.

        ``short``: (cells,) the logarithm of exp(l . U - A) over the rounded q.
        """
        k, scale = self._draws, float(self._scale)
        terms = (
            -k * float(tilt @ self._target),
            k * k * scale * float(tilt @ tilt) / 4,
            k * log_sum,
            k * max(float(short.max()), 0.0),
        )
        log_bound = sum(terms) + 1e-9 * (1 + sum(map(abs, terms)))
        power = math.floor(log_bound / math.log(2))
        mantissa = math.ceil(1024 * math.exp(log_bound - power * math.log(2))) + 1
        return Fraction(mantissa, 1024) * Fraction(2) ** power
