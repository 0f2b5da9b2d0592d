"""Whitening on a public grid, so that Gaussian-process noise becomes independent noise.

Let C be the covariance of the noise at the m public points T of one axis, and L the Cholesky factor,
as computed, of C + JITTER * I.  A record at a is the vector

    u(a) = L^-1 phi_a(T),         and       L (sum over records of u + noise) = bumps + L noise,

so independent noise of variance v on the whitened vector is noise with covariance v L L' on the grid:
the covariance of the Gaussian process, plus the jitter.

**Distance.**  Let M = L L', exactly.  The computed factor is exact for a matrix within m (m + 1) 2^-53
of C + JITTER * I (Higham 2002, theorem 10.3), far less than JITTER away, so M >= C and

    |u(a) - u(b)|^2 = (phi_a - phi_b)(T)' M^-1 (phi_a - phi_b)(T) <= ||phi_a - phi_b||^2,

the norm in the Hilbert space of the kernel, because restriction to T is a projection (Hall, Rinaldo &
Wasserman 2013, Proposition 6).  So |u(a)| <= 1.  The jitter adds noise and never removes any.

**Integers.**  u(a) is computed once for every cell of the axis, from public values alone, multiplied
by 2^bits and rounded to whole numbers U(a).  From then on all sums over records are exact.  U / 2^bits
is within ``slack`` of u(a): half a step for each of m coordinates, and the rounding error of the
triangular solve, gamma_m |L| |u| / sqrt(JITTER) (Higham, theorem 8.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from dpcore.arrays import Floats, Integers
from dpcore.releases.densities.kernels import Kernel

JITTER = 2.0**-24
"""The jitter added to the variance 1 at every grid point: as small as a rounding error."""

MOST_POINTS = 1024
"""The most points per axis, for which JITTER is over a hundred times Cholesky's error bound."""


@dataclass(frozen=True, eq=False)
class Whitening:
    """One axis of the public grid: ``points`` (m,) distinct, in [0, 1]."""

    kernel: Kernel
    points: Floats

    @cached_property
    def factor(self) -> Floats:
        """The lower triangular factor L (m, m)."""
        covariance = self.kernel.covariance(self.points[:, None], self.points[None, :])
        covariance[np.diag_indices(len(self.points))] += JITTER
        return np.asarray(cholesky(covariance, lower=True))

    def integers(self, positions: Floats, bits: int) -> Integers:
        """The integer vectors U(a) (k, m) for records at the positions a (k,)."""
        bumps = self.kernel.bump(self.points[:, None], positions[None, :])
        whitened = solve_triangular(self.factor, bumps, lower=True, overwrite_b=True)
        return np.asarray(np.rint(np.ldexp(whitened.T, bits)), dtype=np.int64)

    def slack(self, bits: int) -> float:
        """A bound on the distance between U(a) / 2^bits and u(a)."""
        m = len(self.points)
        return math.ldexp(math.sqrt(m), -bits - 1) + math.ldexp(16 * m**1.5, -53) / math.sqrt(
            JITTER
        )

    def blur(self, bits: int) -> float:
        """A bound on the distance between L U(a) / 2^bits and the bump, at any of the points."""
        # ``slack`` without rounding to whole numbers, for which the rows of L give a closer bound.
        solved = math.sqrt(1 + JITTER) * (
            self.slack(bits) - math.ldexp(math.sqrt(len(self.points)), -bits - 1)
        )
        return math.ldexp(float(np.abs(self.factor).sum(axis=1).max()), -bits - 1) + solved

    def between(self, x: Floats) -> Floats:
        """The weights (k, m) of the whitened vector in the interpolated values at x (k,)."""
        covariance = self.kernel.covariance(self.points[:, None], x[None, :])
        return np.asarray(solve_triangular(self.factor, covariance, lower=True).T)

    def smoothed(self, x: Floats) -> Floats:
        """The weights (k, m) of the whitened vector in the function at x (k,), reflected at 0 and 1 and
        smoothed once more; as weights of the values at the points they are positive and add up to
        one."""
        images = np.stack([turn + sign * self.points for turn in (-2, 0, 2) for sign in (1, -1)])
        away = (x[:, None, None] - images) / self.kernel.bandwidth
        weights = np.exp(-0.5 * away**2).sum(axis=1)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ self.factor)

    @cached_property
    def dual(self) -> Floats:
        """The matrix L'^-1 (m, m): whitened values to coefficients of kernels centred at the points."""
        identity = np.eye(len(self.points))
        return np.asarray(solve_triangular(self.factor, identity, lower=True, trans="T"))
