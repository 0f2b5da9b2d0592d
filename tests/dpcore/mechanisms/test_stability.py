"""Histograms of occupied cells: the exact loss on small tables, and 2^60 cells."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.accounting.threshold import least_threshold
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import affordable
from dpcore.line.privacy_line import perturb
from dpcore.mechanisms import StabilityLaplace
from dpcore.mechanisms.stability import StabilityEvent
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import tally_of

WIDE = Domain((Grid("x", 0.0, 1.0, 2**30), Grid("y", 0.0, 1.0, 2**30)))


def law(count: int, scale: float, threshold: int, reach: int = 80) -> np.ndarray:
    """Chances that a cell is absent, then that it shows threshold + 1, + 2, ...; by definition."""
    if count == 0:
        return np.r_[1.0, np.zeros(reach)]
    a = math.exp(-1 / scale)
    shown = threshold + 1 + np.arange(reach)
    chances = (1 - a) / (1 + a) * a ** np.abs(shown - count)
    return np.r_[1 - chances.sum(), chances]


def least_beta(near: tuple[int, ...], far: tuple[int, ...], mechanism: StabilityLaplace) -> float:
    """Of two tables of counts, at the alpha that the scale pays for: cells are independent."""
    joint = []
    for counts in (near, far):
        p = np.ones(1)
        for count in counts:
            p = np.outer(p, law(count, float(mechanism.scale), mechanism.threshold)).ravel()
        joint.append(p)
    alpha = float(mechanism.l1_sensitivity / mechanism.scale)
    return float(np.maximum(joint[0] - math.exp(alpha) * joint[1], 0).sum())


ADD_REMOVE = Adjacency("add-remove")


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=["replaced", "added"])
@pytest.mark.parametrize("budget", [("1", "0.01"), ("2", "0.1"), ("4", "0.001")])
def test_no_record_costs_more_than_beta_and_some_cost_it_all(budget, adjacency):
    share = Budget.of(*budget)
    mechanism = StabilityLaplace.within(share, 2, adjacency)
    sensitivity = mechanism.l1_sensitivity
    assert affordable(mechanism.event, share)
    tables = list(product(range(6), repeat=2))
    worst = max(
        least_beta(near, far, mechanism)
        for near, far in product(tables, repeat=2)
        if sum(abs(n - f) for n, f in zip(near, far, strict=True)) == sensitivity
        if sensitivity == 1 or sum(near) == sum(far)
    )
    beta = float(share.beta)
    a = math.exp(-1 / float(mechanism.scale))
    assert worst <= beta * (1 + 1e-9)
    assert worst == pytest.approx(a**mechanism.threshold / (1 + a), rel=1e-6)
    assert worst > beta * a * 0.999  # one less in the threshold would be too much


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(2), Fraction(2000, 3)])
@pytest.mark.parametrize("beta", ["0.9", "0.5", "1e-6", "1e-50"])
def test_the_threshold_is_affordable_and_the_one_below_is_not(scale: Fraction, beta: str):
    share = Budget(2 / scale, Fraction(beta))
    threshold = least_threshold(scale, share.beta)
    assert affordable(StabilityEvent(Fraction(2), scale, threshold), share)
    if threshold:
        assert not affordable(StabilityEvent(Fraction(2), scale, threshold - 1), share)
    assert not affordable(StabilityEvent(Fraction(2), scale, threshold), Budget(share.alpha))
    assert not affordable(StabilityEvent(Fraction(2), scale, -1), Budget(share.alpha, Fraction(1)))


@pytest.mark.parametrize(
    ("adjacency", "allowed"),
    [
        (REPLACE_ONE, 2),
        (ADD_REMOVE, 1),
        (Adjacency(unit="household"), 2),
        (Adjacency("add-remove", unit="household"), 1),
        (Adjacency(most=2), None),
        (Adjacency("add-remove", most=2), None),
        (Adjacency("add-remove", most=2, weighted=True), None),
    ],
)
def test_only_the_sensitivity_of_the_stated_neighbours_has_a_price(
    adjacency: Adjacency, allowed: int | None
):
    rich = Budget.of("100", "0.5")
    for sensitivity in (Fraction(1, 2), *map(Fraction, range(1, 7))):
        event = StabilityEvent(sensitivity, Fraction(20), 400, adjacency=adjacency)
        assert affordable(event, rich) == (sensitivity == allowed)
        assert (event.concentrated is not None) == (sensitivity == allowed)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE, Adjacency(unit="household")])
def test_the_privacy_line_prices_the_neighbours_that_the_ledger_records(adjacency: Adjacency):
    share = Budget.of("1", "1e-6")
    release = ThresholdedHistogram("w", WIDE, 5000, share, adjacency=adjacency)
    assert release.mechanism.event == release.event
    exact = release.statistic(tally_of(WIDE, [3]))
    perturb(exact, release.mechanism, share, SeededSource(1))
    if adjacency != REPLACE_ONE:
        other = replace(release.mechanism, adjacency=Adjacency(most=2))
        with pytest.raises(PrivacyLineError, match="no price"):
            perturb(exact, other, share, SeededSource(1))


def test_a_share_too_small_for_any_noise_is_refused_without_a_search():
    with pytest.raises(ValueError, match="this noise cannot be drawn"):
        StabilityLaplace.within(Budget.of("1e-40", "1e-6"), 10, REPLACE_ONE)


def test_two_to_the_sixty_cells_cost_no_more_than_the_occupied_ones():
    release = ThresholdedHistogram("w", WIDE, 5000, Budget.of("1", "1e-6"))
    pure = ThresholdedHistogram("w", WIDE, 5000, Budget.of("1"))
    assert release.mechanism.threshold < 0.4 * pure.mechanism.threshold
    cells = np.repeat([3, 2**59, 2**60 - 1], [1000, 3999, 1])
    noisy = perturb(
        release.statistic(tally_of(WIDE, cells)), release.mechanism, release.share, SeededSource(1)
    )
    assert noisy.cells.tolist() == [3, 2**59]
    assert np.abs(noisy.values - [1000, 3999]).max() < 40
    facts = release.publish(noisy).facts
    assert facts["threshold"] == release.mechanism.threshold
    assert not any("hold nobody" in s.quantity for s in release.expected_error())


def test_an_empty_cell_is_never_shown_and_without_beta_none_is_drawn_this_way():
    domain = Domain((Categories("c", tuple(range(50))),))
    release = ThresholdedHistogram("h", domain, 1, Budget.of("0.01", "0.9"))
    exact = release.statistic(tally_of(domain, [7]))
    shown = {
        int(cell)
        for seed in range(40)
        for cell in perturb(exact, release.mechanism, release.share, SeededSource(seed)).cells
    }
    assert shown == {7}
    with pytest.raises(ValueError, match="needs beta between 0 and 1"):
        StabilityLaplace.within(Budget.of("1"), 50, REPLACE_ONE)
