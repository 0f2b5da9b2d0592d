"""Whitened bumps: what they stand for, how far apart they are, and what floating point may lose."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.releases.densities.function import ENOUGH, NEAR
from dpcore.releases.densities.kernels import ExponentialKernel, GaussianKernel, Kernel
from dpcore.releases.densities.whitening import JITTER, MOST_POINTS, Whitening

KERNELS = [GaussianKernel(0.4), GaussianKernel(0.05), ExponentialKernel(0.1)]


def whitening(kernel: Kernel, m: int) -> Whitening:
    return Whitening(kernel, (np.arange(m) + 0.5) / m)


def solved(lower: np.ndarray, right: np.ndarray) -> list[Fraction]:
    """L^-1 times a vector, in exact arithmetic."""
    found: list[Fraction] = []
    for row, value in zip(lower.tolist(), right.tolist(), strict=True):
        known = sum((Fraction(x) * y for x, y in zip(row, found, strict=False)), Fraction(0))
        found.append((Fraction(value) - known) / Fraction(row[len(found)]))
    return found


@pytest.mark.parametrize("kernel", KERNELS)
def test_whitened_bumps_are_within_the_stated_slack_of_exact_ones(kernel: Kernel):
    """Also where the condition number of the Gram matrix is beyond floating point."""
    axis, positions, bits = whitening(kernel, 20), np.linspace(0, 1, 5), 22
    for a, row in zip(positions, axis.integers(positions, bits), strict=True):
        exact = solved(axis.factor, kernel.bump(axis.points, a))
        away = [u - Fraction(int(whole), 2**bits) for u, whole in zip(exact, row, strict=True)]
        assert sum(x * x for x in away) <= axis.slack(bits) ** 2
        assert sum(x * x for x in exact) <= 1


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("m", [1, 2, 17, 200])
def test_no_two_records_are_farther_apart_than_in_the_hilbert_space(kernel: Kernel, m: int):
    axis, positions, bits = whitening(kernel, m), np.linspace(0, 1, 101), 22
    rows = axis.integers(positions, bits) / 2**bits
    away = np.linalg.norm(rows[:, None] - rows[None, :], axis=2)
    apart = np.abs(positions[:, None] - positions[None, :])
    claimed = np.sqrt([[2 * (1 - kernel.overlap(x)) for x in line] for line in apart])
    assert np.all(away <= claimed + 2 * axis.slack(bits))
    if m == 200 and isinstance(kernel, GaussianKernel):  # the grid sees all of a smooth function
        assert away.max() >= 0.999 * claimed.max()


@pytest.mark.parametrize("kernel", [GaussianKernel(1.0), ExponentialKernel(1.0)])
def test_the_factor_exceeds_the_covariance_at_the_most_points_allowed(kernel: Kernel):
    axis = whitening(kernel, MOST_POINTS)
    covariance = kernel.covariance(axis.points[:, None], axis.points[None, :])
    excess = axis.factor @ axis.factor.T - covariance
    assert np.linalg.eigvalsh(excess).min() > 0.9 * JITTER
    assert np.diag(excess).max() < 1.1 * JITTER
    assert axis.slack(22) < 1e-5


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.3])
def test_a_bump_smoothed_over_few_points_is_no_lower_than_the_wider_one(bandwidth: float):
    """What reflection adds is no less than what a bump has beyond the bounds."""
    points = (np.arange(math.ceil(ENOUGH / bandwidth)) + 0.5) / math.ceil(ENOUGH / bandwidth)
    line = Whitening(GaussianKernel(bandwidth), points)
    x, places = np.linspace(0, 1, 301), np.linspace(0, 1, 401)
    bumps = line.kernel.bump(points[:, None], places[None, :])
    smoothed = line.smoothed(x) @ np.linalg.solve(line.factor, bumps)
    away = (x[:, None] - places) / bandwidth
    wider = np.exp(-(away**2) / 4) / math.sqrt(2)
    near = np.abs(away) < 6
    assert (wider / smoothed)[near].max() <= NEAR
    assert (wider / smoothed)[near].max() > 0.9  # nor much higher
