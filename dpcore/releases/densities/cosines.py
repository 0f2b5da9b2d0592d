"""The cosine basis of a density on a box.

A bounded column is scaled to [0, 1] and reflected at both ends, so that smoothing loses no mass
there.  The basis functions are 1 and sqrt2 cos(pi j x); in two dimensions their
products.  A smooth density is

    f(x) = 1 + sum over frequencies k != 0 of  theta_k phi_k(x),
    theta_k = lambda_k * mean of phi_k over the records,   lambda_j = exp(-pi^2 j^2 h^2 / 2)

with h the bandwidth: a Gaussian kernel density, reflected.  The constant coefficient is public if n is.
Points are cell centres (g + 1/2)/G of the column's grid, where sums over cells are discrete cosine
transforms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpcore.arrays import Floats
from dpcore.releases.densities.basis import Basis


@dataclass(frozen=True)
class Cosines(Basis):
    """Cosines of half turns along every axis."""

    meaning: ClassVar[str] = "product of sqrt(2) cos(pi j x) over axes with j > 0"
    half_turns = 1

    def means(self, weights: Floats) -> Floats:
        from scipy import fft  # slow to import, and a plan is explained without

        # Along each axis the transform has a factor of 2.
        transformed = fft.dctn(weights, type=2, norm=None) / 2 ** len(self.shape)
        return np.asarray((transformed * self._norms)[self.kept])

    def functions(self, points: Floats) -> Floats:
        result = np.ones((len(points), self.size))
        for axis, frequencies in enumerate(self.frequencies.T):
            waves = np.cos(np.pi * np.outer(points[:, axis], frequencies))
            result *= np.where(frequencies > 0, math.sqrt(2), 1.0) * waves
        return result

    def density(self, coefficients: Floats) -> Floats:
        spectrum = np.zeros(self.shape)
        spectrum.flat[0] = self.known
        spectrum[self.kept] = coefficients
        return self._synthesis(spectrum * self._norms)

    def variance(self, variances: Floats) -> Floats:
        """Pointwise variance sum of var_k phi_k(x)^2 at the cell centres (independent noise).

        phi_j^2 = 1 + cos(2 pi j x), so it is itself a cosine sum over doubled frequencies.
        """
        table = np.zeros(self.shape)
        table[self.kept] = variances
        squares = [
            np.vstack([np.ones(size), 1 + np.cos(2 * np.pi * np.outer(np.arange(1, size), x))])
            for size, x in zip(self.shape, map(_centres, self.shape), strict=True)
        ]
        # Only frequencies that are kept: a fine grid has far more.
        rows = np.flatnonzero(self.kept.any(axis=tuple(range(1, len(self.shape)))))
        if len(self.shape) == 1:
            result = table[rows] @ squares[0][rows]
        else:
            columns = np.flatnonzero(self.kept.any(axis=0))
            inner = table[np.ix_(rows, columns)] @ squares[1][columns]
            result = squares[0][rows].T @ inner
        return np.asarray(result)

    @cached_property
    def _norms(self) -> Floats:
        """The factors sqrt2 for each axis with a non-zero frequency."""
        result = np.ones(())
        for size in self.shape:
            result = np.multiply.outer(result, np.r_[1.0, np.full(size - 1, math.sqrt(2))])
        return np.asarray(result)

    def _synthesis(self, spectrum: Floats) -> Floats:
        """The sum over k of spectrum_k prod cos(pi k x) at the cell centres: DCT-III up to scale."""
        from scipy import fft

        halves = spectrum
        for axis, size in enumerate(self.shape):
            # The transform counts every cosine but the constant twice.
            scale = np.r_[1.0, np.full(size - 1, 0.5)]
            halves = halves * scale.reshape([-1 if a == axis else 1 for a in range(halves.ndim)])
        return np.asarray(fft.dctn(halves, type=3, norm=None))


def _centres(size: int) -> Floats:
    return (np.arange(size) + 0.5) / size
