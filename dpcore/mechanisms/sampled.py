"""Synthetic records drawn from the private histogram itself, protected by public balls in the urn.

With prior a for each cell, replacing a record makes an outcome likelier by a factor of at most

    ((1 + a) / a)**k    k independent draws (Wasserman & Zhou 2010, section 4; METHODS k)
    (k + a) / a         k draws of a Polya urn: the Dirichlet-multinomial synthesizer
                        (Machanavajjhala, Kifer, Abowd, Gehrke & Vilhuber 2008)

reached where all draws fall in a cell that the record alone occupied, or would.  The logarithm is
alpha, exactly; beta is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import affordable
from dpcore.budget import Budget
from dpcore.events import SampledEvent
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import LARGEST_DOMAIN
from dpcore.sampling.urn import urn_draws
from dpcore.statistic import Noisy

Urn = Literal["smoothed-histogram", "dirichlet-multinomial"]

_LARGEST_WEIGHT = 2**16


@dataclass(frozen=True)
class Sampled:
    """k records from an urn of the ``rows`` exact ones and a public balls for each cell:
    (k ln(1 + 1/a))-DP with replacement, (ln(1 + k/a))-DP as a Polya urn.

    ``draws``: k, counted over ``cells`` cells; ``prior`` / ``weight`` is a, in units of a record.
    """

    size: int
    cells: int
    rows: int
    draws: int
    weight: int
    prior: int
    urn: Urn

    sparse = False

    @classmethod
    def within(cls, share: Budget, size: int, rows: int, draws: int, urn: Urn) -> Sampled:
        """The smallest prior, near enough, that the share's alpha pays for."""
        alpha, polya = float(share.alpha), urn == "dirichlet-multinomial"
        try:
            a = draws / math.expm1(alpha) if polya else 1 / math.expm1(alpha / draws)
        except OverflowError:
            raise ValueError(f"alpha of {alpha:.3g} is more than this mechanism can use") from None
        weight = _LARGEST_WEIGHT
        while weight > 1 and (rows + draws + size * (a + 1)) * weight >= LARGEST_DOMAIN:
            weight //= 2
        prior = math.ceil(a * weight * (1 + 1e-12))
        if (rows + draws) * weight + size * prior >= LARGEST_DOMAIN:
            raise ValueError("too many cells for so small an alpha; use fewer cells or draws")
        mechanism = cls(size, size, rows, draws, weight, prior, urn)
        if not affordable(mechanism.event, share):
            raise ValueError(f"no prior could be certified for alpha {share.alpha}")
        return mechanism

    @property
    def concentration(self) -> Fraction:
        """a."""
        return Fraction(self.prior, self.weight)

    @property
    def event(self) -> SampledEvent:
        return SampledEvent(self.urn, self.draws, self.concentration)

    @property
    def balls(self) -> float:
        """The size of the urn, in units of a record."""
        return self.rows + self.cells * float(self.concentration)

    def deviation(self, share: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Standard deviation of the draws of a cell that holds this share of the urn."""
        chance = np.asarray(share, dtype=float)
        variance = self.draws * chance * (1 - chance)
        if self.urn == "dirichlet-multinomial":
            variance = variance * (self.balls + self.draws) / (self.balls + 1)
        return np.asarray(np.sqrt(variance))

    @property
    def unit(self) -> float:
        """How many records a draw stands for, those of the prior counted in."""
        return self.balls / self.draws

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        urns = values.reshape(-1, self.cells)
        polya = self.urn == "dirichlet-multinomial"
        drawn = urn_draws(urns, self.weight, self.prior, self.draws, source, polya=polya)
        return Noisy(drawn.ravel(), reproducible=source.reproducible)
