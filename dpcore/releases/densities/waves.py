"""The Fourier basis of a density on a circle or a torus: the periodic twin of ``cosines``.

A column whose ends meet, like an hour of the day or a direction, is not reflected but wrapped around.
Along one axis the basis is numbered 0, 1, 2, 3, 4, ...:

    1,  sqrt2 cos(2 pi x),  sqrt2 sin(2 pi x),  sqrt2 cos(4 pi x),  sqrt2 sin(4 pi x),  ...

and number k belongs to the frequency j = ceil(k / 2), damped by lambda_j = exp(-2 pi^2 j^2 h^2): the
mean of wrapped Gaussians of standard deviation h (Hall 2012 prints the exponent without
pi^2).  In two dimensions the basis is made of products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpcore.arrays import Floats
from dpcore.releases.densities.basis import Basis


@dataclass(frozen=True)
class Waves(Basis):
    """Cosines and sines of whole turns along every axis."""

    meaning: ClassVar[str] = (
        "product over axes of the basis functions j: sqrt(2) cos(pi (j + 1) x) where j is odd,"
        " sqrt(2) sin(pi j x) where it is even and not 0"
    )
    half_turns = 2

    def means(self, weights: Floats) -> Floats:
        for axis in range(len(self.shape)):
            weights = _analysis(weights, axis)
        return np.asarray(weights[self.kept])

    def functions(self, points: Floats) -> Floats:
        result = np.ones((len(points), self.size))
        for axis, numbers in enumerate(self.frequencies.T):
            turns = 2 * np.pi * np.outer(points[:, axis], (numbers + 1) // 2)
            waves = math.sqrt(2) * np.where(numbers % 2, np.cos(turns), np.sin(turns))
            result *= np.where(numbers > 0, waves, 1.0)
        return result

    def density(self, coefficients: Floats) -> Floats:
        spectrum = np.zeros(self.damping.shape)
        spectrum.flat[0] = self.known
        spectrum[self.kept] = coefficients
        for axis, size in enumerate(self.shape):
            spectrum = _synthesis(spectrum, axis, size)
        return spectrum

    def variance(self, variances: Floats) -> Floats:
        """The pointwise variance, the same everywhere if a cosine and its sine have equal variances."""
        return np.full(self.shape, variances.sum())


def _odd(size: int) -> int:
    """The number of basis functions that a grid of ``size`` cells distinguishes."""
    # At the highest frequency of an even grid the cosine is zero in all cells: its sine is left out too.
    return size - 1 + size % 2


def _analysis(values: Floats, axis: int) -> Floats:
    """The inner products with the basis functions along one axis."""
    from scipy import fft  # slow to import, and a plan is explained without

    size = values.shape[axis]
    moved = np.moveaxis(values, axis, -1)
    j = np.arange((_odd(size) + 1) // 2)
    # The transform is for the left ends of cells; a turn by half a cell moves it to their centres.
    waves = fft.rfft(moved)[..., : len(j)] * np.exp(-1j * np.pi * j / size)
    result = np.empty((*moved.shape[:-1], _odd(size)))
    result[..., 0] = waves[..., 0].real
    result[..., 1::2] = math.sqrt(2) * waves[..., 1:].real
    result[..., 2::2] = -math.sqrt(2) * waves[..., 1:].imag
    return np.moveaxis(result, -1, axis)


def _synthesis(spectrum: Floats, axis: int, size: int) -> Floats:
    """The sums of the basis functions at the cell centres along one axis."""
    from scipy import fft

    moved = np.moveaxis(spectrum, axis, -1)
    waves = np.zeros((*moved.shape[:-1], size // 2 + 1), dtype=np.complex128)
    count = (moved.shape[-1] + 1) // 2
    waves[..., 0] = moved[..., 0]
    waves[..., 1:count] = (moved[..., 1::2] - 1j * moved[..., 2::2]) / math.sqrt(2)
    waves[..., :count] *= np.exp(1j * np.pi * np.arange(count) / size)
    return np.moveaxis(np.asarray(fft.irfft(waves * size, n=size)), -1, axis)
