"""A bandwidth for the kernel density of a column, from private quartiles (METHODS m).

Silverman's rule, h = 1.06 n^(-1/5) IQR/1.34, follows from the interquartile range, and that from two
choices by the exponential mechanism on the public grid; n is public.  All after the two choices is
post-processing: a density at this bandwidth is a release of its own, which pays for itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpcore.releases.base import Published
from dpcore.releases.quantiles import Quantiles
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class Bandwidth(Quantiles):
    """The quartiles of one column, and a bandwidth as a part of its range.

    ``smallest``: the least bandwidth that is published, public; it stands where the quartiles meet,
    as they do where half of the records are in one cell.
    """

    levels: tuple[Fraction, ...] = field(default=(Fraction(1, 4), Fraction(3, 4)), init=False)
    smallest: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.smallest) and self.smallest > 0):
            raise ValueError("smallest: must be positive, a part of the column's range")

    def bandwidth(self, noisy: Noisy) -> float:
        """The standard deviation of the kernel, as a part of the column's range."""
        first, third = noisy.values.tolist()
        spread = abs(third - first) / self.domain.size
        return max(float(1.06 * self.rows**-0.2 * spread / 1.34), self.smallest)

    def publish(self, noisy: Noisy) -> Published:
        published = super().publish(noisy)
        return replace(published, facts={**published.facts, "bandwidth": self.bandwidth(noisy)})
