"""Pure-alpha densities: sensitivities, errors, and the printed mechanism that has neither."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.sampling.source import SeededSource
from papers.coefficient_laplace.release import CoefficientDensity
from papers.difference_body.release import BodyDensity
from papers.k_norm.release import GammaDensity
from tests.dpcore.releases.contract import repeated_draws, tally_of

LINE = Domain((Grid("x", 0.0, 1.0, 512),))
ROWS = 1000
PURE = Budget.of("1")


def release(kind: type, bandwidth: float, share: Budget = PURE):
    return kind("d", LINE, ROWS, share, (bandwidth,))


@pytest.mark.parametrize("bandwidth", [0.06, 0.1, 0.3])
def test_gamma_noise_is_that_of_the_formula(bandwidth: float):
    density = release(GammaDensity, bandwidth)
    lambdas = np.exp(-0.5 * (np.pi * bandwidth * np.arange(1, density.basis.size + 1)) ** 2)
    odd = np.exp(-0.5 * (np.pi * bandwidth * np.arange(1, 200, 2)) ** 2).sum()
    squared = 8 * odd / ROWS**2  # METHODS g, reflected
    expected = (density.basis.size + 1) * squared * lambdas.sum()
    assert density.coefficient_variances.sum() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("terms", [1, 2, 5, 16])
@pytest.mark.parametrize("bandwidth", [0.002, 0.2, 1.0])
def test_the_l1_sensitivity_of_a_series_is_the_most_over_all_pairs(bandwidth: float, terms: int):
    density = replace(release(CoefficientDensity, bandwidth), terms=terms)
    x = np.linspace(0, 1, 2001)
    j = np.arange(1, density.basis.size + 1)[:, None]
    whitened = np.sqrt(density.basis.lambdas)[:, None] * math.sqrt(2) * np.cos(math.pi * j * x)
    apart = np.zeros((len(x), len(x)))
    for row in whitened:
        apart += np.abs(np.subtract.outer(row, row))
    assert apart.max() <= density.l1_sensitivity * ROWS
    assert apart.max() == pytest.approx(density.l1_sensitivity * ROWS, rel=0.025)


def test_a_series_without_damping_has_less_noise_than_as_printed():
    """2 c0 m/n is the sum of what each coefficient may move by, which no two records reach."""
    series = replace(release(CoefficientDensity, 0.002), terms=8)
    printed = 2 * math.sqrt(2) * 8
    assert 0.6 < series.l1_sensitivity * ROWS / printed < 0.7
    # Of two terms, by hand: x = 1 and cos(pi y) = -1/4 are farthest apart.
    two = replace(release(CoefficientDensity, 0.002), terms=2).l1_sensitivity * ROWS
    assert two == pytest.approx(math.sqrt(2) * 1.25 * (1 + 2 * 0.75), rel=0.01)


@pytest.mark.parametrize("kind", [GammaDensity, CoefficientDensity, BodyDensity])
def test_the_stated_error_is_that_of_many_draws(kind: type):
    density = release(kind, 0.15)
    tally = tally_of(LINE, np.arange(ROWS) % 300)
    draws = repeated_draws(density, tally, 1500, SeededSource(1)).astype(np.int64)
    exact = density.basis.means(tally.dense() / ROWS) * density.basis.lambdas
    estimates = np.array([density.coefficients(Noisy(draw)) for draw in draws])
    squared = np.mean((estimates - exact) ** 2, axis=0)
    np.testing.assert_allclose(squared, density.coefficient_variances, rtol=0.25)

    values = np.array([density.printed.density(estimate - exact) for estimate in estimates]) - 1
    half = 1.645 * np.sqrt(density.grid_variance(density.printed))
    assert np.mean(np.abs(values) <= half) > 0.885  # the published intervals, of 90 per cent


@pytest.mark.parametrize("bandwidth", [0.15, 0.2, 0.3])
def test_the_body_of_what_a_record_changes_has_the_least_noise(bandwidth: float):
    """Of the pure mechanisms of one column, for bandwidths that leave it six coefficients at most."""
    body, gamma, binned = (
        release(kind, bandwidth).coefficient_variances.sum()
        for kind in (BodyDensity, GammaDensity, BinnedDensity)
    )
    assert body < 0.95 * binned
    assert body < 0.95 * gamma


def test_the_noise_of_coefficients_hangs_together_and_errors_say_so():
    density = release(BodyDensity, 0.2)
    draws = repeated_draws(density, tally_of(LINE, [0] * ROWS), 3000, SeededSource(2))
    noise = (draws - draws.mean(axis=0)) * density._unit
    alike = density._covariance / np.sqrt(np.outer(*[density.coefficient_variances] * 2))
    np.testing.assert_allclose(np.corrcoef(noise.T), alike, atol=0.1)
    assert np.abs(alike - np.eye(len(alike))).max() > 0.12
    values = density.basis.functions(np.array([[0.0], [0.5], [0.9]]))
    expected = np.var(values @ noise.T, axis=1)
    np.testing.assert_allclose(density._variance_of(values), expected, rtol=0.15)


def test_for_small_bandwidths_binning_is_better_as_the_plan_is_told():
    noise = [
        release(kind, 0.07).coefficient_variances.sum() for kind in (BinnedDensity, GammaDensity)
    ]
    assert 2 * noise[0] < noise[1]
    gaussian = release(SpectralDensity, 0.2, Budget.of("1", "1e-6")).coefficient_variances.sum()
    assert 2.5 * release(GammaDensity, 0.2).coefficient_variances.sum() < gaussian


def test_bandwidths_that_need_too_many_coefficients_or_none_and_planes_are_refused():
    for bandwidth in (0.03, 1.0):
        with pytest.raises(ValueError, match="use another bandwidth, or binned-laplace"):
            _ = release(GammaDensity, bandwidth).mechanism
    for bandwidth, says in ((0.1, "asks for 8 coefficients"), (0.9, "asks for 0 coefficients")):
        with pytest.raises(ValueError, match=says):
            _ = release(BodyDensity, bandwidth).mechanism
    plane = Domain((Grid("x", 0, 1, 16), Grid("y", 0, 1, 16)))
    with pytest.raises(ValueError, match="difference-body is for one column"):
        BodyDensity("d", plane, ROWS, PURE, (0.3, 0.3))
    with pytest.raises(ValueError, match="coefficient-laplace is for one column"):
        CoefficientDensity("d", plane, ROWS, PURE, (0.3, 0.3))


# The mechanism of Hall (2012), chapter 4, as printed --------------------------------------------


def curve(degree: int, points: np.ndarray) -> np.ndarray:
    """(2m, k) the trigonometric moments of points."""
    angles = 2 * np.pi * np.outer(np.arange(1, degree + 1), points)
    return math.sqrt(2) * np.concatenate([np.cos(angles), np.sin(angles)])


def gauge(degree: int, moments: np.ndarray, symmetric: bool) -> float:
    """The least mass of a measure with these moments (of its larger part, if it is signed)."""
    grid = curve(degree, np.arange(24 * (degree + 1)) / (24 * (degree + 1)))
    if not symmetric:
        return float(linprog(np.ones(grid.shape[1]), A_eq=grid, b_eq=moments).fun)
    both = np.hstack([grid, -grid])
    balanced = np.r_[np.ones(grid.shape[1]), -np.ones(grid.shape[1])]
    found = linprog(
        np.ones(both.shape[1]) / 2, A_eq=np.vstack([both, balanced]), b_eq=np.r_[moments, 0]
    )
    return float(found.fun)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 8])
def test_the_printed_body_loses_half_of_alpha_times_degree_plus_one(degree: int):
    """Its noise has scale 2/(n alpha), as if no two records were farther apart than 2."""
    ends = curve(degree, np.array([0.0, 1 / (degree + 1)]))
    apart = gauge(degree, ends[:, 0] - ends[:, 1], symmetric=False)
    assert apart == pytest.approx(degree + 1, rel=1e-6)
    assert gauge(degree, -ends[:, 0], symmetric=False) == pytest.approx(degree, rel=1e-6)
    true_alpha = apart / 2  # at a nominal alpha of 1
    assert true_alpha == pytest.approx((degree + 1) / 2)
    # The difference body has no such pair: its sensitivity is 1.
    assert gauge(degree, ends[:, 0] - ends[:, 1], symmetric=True) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("cells", [3, 5, 12, 4096])
def test_the_difference_body_is_round_at_every_bandwidth(periodic: bool, cells: int):
    """One trial in a hundred in the ball around it is inside, so that noise is drawn at once.

    Of 10,000 trials fewer than 50 are inside with a chance below 1e-6 where one in a hundred is.
    """
    domain, generator = Domain((Grid("x", 0.0, 1.0, cells),)), np.random.default_rng(1)
    found = 0
    for bandwidth in np.geomspace(0.03, 1, 15).tolist():
        release = BodyDensity("d", domain, 10_000, Budget.of("1"), (bandwidth,), periodic=periodic)
        try:
            body = release.mechanism.body
        except ValueError:  # no number of coefficients that it takes
            continue
        found += 1
        points = generator.normal(size=(10_000, body.dimension))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        points *= body.diameter * generator.random((10_000, 1)) ** (1 / body.dimension)
        heights = np.abs(points @ np.array(body.directions).T)
        assert np.sum(np.all(heights <= body.widths, axis=1)) >= 50
    assert found > 0
