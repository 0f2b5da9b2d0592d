"""A count by a table of chances: row j holds those of every answer where j is the truth."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.counting.table import TOTAL, digest, is_private
from dpcore.events import TableEvent
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import uniform_integers
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class TabulatedMechanism:
    """Answers drawn from ``table``, whole parts of TOTAL: (alpha, beta)-DP where neighbours' counts
    differ by one at most.

    A table that cannot be proved to be so is refused with a ``ValueError``, wherever it comes from.
    """

    size: int
    alpha: Fraction
    beta: Fraction
    table: tuple[tuple[int, ...], ...]

    sparse = False

    def __post_init__(self) -> None:
        if not is_private(np.array(self.table), self.alpha, self.beta):
            raise ValueError("the table is not private at its stated alpha and beta")

    @property
    def event(self) -> TableEvent:
        return TableEvent(self.alpha, self.beta, digest(np.array(self.table)))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(np.array(self.table), axis=1)

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        uniform = uniform_integers(TOTAL, len(values), source)
        answers = np.empty(len(values), dtype=np.int64)
        counts = np.clip(values, 0, len(self.table) - 1)
        for count in np.unique(counts):
            rows = counts == count
            answers[rows] = np.searchsorted(self._ends[count], uniform[rows], side="right")
        return Noisy(answers, reproducible=source.reproducible)
