"""The exponential mechanism with orthogonal series (Wasserman & Zhou 2010, section 6).

A cell c, scaled to x in [0, 1], has the features psi_j(x) = sqrt2 cos(pi j x), j = 1, ..., m.  The
statistic is their sum over the records, in whole steps of 2^-BITS; the result the counts of k synthetic
records.  Their score is the integrated squared difference of the two series estimates, which is the
squared distance of the two mean features.  All means lie within the diameter D of the features, and
replacing a record moves one of them by D/n at most, so a score by 2 D^2/n (METHODS k; the paper's bound
is 8 c0^2 m/n): weights exp(-score/scale) cost alpha = 4 D^2/(n scale).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.budget import Budget
from dpcore.events import NearMeansEvent
from dpcore.sampling.near_means import NearMeans
from dpcore.sampling.source import RandomSource
from dpcore.statistic import Noisy

BITS = 16
"""Features are rounded to whole multiples of 2**-BITS."""

LARGEST_CELLS = 1024
LARGEST_WORK = 2**34
"""Cells drawn for one result: minutes."""


@dataclass(frozen=True)
class NearMeansMechanism:
    """P(records) proportional to exp(-score/scale), score the squared distance of their series from the
    exact one: (4 D^2/(n scale))-DP, exactly.

    ``draws`` records over ``cells`` cells by ``terms`` coefficients; ``scale``: of squared steps.
    """

    size: int
    cells: int
    terms: int
    rows: int
    draws: int
    scale: Fraction

    sparse = False

    @classmethod
    def within(
        cls, share: Budget, cells: int, terms: int, rows: int, draws: int
    ) -> NearMeansMechanism:
        """The mechanism that spends all of the share's alpha."""
        if rows < 1 or draws < 1:
            raise ValueError("draws: one record at least, drawn from one at least")
        if not 1 <= terms < cells <= LARGEST_CELLS:
            raise ValueError(f"terms: fewer than the cells, which are {LARGEST_CELLS} at most")
        if share.alpha <= 0:
            raise ValueError("alpha must be positive")
        unscaled = cls(terms, cells, terms, rows, draws, Fraction(1))
        scale = 4 * unscaled.l2_sensitivity_squared / (rows * share.alpha)
        variance = 2 * 4.0**BITS / float(scale) / draws
        if math.log2(draws) + terms / 2 * math.log2(1 + 2 * variance) > math.log2(LARGEST_WORK):
            raise ValueError("terms: too many for so many rows; use fewer terms or more draws")
        return cls(terms, cells, terms, rows, draws, scale)

    @cached_property
    def features(self) -> NDArray[np.int64]:
        """(cells, terms) U(c)."""
        places = (np.arange(self.cells) + 0.5) / self.cells
        waves = np.cos(np.pi * np.outer(places, np.arange(1, self.terms + 1)))
        return np.rint(np.ldexp(math.sqrt(2) * waves, BITS)).astype(np.int64)

    @cached_property
    def l2_sensitivity_squared(self) -> Fraction:
        """D^2 in squared steps: exact."""
        lengths = (self.features**2).sum(axis=1)
        apart = lengths[:, None] + lengths[None, :] - 2 * self.features @ self.features.T
        return Fraction(int(apart.max()))

    @property
    def event(self) -> NearMeansEvent:
        return NearMeansEvent(self.draws, self.rows, self.l2_sensitivity_squared, self.scale)

    def draw(
        self, values: NDArray[np.int64], cells: NDArray[np.int64] | None, source: RandomSource
    ) -> Noisy:
        totals, which = np.unique(values.reshape(-1, self.terms), axis=0, return_inverse=True)
        result = np.empty((len(which.ravel()), self.cells), dtype=np.int64)
        for i, total in enumerate(totals):
            law = NearMeans(total, self.rows, self.features, self.draws, self.scale)
            alike = np.flatnonzero(which.ravel() == i)
            result[alike] = law.sequences(len(alike), source)
        return Noisy(result.ravel(), reproducible=source.reproducible)
