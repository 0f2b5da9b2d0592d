"""K-norm noise by a body around all differences of records (Hardt & Talwar 2010; METHODS b, c).

The norm is the smaller the better: of two bodies one inside the other, the inner one has less noise
(Awan & Slavkovic 2021).  ``dpcore.sampling.body`` has the body, its exact sensitivity and the sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting import laplace_scale
from dpcore.budget import Budget
from dpcore.events import BodyEvent
from dpcore.sampling import _validate
from dpcore.sampling.body import STEPS, Body
from dpcore.sampling.k_norm import LARGEST_SCALE
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy


@dataclass(frozen=True)
class DifferenceBody:
    """P(z) proportional to exp(-||z||/scale) for each block of the body's dimension: exactly
    (STEPS/scale)-DP, since no difference of neighbours is longer than STEPS."""

    size: int
    body: Body
    scale: Fraction

    sparse = False

    @classmethod
    def within(cls, share: Budget, vectors: NDArray[np.int64]) -> DifferenceBody:
        """The mechanism that spends all of the share's alpha, for sums of ``vectors`` (cells, d)."""
        scale = laplace_scale(Fraction(STEPS), share.alpha)
        body = Body.around(vectors)
        _validate.positive_rational("scale", scale * body.diameter / STEPS, LARGEST_SCALE)
        return cls(body.dimension, body, scale)

    @property
    def event(self) -> BodyEvent:
        return BodyEvent(self.body.dimension, self.body.digest, Fraction(STEPS), self.scale)

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        noise = self.body.noise(self.scale, len(values) // self.body.dimension, source)
        return Noisy(values + noise.ravel(), reproducible=source.reproducible)
