"""The exponential mechanism with Kolmogorov-Smirnov distance (Wasserman & Zhou 2010, section 5).

The statistic is the counts of cells along one axis, the result the counts of synthetic records.
Their score is their distance in records, floor(n sup |F_x - F_z|).  Replacing a record moves F_x by
1/n at most (METHODS k: Delta = 1/n), so the score by one at most, and weights exp(-score/scale) cost
alpha = 2/scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import exponential_scale
from dpcore.budget import Budget
from dpcore.events import NearRecordsEvent
from dpcore.sampling.paths import NearSequences
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy

LARGEST_WORK = 2**32
"""Products of whole numbers: minutes."""


@dataclass(frozen=True)
class NearRecordsMechanism:
    """P(records) proportional to exp(-score/scale), score the Kolmogorov-Smirnov distance from the exact
    ones in records: (2/scale)-DP, exactly.

    ``draws`` records over ``cells`` cells.
    """

    size: int
    cells: int
    draws: int
    scale: Fraction

    sparse = False

    @classmethod
    def within(cls, share: Budget, cells: int, rows: int, draws: int) -> NearRecordsMechanism:
        """The mechanism that spends all of the share's alpha."""
        if rows < 1 or draws < 1:
            raise ValueError("draws: one record at least, drawn from one at least")
        scale = exponential_scale(Fraction(1), 1, share.alpha)
        levels = min(rows, float(scale) * (draws * math.log(cells) + 64))
        if cells * draws**2 * levels > LARGEST_WORK:
            raise ValueError("draws: too many for so many cells; use fewer draws or fewer bins")
        return cls(cells, cells, draws, scale)

    @property
    def event(self) -> NearRecordsEvent:
        return NearRecordsEvent(self.draws, self.scale)

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        tables, which = np.unique(values.reshape(-1, self.cells), axis=0, return_inverse=True)
        laws = [NearSequences(table, self.draws, self.scale) for table in tables]
        drawn = [laws[i].sequence(source) for i in which]
        return Noisy(np.concatenate(drawn).astype(np.int64), reproducible=source.reproducible)
