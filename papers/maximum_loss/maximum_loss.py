"""The largest loss over pairs of neighbouring inputs (Askin, Kutta & Dette 2022, Algorithms 1 to 3).

Audits of releases use the bound of ``dpcore.audit.bounds``, which holds for every sample size; this one
is asymptotic and for pure alpha.

>>> from dpcore.audit.draws import Simulated
>>> from dpcore.sampling.source import SeededSource
>>> def laplace(centre, size, generator):
...     return centre + generator.laplace(size=size)
>>> pair = Simulated("laplace", (0.0, 1.0), laplace)
>>> found = maximum_loss([pair], 20_000, 50_000, SeededSource(1))
>>> 0.9 < found.lower_bound < 1.0 < found.lower_bound + 0.15
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Floats
from dpcore.audit.draws import Audited
from dpcore.sampling.source import RandomSource
from papers.maximum_loss.densities import loss_at, pair_loss

LEVEL = 0.95
"""The confidence of the bound."""


@dataclass(frozen=True)
class MaximumLoss:
    """``estimate``: the loss at ``point`` for pair number ``pair``, on fresh draws; ``lower_bound``: for
    alpha, one-sided, asymptotically at 95%."""

    estimate: float
    lower_bound: float
    point: float
    pair: int


def maximum_loss(
    pairs: Sequence[Audited],
    search: int,
    draws: int,
    source: RandomSource,
) -> MaximumLoss:
    """The largest loss over pairs of neighbouring inputs (AKD's MPL); outputs must be single numbers.

    ``search`` draws per side find the point of every pair; the worst pair gets ``draws`` fresh ones.
    """
    found = []
    for pair in pairs:
        near, far = (_numbers(pair, side, search, source) for side in (0, 1))
        found.append(pair_loss(near, far))
    worst = max(range(len(pairs)), key=lambda i: found[i].loss)
    near, far = (_numbers(pairs[worst], side, draws, source) for side in (0, 1))
    estimate, bound = loss_at(near, far, found[worst], LEVEL)
    return MaximumLoss(estimate, bound, found[worst].point, worst)


def _numbers(pair: Audited, side: int, size: int, source: RandomSource) -> Floats:
    outputs = pair.draw(side, size, source)
    if outputs.shape[1] != 1:
        raise ValueError(f"outputs must be single numbers, not {outputs.shape[1]}; audit a score")
    return np.asarray(outputs[:, 0], dtype=np.float64)
