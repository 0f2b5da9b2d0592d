"""Exact noise by the norm of a symmetric body that contains all differences of some vectors.

Given are integer vectors U(c), one for each cell, and integer directions q.  The body is

    B = {z : |q . z| <= w_q for every q, and |z| <= D},   w_q = max |q . (U(a) - U(b))|,
                                                          D = max |U(a) - U(b)|, rounded up

It contains all differences of two of the vectors, and shrinks as directions are added: with all
directions it is the difference body conv{U(a) - U(b)}.  In STEPS-ths, rounded up,

    ||z|| = max(max_q STEPS |q . z| / w_q, STEPS |z| / D)

is whole, symmetric and sub-additive, and at most STEPS for every difference.  No Markov chain, linear
program or floating point is needed.  P(z) proportional to exp(-||z|| / scale) is drawn by rejection:
Euclidean noise is kept with probability exp(-(||z|| - STEPS |z| / D) / scale).

The body of Hall 2012, chapter 4, is conv{U(c)} itself.  For Fourier coefficients up to degree m two
records are up to m + 1 apart in its norm (zeros of the Fejer kernel), and not 2 as printed.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.sampling.discrete_laplace import geometric
from dpcore.sampling.rejection import fill
from dpcore.sampling.source import RandomSource
from papers.k_norm.sampler import k_norm_noise, lattice_norm

STEPS = 2**12
MOST_DIMENSIONS = 6

_REACH = {1: 1, 2: 3, 3: 3, 4: 2}
"""The largest coordinate of a direction, by dimension; 1 in more dimensions."""

_BATCH = 2**19
"""The largest number of trials times directions in memory."""


@dataclass(frozen=True)
class Body:
    """``directions`` (k, d), ``widths`` (k,) and ``diameter`` are w_q and D: public integers."""

    directions: tuple[tuple[int, ...], ...]
    widths: tuple[int, ...]
    diameter: int

    @classmethod
    def around(cls, vectors: Integers) -> Body:
        """The body around the differences of ``vectors`` (cells, d), with few directions."""
        dimension = vectors.shape[1]
        if not 1 <= dimension <= MOST_DIMENSIONS:
            raise ValueError(f"a body has from 1 to {MOST_DIMENSIONS} dimensions, not {dimension}")
        reach = range(-_REACH.get(dimension, 1), _REACH.get(dimension, 1) + 1)
        directions = [q for q in product(reach, repeat=dimension) if _first_of_its_line(q)]
        heights = vectors @ np.array(directions).T
        lengths = (vectors**2).sum(axis=1)
        squared = lengths[:, None] + lengths[None, :] - 2 * vectors @ vectors.T
        widths = (heights.max(axis=0) - heights.min(axis=0)).tolist()
        bounding = [i for i, width in enumerate(widths) if width > 0]
        return cls(
            tuple(directions[i] for i in bounding),
            tuple(widths[i] for i in bounding),
            math.isqrt(max(int(squared.max()) - 1, 0)) + 1,
        )

    @property
    def dimension(self) -> int:
        return len(self.directions[0])

    @property
    def digest(self) -> str:
        """SHA-256 of the directions and widths."""
        return hashlib.sha256(repr((self.directions, self.widths)).encode()).hexdigest()

    @cached_property
    def _arrays(self) -> tuple[Integers, Integers]:
        return np.array(self.directions).T, np.array(self.widths)

    def norm(self, vectors: Integers) -> Integers:
        """(k,) ||z|| of integer vectors (k, d), in STEPS-ths."""
        directions, widths = self._arrays
        slabs = (-(-STEPS * np.abs(vectors @ directions) // widths)).max(axis=1)
        squares = STEPS**2 * (vectors.astype(object) ** 2).sum(axis=1)
        # ceil(sqrt(s) / D) is the least r with r^2 D^2 >= s.
        ball = [math.isqrt(-(-int(s) // self.diameter**2) - 1) + 1 if s else 0 for s in squares]
        return np.asarray(np.maximum(slabs, np.array(ball, dtype=np.int64)))

    def noise(self, scale: Fraction, size: int, source: RandomSource) -> Integers:
        """Independent z (size, d) with P(z) proportional to exp(-||z|| / scale); ||z|| in STEPS-ths."""
        wide = scale * self.diameter / STEPS

        def attempt(missing: int) -> Integers:
            trials = self._trials(missing)
            tried = k_norm_noise(wide, self.dimension, trials, source)
            # |z| is rounded up by less than one, so after subtracting one it is below |z|.
            length = STEPS * (lattice_norm(tried) - 1)
            excess = self.diameter * self.norm(tried) - length
            kept: Integers = tried[geometric(scale * self.diameter, trials, source) >= excess]
            return kept

        return fill(size, attempt, self.dimension)

    def _trials(self, missing: int) -> int:
        """A number of trials that suffices for most bodies and fits in memory."""
        return max(64, min(16 * missing, _BATCH // len(self.widths)))

    def simulated(self, scale: float, generator: np.random.Generator, size: int) -> Floats:
        """Vectors (size, d) from the continuous distribution, only for the simulation of errors."""
        d, (directions, widths) = self.dimension, self._arrays
        found, missing = [np.empty((0, d))], size
        while missing > 0:
            points = generator.normal(size=(self._trials(missing), d))
            points *= (
                self.diameter
                * generator.random((len(points), 1)) ** (1 / d)
                / np.linalg.norm(points, axis=1, keepdims=True)
            )
            inside = points[(np.abs(points @ directions) <= widths).all(axis=1)][:missing]
            found.append(inside)
            missing -= len(inside)
        lengths = generator.gamma(d + 1, scale / STEPS, (size, 1))
        return np.concatenate(found) * lengths


def _first_of_its_line(q: tuple[int, ...]) -> bool:
    """Whether q represents its line: no common divisor, and the first non-zero entry is positive."""
    return math.gcd(*q) == 1 and next(x for x in q if x) > 0
