"""Noise over a histogram too large to visit: how many empty cells pass a threshold, and which.

Of p cells (up to 2**60) only q are occupied.  Every cell gets discrete Laplace noise, and is
published if its value exceeds a threshold tau.  The p - q empty cells need not be visited one by one
(Cormode, Procopiuc, Srivastava & Tran 2012):

    M   how many of them pass: binomial(p - q, pi), pi = P(Z > tau)      threshold_exceedances
    which M: any M of them, with equal probability                       distinct_integers
    their values: tau + 1 + a geometric draw of the same scale           discrete_laplace.geometric

This is the law of the naive method, at a cost proportional to M.

>>> from dpcore.sampling.source import SeededSource
>>> source = SeededSource(5)
>>> passed = threshold_exceedances(2**50, Fraction(2), 65, source)
>>> distinct_integers(2**50, passed, np.array([3, 77]), source).size == passed
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import count as counting

import numpy as np

from dpcore.arrays import Integers
from dpcore.sampling import _validate
from dpcore.sampling.discrete_laplace import LARGEST_SCALE
from dpcore.sampling.enclosures import Bounds, Probability, divide_up, exp_bounds, shift_up
from dpcore.sampling.inversion import InversionTable
from dpcore.sampling.rejection import fill
from dpcore.sampling.source import RandomSource

LARGEST_DOMAIN = 1 << 62

_TABLE_MEAN = 32
_BLOCK = 1 << 16


def threshold_exceedances(
    trials: int, scale: Fraction | int, threshold: int, source: RandomSource
) -> int:
    """Draw how many of ``trials`` discrete Laplace numbers exceed ``threshold``, by the exact law.

    A binomial draw with pi = P(Z > tau) = a**(tau + 1) / (1 + a), a = exp(-1 / scale).
    ``scale`` and ``threshold`` (tau >= 0) are public; ``trials``, the number of empty cells, is
    private: the draw may be published only as part of the noisy histogram.
    """
    scale = _validate.positive_rational("scale", scale, LARGEST_SCALE)
    threshold = _validate.whole_number("threshold", threshold)
    log_probability = -(threshold + 1) / float(scale) - math.log1p(math.exp(-1 / float(scale)))
    return binomial(trials, partial(_exceedance, scale, threshold), log_probability, source)


def binomial(
    trials: int, probability: Probability, log_probability: float, source: RandomSource
) -> int:
    """One binomial draw: the number of heads in ``trials`` coins; exact, in O(1 + mean / 32) words.

    The trials are divided into equal groups with a mean of about 32, and a rest.  Each group is one
    draw from an inversion table.

    ``probability``: certified enclosures of a real number below 1.
    ``log_probability``: its logarithm, approximately.
    """
    trials = _validate.whole_number("trials", trials, LARGEST_DOMAIN)
    group = trials
    if trials and math.log(trials) + log_probability > math.log(_TABLE_MEAN):
        # Any size gives the exact law, so an approximate probability is enough here.
        group = math.ceil(_TABLE_MEAN * math.exp(-log_probability))
    groups, rest = divmod(trials, max(group, 1))

    heads = 0
    if groups:
        table = _binomial_table(group, probability, log_probability)
        for done in range(0, groups, _BLOCK):
            heads += int(table.draw(min(_BLOCK, groups - done), source).sum())
    if rest:
        heads += int(_binomial_table(rest, probability, log_probability).draw(1, source)[0])
    return heads


def distinct_integers(
    below: int, count: int, exclude_sorted: Integers, source: RandomSource
) -> Integers:
    """Draw (count,) distinct integers from {0, ..., below - 1} without the excluded ones, ascending.

    Every such set has the same probability.  ``exclude_sorted``: (q,) distinct and ascending; it is
    private (the occupied cells), and so is the result until it is merged with them.
    """
    below = _validate.whole_number("below", below, LARGEST_DOMAIN)
    count = _validate.whole_number("count", count)
    excluded = np.asarray(exclude_sorted, dtype=np.int64)
    if excluded.size and (
        excluded[0] < 0 or excluded[-1] >= below or not (np.diff(excluded) > 0).all()
    ):
        raise ValueError("exclude_sorted must be distinct, ascending and from {0, ..., below - 1}")
    free = below - excluded.size
    if count > free:
        raise ValueError("count must be at most the number of integers that are not excluded")
    ranks = _distinct(free, count, source)
    # The integer of rank k among the free ones is k + i, where i excluded ones come before it: those
    # with  excluded[i] - i <= k.
    return ranks + np.searchsorted(excluded - np.arange(excluded.size), ranks, side="right")


def uniform_integers(below: int, size: int, source: RandomSource) -> Integers:
    """Draw (size,) independent uniform integers from {0, ..., below - 1}, 1 <= below <= 2**62."""
    if not 1 <= below <= LARGEST_DOMAIN:
        raise ValueError(f"below must lie between 1 and {LARGEST_DOMAIN}, not {below}")
    bits = max((below - 1).bit_length(), 1)

    def attempt(trials: int) -> Integers:
        drawn = (source.words(trials) >> np.uint64(64 - bits)).astype(np.int64)
        # Rejected, not reduced by a remainder, which would make small integers likelier.
        return drawn[drawn < below]

    return fill(size, attempt)


def _distinct(below: int, count: int, source: RandomSource) -> Integers:
    """A uniform ``count``-subset of {0, ..., below - 1}, ascending.

    Uniform draws are collected until there are enough different ones.  By symmetry all sets of that
    size are equally likely.
    """
    # The last members of a large subset would take many draws: its complement is drawn instead.
    if 2 * count > below:
        omitted = _distinct(below, below - count, source)
        return np.setdiff1d(np.arange(below, dtype=np.int64), omitted, assume_unique=True)
    chosen = np.empty(0, dtype=np.int64)
    while chosen.size < count:
        # Only as many as are missing, so that none is discarded.
        chosen = np.union1d(chosen, uniform_integers(below, count - chosen.size, source))
    return chosen


def _exceedance(scale: Fraction, threshold: int, bits: int) -> Bounds:
    """An enclosure of  2**bits * a**(threshold + 1) / (1 + a)."""
    one = 1 << bits
    a_lower, a_upper = exp_bounds(1 / scale, bits)
    tail_lower, tail_upper = exp_bounds((threshold + 1) / scale, bits)
    return (
        (tail_lower << bits) // (one + a_upper),
        divide_up(tail_upper << bits, one + a_lower),
    )


def _binomial_table(
    trials: int, probability: Probability, log_probability: float
) -> InversionTable:
    mean = trials * math.exp(log_probability)
    # Larger values are so rare that their cuts are computed only when they are drawn.
    length = min(trials, math.ceil(mean + 9 * math.sqrt(mean)) + 9)
    return InversionTable(partial(_binomial_cuts, trials, probability), length)


def _binomial_cuts(trials: int, probability: Probability, bits: int) -> Iterator[Bounds]:
    """Enclosures of  2**bits * P(X < k), k = 1, 2, ..., for X binomial.

    P(X = 0) = (1 - p)**trials, then P(X = k + 1) = P(X = k) * (trials - k) / (k + 1) * p / (1 - p).
    For a tiny p the power and the odds each lose about as many bits as ``trials`` has; 96 more bits
    are for P(X = 0) > 2**-96 and for rounding.
    """
    spare = 2 * trials.bit_length() + 96
    working = bits + spare
    one = 1 << working
    p_lower, p_upper = probability(working)
    q_lower, q_upper = one - p_upper, one - p_lower
    odds_lower = (p_lower << working) // q_upper
    odds_upper = divide_up(p_upper << working, q_lower)

    pmf_lower, pmf_upper = one, one
    # (1 - p)**trials by repeated squaring: there may be 2**62 trials.
    for digit in f"{trials:b}":
        pmf_lower = pmf_lower * pmf_lower >> working
        pmf_upper = shift_up(pmf_upper * pmf_upper, working)
        if digit == "1":
            pmf_lower = pmf_lower * q_lower >> working
            pmf_upper = shift_up(pmf_upper * q_upper, working)

    sum_lower, sum_upper = 0, 0
    for k in range(trials):
        sum_lower += pmf_lower
        sum_upper += pmf_upper
        yield sum_lower >> spare, min(shift_up(sum_upper, spare), 1 << bits)
        pmf_lower = pmf_lower * (trials - k) * odds_lower // ((k + 1) << working)
        pmf_upper = divide_up(pmf_upper * (trials - k) * odds_upper, (k + 1) << working)
    # An inversion table may ask for any number of cuts.
    for _ in counting():
        yield 1 << bits, 1 << bits
