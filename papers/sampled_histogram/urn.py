"""Draws from urns of records and public balls: exact, whole arrays at a time.

An urn holds ``weight`` balls for each record and ``prior`` balls for each of its cells.  Two schemes
give counts of the cells:

    independent draws   every ball goes back: a multinomial of the smoothed histogram
    polya draws         a drawn ball goes back with ``weight`` more of its cell: a multinomial of a
                        Dirichlet draw with parameters counts + prior / weight

Both use integers only.  A Polya draw is either a ball of the original urn or a copy of an earlier
draw, so all are drawn at once and the copies are followed back to their origin.
"""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Integers
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import LARGEST_DOMAIN


def urn_draws(
    counts: Integers, weight: int, prior: int, draws: int, source: RandomSource, *, polya: bool
) -> Integers:
    """The number of times that each cell was drawn, with ``draws`` from each urn, (urns, cells).

    ``counts`` (urns, cells): the records, private.
    """
    urns, cells = counts.shape
    balls = (counts.sum(axis=1) * weight + cells * prior)[:, None]
    if not polya:
        ball = uniform_below(np.broadcast_to(balls, (urns, draws)), source)
        return _drawn(counts, weight, prior, ball)
    order = np.arange(draws, dtype=np.int64)
    ball = uniform_below(balls + weight * order, source)
    origin = np.where(ball < balls, order, (ball - balls) // weight)
    while not np.array_equal(further := np.take_along_axis(origin, origin, axis=1), origin):
        origin = further
    return _drawn(counts, weight, prior, np.take_along_axis(ball, origin, axis=1))


def uniform_below(bounds: Integers, source: RandomSource) -> Integers:
    """Independent uniform integers from {0, ..., bound - 1}, one for each bound."""
    if bounds.size and not 1 <= bounds.min() <= bounds.max() <= LARGEST_DOMAIN:
        raise ValueError(f"bounds must lie between 1 and {LARGEST_DOMAIN}")
    below = bounds.astype(np.uint64).ravel()
    # The last 2**64 % bound words are rejected: they would favour small remainders.
    largest = np.uint64(2**64 - 1)
    unfair = (largest % below + np.uint64(1)) % below
    result, waiting = np.empty(len(below), dtype=np.int64), np.arange(len(below))
    while len(waiting):
        words = source.words(len(waiting))
        fair = words <= largest - unfair[waiting]
        done = waiting[fair]
        result[done] = (words[fair] % below[done]).astype(np.int64)
        waiting = waiting[~fair]
    return result.reshape(bounds.shape)


def _drawn(counts: Integers, weight: int, prior: int, ball: Integers) -> Integers:
    """Count balls (urns, draws) by cell: (urns, cells); records' balls come before public ones."""
    urns, cells = counts.shape
    ends = np.cumsum(counts, axis=1) * weight  # of each urn alone: those of all may pass 2**63
    records = ends[:, -1:]
    pairs = zip(ends, ball, strict=True)
    of_record = np.stack([np.searchsorted(of, which, side="right") for of, which in pairs])
    drawn = np.where(ball < records, of_record, (ball - records) // prior)
    drawn += np.arange(urns)[:, None] * cells
    return np.bincount(drawn.ravel(), minlength=counts.size).reshape(counts.shape)
