"""Kernel densities and binning, computed slowly from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.interpolate import BSpline

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


def wave(number: int, x: Floats) -> Floats:
    """The basis function of one axis whose ends meet: cosines have odd numbers, sines even ones."""
    turn = 2 * math.pi * ((number + 1) // 2) * x
    if number == 0:
        return np.ones_like(x)
    return math.sqrt(2) * (np.cos(turn) if number % 2 else np.sin(turn))


def wave_damping(number: int, bandwidth: float) -> float:
    return math.exp(-2 * (math.pi * ((number + 1) // 2) * bandwidth) ** 2)


def wrapped_kernel(x: Floats, y: Floats, bandwidth: float) -> Floats:
    """The Gaussian kernel on a circle of length 1: (k,) and (l,) to (k, l)."""
    away = x[:, None] - y[None, :]
    turns = sum(np.exp(-0.5 * ((away + k) / bandwidth) ** 2) for k in range(-12, 13))
    return turns / (bandwidth * math.sqrt(2 * math.pi))


def kernel_density(
    weights: Floats,
    bandwidths: tuple[float, ...],
    kernel: Callable[[Floats, Floats, float], Floats] = reflected_kernel,
) -> Floats:
    """The density at cell centres, of the grid's shape: a sum over records, no transform."""
    density = weights / weights.sum()
    for axis, bandwidth in enumerate(bandwidths):
        x = centres(weights.shape[axis])
        spread = np.tensordot(kernel(x, x, bandwidth), density, axes=(1, axis))
        density = np.moveaxis(spread, 0, axis)
    return density


def spline_binning(
    point: tuple[float, ...], fine: tuple[int, ...], wide: tuple[int, ...]
) -> Floats:
    """How a record at a point of the unit box is shared among wide cells: splines of degree 7,
    reflected; grids of one size are the same."""
    shares = np.ones(())
    bump = BSpline.basis_element(np.arange(-4.0, 5.0), extrapolate=False)
    for x, size, cells in zip(point, fine, wide, strict=True):
        part = np.zeros(cells)
        for g, image in product(range(cells), range(-8, 10, 2)):
            for place in (image + centres(cells)[g], image - centres(cells)[g]):
                part[g] += np.nan_to_num(bump((x - place) * cells))
        shares = np.multiply.outer(shares, np.eye(cells)[int(x * cells)] if size == cells else part)
    return shares
