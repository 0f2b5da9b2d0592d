"""Pure-alpha densities: sensitivities, errors, and the printed mechanism that has neither."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.sampling.source import SeededSource
from papers.coefficient_laplace.release import CoefficientDensity
from papers.difference_body.release import BodyDensity
from papers.k_norm.release import GammaDensity
from tests.chance import reach
from tests.dpcore.releases.contract import repeated_draws, tally_of

LINE = Domain((Grid("x", 0.0, 1.0, 512),))
ROWS = 1000
PURE = Budget.of("1")


def release(kind: type, bandwidth: float, share: Budget = PURE):
    return kind("d", LINE, ROWS, share, (bandwidth,))


@pytest.mark.slow
@pytest.mark.parametrize(("bandwidth", "terms"), [(0.002, 16), (0.2, 5), (1.0, 1)])
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
    shares = np.mean(np.abs(values) <= half, axis=1)
    assert np.mean(shares) > 0.9 - reach(shares)  # the published intervals, of 90 per cent


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "periodic"), [(5, False), (12, True), (4096, False)])
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
