"""Answers one at a time: the law of the whole path, in any order, at the price of the whole path."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.mechanisms import DiscreteGaussian
from dpcore.releases.densities.kernels import KernelName
from papers.online_function.online import BITS, OnlineFunction
from papers.online_function.order import PLACES
from tests.dpcore.releases.contract import grid

SHARE = Budget.of("1", "1e-6")
LINE, SQUARE = Domain((grid("x", 40),)), Domain((grid("x", 12), grid("y", 10)))
KINDS = {
    "gaussian": (LINE, "gaussian", (0.15,)),
    "exponential in two dimensions": (SQUARE, "exponential", (0.3, 0.4)),
}
every_kind = pytest.mark.parametrize(("domain", "kernel", "bandwidths"), KINDS.values(), ids=KINDS)


def online(domain: Domain, kernel: KernelName, bandwidths: tuple, most: int = 60) -> OnlineFunction:
    return OnlineFunction(domain, 300, SHARE, kernel, bandwidths, most)


def asked(dimensions: int, count: int) -> list[tuple[float, ...]]:
    """Points in no order, some close together, some at the ends."""
    points = np.random.default_rng(5).random((count, dimensions))
    points[-1], points[-2], points[-3] = (1 - 1e-6) * points[0], 0, 1
    return [tuple(point) for point in points.tolist()]


def records(domain: Domain) -> np.ndarray:
    return np.random.default_rng(1).integers(0, domain.size, 300)


def covariance(kernel: str, bandwidths: tuple, points: list) -> np.ndarray:
    places = np.array([[round(x * PLACES) / PLACES for x in point] for point in points])
    result = np.ones((len(points), len(points)))
    for i, h in enumerate(bandwidths):
        away = np.abs(places[:, None, i] - places[None, :, i]) / h
        result *= np.exp(-0.5 * away**2) if kernel == "gaussian" else np.exp(-away)
    return result


@every_kind
def test_in_any_order_the_answers_have_the_covariance_of_the_batch(domain, kernel, bandwidths):
    """Answers are linear in independent coordinates; their covariance, exactly, for shuffled points."""
    points = asked(len(bandwidths), 12)
    shuffled = np.random.default_rng(1).permutation(len(points))
    rows = np.zeros((12, 12))
    for unit in range(12):
        order = online(domain, kernel, bandwidths).order()
        for i, index in enumerate(shuffled):
            place = tuple(round(x * PLACES) for x in points[index])
            order.residual(place)
            rows[index, unit] = order.value(place, float(i == unit))
    np.testing.assert_allclose(rows @ rows.T, covariance(kernel, bandwidths, points), atol=2e-7)


@every_kind
def test_without_noise_answers_are_the_kernel_density(domain, kernel, bandwidths):
    spec = online(domain, kernel, bandwidths)
    cells, points = records(domain), asked(len(bandwidths), 30)
    codes = domain.unpack(cells)
    order = spec.order()
    for point in points:
        place = tuple(round(x * PLACES) for x in point)
        found = order.value(place, float(order.residual(place)[cells].mean()))
        exact = np.ones(len(cells))
        for i, (size, h) in enumerate(zip(domain.shape, bandwidths, strict=True)):
            away = (point[i] - (codes[:, i] + 0.5) / size) / h
            exact *= np.exp(-0.5 * away**2) / (math.sqrt(2 * math.pi) * h)
        height = math.prod(k.height for k in spec.kernels)
        assert found * height == pytest.approx(exact.mean(), abs=1e-6)


@every_kind
def test_no_sequence_of_questions_costs_more_than_the_price(domain, kernel, bandwidths):
    """Whole coordinates of all records, brute force: in a sweep, at random, and crowded together."""
    spec = online(domain, kernel, bandwidths)
    dimensions = len(bandwidths)
    sweep = [(x,) * dimensions for x in np.linspace(0, 1, 60).tolist()]
    crowd = [(0.5 + i / PLACES,) * dimensions for i in range(-30, 30)]
    claim = float(spec.mechanism.l2_sensitivity_squared)
    for points in (sweep, asked(dimensions, 60), crowd, sweep[1::7] + crowd[:20]):
        order, wholes = spec.order(), []
        for point in points:
            place = tuple(round(x * PLACES) for x in point)
            wholes.append(np.rint(np.ldexp(order.residual(place), BITS)))
            order.value(place, 0.0)
        rows = np.array(wholes).T
        squares = (rows**2).sum(axis=1)
        apart = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
        assert apart.max() <= claim


@pytest.mark.parametrize("share", [("1", "0.01"), ("0.5", "0.2"), ("3", "1e-4")])
def test_the_best_adaptive_course_of_questions_gains_no_more_than_the_price(share: tuple[str, str]):
    """Over all adversaries who choose the next distance in view of the answers, by recursion.

    Distances are 1, 2 or 3, their squares add up to 9; losses are whole multiples of 1/(2 variance).
    """
    mechanism = DiscreteGaussian.within(Budget.of(*share), 1, Fraction(9))
    alpha, beta, variance = float(Fraction(share[0])), float(share[1]), float(mechanism.variance)
    z = np.arange(-math.ceil(12 * math.sqrt(variance)), math.ceil(12 * math.sqrt(variance)) + 1)
    law = np.exp(-(z**2) / (2 * variance))
    law /= law.sum()
    reach = 20 * len(z)
    losses = np.arange(-reach, reach + 1) / (2 * variance)
    gained = {0: np.maximum(0, 1 - np.exp(np.minimum(alpha - losses, 700)))}
    for left in range(1, 10):
        choices = [gained[0]]
        for distance in (d for d in (1, 2, 3) if d * d <= left):
            ends = np.clip(
                np.arange(2 * reach + 1)[:, None] + (distance**2 + 2 * distance * z), 0, 2 * reach
            )
            choices.append(gained[left - distance**2][ends] @ law)
        gained[left] = np.max(choices, axis=0)
    at_once = gained[0][np.clip(reach + 9 + 6 * z, 0, 2 * reach)] @ law
    assert at_once * (1 - 1e-9) <= gained[9][reach] <= beta
    assert gained[9][reach] == pytest.approx(at_once, rel=0.2)


def test_invalid_questions_are_refused():
    with pytest.raises(ValueError, match="most_answers"):
        online(LINE, "gaussian", (0.3,), most=0)
    with pytest.raises(ValueError, match="too many for a grid"):
        online(Domain((grid("x", 2**20),)), "gaussian", (0.3,))
    with pytest.raises(ValueError, match="integer or continuous"):
        online(Domain((Categories("c", ("a",)),)), "gaussian", (0.3,))
    with pytest.raises(ValueError, match="rows: too many"):
        OnlineFunction(LINE, 2**40, SHARE, "gaussian", (0.3,), 5)
