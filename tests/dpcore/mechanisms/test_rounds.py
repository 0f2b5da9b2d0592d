"""Rounds that measure what noisy numbers chose: each is paid for, and all lie in the result."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.line.mechanism import affordable
from dpcore.line.privacy_line import perturb
from dpcore.mechanisms import rounds
from dpcore.mechanisms.rounds import GAUSSIAN_PRICE, AdaptiveRounds
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import LAWS, tally_of

ROUNDS = {
    n: case.release
    for n, case in LAWS.items()
    if isinstance(case.release.mechanism, AdaptiveRounds)
}
every_mechanism = pytest.mark.parametrize("name", ROUNDS)


@every_mechanism
def test_every_round_crosses_the_privacy_line_and_together_they_pay_what_the_event_costs(
    name: str, monkeypatch
):
    release, paid = ROUNDS[name], []

    def watched(exact, mechanism, share, source):
        paid.append(share.rho)
        return perturb(exact, mechanism, share, source)

    monkeypatch.setattr(rounds, "perturb", watched)
    mechanism = release.mechanism
    exact = release.statistic(tally_of(release.domain, LAWS[name].near))
    perturb(exact, mechanism, release.share, SeededSource(1))
    assert len(paid) == len(mechanism.laws)
    assert sum(paid) == mechanism.event.concentrated[0]


@every_mechanism
def test_a_result_holds_what_every_round_drew_where_it_says_so(name: str, monkeypatch):
    release, drawn = ROUNDS[name], []
    honest = rounds._drawn
    monkeypatch.setattr(rounds, "_drawn", lambda *of: drawn.append(honest(*of)) or drawn[-1])
    exact = release.statistic(tally_of(release.domain, LAWS[name].near))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(2))
    for part, once in zip(release.mechanism.by_round(noisy.values[None]), drawn, strict=True):
        np.testing.assert_array_equal(part, once)


CHOOSING = ("density at a private bandwidth", "function at a private bandwidth")


@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.parametrize("rho", [False, True])
def test_what_the_choice_costs_is_in_the_price_and_no_more_is_spent(name: str, rho: bool):
    release = ROUNDS[name]
    share = Budget(Fraction(0), rho=Fraction("0.1")) if rho else release.share
    event = replace(release, share=share).event
    assert affordable(event, share)
    for key, factor in (("score_scale", Fraction(9, 10)), ("selections", 0), ("score_scale", -1)):
        changed = getattr(event, key) * factor
        changed = int(changed) if key == "selections" else Fraction(changed)
        assert not affordable(replace(event, **{key: changed}), share)
    assert not affordable(event, share * Fraction(999, 1000))
    each, spent = 2 * event.score_sensitivity / event.score_scale, event.again_sensitivity
    spent /= event.again_scale
    if event.noise == "discrete-laplace":
        assert event.pure_alpha == spent + event.selections * each
    noisy = spent / 2 if event.noise == "discrete-gaussian" else spent**2 / 2
    assert event.concentrated == (noisy + event.selections * each**2 / 8, 0)


@pytest.mark.parametrize("length", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("lean", [0.1, 0.5, 0.8])
def test_choices_and_gaussian_noise_together_lose_no_more_than_the_noise_that_stands_for_them(
    length: float, lean: float
):
    """Exactly, for the choices of two answers that dominate all others, leaning to either side."""

    def beta(mu: float, alpha: float) -> float:
        upper, lower = stats.norm.cdf([mu / 2 - alpha / mu, -mu / 2 - alpha / mu])
        return float(upper - np.exp(alpha) * lower)

    times, mu = 6, 0.4
    gain, loss = length * lean, length * (lean - 1)
    chance = np.exp(gain) * np.expm1(loss) / (np.exp(loss) - np.exp(gain))
    stands = (mu**2 + times * float(GAUSSIAN_PRICE) * length**2) ** 0.5
    for alpha in (0.1, 1.0, 3.0):
        exact = sum(
            stats.binom.pmf(j, times, chance) * beta(mu, alpha - j * gain - (times - j) * loss)
            for j in range(times + 1)
        )
        assert exact <= beta(stands, alpha) * (1 + 1e-9)
    # It is nearly as little as can be said: half of it would be too little for some alpha.
    less = (mu**2 + times * float(GAUSSIAN_PRICE) / 2 * length**2) ** 0.5
    if lean == 0.5:
        exact = sum(
            stats.binom.pmf(j, times, chance) * beta(mu, 0.1 - j * gain - (times - j) * loss)
            for j in range(times + 1)
        )
        assert exact > beta(less, 0.1)
