"""Kernel densities and linear binning, computed slowly from their definitions."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from dpcore.arrays import Floats


def centres(size: int) -> Floats:
    return (np.arange(size) + 0.5) / size


def cosine(frequency: int, x: Floats) -> Floats:
    """The basis function of one axis."""
    return np.ones_like(x) if frequency == 0 else math.sqrt(2) * np.cos(math.pi * frequency * x)


def damping(frequency: int, bandwidth: float) -> float:
    return math.exp(-0.5 * (math.pi * frequency * bandwidth) ** 2)


def reflected_kernel(x: Floats, y: Floats, bandwidth: float) -> Floats:
    """The Gaussian kernel on [0, 1], reflected at both ends: (k,) and (l,) to (k, l)."""
    total = np.zeros((len(x), len(y)))
    for image in range(-14, 15):
        for sign in (1, -1):
            away = (x[:, None] - (2 * image + sign * y[None, :])) / bandwidth
            total += np.exp(-0.5 * away**2)
    return total / (bandwidth * math.sqrt(2 * math.pi))


def kernel_density(weights: Floats, bandwidths: tuple[float, ...]) -> Floats:
    """The density at cell centres, of the grid's shape: a sum over records, no transform."""
    density = weights / weights.sum()
    for axis, bandwidth in enumerate(bandwidths):
        x = centres(weights.shape[axis])
        kernel = reflected_kernel(x, x, bandwidth)
        density = np.moveaxis(np.tensordot(kernel, density, axes=(1, axis)), 0, axis)
    return density


def linear_binning(point: tuple[float, ...], wide: tuple[int, ...]) -> Floats:
    """How a record at a point of the unit box is shared among wide cells, tents reflected."""
    shares = np.ones(())
    for x, cells in zip(point, wide, strict=True):
        tent = np.zeros(cells)
        for g, image in product(range(cells), (0.0, 2.0)):
            for place in (image + centres(cells)[g], image - centres(cells)[g]):
                tent[g] += max(0.0, 1 - abs(x - place) * cells)
        shares = np.multiply.outer(shares, tent)
    return shares
