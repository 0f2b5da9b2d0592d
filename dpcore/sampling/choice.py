"""Choices from a finite set: P(i) proportional to exp(-score_i / scale), exactly.

A candidate i is drawn uniformly and kept if a geometric draw G, P(G >= g) = exp(-g / scale), is at
least score_i - min score.  So it is kept with probability exp(-(score_i - min score) / scale), and the
first candidate that is kept has the stated law.  This uses only uniform and geometric integers, both
exact; no weight is computed.

>>> from dpcore.sampling.source import SeededSource
>>> exponential_choices(np.array([[0, 9, 9], [90, 90, 3]]), Fraction(1), SeededSource(1)).tolist()
[0, 2]
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpcore.arrays import Integers
from dpcore.sampling.discrete_laplace import geometric
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import uniform_integers

_TRIALS = 1 << 13
"""How many trials are made at a time, for all rows together."""


def exponential_choices(scores: Integers, scale: Fraction | int, source: RandomSource) -> Integers:
    """Draw one index (k,) for each row of ``scores`` (k, m), independently; low scores are likely.

    ``scores``: private; differences within a row must fit in 64 bits.  ``scale``: public, a rational
    from 2**-45 to 2**45.  The number of trials depends on the scores: on average it is at most m for
    each choice, and smaller if many candidates have low scores.
    """
    rows, candidates = scores.shape
    excess = scores - scores.min(axis=1, keepdims=True)
    chosen = np.empty(rows, dtype=np.int64)
    waiting = np.arange(rows)
    while waiting.size:
        # One choice needs at most as many trials as candidates on average: further ones would be wasted.
        shape = (waiting.size, max(1, min(candidates, _TRIALS // waiting.size)))
        tried = uniform_integers(candidates, waiting.size * shape[1], source).reshape(shape)
        reach = geometric(scale, waiting.size * shape[1], source).reshape(shape)
        kept = excess[waiting[:, None], tried] <= reach
        first = kept.argmax(axis=1)
        found = np.flatnonzero(kept[np.arange(waiting.size), first])
        chosen[waiting[found]] = tried[found, first[found]]
        waiting = np.delete(waiting, found)
    return chosen
