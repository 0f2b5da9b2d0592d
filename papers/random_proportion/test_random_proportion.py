"""Counts under random differential privacy: the chance gamma is counted out over all draws."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import audit_release
from dpcore.errors import PrivacyLineError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Statistic
from dpcore.mechanisms.random_laplace import RandomLaplace
from dpcore.sampling.source import SeededSource
from papers.random_proportion.mechanism import RandomProportion, chance_of_change
from papers.random_proportion.release import RandomCount
from tests.chance import FALSE_ALARM
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import SINGLE, drawn, tally_of


def count(rows: int, gamma: str, alpha: str = "1") -> RandomCount:
    return RandomCount("r", SINGLE, rows, Budget.of(alpha, 0, gamma), (1,))


@pytest.mark.parametrize(("rows", "gamma"), [(6, "0.3"), (7, "0.45"), (9, "0.2"), (9, "0.5")])
def test_the_chance_that_a_random_replacement_is_not_covered_is_at_most_gamma(rows, gamma):
    release, chances = count(rows, gamma), []
    for ones in range(rows + 2):
        draws = (1,) * ones + (0,) * (rows + 1 - ones)
        # Given the n + 1 draws, any two of them are as likely to be the record and its replacement.
        outcomes = [
            release.promises(*(tally_of(SINGLE, draws[:i] + draws[i + 1 :]) for i in pair))
            for pair in permutations(range(rows + 1), 2)
        ]
        chances.append(Fraction(outcomes.count(False), len(outcomes)))
    assert max(chances) == release.mechanism.event.exposure <= Fraction(gamma)
    assert chances == chances[::-1]
    assert max(chances) > 0


def test_the_highest_count_that_gamma_covers_is_exact_and_is_twice_that_of_two_cells():
    share = Budget.of("1", 0, "0.1")
    below = RandomProportion.within(share, Fraction(1), 6366).exact_below
    assert below == 336
    assert chance_of_change(336, 6366) <= Fraction(1, 10) < chance_of_change(337, 6366)
    # Hall's own bound, 2 (C/n + 1/n) <= gamma, ends at 317.
    assert max(c for c in range(400) if Fraction(2 * (c + 1), 6366) <= Fraction(1, 10)) == 317
    assert RandomLaplace.within(share, 2, Fraction(2), 6366, None).exact_below == 163


def test_counts_near_either_end_are_exact_and_others_have_the_stated_noise_and_no_other():
    mechanism = RandomProportion.within(Budget.of("0.2", 0, "0.01"), Fraction(1), 6000)
    low = mechanism.exact_below
    values = np.array([0, low - 1, low, 3000, 6000 - low, 6001 - low, 6000])
    draws = np.array(
        [
            mechanism.repeat(Statistic(values[i : i + 1]), 5000, SeededSource(i)).values
            for i in range(len(values))
        ]
    )
    exact = [0, 1, 5, 6]
    assert (draws[exact] == values[exact, None]).all()
    noise = (draws - values[:, None])[2:5].ravel()
    assert goodness_of_fit(noise, mechanism.event) > FALSE_ALARM
    assert goodness_of_fit(noise, mechanism.event, stretch=2 / 3) < 1e-9
    assert goodness_of_fit(noise, mechanism.event, stretch=3 / 2) < 1e-9


def test_gamma_that_covers_no_count_is_refused_and_nothing_is_drawn_without_it():
    with pytest.raises(ValueError, match=r"20 records costs a gamma of at least 0.0952"):
        _ = count(20, "0.09").mechanism
    release = count(100, "0.1")
    exact = release.statistic(tally_of(SINGLE, (0,) * 100))
    for share in (Budget.of("1"), Budget.of("1", "0.5"), Budget.of("0.9", 0, "0.5")):
        with pytest.raises(PrivacyLineError, match="no price"):
            perturb(exact, release.mechanism, share, SeededSource(1))


def test_an_interval_holds_exact_counts_and_noisy_ones():
    release = count(200, "0.2")
    below = release.mechanism.exact_below
    for ones in (below - 1, 60):
        held, exact = [], []
        for seed in range(200):
            noisy = drawn(release, (np.arange(200) < ones).astype(int), seed)
            columns = release.publish(noisy).tables[0].columns
            held.append(columns["lower_90"][0] <= ones <= columns["upper_90"][0])
            exact.append(columns["count"][0] == ones)
        assert all(exact) == (ones < below)
        assert np.mean(held) > 0.84


def test_an_audit_keeps_to_neighbours_that_the_promise_covers(monkeypatch):
    result = audit_release(count(400, "0.1"), draws=4000, source=SeededSource(4))
    assert 0.2 < result.lower_bound <= 1
    monkeypatch.setattr(RandomCount, "promises", lambda self, near, far: True)
    found = audit_release(count(400, "0.1"), draws=4000, source=SeededSource(4))
    assert found.lower_bound > 2
