"""Cosine sums by fast transforms are those by the definition, and lose nothing in floating point."""

import math

import numpy as np
import pytest
from scipy import fft

from dpcore.domain.lattice import Lattice
from dpcore.releases.densities.basis import NEGLIGIBLE
from dpcore.releases.densities.cosines import Cosines
from tests.dpcore.releases.densities.density_oracles import (
    centres,
    cosine,
    damping,
    reflected_kernel,
)

GRIDS = [
    ((7,), (0.3,), (7,)),
    ((40,), (0.05,), (40,)),
    ((40,), (0.05,), (11,)),
    ((1,), (0.5,), (1,)),
    ((9, 6), (0.2, 0.4), (9, 6)),
    ((9, 6), (0.2, 0.4), (4, 5)),
    ((1, 8), (0.2, 0.1), (1, 8)),
]

every_grid = pytest.mark.parametrize(("shape", "bandwidths", "limits"), GRIDS)


def functions(basis: Cosines) -> np.ndarray:
    """(coefficients, *shape) basis functions at the cell centres."""
    result = []
    for frequency in basis.frequencies:
        product = np.ones(())
        for j, size in zip(frequency, basis.shape, strict=True):
            product = np.multiply.outer(product, cosine(int(j), centres(size)))
        result.append(product)
    return np.reshape(result, (len(result), *basis.shape))


@every_grid
def test_kept_frequencies_are_all_but_the_constant_and_the_negligible_ones(
    shape: tuple, bandwidths: tuple, limits: tuple
):
    basis = Cosines(shape, bandwidths, limits)
    expected = [
        (frequency, math.prod(map(damping, frequency, bandwidths)))
        for frequency in np.ndindex(*limits)
        if any(frequency) and math.prod(map(damping, frequency, bandwidths)) >= NEGLIGIBLE
    ]
    assert [tuple(f) for f in basis.frequencies.tolist()] == [f for f, _ in expected]
    np.testing.assert_allclose(basis.lambdas, [value for _, value in expected])
    assert basis.size == len(expected)


@every_grid
def test_means_densities_and_variances_are_the_sums_that_define_them(
    shape: tuple, bandwidths: tuple, limits: tuple
):
    basis, random = Cosines(shape, bandwidths, limits), np.random.default_rng(2)
    phi = functions(basis)
    weights = random.dirichlet(np.ones(math.prod(shape))).reshape(shape)
    axes = tuple(range(1, phi.ndim))
    np.testing.assert_allclose(basis.means(weights), (phi * weights).sum(axis=axes), atol=1e-14)

    theta, variances = random.normal(size=basis.size), random.uniform(1, 2, basis.size)
    density = 1 + np.tensordot(theta, phi, axes=1)
    np.testing.assert_allclose(basis.density(theta), density, atol=1e-12)
    np.testing.assert_allclose(
        basis.variance(variances), np.tensordot(variances, phi**2, axes=1), atol=1e-12
    )


@every_grid
def test_basis_functions_are_orthogonal_over_the_cells(
    shape: tuple, bandwidths: tuple, limits: tuple
):
    phi = functions(Cosines(shape, bandwidths, limits)).reshape(-1, math.prod(shape))
    np.testing.assert_allclose(phi @ phi.T, math.prod(shape) * np.eye(len(phi)), atol=1e-10)


def test_the_same_frequencies_are_kept_on_every_grid_that_is_fine_enough():
    for limits in ((64,), (9,)):
        coarse = Cosines((64,), (0.1,), limits)
        fine = Cosines((1000,), (0.1,), limits)
        np.testing.assert_array_equal(coarse.frequencies, fine.frequencies)


@pytest.mark.parametrize("bandwidth", [0.002, 0.01, 0.1, 0.3, 1.0])
def test_kernel_extremes_are_those_of_the_reflected_gaussian_kernel(bandwidth: float):
    largest, smallest = Cosines.kernel_extremes(bandwidth)
    ends = np.array([0.0, 1.0])
    corner = reflected_kernel(ends[:1], ends, bandwidth)[0]
    assert largest == pytest.approx(corner[0], rel=1e-12)
    assert smallest == pytest.approx(corner[1], rel=1e-9, abs=1e-12)
    points = np.linspace(0, 1, 200)
    kernel = reflected_kernel(points, points, bandwidth)
    assert kernel.max() <= largest * (1 + 1e-12)
    assert kernel.min() >= smallest - 1e-12


@pytest.mark.parametrize(
    ("shape", "bandwidths"),
    [((1000,), (1.0,)), ((65536,), (1.0,)), ((4093,), (0.002,)), ((61, 67), (1.0, 1.0))],
)
@pytest.mark.parametrize("rows", [2**24 - 1, 2**38 - 1])
def test_floating_point_moves_whitened_coefficients_by_far_less_than_half_a_step(
    shape: tuple, bandwidths: tuple, rows: int
):
    """The lattice leaves room for half a step; the oracle transforms in extended precision.

    These are the grids, bandwidths and row counts for which the step is finest.
    """
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("this machine has no extended precision")
    basis, random = Cosines(shape, bandwidths, shape), np.random.default_rng(1)
    extremes = [Cosines.kernel_extremes(h) for h in bandwidths]
    gap = math.prod(high for high, _ in extremes) - math.prod(low for _, low in extremes)
    lattice = Lattice.for_sensitivity(math.sqrt(2 * gap) / rows, basis.size, rows)
    for spiky in (True, False):
        counts = np.zeros(shape)
        counts.flat[random.integers(0, counts.size, 5 if spiky else 5000)] += rows // 5001
        counts.flat[0] += rows - counts.sum()
        computed = np.sqrt(basis.lambdas) * basis.means(counts / rows)
        weights = counts.astype(np.longdouble) / np.longdouble(rows)
        exact = fft.dctn(weights, type=2)[basis.kept]
        for axis in range(len(shape)):
            positive = basis.frequencies[:, axis] > 0
            exact = exact / 2 * np.where(positive, np.sqrt(np.longdouble(2)), 1)
        error = np.abs(computed - np.sqrt(basis.lambdas) * exact)
        assert float(error.max()) < 0.1 * lattice.step
