"""Kernels of one axis: the bump of a record, and the covariance of the noise that protects it.

A kernel density is a mean of bumps: a record at position a adds phi_a.  Noise with covariance K protects
the whole function if the norm of phi_a - phi_b in the Hilbert space of K is bounded (Hall, Rinaldo &
Wasserman 2013, Proposition 7).  Bumps are divided by their norm, so that

    <phi_a, phi_a> = 1,     <phi_a, phi_b> = overlap >= least,     density = height * mean of phi.

For several axes heights, covariances and overlaps multiply, and the squared distance of two records is
at most 2 (1 - overlap).  Positions are scaled to [0, 1].

    kernel        covariance              bump is a Gaussian of standard deviation h in both
    gaussian      exp(-(x - y)^2 / 2h^2)  height 1 / (sqrt(2 pi) h), overlap exp(-s^2 / 2)
    exponential   exp(-|x - y| / h)       height sqrt(3 / (8 sqrt pi)) / h,
                                          overlap (1 - s^2 / 6) exp(-s^2 / 4)

with s = |a - b| / h.  The second overlap is least, -(2/3) exp(-5/2), at s = sqrt 10; the restriction
of a function to [0, 1] has no larger norm than the function on the line.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpcore.arrays import Floats

KernelName = Literal["gaussian", "exponential"]


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel of one axis; ``bandwidth``: h, in units of the axis."""

    bandwidth: float

    @abstractmethod
    def covariance(self, x: Floats, y: Floats) -> Floats:
        """K(x, y), elementwise; K(x, x) = 1."""

    @abstractmethod
    def bump(self, x: Floats, a: Floats) -> Floats:
        """phi_a(x), elementwise, of norm one."""

    @property
    @abstractmethod
    def height(self) -> float:
        """The factor that makes a mean of bumps a density."""

    @abstractmethod
    def overlap(self, apart: float) -> float:
        """<phi_a, phi_b> for |a - b| = ``apart``."""

    @property
    @abstractmethod
    def least(self) -> float:
        """The smallest overlap of two bumps on [0, 1]."""

    def _gaussian(self, x: Floats, y: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * ((x - y) / self.bandwidth) ** 2))


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """The squared exponential kernel, with very smooth paths."""

    def covariance(self, x: Floats, y: Floats) -> Floats:
        return self._gaussian(x, y)

    def bump(self, x: Floats, a: Floats) -> Floats:
        return self._gaussian(x, a)

    @property
    def height(self) -> float:
        return 1 / (math.sqrt(2 * math.pi) * self.bandwidth)

    def overlap(self, apart: float) -> float:
        return math.exp(-0.5 * (apart / self.bandwidth) ** 2)

    @property
    def least(self) -> float:
        return self.overlap(1.0)


@dataclass(frozen=True)
class ExponentialKernel(Kernel):
    """The Ornstein-Uhlenbeck process, with rough paths; its Hilbert space is the first Sobolev space."""

    def covariance(self, x: Floats, y: Floats) -> Floats:
        return np.asarray(np.exp(-np.abs(x - y) / self.bandwidth))

    def bump(self, x: Floats, a: Floats) -> Floats:
        return self._gaussian(x, a) / (math.sqrt(2 * math.pi) * self.bandwidth * self.height)

    @property
    def height(self) -> float:
        return math.sqrt(3 / (8 * math.sqrt(math.pi))) / self.bandwidth

    def overlap(self, apart: float) -> float:
        square = (apart / self.bandwidth) ** 2
        return (1 - square / 6) * math.exp(-square / 4)

    @property
    def least(self) -> float:
        return self.overlap(min(1.0, math.sqrt(10) * self.bandwidth))


KERNELS: dict[KernelName, type[Kernel]] = {
    "gaussian": GaussianKernel,
    "exponential": ExponentialKernel,
}


def distance(kernels: tuple[Kernel, ...]) -> float:
    """The largest distance of two records in the product of the axes' Hilbert spaces, rounded up."""
    least = [kernel.least for kernel in kernels]
    # A negative overlap on one axis makes the product smallest where the others are 1.
    overlap = math.prod(least) if min(least) >= 0 else min(least)
    return math.sqrt(2 * (1 - overlap)) * (1 + 1e-12)
