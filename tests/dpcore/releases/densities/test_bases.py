"""Sums of cosines, and of waves where both ends meet, by fast transforms: those by the definition."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import fft

from dpcore.arrays import Floats
from dpcore.domain.lattice import Lattice
from dpcore.releases.densities.basis import NEGLIGIBLE, Basis
from dpcore.releases.densities.cosines import Cosines
from dpcore.releases.densities.waves import Waves
from tests.dpcore.releases.densities.density_oracles import (
    centres,
    cosine,
    damping,
    reflected_kernel,
    wave,
    wave_damping,
    wrapped_kernel,
)


class Definition(NamedTuple):
    """What defines a basis; ``limit`` of a grid's size is how many numbers it can distinguish."""

    function: Callable[[int, Floats], Floats]
    damping: Callable[[int, float], float]
    kernel: Callable[[Floats, Floats, float], Floats]
    limit: Callable[[int], int]


DEFINITIONS: dict[type[Basis], Definition] = {
    Cosines: Definition(cosine, damping, reflected_kernel, lambda size: size),
    Waves: Definition(wave, wave_damping, wrapped_kernel, lambda size: size - 1 + size % 2),
}
GRIDS = [
    ((7,), (0.3,), (7,)),
    ((40,), (0.05,), (40,)),
    ((40,), (0.05,), (11,)),
    ((1,), (0.5,), (1,)),
    ((2,), (0.1,), (2,)),
    ((9, 6), (0.2, 0.4), (9, 6)),
    ((9, 6), (0.1, 0.2), (3, 5)),
    ((1, 8), (0.2, 0.1), (1, 8)),
]
every_basis = pytest.mark.parametrize("kind", DEFINITIONS)
every_grid = pytest.mark.parametrize(("shape", "bandwidths", "limits"), GRIDS)


def functions(basis: Basis) -> np.ndarray:
    """(coefficients, *shape) basis functions at the cell centres."""
    result = []
    for numbers in basis.frequencies:
        product = np.ones(())
        for number, size in zip(numbers, basis.shape, strict=True):
            one = DEFINITIONS[type(basis)].function(int(number), centres(size))
            product = np.multiply.outer(product, one)
        result.append(product)
    return np.reshape(result, (len(result), *basis.shape))


@every_basis
@every_grid
def test_functions_are_kept_but_for_the_constant_and_the_negligible_ones(
    kind: Any, shape: tuple, bandwidths: tuple, limits: tuple
):
    basis, of = kind(shape, bandwidths, limits), DEFINITIONS[kind]
    numbers = [min(limit, of.limit(size)) for size, limit in zip(shape, limits, strict=True)]
    damped = {each: math.prod(map(of.damping, each, bandwidths)) for each in np.ndindex(*numbers)}
    expected = {each: by for each, by in damped.items() if any(each) and by >= NEGLIGIBLE}
    assert [tuple(each) for each in basis.frequencies.tolist()] == [*expected]
    np.testing.assert_allclose(basis.lambdas, [*expected.values()])
    assert basis.size == len(expected)


@every_basis
@every_grid
def test_means_densities_and_variances_are_the_sums_that_define_them(
    kind: Any, shape: tuple, bandwidths: tuple, limits: tuple
):
    basis, random = kind(shape, bandwidths, limits), np.random.default_rng(2)
    phi = functions(basis)
    weights = random.dirichlet(np.ones(math.prod(shape))).reshape(shape)
    means = (phi * weights).sum(axis=tuple(range(1, phi.ndim)))
    np.testing.assert_allclose(basis.means(weights), means, atol=1e-14)
    theta = random.normal(size=basis.size)
    density = 1 + np.tensordot(theta, phi, axes=1)
    np.testing.assert_allclose(basis.density(theta), density, atol=1e-12)
    # Of sine and cosine together where both ends meet.
    variances = basis.lambdas if kind is Waves else random.uniform(1, 2, basis.size)
    variance = np.tensordot(variances, phi**2, axes=1)
    np.testing.assert_allclose(basis.variance(variances), variance, atol=1e-12)


@every_basis
@pytest.mark.parametrize("bandwidth", [0.002, 0.02, 0.1, 0.3, 1.0])
def test_kernel_extremes_are_those_of_the_gaussian_kernel_reflected_or_wrapped(
    kind: Any, bandwidth: float
):
    largest, smallest = kind.kernel_extremes(bandwidth)
    x = np.linspace(0, 1, 201)
    kernel = DEFINITIONS[kind].kernel(x, x, bandwidth)
    assert largest == pytest.approx(kernel.max(), rel=1e-12)
    assert smallest == pytest.approx(kernel.min(), rel=1e-9, abs=1e-11)


def exact_means(basis: Basis, weights: np.ndarray) -> np.ndarray:
    """The means of the basis functions, by a transform in extended precision."""
    half = np.sqrt(np.longdouble(2))
    if isinstance(basis, Cosines):
        exact = fft.dctn(weights, type=2)[basis.kept]
        for axis in range(weights.ndim):
            exact = exact / 2 * np.where(basis.frequencies[:, axis] > 0, half, 1)
        return exact
    waves, shape, exact = fft.fftn(weights), weights.shape, []
    for numbers in basis.frequencies:
        # Products of cosines and sines are sums over the signs of the frequencies.
        total = np.longdouble(0)
        for signs in np.ndindex(*(2,) * len(shape)):
            j = [(n + 1) // 2 * (1 - 2 * s) for n, s in zip(numbers, signs, strict=True)]
            turn = sum(np.longdouble(a) / size for a, size in zip(j, shape, strict=True))
            factor = np.exp(-1j * np.pi * np.longdouble(1) * turn) * waves[tuple(j)]
            for n, s in zip(numbers, signs, strict=True):
                factor = factor * (
                    0.5 if n == 0 else 1 / half if n % 2 else 1j * (1 - 2 * s) / half
                )
            total += factor.real
        exact.append(total)
    return np.array(exact)


@pytest.mark.parametrize("rows", [2**24 - 1, 2**38 - 1])
@pytest.mark.parametrize(
    ("kind", "shape", "bandwidths"),
    [
        *(
            (Cosines, *grid)
            for grid in [((1000,), (1.0,)), ((65536,), (1.0,)), ((4093,), (0.002,))]
        ),
        (Cosines, (61, 67), (1.0, 1.0)),
        *((Waves, shape, (0.5,) * len(shape)) for shape in [(65536,), (4093,), (61, 67)]),
    ],
)
def test_floating_point_moves_whitened_coefficients_by_far_less_than_half_a_step(
    kind: Any, shape: tuple, bandwidths: tuple, rows: int
):
    """On the finest lattices of all grids, bandwidths and rows; half a step is what they allow."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("this machine has no extended precision")
    basis, random = kind(shape, bandwidths, shape), np.random.default_rng(1)
    extremes = [kind.kernel_extremes(h) for h in bandwidths]
    gap = math.prod(high for high, _ in extremes) - math.prod(low for _, low in extremes)
    lattice = Lattice.for_sensitivity(math.sqrt(2 * gap) / rows, basis.size, rows)
    for occupied in (5, 5000):
        counts = np.zeros(shape)
        counts.flat[random.integers(0, counts.size, occupied)] += rows // 5001
        counts.flat[0] += rows - counts.sum()
        exact = exact_means(basis, counts.astype(np.longdouble) / np.longdouble(rows))
        error = np.abs(np.sqrt(basis.lambdas) * (basis.means(counts / rows) - exact))
        assert float(error.max()) < 0.1 * lattice.step
