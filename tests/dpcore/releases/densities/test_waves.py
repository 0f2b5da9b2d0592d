"""Fourier sums by fast transforms are those by the definition, and lose nothing in floating point."""

import math

import numpy as np
import pytest
from scipy import fft

from dpcore.accounting.budget import Budget
from dpcore.domain.domain import Domain
from dpcore.domain.lattice import Lattice
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.basis import NEGLIGIBLE
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.densities.waves import Waves
from tests.dpcore.releases.contract import grid, opened, tally_of
from tests.dpcore.releases.densities.density_oracles import centres

GRIDS = [
    ((7,), (0.2,), (7,)),
    ((40,), (0.05,), (40,)),
    ((40,), (0.05,), (11,)),
    ((1,), (0.5,), (1,)),
    ((2,), (0.1,), (2,)),
    ((9, 6), (0.1, 0.2), (9, 6)),
    ((9, 6), (0.1, 0.2), (3, 5)),
    ((1, 8), (0.2, 0.1), (1, 8)),
]
every_grid = pytest.mark.parametrize(("shape", "bandwidths", "limits"), GRIDS)


def wave(number: int, x: np.ndarray) -> np.ndarray:
    turn = 2 * math.pi * ((number + 1) // 2) * x
    if number == 0:
        return np.ones_like(x)
    return math.sqrt(2) * (np.cos(turn) if number % 2 else np.sin(turn))


def damping(number: int, bandwidth: float) -> float:
    return math.exp(-2 * (math.pi * ((number + 1) // 2) * bandwidth) ** 2)


def wrapped_kernel(x: np.ndarray, y: np.ndarray, bandwidth: float) -> np.ndarray:
    """(k,) and (l,) to (k, l): Gaussians on the line, wrapped."""
    away = x[:, None] - y[None, :]
    turns = sum(np.exp(-0.5 * ((away + k) / bandwidth) ** 2) for k in range(-12, 13))
    return turns / (bandwidth * math.sqrt(2 * math.pi))


def functions(basis: Waves) -> np.ndarray:
    """(coefficients, *shape) basis functions at the cell centres."""
    result = []
    for numbers in basis.frequencies:
        product = np.ones(())
        for number, size in zip(numbers, basis.shape, strict=True):
            product = np.multiply.outer(product, wave(int(number), centres(size)))
        result.append(product)
    return np.reshape(result, (len(result), *basis.shape))


@every_grid
def test_kept_functions_are_pairs_but_for_the_constant_and_the_negligible_ones(
    shape, bandwidths, limits
):
    basis = Waves(shape, bandwidths, limits)
    told_apart = [
        min(limit, size - 1 + size % 2) for size, limit in zip(shape, limits, strict=True)
    ]
    expected = [
        (numbers, math.prod(map(damping, numbers, bandwidths)))
        for numbers in np.ndindex(*told_apart)
        if any(numbers) and math.prod(map(damping, numbers, bandwidths)) >= NEGLIGIBLE
    ]
    assert [tuple(f) for f in basis.frequencies.tolist()] == [numbers for numbers, _ in expected]
    np.testing.assert_allclose(basis.lambdas, [value for _, value in expected])


@every_grid
def test_means_densities_and_variances_are_the_sums_that_define_them(shape, bandwidths, limits):
    basis, random = Waves(shape, bandwidths, limits), np.random.default_rng(2)
    phi = functions(basis)
    weights = random.dirichlet(np.ones(math.prod(shape))).reshape(shape)
    axes = tuple(range(1, phi.ndim))
    np.testing.assert_allclose(basis.means(weights), (phi * weights).sum(axis=axes), atol=1e-14)
    theta = random.normal(size=basis.size)
    density = 1 + np.tensordot(theta, phi, axes=1)
    np.testing.assert_allclose(basis.density(theta), density, atol=1e-12)
    variance = np.tensordot(basis.lambdas, phi**2, axes=1)
    np.testing.assert_allclose(basis.variance(basis.lambdas), variance, atol=1e-12)


@pytest.mark.parametrize("bandwidth", [0.002, 0.02, 0.1, 0.3, 1.0])
def test_kernel_extremes_are_those_of_the_wrapped_gaussian_kernel(bandwidth: float):
    largest, smallest = Waves.kernel_extremes(bandwidth)
    x = np.linspace(0, 1, 201)
    kernel = wrapped_kernel(x, x, bandwidth)
    assert largest == pytest.approx(kernel.max(), rel=1e-12)
    assert smallest == pytest.approx(kernel.min(), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.3])
def test_the_sensitivity_is_that_of_the_method_sheet(bandwidth: float):
    """METHODS g: Delta^2 = (8 / n^2) sum over odd j of exp(-2 pi^2 j^2 h^2), pi^2 included."""
    release = SpectralDensity(
        "p", Domain((grid("x", 500),)), 1000, Budget.of("1", "1e-6"), (bandwidth,), periodic=True
    )
    odd = sum(math.exp(-2 * (math.pi * j * bandwidth) ** 2) for j in range(1, 999, 2))
    assert release.lattice.sensitivity == pytest.approx(math.sqrt(8 * odd) / 1000, rel=1e-9)


@pytest.mark.parametrize("bandwidth", [0.02, 0.1])
def test_the_noise_is_that_of_the_formula(bandwidth: float):
    """ISE = sigma*^2 Delta^2 (k(0) - 1) (METHODS g), the same error at every point."""
    line = Domain((grid("x", 4000),))
    release = SpectralDensity("p", line, 1000, Budget.of("1", "1e-6"), (bandwidth,), periodic=True)
    sigma = math.sqrt(release.mechanism.variance / release.mechanism.l2_sensitivity_squared)
    largest, smallest = Waves.kernel_extremes(bandwidth)
    formula = sigma**2 * 2 * (largest - smallest) / 1000**2 * (largest - 1)
    assert release.expected_error()[0].value == pytest.approx(formula, rel=1e-4)
    table = release.publish(Noisy(np.zeros(release.mechanism.size, np.int64))).tables[0]
    np.testing.assert_allclose(
        table.columns["standard_error"] * 4000, math.sqrt(formula), rtol=1e-4
    )


@pytest.mark.parametrize(("sizes", "bandwidths"), [((200,), (0.05,)), ((24, 31), (0.1, 0.2))])
def test_without_noise_the_estimate_is_the_wrapped_kernel_density(sizes, bandwidths):
    domain = Domain(tuple(grid(f"x{i}", size) for i, size in enumerate(sizes)))
    release = SpectralDensity("p", domain, 500, Budget.of("1", "1e-6"), bandwidths, periodic=True)
    tally = tally_of(domain, np.random.default_rng(1).integers(0, domain.size, 500))
    density = tally.dense().reshape(sizes) / 500
    for axis, h in enumerate(bandwidths):
        x = centres(sizes[axis])
        density = np.moveaxis(
            np.tensordot(wrapped_kernel(x, x, h), density, axes=(1, axis)), 0, axis
        )
    noisy = Noisy(opened(release, tally))
    np.testing.assert_allclose(
        release.fine.density(release.coefficients(noisy)), density, atol=1e-4
    )
    assert "sin(pi j x)" in release.publish(noisy).tables[1].descriptions["coefficient"]


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("terms", [1, 2, 3, 7])
def test_a_truncated_expansion_is_no_farther_apart_than_its_sensitivity(periodic, terms):
    """Over all pairs of cells; and fewer terms are never dearer."""
    line = Domain((grid("x", 60),))
    share, widths = Budget.of("1", "1e-6"), (0.03,)
    release = SpectralDensity("t", line, 1, share, widths, terms, periodic=periodic)
    whole = SpectralDensity("t", line, 1, share, widths, periodic=periodic)
    assert release.basis.size == (2 * terms if periodic else terms)
    assert release.printed.size == release.fine.size == release.basis.size
    rows = np.stack([release.basis.means(cell) for cell in np.eye(60)]) * np.sqrt(
        release.basis.lambdas
    )
    apart = np.linalg.norm(rows[:, None] - rows[None, :], axis=2).max()
    assert apart <= release.lattice.sensitivity <= whole.lattice.sensitivity
    assert apart > 0.7 * release.lattice.sensitivity


def test_no_terms_are_refused():
    with pytest.raises(ValueError, match="terms: must be positive"):
        SpectralDensity("t", Domain((grid("x", 6),)), 1, Budget.of("1", "0.1"), (0.1,), terms=0)


@pytest.mark.parametrize("shape", [(65536,), (4093,), (61, 67)])
def test_floating_point_moves_whitened_coefficients_by_far_less_than_half_a_step(shape: tuple):
    """As for cosines: the oracle transforms in extended precision."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("this machine has no extended precision")
    rows, bandwidths = 2**24 - 1, (0.5,) * len(shape)
    basis, random = Waves(shape, bandwidths, shape), np.random.default_rng(1)
    high, low = basis.extremes
    lattice = Lattice.for_sensitivity(math.sqrt(2 * (high - low)) / rows, basis.size, rows)
    counts = np.zeros(shape)
    counts.flat[random.integers(0, counts.size, 5000)] += rows // 5001
    counts.flat[0] += rows - counts.sum()
    waves = fft.fftn(counts.astype(np.longdouble) / np.longdouble(rows))
    exact = []
    for numbers in basis.frequencies:
        # Products of cosines and sines are sums over the signs of the frequencies.
        total = np.longdouble(0)
        for signs in np.ndindex(*(2,) * len(shape)):
            j = [(n + 1) // 2 * (1 - 2 * s) for n, s in zip(numbers, signs, strict=True)]
            turn = sum(np.longdouble(a) / size for a, size in zip(j, shape, strict=True))
            factor = np.exp(-1j * np.pi * np.longdouble(1) * turn) * waves[tuple(j)]
            for n, s in zip(numbers, signs, strict=True):
                if n == 0:
                    factor = factor / 2
                elif n % 2:
                    factor = factor / np.sqrt(np.longdouble(2))
                else:
                    factor = factor * 1j * (1 - 2 * s) / np.sqrt(np.longdouble(2))
            total += factor.real
        exact.append(total)
    error = np.abs(np.sqrt(basis.lambdas) * (basis.means(counts / rows) - np.array(exact)))
    assert float(error.max()) < 0.1 * lattice.step
