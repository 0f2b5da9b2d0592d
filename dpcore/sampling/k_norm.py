"""Noise on the integer lattice by a norm: P(z) proportional to exp(-||z|| / scale), exactly.

    l2      ||z|| = the Euclidean length, rounded up to a whole number
    cube    ||z|| = the largest |z_i|
    discs   ||z|| = the largest length of the pairs (z_0, z_1), (z_2, z_3), ..., rounded up

Each is whole, symmetric and sub-additive (a sum rounded up is at most the sum of the rounded), which
is all that K-norm privacy needs (Hardt & Talwar 2010, section 4): adding z to an integer vector
whose neighbours differ by v is (||v||/scale)-DP.  Only integers take part:

    cube    a radius R with P(R = r) prop. to (2r+1)^d exp(-r/scale), then a point uniform in its cube.
            (2r+1)^d is a sum of binomial coefficients C(r+d-j, d) times the Eulerian numbers of type B,
            so R = J + d+1 geometric draws, and J has these numbers times exp(-j/scale) for weights
    discs   the cube's, kept with probability exp(-(||z|| - max |z_i|)/scale)
    l2      independent Laplace draws, exp(-c |z|_1/scale) with c <= 1/sqrt(d), kept likewise

>>> from dpcore.sampling.source import SeededSource
>>> k_norm_noise("l2", Fraction(50), 3, 2, SeededSource(1)).shape
(2, 3)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.sampling import _validate
from dpcore.sampling.discrete_laplace import discrete_laplace, geometric
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import uniform_integers

Integers = NDArray[np.int64]
Norm = Literal["l2", "cube", "discs"]

LARGEST_SCALE = 1 << 32
LARGEST_DIMENSION = 16
"""The Euclidean ball fills 1/57 of the octahedron around it, and 2^d d! still fits in 62 bits."""

_TRIALS = 1 << 12
_PARTS = 1 << 10
"""1/sqrt(d) is rounded down to a multiple of 1/_PARTS."""


def k_norm_noise(
    norm: Norm, scale: Fraction | int, dimension: int, size: int, source: RandomSource
) -> Integers:
    """(size, dimension) independent vectors, exactly from the law above.

    ``scale``: public, a rational from 1 to 2**32; ``dimension``: 1 to 16, even for discs.
    """
    scale = _validate.positive_rational("scale", scale, LARGEST_SCALE)
    if scale < 1:
        raise ValueError(f"scale must be 1 at least, not {scale}")
    if not 1 <= dimension <= LARGEST_DIMENSION:
        raise ValueError(f"dimension must lie between 1 and {LARGEST_DIMENSION}, not {dimension}")
    if norm == "discs" and dimension % 2:
        raise ValueError(f"dimension must be even for discs, not {dimension}")
    attempts: dict[Norm, Callable[[Fraction, int, int, RandomSource], Integers]] = {
        "l2": _in_ball,
        "cube": _in_cube,
        "discs": _in_discs,
    }
    result = np.empty((size, dimension), dtype=np.int64)
    filled = 0
    while filled < size:
        kept = attempts[norm](scale, dimension, _TRIALS, source)[: size - filled]
        result[filled : filled + len(kept)] = kept
        filled += len(kept)
    return result


def lattice_norm(norm: Norm, vectors: Integers) -> Integers:
    """(k,) norms of integer vectors (k, d), whole numbers."""
    if norm == "cube":
        return np.asarray(np.abs(vectors).max(axis=1))
    wide = vectors.astype(object) if np.abs(vectors).max(initial=0) >= 1 << 29 else vectors
    if norm == "l2":
        return _root_up((wide**2).sum(axis=1))
    squares = wide[:, 0::2] ** 2 + wide[:, 1::2] ** 2
    return _root_up(squares.max(axis=1))


def _in_cube(scale: Fraction, dimension: int, trials: int, source: RandomSource) -> Integers:
    numbers = _eulerian(dimension)
    drawn = uniform_integers(int(numbers.sum()), trials, source)
    extra = np.searchsorted(np.cumsum(numbers), drawn, side="right")
    extra = extra[geometric(scale, trials, source) >= extra]
    steps = geometric(scale, extra.size * (dimension + 1), source).reshape(extra.size, -1)
    radius = np.repeat(extra + steps.sum(axis=1), dimension)
    flat = _uniform_below(2 * radius + 1, source) - radius
    return np.asarray(flat.reshape(-1, dimension))


def _in_discs(scale: Fraction, dimension: int, trials: int, source: RandomSource) -> Integers:
    tried = _in_cube(scale, dimension, trials, source)
    excess = lattice_norm("discs", tried) - lattice_norm("cube", tried)
    kept: Integers = tried[geometric(scale, len(tried), source) >= excess]
    return kept


def _in_ball(scale: Fraction, dimension: int, trials: int, source: RandomSource) -> Integers:
    parts = math.isqrt(_PARTS**2 // dimension)
    wide = discrete_laplace(scale * _PARTS / parts, trials * dimension, source)
    tried = wide.reshape(trials, dimension)
    excess = _PARTS * lattice_norm("l2", tried) - parts * np.abs(tried).sum(axis=1)
    kept: Integers = tried[geometric(_PARTS * scale, trials, source) >= excess]
    return kept


def _uniform_below(bounds: Integers, source: RandomSource) -> Integers:
    """One uniform integer from {0, ..., bound - 1} for each bound (k,)."""
    masks = (bounds - 1).astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):
        masks |= masks >> np.uint64(shift)
    result = np.empty(bounds.size, dtype=np.int64)
    waiting = np.arange(bounds.size)
    while waiting.size:
        drawn = (source.words(waiting.size) & masks[waiting]).astype(np.int64)
        fits = drawn < bounds[waiting]
        result[waiting[fits]] = drawn[fits]
        waiting = waiting[~fits]
    return result


def _root_up(squares: NDArray[np.int64]) -> Integers:
    """Square roots, rounded up: exact."""
    if squares.dtype == object:
        whole = np.array([math.isqrt(int(square)) for square in squares], dtype=np.int64)
    else:
        whole = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)
        whole -= whole * whole > squares
        whole += (whole + 1) * (whole + 1) <= squares
    return whole + (whole.astype(squares.dtype) ** 2 < squares).astype(np.int64)


@lru_cache(maxsize=LARGEST_DIMENSION)
def _eulerian(dimension: int) -> Integers:
    """(dimension + 1,) Eulerian numbers of type B; they add up to 2^d d!."""
    numbers = [1]
    for d in range(1, dimension + 1):
        padded = [0, *numbers, 0]
        numbers = [
            (2 * j + 1) * padded[j + 1] + (2 * d - 2 * j + 1) * padded[j] for j in range(d + 1)
        ]
    return np.array(numbers, dtype=np.int64)
