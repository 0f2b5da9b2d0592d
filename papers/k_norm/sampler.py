"""Noise on the integer lattice by the Euclidean norm: P(z) proportional to exp(-||z|| / scale), exactly.

||z|| is the Euclidean length of z, rounded up to a whole number.  It is whole, symmetric and
sub-additive (a sum rounded up is at most the sum of the rounded terms), which is all that K-norm privacy
needs (Hardt & Talwar 2010, section 4): adding z to an integer vector whose neighbours differ by v is
(||v||/scale)-DP.

The draws are exact and use integers only.  Independent discrete Laplace coordinates, with law
exp(-c |z|_1/scale) for a c <= 1/sqrt(d), are kept with probability exp(-(||z|| - c |z|_1)/scale).

>>> from dpcore.sampling.source import SeededSource
>>> k_norm_noise(Fraction(50), 3, 2, SeededSource(1)).shape
(2, 3)
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpcore.arrays import Integers
from dpcore.sampling import _validate
from dpcore.sampling.discrete_laplace import discrete_laplace, geometric
from dpcore.sampling.rejection import fill
from dpcore.sampling.source import RandomSource

LARGEST_SCALE = 1 << 32
LARGEST_DIMENSION = 16
"""The Euclidean ball fills 1/57 of the octahedron around it."""

_TRIALS = 1 << 12
_PARTS = 1 << 10
"""1/sqrt(d) is rounded down to a multiple of 1/_PARTS."""


def k_norm_noise(
    scale: Fraction | int, dimension: int, size: int, source: RandomSource
) -> Integers:
    """Independent vectors (size, dimension), exactly from the distribution above.

    ``scale``: public, a rational from 1 to 2**32; ``dimension``: 1 to 16.
    """
    scale = drawable(scale)
    if not 1 <= dimension <= LARGEST_DIMENSION:
        raise ValueError(f"dimension must lie between 1 and {LARGEST_DIMENSION}, not {dimension}")
    return fill(size, lambda _: _kept_in_ball(scale, dimension, _TRIALS, source), dimension)


def drawable(scale: Fraction | int) -> Fraction:
    """The scale as a fraction; raises ``ValueError`` unless such noise can be drawn."""
    if 0 < scale < 1:
        raise ValueError(f"scale must be at least 1, not {float(scale):.3g}")
    return _validate.positive_rational("scale", scale, LARGEST_SCALE)


def lattice_norm(vectors: Integers) -> Integers:
    """The Euclidean lengths (k,) of integer vectors (k, d), rounded up exactly."""
    wide = vectors.astype(object) if np.abs(vectors).max(initial=0) >= 1 << 29 else vectors
    squares: Integers = (wide**2).sum(axis=1)
    if squares.dtype == object:
        whole = np.array([math.isqrt(int(square)) for square in squares], dtype=np.int64)
    else:
        whole = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)
        whole -= whole * whole > squares
        whole += (whole + 1) * (whole + 1) <= squares
    return whole + (whole.astype(squares.dtype) ** 2 < squares).astype(np.int64)


def _kept_in_ball(scale: Fraction, dimension: int, trials: int, source: RandomSource) -> Integers:
    parts = math.isqrt(_PARTS**2 // dimension)
    wide = discrete_laplace(scale * _PARTS / parts, trials * dimension, source)
    tried = wide.reshape(trials, dimension)
    excess = _PARTS * lattice_norm(tried) - parts * np.abs(tried).sum(axis=1)
    kept: Integers = tried[geometric(_PARTS * scale, trials, source) >= excess]
    return kept
