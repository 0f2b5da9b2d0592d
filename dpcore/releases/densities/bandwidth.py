"""Bandwidths for a kernel density, from private interquartile ranges.

Silverman's rule for d columns is h = (4/(d + 2))^(1/(d + 4)) n^(-1/(d + 4)) IQR/1.34, which begins with
1.06 for one column and with 1 for two (Silverman 1986, section 4.3.2); n is public.  The rule is
post-processing of the quartiles; a density at these bandwidths is a separate release with its own price
(``tuned``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpcore.line.statistic import Noisy
from dpcore.releases.numbers.quantiles import ColumnQuantiles


@dataclass(frozen=True)
class Bandwidth(ColumnQuantiles):
    """The quartiles of each column, and the bandwidths as fractions of the columns' ranges.

    ``smallest``: the smallest bandwidth that is published, public; it is used if the quartiles are
    equal, for example if half of the records are in one cell.
    """

    levels: tuple[Fraction, ...] = field(default=(Fraction(1, 4), Fraction(3, 4)), init=False)
    smallest: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(axis.size > axis.cells for axis in self.measured):
            raise ValueError(
                "bandwidth: `private` is not available for columns with nulls or point masses; state a"
                " number"
            )
        if not (math.isfinite(self.smallest) and self.smallest > 0):
            raise ValueError("smallest: must be a positive fraction of the column's range")

    def bandwidths(self, noisy: Noisy) -> tuple[float, ...]:
        """The standard deviations of the kernel, as fractions of the columns' ranges."""
        cells = self.sorted_cells(noisy)
        spreads = np.diff(cells, axis=0)[0] / self.domain.shape
        found = (silverman(float(spread), self.rows, len(spreads)) for spread in spreads)
        return tuple(max(bandwidth, self.smallest) for bandwidth in found)

    @property
    def widest(self) -> float:
        """The largest bandwidth that can be drawn."""
        return max(silverman(1.0, self.rows, len(self.measured)), self.smallest)

    def stated(self, noisy: Noisy) -> dict[str, object]:
        """The chosen bandwidths, for the manifest."""
        (table, *_) = self.publish(noisy).tables
        return {name: column.tolist() for name, column in table.columns.items()}


def silverman(spread: float, rows: int, columns: int = 1) -> float:
    """The rule of thumb for the bandwidth of ``columns`` columns, from the interquartile range."""
    return float((4 / ((columns + 2) * rows)) ** (1 / (columns + 4)) * spread / 1.34)
