"""Real vectors on an integer lattice, with the rounding counted in the sensitivity.

A real vector whose L2 sensitivity is known is measured in steps so small that the sensitivity is
about 2**24 of them, rounded to whole steps, and perturbed by discrete Gaussian noise: no floating
point takes part in the noise (METHODS R1, p).  Rounding moves each of d coordinates by at most half
a step, and computing the vector in floating point by less than half a step more (``steps`` shrinks
for large n so that it does); neighbours therefore come apart by at most 2 sqrt(d) steps more.

>>> lattice = Lattice.for_sensitivity(0.01, size=3, rows=1000)
>>> lattice.decode(lattice.encode(np.array([0.5, -0.25, 0.0]))).round(6).tolist()
[0.5, -0.25, 0.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import PrivacyLineError


@dataclass(frozen=True)
class Lattice:
    """Whole multiples of ``step``, in ``size`` dimensions; ``sensitivity`` is in real units."""

    step: float
    size: int
    sensitivity: float

    @classmethod
    def for_sensitivity(
        cls, sensitivity: float, size: int, rows: int, most_bits: int = 24
    ) -> Lattice:
        """The lattice for vectors of a given L2 sensitivity, computed from ``rows`` records."""
        if not (math.isfinite(sensitivity) and sensitivity > 0):
            raise ValueError("the sensitivity must be positive and finite")
        bits = min(most_bits, 48 - rows.bit_length())
        if bits < 10:
            raise ValueError("too many rows for double precision; 2**38 is too many")
        return cls(sensitivity / 2**bits, size, sensitivity)

    @property
    def l2_sensitivity_squared(self) -> Fraction:
        """The squared L2 sensitivity of the encoded vector, in steps, rounding included."""
        steps = Fraction(self.sensitivity) / Fraction(self.step)
        # 1 + 2**-40 covers the rounding of the real sensitivity itself.
        grown = steps * (1 + Fraction(1, 2**40)) + 2 * (math.isqrt(self.size) + 1)
        return grown * grown

    def l1_sensitivity(self, sensitivity: float) -> Fraction:
        """The L1 sensitivity in steps, rounding included, of a real L1 ``sensitivity``."""
        steps = Fraction(sensitivity) / Fraction(self.step)
        return steps * (1 + Fraction(1, 2**40)) + 2 * self.size

    def encode(self, vector: NDArray[np.float64]) -> NDArray[np.int64]:
        """(size,) reals to whole steps; a non-finite or huge number stops the release."""
        steps = np.rint(vector / self.step)
        if vector.shape != (self.size,) or not bool(np.all(np.abs(steps) < 2.0**62)):
            raise PrivacyLineError("a statistic is not finite or has the wrong shape")
        return steps.astype(np.int64)

    def decode(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Whole steps to reals."""
        return np.asarray(steps * self.step, dtype=np.float64)
