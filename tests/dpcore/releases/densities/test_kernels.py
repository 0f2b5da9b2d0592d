"""Kernels: norms and overlaps by quadrature, and the constants of the method sheet."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from dpcore.releases.densities.kernels import ExponentialKernel, GaussianKernel, distance

BANDWIDTHS = [0.03, 0.1, 0.25, 0.9]


def sobolev_overlap(kernel: ExponentialKernel, apart: float) -> float:
    """<phi_0, phi_apart> in the space of exp(-gamma |x - y|): (1/2)(gamma <f, g> + <f', g'>/gamma)."""
    gamma = 1 / kernel.bandwidth

    def bump(x: float, a: float) -> float:
        return float(kernel.bump(np.array(x), np.array(a)))

    def slope(x: float, a: float) -> float:
        return -(x - a) * gamma**2 * bump(x, a)

    def integrand(x: float) -> float:
        both = gamma * bump(x, 0) * bump(x, apart) + slope(x, 0) * slope(x, apart) / gamma
        return both / 2

    ends = (-9 * kernel.bandwidth, apart + 9 * kernel.bandwidth)
    return quad(integrand, *ends, limit=400)[0]


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("steps", [0, 0.7, math.sqrt(6), math.sqrt(10), 5])
def test_overlaps_of_the_exponential_kernel_are_its_sobolev_products(bandwidth, steps):
    kernel = ExponentialKernel(bandwidth)
    assert kernel.overlap(steps * bandwidth) == pytest.approx(
        sobolev_overlap(kernel, steps * bandwidth), abs=1e-9
    )


@pytest.mark.parametrize("kind", [GaussianKernel, ExponentialKernel])
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_bumps_times_height_are_densities_and_overlaps_are_least_where_stated(kind, bandwidth):
    kernel = kind(bandwidth)
    mass = quad(lambda x: kernel.height * float(kernel.bump(np.array(x), 0.0)), -9, 9, points=[0])
    assert mass[0] == pytest.approx(1, abs=1e-8)
    overlaps = [kernel.overlap(apart) for apart in np.linspace(0, 1, 20_001)]
    assert overlaps[0] == 1
    assert min(overlaps) >= kernel.least - 1e-15
    assert min(overlaps) == pytest.approx(kernel.least, abs=1e-7)


def test_sensitivities_have_their_reference_values():
    """.66806/(n h), .30728/(n h^2), .14134/(n h^3); sqrt2 / (n (2 pi h^2)^(d/2))."""
    h = 0.05
    for dimensions, constant in [(1, 0.66806), (2, 0.30728), (3, 0.14134)]:
        kernels = (ExponentialKernel(h),) * dimensions
        height = math.prod(kernel.height for kernel in kernels)
        assert distance(kernels) * height * h**dimensions == pytest.approx(constant, abs=6e-6)
        kernels = (GaussianKernel(h),) * dimensions
        height = math.prod(kernel.height for kernel in kernels)
        expected = math.sqrt(2) / (2 * math.pi * h * h) ** (dimensions / 2)
        assert distance(kernels) * height == pytest.approx(expected)


@pytest.mark.parametrize("kind", [GaussianKernel, ExponentialKernel])
@pytest.mark.parametrize("bandwidths", [(0.3,), (0.3, 0.8), (0.9, 0.4), (0.2, 0.5, 1.0)])
def test_distance_is_the_supremum_over_pairs_of_the_unit_box(kind, bandwidths):
    kernels = tuple(kind(h) for h in bandwidths)
    lines = [[k.overlap(apart) for apart in np.linspace(0, 1, 101)] for k in kernels]
    products = lines[0]
    for line in lines[1:]:
        products = np.multiply.outer(products, line)
    largest = math.sqrt(2 * (1 - np.min(products)))
    assert largest <= distance(kernels)
    assert largest == pytest.approx(distance(kernels), rel=1e-3)
