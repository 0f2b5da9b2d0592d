"""The bounds of a number without known bounds: ranges from a public list that contain enough units.

    ..., -2 to -1, ..., -1e-6 to 0, 0 to 1e-6, ..., 1 to 2, 2 to 5, 5 to 10, ..., 5e15 to 1e16, above

Every range, and null, is a cell of a histogram of one record per unit.  The bounds are the lower end of
the first and the upper end of the last range whose noisy count exceeds a threshold (post-processing).
With probability 99% no empty range exceeds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.post.tables.consistency import Agreement
from dpcore.releases.base import ErrorStatement
from dpcore.releases.counts.found import FOUND
from dpcore.releases.counts.histogram import Histogram

FALSE = 0.01
"""The probability that some empty range passes the threshold."""

POWERS = range(-6, 16)
LARGEST = 1e16
_AMOUNTS = [float(f"{digit}e{power}") for power in POWERS for digit in (1, 2, 5)] + [LARGEST]
_FURTHEST = [*_AMOUNTS, math.inf]
EDGES = (*(-amount for amount in reversed(_FURTHEST)), 0.0, *_FURTHEST)


def ranges(column: str) -> Domain:
    """The ranges of a column, and null: every number is in exactly one range."""
    return Domain((Bins(column, EDGES, nullable=True),))


@dataclass(frozen=True)
class FoundBounds(Histogram):
    """A histogram of ranges; numbers beyond ``LARGEST`` are moved there."""

    finer = "a larger share of the budget"
    counts_units = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adjacency.most > 1:
            raise ValueError(
                "mechanism: finding bounds needs one record per unit, but here a unit may have"
                f" {self.adjacency.most}"
            )

    @property
    def threshold(self) -> int:
        """The threshold t, from the bound P(noise > t) <= exp(-t/scale)/2 for each cell."""
        return math.ceil(float(self.mechanism.scale) * math.log(self.domain.size / (2 * FALSE)))

    @property
    def needed(self) -> int:
        """How many units a range needs to be within the bounds with probability at least ``FOUND``."""
        # The noise is below minus this half-width with a probability of at most 1 - FOUND.
        return self.threshold + 1 + int(self.mechanism.half_width(2 * FOUND - 1))

    def found(self, noisy: Noisy) -> tuple[float, float] | None:
        """The bounds; None if no range passes the threshold, or only a range beyond ``LARGEST``."""
        (axis,) = self.domain.axes
        assert isinstance(axis, Bins)
        (passed,) = np.nonzero(noisy.values[: axis.cells] > self.threshold)
        if not len(passed):
            return None
        ends = np.clip(axis.edge(np.array([passed[0], passed[-1] + 1])), -LARGEST, LARGEST)
        return None if ends[0] == ends[1] else (float(ends[0]), float(ends[1]))

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        needed = f"number of units at which the bounds include a range with probability {FOUND:.0%}"
        note = "only one record of each unit is counted"
        return ErrorStatement(needed, self.needed, note), *super().expected_error()

    def in_series(self) -> None:
        """None, because a search is made once."""

    def agreement(self, noisy: Noisy) -> Agreement | None:
        """None, because other tables may count all records of a unit."""
        return None
