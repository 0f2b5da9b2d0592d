"""Real vectors on an integer lattice, with the rounding counted in the sensitivity.

A real vector of known L2 sensitivity S is rounded to whole steps of about S/2^24 and perturbed by
discrete Gaussian noise, so that the noise uses no floating point.  Rounding moves each
of d coordinates by at most half a step.  The floating-point computation of the vector moves it by at
most half a step more: steps are made large enough for this, below.  So rounding adds at most 2 sqrt(d)
steps to the distance of neighbours.

**Steps.**  Let coordinate k be a sum over at most R = ``rows`` records, of terms of at most a_k each,
where a_k <= S (S is at least the change that one term can make), and let it be computed to within
E u R a_k, with u = 2^-53 and E = ``roundings``.  A step of S/2^b is at least twice this error where
E R 2^b <= 2^52.  The default E = 16 counts a few roundings after the sum, and the one of ``encode``.

**Lemma** (``transform_roundings``).  A cosine or Fourier transform of non-negative weights of sum W
over a grid of m_1 x m_2 x ... cells errs by at most E u W in each of its coordinates.

    one axis    of m cells: a stage that adds and subtracts pairs, one stage for each prime factor p of
                m, in which each number becomes a sum of p numbers times roots of unity, and a stage that
                combines pairs by cosines.  As computed, a stage A gives A z + e with |e| <= c u |A| |z|,
                c <= p + 8 (Higham 2002, lemmas 3.1 and 3.5; the roots are right to 2 u), or 6 for the
                first and the last.  One path leads from each input of the Fourier stages to each output,
                by roots of modulus 1, so the product of all |A| has no entry above 4, and the errors
                add up to 4 (12 + sum of c) u W.  The sum of c is below 10 log2(m) if all p <= 47
    large p     the Fourier transform is a convolution with a chirp b of length below 2 m, by
                transforms of length M <= 4 m whose factors are small (Bluestein 1970).  Each has a
                relative error of 10 log2(M) u, and (1/M) sum |A_j B_j| <= W ||b|| <= W sqrt(2 m), so 10
                log2(m) becomes sqrt(2 m) (30 log2(4 m) + 20)
    axes        one after the other: the factors 4 multiply, the errors add up

These are first-order bounds; the terms of higher order stay below u W, as E^2 u < 1.  Source: Higham
2002, section 24.1.  The transforms are those of scipy (pocketfft), which works in these stages; the
largest error seen in tests, against sums with more digits, is 9 u W.

>>> lattice = Lattice.for_sensitivity(0.01, size=3, rows=1000)
>>> lattice.decode(lattice.encode(np.array([0.5, -0.25, 0.0]))).round(6).tolist()
[0.5, -0.25, 0.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.errors import PrivacyLineError

LEAST_BITS = 6
"""With fewer than 2^6 steps in the sensitivity, rounding would add too much to it."""

SMALL_PRIME = 47
"""Up to this prime factor p of a grid's size, the p + 8 roundings are at most 10 log2(p)."""


@dataclass(frozen=True)
class Lattice:
    """Whole multiples of ``step``, in ``size`` dimensions; ``sensitivity`` is in real units."""

    step: float
    size: int
    sensitivity: float

    @classmethod
    def for_sensitivity(
        cls, sensitivity: float, size: int, rows: int, most_bits: int = 24, roundings: int = 16
    ) -> Lattice:
        """The lattice for vectors of a given L2 sensitivity, computed from ``rows`` records.

        ``roundings``: E of the module's docstring.  Raises ``ValueError``, from these public numbers
        alone, where double precision cannot hold the error below half a step.
        """
        if not (math.isfinite(sensitivity) and sensitivity > 0):
            raise ValueError("the sensitivity must be positive and finite")
        bits = _bits(rows, most_bits, roundings)
        return cls(sensitivity / 2**bits, size, sensitivity)

    @staticmethod
    def largest(rows: int, most_bits: int = 24, roundings: int = 16) -> int:
        """The largest coordinate of a sum of ``rows`` encoded vectors within the sensitivity."""
        return (rows << _bits(rows, most_bits, roundings)) + 1

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

    def encode(self, vector: Floats) -> Integers:
        """Round reals (size,) to whole steps; ``PrivacyLineError`` if any is huge or not finite."""
        steps = np.rint(vector / self.step)
        # Written so that it also refuses NaN, which compares as false.
        if vector.shape != (self.size,) or not bool(np.all(np.abs(steps) < 2.0**62)):
            raise PrivacyLineError("a statistic is not finite or has the wrong shape")
        return steps.astype(np.int64)

    def decode(self, steps: Integers) -> Floats:
        """Convert whole steps into reals."""
        return np.asarray(steps * self.step, dtype=np.float64)


def _bits(rows: int, most: int, roundings: int) -> int:
    """The largest b for which 2^b steps may be the sensitivity; ``ValueError`` if it is too small."""
    bits = min(most, 52 - (roundings * rows).bit_length())
    if bits < LEAST_BITS:
        allowed = 2 ** (52 - LEAST_BITS) // roundings
        raise ValueError(
            f"rows: {rows:.3g} rows are too many for double precision; use at most {allowed:.3g}. A"
            " density may have more if the number of cells of its grid has no large prime factor"
        )
    return bits


def transform_roundings(shape: tuple[int, ...]) -> int:
    """The roundings E of the lemma for a grid of this shape, with 5 for weights and 16 for later
    steps."""
    total = 0.0
    for size in shape:
        logarithm = math.log2(size)
        if _largest_prime(size) > SMALL_PRIME:
            total += math.sqrt(2 * size) * (30 * (logarithm + 2) + 20)
        else:
            total += 10 * logarithm
    return 21 + math.ceil(4.0 ** len(shape) * (12 * len(shape) + total))


def _largest_prime(number: int) -> int:
    """The largest prime factor, or 1 for 1."""
    largest, factor = 1, 2
    while factor * factor <= number:
        while number % factor == 0:
            largest, number = factor, number // factor
        factor += 1
    return max(largest, number)
