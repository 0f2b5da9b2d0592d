"""Noise by two more norms than the Euclidean one of ``sampling.k_norm``; no release uses them.

    cube    ||z|| = the largest |z_i|
    discs   ||z|| = the largest length of the pairs (z_0, z_1), (z_2, z_3), ..., rounded up

Both are whole, symmetric and sub-additive, and P(z) is proportional to exp(-||z|| / scale), exactly:

    cube    a radius R with P(R = r) prop. to (2r+1)^d exp(-r/scale), then a point uniform in its cube.
            (2r+1)^d is a sum of binomial coefficients C(r+d-j, d) times the Eulerian numbers of type B,
            so R = J + d+1 geometric draws, and J has these numbers times exp(-j/scale) for weights
    discs   the cube's, kept with probability exp(-(||z|| - max |z_i|)/scale)

>>> from dpcore.sampling.source import SeededSource
>>> disc_noise(Fraction(50), 4, 2, SeededSource(1)).shape
(2, 4)
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpcore.arrays import Integers
from dpcore.sampling.discrete_laplace import geometric
from dpcore.sampling.source import RandomSource
from dpcore.sampling.sparse import uniform_integers
from papers.k_norm.sampler import fill_vectors, lattice_norm
from papers.sampled_histogram.urn import uniform_below


def cube_noise(scale: Fraction | int, dimension: int, size: int, source: RandomSource) -> Integers:
    """(size, dimension) independent vectors; the arguments are limited as in ``k_norm_noise``."""
    return fill_vectors(_in_cube, scale, dimension, size, source)


def disc_noise(scale: Fraction | int, dimension: int, size: int, source: RandomSource) -> Integers:
    """(size, dimension) independent vectors; ``dimension`` is even."""
    if dimension % 2:
        raise ValueError(f"dimension must be even for discs, not {dimension}")
    return fill_vectors(_kept_in_discs, scale, dimension, size, source)


def cube_norm(vectors: Integers) -> Integers:
    """(k,) norms of integer vectors (k, d)."""
    return np.asarray(np.abs(vectors).max(axis=1))


def disc_norm(vectors: Integers) -> Integers:
    """(k,) norms of integer vectors (k, d), whole numbers; d is even."""
    lengths = lattice_norm(vectors.reshape(-1, 2))
    return np.asarray(lengths.reshape(len(vectors), -1).max(axis=1))


def _in_cube(scale: Fraction, dimension: int, trials: int, source: RandomSource) -> Integers:
    numbers = eulerian_numbers(dimension)
    drawn = uniform_integers(int(numbers.sum()), trials, source)
    extra = np.searchsorted(np.cumsum(numbers), drawn, side="right")
    extra = extra[geometric(scale, trials, source) >= extra]
    steps = geometric(scale, extra.size * (dimension + 1), source).reshape(extra.size, -1)
    radius = np.repeat(extra + steps.sum(axis=1), dimension)
    flat = uniform_below(2 * radius + 1, source) - radius
    return np.asarray(flat.reshape(-1, dimension))


def _kept_in_discs(scale: Fraction, dimension: int, trials: int, source: RandomSource) -> Integers:
    tried = _in_cube(scale, dimension, trials, source)
    excess = disc_norm(tried) - cube_norm(tried)
    kept: Integers = tried[geometric(scale, len(tried), source) >= excess]
    return kept


@lru_cache
def eulerian_numbers(dimension: int) -> Integers:
    """(dimension + 1,) Eulerian numbers of type B; they add up to 2^d d!, below 2^62 for d <= 16."""
    numbers = [1]
    for d in range(1, dimension + 1):
        padded = [0, *numbers, 0]
        numbers = [
            (2 * j + 1) * padded[j + 1] + (2 * d - 2 * j + 1) * padded[j] for j in range(d + 1)
        ]
    return np.array(numbers, dtype=np.int64)
