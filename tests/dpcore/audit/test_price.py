"""An event costs as much as what its mechanism draws: in its parts, and by what outputs reveal."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.price import audit_price, lost_more, priced_below
from dpcore.audit.releases import covered
from dpcore.mechanisms.gaussian import GaussianEvent
from dpcore.mechanisms.laplace import LaplaceEvent
from dpcore.mechanisms.within_share import WithinShare
from dpcore.releases.base import Release
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import CASES, LAWS

SLOW = ("near series", "near records")
IN_RHO = Budget(rho=Fraction(1, 2))

RELEASES = {name: case.release for name, case in LAWS.items() if name not in SLOW} | {
    f"{name}, in rho": replace(CASES[name].release, share=IN_RHO)
    for name in (
        "quantiles",
        "compressed microdata",
        "gaussian compressed microdata",
        "density at a private bandwidth",
        "descent",
    )
}


def tables_of(release: Release) -> list[ReleaseDraws]:
    return [ReleaseDraws(release, pair) for pair in covered(release, 4)]


@pytest.mark.parametrize("name", RELEASES)
def test_every_event_costs_what_was_drawn(name: str):
    """False alarms: one in a million at each."""
    assert audit_price(tables_of(RELEASES[name]), 800, 1e-6, SeededSource(1)).faults == ()


@pytest.mark.parametrize("name", RELEASES)
def test_an_event_costs_at_most_what_its_share_pays(name: str):
    """What the rounds cost one by one is within the share too: their sum is not overstated."""
    release = RELEASES[name]
    alphas = [part.pure_alpha for part in release.mechanism.one_by_one]
    if release.share.alpha and None not in alphas:
        assert sum(alphas) <= release.share.alpha * (1 + Fraction(1, 10**6))


LAPLACE = LaplaceEvent(Fraction(2), Fraction(4))  # alpha 1/2, rho 1/8
GAUSSIAN = GaussianEvent(Fraction(1), Fraction(4))  # rho 1/8
MAY_FAIL = WithinShare(Fraction(1, 2), Fraction(1, 100), Fraction(0))  # rho 1/8


@pytest.mark.parametrize(
    ("event", "parts", "share", "word"),
    [
        (LAPLACE, [LAPLACE, LAPLACE], Budget.of("1"), "alpha is 0.5 for the event"),
        (LAPLACE, [GAUSSIAN, LAPLACE], IN_RHO, "rho is 0.125 for the event"),
        (GAUSSIAN, [GAUSSIAN, GAUSSIAN], IN_RHO, "rho is 0.125 for the event"),
        (GAUSSIAN, [GAUSSIAN, LaplaceEvent(Fraction(1), Fraction(9))], IN_RHO, "for the event and"),
        (LAPLACE, [MAY_FAIL, LaplaceEvent(Fraction(0), Fraction(1))], IN_RHO, "the chance to fail"),
        (
            MAY_FAIL,
            [LaplaceEvent(Fraction(1), Fraction(5))] * 3,
            Budget.of("1", "0.1"),
            "less alpha than its rounds",
        ),
    ],
)
def test_an_event_that_costs_less_than_its_rounds_is_found(event, parts, share, word):
    (first, *_) = priced_below(event, parts, share)
    assert word in first


def test_outputs_that_reveal_more_than_alpha_or_rho_are_found():
    generator = np.random.default_rng(1)
    assert lost_more(LAPLACE, np.array([0.1, -0.49]), 1e-6) is None
    assert "loss of 0.51" in lost_more(LAPLACE, np.array([0.1, -0.51]), 1e-6)[1]
    right, wrong = (generator.normal(rho, np.sqrt(2 * rho), 4_000) for rho in (1 / 8, 1 / 4))
    assert lost_more(GAUSSIAN, right, 1e-6) is None
    assert "a rho of 0.125" in lost_more(GAUSSIAN, wrong, 1e-6)[1]


@pytest.mark.slow
def test_log_ratios_at_the_price_are_hardly_ever_accused():
    """Of 1,000 at 5%, all with the largest loss that is right: Markov's inequality is far from sharp."""
    generator = np.random.default_rng(2)
    draws = generator.normal(1 / 8, 0.5, (1_000, 300))
    assert sum(bool(lost_more(GAUSSIAN, each, 0.05)) for each in draws) <= 85
